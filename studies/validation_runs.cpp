#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/process.hpp"
#include "common/random.hpp"
#include "common/units.hpp"
#include "sim/run/simulate.hpp"
#include "studies/validation.hpp"
#include "studies/variation_fit.hpp"

namespace ganymede::studies {
namespace {
/// Absolute relative errors of predicted cells.
struct CellErrors {
  /// Sums over the cells that have a certain baseline.
  struct BaselineErrors {
    std::size_t count = 0;
    double sum = 0;             ///< of the baseline's errors
    double prediction_sum = 0;  ///< of the predictions' errors
  };
  std::size_t count = 0;
  std::size_t in_interval = 0;  ///< measurements inside the stated interval
  double sum = 0, worst = 0;
  std::map<std::string, BaselineErrors> baselines;  ///< by the baseline's name
  double mean() const { return sum / static_cast<double>(count); }
};

bool has_tag(const OrderedJson& cell, const std::string& tag) {
  return tag.empty() ||
         (cell.contains("tags") && std::find(cell["tags"].begin(), cell["tags"].end(), tag) != cell["tags"].end());
}

std::string quantity_of(const OrderedJson& cell) {
  return cell.contains("quantity") ? cell["quantity"].get<std::string>() : "time";
}

/// Errors of the predicted cells of the quantity with this tag (all if it is empty), without alternative readings.
CellErrors errors_of(const OrderedJson& cells, const std::string& tag, const std::string& quantity = "time") {
  CellErrors out;
  for (const OrderedJson& cell : cells) {
    if (!cell.contains("predicted") || cell.contains("alternative")) continue;
    if (!has_tag(cell, tag) || quantity_of(cell) != quantity) continue;
    const double error = std::abs(cell["error"].get<double>());
    ++out.count;
    out.in_interval += cell["interval_holds"].get<bool>() ? 1 : 0;
    out.sum += error;
    out.worst = std::max(out.worst, error);
    for (const OrderedJson& baseline : cell["baselines"]) {
      CellErrors::BaselineErrors& against = out.baselines[baseline["name"]];
      ++against.count;
      against.sum += std::abs(baseline["error"].get<double>());
      against.prediction_sum += error;
    }
  }
  return out;
}

/// "summary" of a study or of all.
OrderedJson summary_json(const CellErrors& errors) {
  OrderedJson out = {{"cells", errors.count}};
  if (errors.count == 0) return out;
  out["mean_error"] = errors.mean();
  out["worst_error"] = errors.worst;
  out["held_by_interval"] = static_cast<double>(errors.in_interval) / static_cast<double>(errors.count);
  OrderedJson baselines = OrderedJson::array();
  for (const auto& [name, against] : errors.baselines)
    baselines.push_back({{"name", name},
                         {"cells", against.count},
                         {"mean_error", against.sum / static_cast<double>(against.count)},
                         {"skill", against.sum > 0 ? 1 - against.prediction_sum / against.sum : 0},
                         {"beaten", against.prediction_sum < against.sum}});
  out["baselines"] = baselines;
  return out;
}

/// How often intervals hold, and how wide they are.
struct Coverage {
  int cells = 0, held = 0;
  double width = 0, off = 0;
  std::set<std::string> sources;
  void add(double value, const OrderedJson& interval, bool holds) {
    ++cells;
    held += holds ? 1 : 0;
    width += (interval[1].get<double>() - interval[0].get<double>()) / 2 / value;
  }
  OrderedJson json() const {
    return {{"cells", cells}, {"held", static_cast<double>(held) / cells}, {"mean_half_width", width / cells}};
  }
};

/// "coverage": for each class of evidence the number of cells and of the studies that they are from, the share whose
/// 90 % interval holds, and the intervals' mean half-width over the prediction; the same of what `simulate` says of the
/// cells, if they were replayed. Alternative readings and cells without a class are left out.
OrderedJson coverage_json(const std::vector<OrderedJson>& studies) {
  std::map<std::string, std::pair<Coverage, Coverage>> classes;  // the second as `simulate` states it
  for (const OrderedJson& study : studies)
    for (const OrderedJson& cell : study["cells"]) {
      if (!study["in_totals"].get<bool>() || !cell.contains("evidence") || cell.contains("alternative")) continue;
      if (quantity_of(cell) != "time") continue;
      auto& [mine, replayed] = classes[cell["evidence"]];
      mine.sources.insert(study["name"]);
      const double value = cell["predicted"].get<double>();
      mine.add(value, cell["interval_90"], cell["interval_holds"].get<bool>());
      if (!cell.contains("replay")) continue;
      const OrderedJson& run = cell["replay"];
      replayed.add(run["value"].get<double>(), run["interval"], run["holds"].get<bool>());
      replayed.off += std::abs(run["value"].get<double>() / value - 1);
    }
  OrderedJson out = OrderedJson::array();
  for (const auto& [evidence, sums] : classes) {
    OrderedJson row = {{"evidence", evidence}, {"sources", sums.first.sources.size()}};
    row.update(sums.first.json());
    if (sums.second.cells > 0) {
      row["replay"] = sums.second.json();
      row["replay"]["off"] = sums.second.off / sums.second.cells;
    }
    out.push_back(std::move(row));
  }
  return out;
}

OrderedJson cell_json(const std::string& series, const std::string& what, const std::string& unit, double measured,
                      const char* role, const std::vector<std::string>& tags) {
  OrderedJson out = {{"series", series}, {"what", what}, {"unit", unit}, {"role", role}};
  if (measured > 0) out["measured"] = measured;
  if (!tags.empty()) out["tags"] = tags;
  return out;
}

void add_prediction(OrderedJson& cell, double value, double low, double high, const std::vector<Baseline>& baselines) {
  const auto measured = cell["measured"].get<double>();
  cell["predicted"] = value;
  cell["interval_90"] = {low, high};
  cell["error"] = value / measured - 1;
  cell["interval_holds"] = measured >= low && measured <= high;
  OrderedJson all = OrderedJson::array();
  for (const Baseline& baseline : baselines)
    all.push_back({{"name", baseline.name}, {"value", baseline.value}, {"error", baseline.value / measured - 1}});
  cell["baselines"] = all;
}

/// Values that print alike are no order: a difference of less than half of the fourth digit is the model's noise.
constexpr double kClaimMargin = 5e-4;

/// A value for an error message.
std::string shortened(const Json& value) {
  return value.is_array() ? "an array" : value.is_object() ? "an object" : value.dump();
}

/// The results of a study's scenarios, each simulated once, and its answers.
class StudyRuns {
 public:
  explicit StudyRuns(const Validation& validation) {
    for (const auto& [name, node] : validation.runs) {
      const sim::Scenario scenario = sim::read_scenario(node);
      const std::string text = run_child([&] { return documents::result_text(sim::simulate(scenario)); });
      results_[name] = Json::parse(text);
    }
    for (const StudyAnswer& answer : validation.answers) results_[answer.name] = answer.result.value();
  }
  /// The number that a JSON pointer finds in the result of `run`. Throws ConfigError with `place` if there is none.
  double value(const std::string& run, const std::string& pointer, const std::string& place) const {
    const Json& result = results_.at(run);
    const JsonPointer at(pointer);
    if (!result.contains(at))
      throw ConfigError(fmt::format("{}: the result of \"{}\" has no \"{}\"", place, run, pointer));
    const Json& found = result.at(at);
    if (found.is_number()) return found.get<double>();
    double value = NAN;
    if (found.is_string()) {  // as money is
      const std::string text = found.get<std::string>();
      if (std::from_chars(text.data(), text.data() + text.size(), value).ptr != text.data() + text.size()) value = NAN;
    }
    if (!std::isfinite(value))
      throw ConfigError(fmt::format("{}: the result of \"{}\" has at \"{}\" {}, expected a number", place, run, pointer,
                                    shortened(found)));
    return value;
  }

 private:
  std::map<std::string, Json> results_;
};

void predict_series(Validation& validation, bool replay, OrderedJson& out) {
  std::vector<ScalingSeries> before;
  for (ScalingSeries& series : validation.series) {
    for (const std::string& text : series.fit(before)) out["fitted"].push_back(text);
    for (const ScalingCell& cell : series.cells()) {
      OrderedJson row = cell_json(
          series.name(), fmt::format("{} GPU{}, {} images each", cell.gpus, cell.gpus == 1 ? "" : "s", cell.batch),
          series.unit(), cell.measured, cell.fit ? "fit" : "predict", cell.tags);
      row["gpus"] = cell.gpus;
      if (series.alternative()) row["alternative"] = true;
      if (!cell.fit) {
        const CellPrediction prediction = series.predict(cell);
        add_prediction(row, prediction.value, prediction.low, prediction.high, prediction.baselines);
        row["evidence"] = prediction.evidence;
        row["executor"] = series.eager() ? "eager" : "graph";
        row["repeat"] = series.repeat();
        row["parts"] = {{"alone_s", prediction.parts.alone_s},
                        {"collectives_s", prediction.parts.collectives_s},
                        {"step_s", prediction.parts.step_s},
                        {"measured_s", prediction.parts.measured_s},
                        {"pause_s", prediction.parts.pause_s},
                        {"bytes", prediction.parts.bytes},
                        {"links_half_width", prediction.parts.links_half_width}};
        if (const auto simulated = replay ? series.replay(cell) : std::nullopt)
          row["replay"] = {{"value", simulated->value},
                           {"interval", {simulated->low, simulated->high}},
                           {"holds", cell.measured >= simulated->low && cell.measured <= simulated->high}};
      }
      out["cells"].push_back(std::move(row));
    }
    before.push_back(series);
  }
}

void predict_curves(const Validation& validation, OrderedJson& out) {
  for (const CollectiveCurve& curve : validation.curves) {
    const std::vector<double> times = curve.predict();
    for (std::size_t i = 0; i < times.size(); ++i) {
      const CurveCell& cell = curve.cells()[i];
      OrderedJson row = cell_json(curve.name(), to_string(Bytes{static_cast<double>(cell.bytes)}), "us",
                                  cell.measured_us, "predict", {});
      row["gpus"] = curve.gpus();
      add_prediction(row, times[i], times[i] / curve.interval(), times[i] * curve.interval(), {});
      row["evidence"] = curve.evidence();
      out["cells"].push_back(std::move(row));
    }
  }
}

/// The interval of a rehearsed cell, as a factor in either direction.
double width_of_rehearsal(const Validation& validation, const RunCell& cell, const StudyRuns& runs) {
  const bool is_communication = std::find(cell.tags.begin(), cell.tags.end(), "communication") != cell.tags.end();
  const double share = is_communication ? 1
                                        : runs.value(cell.run, "/gpu_seconds/exposed_communication", cell.place) /
                                              runs.value(cell.run, "/gpu_seconds/total", cell.place);
  return portable_exp(half_width_of_rehearsal(validation.links, share * validation.rehearsed.factor(validation.links)));
}

const char* name_of(CellRole role) {
  return role == CellRole::fit       ? "fit"
         : role == CellRole::predict ? "predict"
         : role == CellRole::shown   ? "shown"
                                     : "none";
}

/// Whence the prediction of a cell of runs comes.
std::string evidence_of(const Validation& validation, const RunCell& cell) {
  if (!validation.links.empty()) return fmt::format("rehearsal, {} network", validation.links);
  std::string of = "run";
  for (const StudyAnswer& answer : validation.answers)
    if (answer.name == cell.run) of = answer.evidence;
  return cell.anchor.empty() ? of : "ratio of two " + of + "s";
}

void predict_runs(const Validation& validation, const StudyRuns& runs, OrderedJson& out) {
  std::map<std::string, std::pair<double, double>> anchors;  // by RunCell::what: the simulated and the measured value
  for (const RunCell& cell : validation.run_cells) {
    OrderedJson row = cell_json("runs", cell.what, cell.unit, cell.measured, name_of(cell.role), cell.tags);
    if (cell.quantity != "time") row["quantity"] = cell.quantity;
    if (cell.role == CellRole::none) {
      row["because"] = cell.because;
      out["cells"].push_back(std::move(row));
      continue;
    }
    const double simulated = runs.value(cell.run, cell.value, cell.place) * cell.scale;
    anchors[cell.what] = {simulated, cell.measured};
    row["simulated"] = simulated;
    if (cell.role == CellRole::predict) {
      double value = simulated;
      std::vector<Baseline> baselines;
      if (!cell.anchor.empty()) {
        const auto [anchor_simulated, anchor_measured] = anchors.at(cell.anchor);
        if (anchor_simulated == 0)
          throw ConfigError(fmt::format("{}: its anchor \"{}\" is simulated as 0", cell.place, cell.anchor));
        value *= anchor_measured / anchor_simulated;
        for (const auto& [name, factor] : cell.baselines) baselines.push_back({name, factor * anchor_measured});
        row["anchor"] = cell.anchor;
      }
      const double factor = validation.links.empty() ? 1 + (cell.error > 0 ? cell.error : validation.run_error)
                                                     : width_of_rehearsal(validation, cell, runs);
      const double most = cell.quantity == "utilization" ? 1 : INFINITY;       // a share of time
      const auto [low, high] = std::minmax({value / factor, value * factor});  // a loss may be negative
      add_prediction(row, value, low, std::min(most, high), baselines);
      row["evidence"] = evidence_of(validation, cell);
    }
    out["cells"].push_back(std::move(row));
  }
}

void test_claims(const Validation& validation, const StudyRuns& runs, OrderedJson& out) {
  for (const OrderClaim& claim : validation.claims) {
    OrderedJson values = OrderedJson::array();
    double margin = 1;  // the least difference of two neighbours, relative to the larger
    std::optional<double> before;
    for (const std::string& run : claim.runs) {
      const double value = runs.value(run, claim.value, claim.place);
      const double larger = std::max(std::abs(before.value_or(value)), std::abs(value));
      if (before) margin = std::min(margin, larger > 0 ? (*before - value) / larger : 0);
      before = value;
      values.push_back({{"run", run}, {"value", value}});
    }
    out["claims"].push_back({{"text", claim.text},
                             {"holds", margin > kClaimMargin},
                             {"expected", claim.expected},
                             {"margin", margin},
                             {"within_error", std::abs(margin) < validation.run_error / (1 + validation.run_error)},
                             {"values", values}});
  }
}

OrderedJson promise_json(const Promise& promise, const OrderedJson& cells) {
  const CellErrors errors = errors_of(cells, promise.tag);
  const bool kept =
      errors.count > 0 && errors.mean() <= promise.mean_error &&
      (!promise.beats_baselines || std::all_of(errors.baselines.begin(), errors.baselines.end(),
                                               [](const auto& b) { return b.second.prediction_sum < b.second.sum; }));
  OrderedJson out = {{"cells", promise.tag.empty() ? "all" : promise.tag},
                     {"mean_error_at_most", promise.mean_error},
                     {"beats_baselines", promise.beats_baselines},
                     {"kept", kept}};
  out["measured"] = summary_json(errors);
  return out;
}

}  // namespace

OrderedJson run_validation(Validation validation, bool replay) {
  OrderedJson out = {{"name", validation.name}, {"title", validation.title}, {"source", validation.source}};
  out["assumptions"] = OrderedJson::array();
  for (const auto& [what, source] : validation.assumptions)
    out["assumptions"].push_back({{"what", what}, {"source", source}});
  out["informed_choices"] = validation.informed_choices;
  out["in_totals"] = validation.in_totals;
  if (!validation.links.empty()) out["links"] = validation.links;
  for (const char* list : {"fitted", "cells", "claims", "compute_fractions"}) out[list] = OrderedJson::array();
  predict_series(validation, replay, out);
  predict_curves(validation, out);
  if (!validation.run_cells.empty() || !validation.claims.empty()) {
    const StudyRuns runs(validation);
    predict_runs(validation, runs, out);
    test_claims(validation, runs, out);
  }
  for (const FractionTable& table : validation.fractions) {
    const auto series = std::find_if(validation.series.begin(), validation.series.end(),
                                     [&](const ScalingSeries& s) { return s.name() == table.series; });
    OrderedJson rows = OrderedJson::array();
    for (const ComputeFraction& row : series->compute_fractions(table.gpus, table.bytes, table.scheme))
      rows.push_back({{"gpus", row.gpus}, {"bytes", row.bytes}, {"compute_fraction", row.share}});
    out["compute_fractions"].push_back({{"title", table.title}, {"series", table.series}, {"rows", rows}});
  }
  out["summary"] = summary_json(errors_of(out["cells"], ""));
  for (const std::string& quantity : cell_quantities())
    if (const CellErrors errors = errors_of(out["cells"], "", quantity); quantity != "time" && errors.count > 0)
      out["other_quantities"][quantity] = summary_json(errors);
  out["promises"] = OrderedJson::array();
  for (const Promise& promise : validation.promises) out["promises"].push_back(promise_json(promise, out["cells"]));
  return out;
}

OrderedJson validation_result(const std::vector<OrderedJson>& studies, const RehearsedLinks& rehearsed) {
  OrderedJson out = {{"schema", "ganymede.validation-result/1"}, {"studies", studies}};
  OrderedJson all = OrderedJson::array();
  for (const OrderedJson& study : studies)
    if (study["in_totals"].get<bool>())
      for (const OrderedJson& cell : study["cells"]) all.push_back(cell);
  out["summary"] = summary_json(errors_of(all, ""));
  out["coverage"] = coverage_json(studies);
  out["leave_one_out"] = leave_one_out(studies);
  if (const OrderedJson kinds = rehearsed.json(); !kinds.empty()) out["rehearsed"] = kinds;
  return out;
}

bool promises_kept(const OrderedJson& result) {
  for (const OrderedJson& study : result["studies"])
    for (const OrderedJson& promise : study["promises"])
      if (!promise["kept"].get<bool>()) return false;
  return true;
}

bool claims_as_expected(const OrderedJson& result) {
  for (const OrderedJson& study : result["studies"])
    for (const OrderedJson& claim : study["claims"])
      if (claim["holds"] != claim["expected"]) return false;
  return true;
}

}  // namespace ganymede::studies
