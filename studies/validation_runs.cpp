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
using documents::ErrorSummary;
using documents::ValidatedCell;
using documents::ValidatedStudy;

bool has_tag(const ValidatedCell& cell, const std::string& tag) {
  return tag.empty() || std::find(cell.tags.begin(), cell.tags.end(), tag) != cell.tags.end();
}

/// Errors of the predicted cells of the quantity with this tag (all if it is empty), without alternative readings.
ErrorSummary errors_of(const std::vector<ValidatedCell>& cells, const std::string& tag,
                       const std::string& quantity = "time") {
  /// Sums over the cells that have a certain baseline.
  struct Against {
    std::int64_t count = 0;
    double sum = 0;             ///< of the baseline's errors
    double prediction_sum = 0;  ///< of the predictions' errors
  };
  ErrorSummary out;
  std::map<std::string, Against> baselines;
  for (const ValidatedCell& cell : cells) {
    if (!cell.predicted || cell.alternative || !has_tag(cell, tag) || cell.quantity != quantity) continue;
    const double error = std::abs(cell.error);
    ++out.cells;
    out.held_by_interval += cell.interval_holds ? 1 : 0;
    out.mean_error += error;
    out.worst_error = std::max(out.worst_error, error);
    for (const ValidatedCell::Baseline& baseline : cell.baselines) {
      Against& against = baselines[baseline.name];
      ++against.count;
      against.sum += std::abs(baseline.error);
      against.prediction_sum += error;
    }
  }
  if (out.cells == 0) return out;
  out.held_by_interval /= static_cast<double>(out.cells);
  out.mean_error /= static_cast<double>(out.cells);
  for (const auto& [name, against] : baselines)
    out.baselines.push_back({name, against.count, against.sum / static_cast<double>(against.count),
                             against.sum > 0 ? 1 - against.prediction_sum / against.sum : 0,
                             against.prediction_sum < against.sum});
  return out;
}

/// Adds a prediction to the sums of its class.
void add_to(documents::ValidationResult::Coverage& sums, double value, const documents::Interval& interval,
            bool holds) {
  ++sums.cells;
  sums.held += holds ? 1 : 0;
  sums.mean_half_width += (interval.high - interval.low) / 2 / value;
}

void divide(documents::ValidationResult::Coverage& sums) {
  sums.held /= static_cast<double>(sums.cells);
  sums.mean_half_width /= static_cast<double>(sums.cells);
}

/// The publication that a study's figures are from: its source up to the commit, page or remark. Two studies of one
/// publication are one source.
std::string publication_of(const ValidatedStudy& study) {
  std::string name = study.source.substr(0, study.source.find_first_of(",:"));
  return name.substr(0, name.find(" at commit"));
}

/// For each class of evidence the number of cells and of the publications that they are from, the share whose 90 %
/// interval holds, and the intervals' mean half-width over the prediction; the same of what `simulate` says of the
/// cells, if they were replayed. Alternative readings and cells without a class are left out.
std::vector<documents::ValidationResult::Evidence> coverage_of(const std::vector<ValidatedStudy>& studies) {
  std::map<std::string, documents::ValidationResult::Evidence> classes;
  std::map<std::string, std::set<std::string>> sources;
  for (const ValidatedStudy& study : studies)
    for (const ValidatedCell& cell : study.cells) {
      if (!study.in_totals || cell.evidence.empty() || cell.alternative || cell.quantity != "time") continue;
      documents::ValidationResult::Evidence& row = classes[cell.evidence];
      row.evidence = cell.evidence;
      sources[cell.evidence].insert(publication_of(study));
      const double value = cell.predicted.value_or(NAN);
      add_to(row.coverage, value, cell.interval_90, cell.interval_holds);
      if (!cell.replay) continue;
      if (!row.replay) row.replay = documents::ValidationResult::Replayed{};  // clang 14 has no emplace() for it
      add_to(row.replay->coverage, cell.replay->value, cell.replay->interval, cell.replay->holds);
      row.replay->off += std::abs(cell.replay->value / value - 1);
    }
  std::vector<documents::ValidationResult::Evidence> out;
  for (auto& [evidence, row] : classes) {
    row.sources = static_cast<std::int64_t>(sources[evidence].size());
    divide(row.coverage);
    if (row.replay) {
      row.replay->off /= static_cast<double>(row.replay->coverage.cells);
      divide(row.replay->coverage);
    }
    out.push_back(std::move(row));
  }
  return out;
}

ValidatedCell cell_of(const std::string& series, const std::string& what, const std::string& unit, double measured,
                      const char* role, const std::vector<std::string>& tags) {
  ValidatedCell out;
  out.series = series;
  out.what = what;
  out.unit = unit;
  out.role = role;
  if (measured > 0) out.measured = measured;
  out.tags = tags;
  return out;
}

void add_prediction(ValidatedCell& cell, double value, double low, double high,
                    const std::vector<Baseline>& baselines) {
  const double measured = *cell.measured;
  cell.predicted = value;
  cell.interval_90 = {low, high};
  cell.error = value / measured - 1;
  cell.interval_holds = measured >= low && measured <= high;
  for (const Baseline& baseline : baselines)
    cell.baselines.push_back({baseline.name, baseline.value, baseline.value / measured - 1});
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

void predict_series(Validation& validation, bool replay, ValidatedStudy& out) {
  std::vector<ScalingSeries> before;
  for (ScalingSeries& series : validation.series) {
    for (const std::string& text : series.fit(before)) out.fitted.push_back(text);
    for (const ScalingCell& cell : series.cells()) {
      ValidatedCell row = cell_of(
          series.name(), fmt::format("{} GPU{}, {} images each", cell.gpus, cell.gpus == 1 ? "" : "s", cell.batch),
          series.unit(), cell.measured, cell.fit ? "fit" : "predict", cell.tags);
      row.gpus = cell.gpus;
      row.alternative = series.alternative();
      if (!cell.fit) {
        const CellPrediction prediction = series.predict(cell);
        add_prediction(row, prediction.value, prediction.low, prediction.high, prediction.baselines);
        row.evidence = prediction.evidence;
        row.executor = series.eager() ? "eager" : "graph";
        row.repeat = series.repeat();
        row.parts = prediction.parts;
        if (const auto simulated = replay ? series.replay(cell) : std::nullopt)
          row.replay = {simulated->value,
                        {simulated->low, simulated->high},
                        cell.measured >= simulated->low && cell.measured <= simulated->high};
      }
      out.cells.push_back(std::move(row));
    }
    before.push_back(series);
  }
}

void predict_curves(const Validation& validation, ValidatedStudy& out) {
  for (const CollectiveCurve& curve : validation.curves) {
    const std::vector<double> times = curve.predict();
    for (std::size_t i = 0; i < times.size(); ++i) {
      const CurveCell& cell = curve.cells()[i];
      ValidatedCell row = cell_of(curve.name(), to_string(Bytes{static_cast<double>(cell.bytes)}), "us",
                                  cell.measured_us, "predict", {});
      row.gpus = curve.gpus();
      add_prediction(row, times[i], times[i] / curve.interval(), times[i] * curve.interval(), {});
      row.evidence = curve.evidence();
      out.cells.push_back(std::move(row));
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
  std::string evidence = "run";
  for (const StudyAnswer& answer : validation.answers)
    if (answer.name == cell.run) evidence = answer.evidence;
  return cell.anchor.empty() ? evidence : "ratio of two " + evidence + "s";
}

void predict_runs(const Validation& validation, const StudyRuns& runs, ValidatedStudy& out) {
  std::map<std::string, std::pair<double, double>> anchors;  // by RunCell::what: the simulated and the measured value
  for (const RunCell& cell : validation.run_cells) {
    ValidatedCell row = cell_of("runs", cell.what, cell.unit, cell.measured, name_of(cell.role), cell.tags);
    row.quantity = cell.quantity;
    if (cell.role == CellRole::none) {
      row.because = cell.because;
      out.cells.push_back(std::move(row));
      continue;
    }
    const double simulated = runs.value(cell.run, cell.value, cell.place) * cell.scale;
    anchors[cell.what] = {simulated, cell.measured};
    row.simulated = simulated;
    if (cell.role == CellRole::predict) {
      double value = simulated;
      std::vector<Baseline> baselines;
      if (!cell.anchor.empty()) {
        const auto [anchor_simulated, anchor_measured] = anchors.at(cell.anchor);
        if (anchor_simulated == 0)
          throw ConfigError(fmt::format("{}: its anchor \"{}\" is simulated as 0", cell.place, cell.anchor));
        value *= anchor_measured / anchor_simulated;
        for (const auto& [name, factor] : cell.baselines) baselines.push_back({name, factor * anchor_measured});
        row.anchor = cell.anchor;
      }
      const double factor = validation.links.empty() ? 1 + (cell.error > 0 ? cell.error : validation.run_error)
                                                     : width_of_rehearsal(validation, cell, runs);
      const double most = cell.quantity == "utilization" ? 1 : INFINITY;       // a share of time
      const auto [low, high] = std::minmax({value / factor, value * factor});  // a loss may be negative
      add_prediction(row, value, low, std::min(most, high), baselines);
      row.evidence = evidence_of(validation, cell);
    }
    out.cells.push_back(std::move(row));
  }
}

void test_claims(const Validation& validation, const StudyRuns& runs, ValidatedStudy& out) {
  for (const OrderClaim& claim : validation.claims) {
    std::vector<documents::ValidatedClaim::Value> values;
    double margin = 1;  // the least difference of two neighbours, relative to the larger
    for (const std::string& run : claim.runs) {
      const double value = runs.value(run, claim.value, claim.place);
      if (!values.empty()) {
        const double before = values.back().value, larger = std::max(std::abs(before), std::abs(value));
        margin = std::min(margin, larger > 0 ? (before - value) / larger : 0);
      }
      values.push_back({run, value});
    }
    out.claims.push_back({claim.text, margin > kClaimMargin, claim.expected, margin,
                          std::abs(margin) < validation.run_error / (1 + validation.run_error), values});
  }
}

ValidatedStudy::Promise tested(const Promise& promise, const std::vector<ValidatedCell>& cells) {
  const ErrorSummary errors = errors_of(cells, promise.tag);
  const bool kept = errors.cells > 0 && errors.mean_error <= promise.mean_error &&
                    (!promise.beats_baselines || std::all_of(errors.baselines.begin(), errors.baselines.end(),
                                                             [](const auto& baseline) { return baseline.beaten; }));
  return {promise.tag.empty() ? "all" : promise.tag, promise.mean_error, promise.beats_baselines, kept, errors};
}

}  // namespace

ValidatedStudy run_validation(Validation validation, bool replay) {
  ValidatedStudy out;
  out.name = validation.name;
  out.title = validation.title;
  out.source = validation.source;
  for (const auto& [what, source] : validation.assumptions) out.assumptions.push_back({what, source});
  out.informed_choices = validation.informed_choices;
  out.in_totals = validation.in_totals;
  out.links = validation.links;
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
    out.compute_fractions.push_back(
        {table.title, table.series, series->compute_fractions(table.gpus, table.bytes, table.scheme)});
  }
  out.summary = errors_of(out.cells, "");
  for (const std::string& quantity : cell_quantities())
    if (const ErrorSummary errors = errors_of(out.cells, "", quantity); quantity != "time" && errors.cells > 0)
      out.other_quantities[quantity] = errors;
  for (const Promise& promise : validation.promises) out.promises.push_back(tested(promise, out.cells));
  return out;
}

documents::ValidationResult validation_result(const std::vector<ValidatedStudy>& studies,
                                              const RehearsedLinks& rehearsed) {
  documents::ValidationResult out;
  out.studies = studies;
  std::vector<ValidatedCell> all;
  for (const ValidatedStudy& study : studies)
    if (study.in_totals) all.insert(all.end(), study.cells.begin(), study.cells.end());
  out.summary = errors_of(all, "");
  out.coverage = coverage_of(studies);
  out.leave_one_out = leave_one_out(studies);
  out.rehearsed = rehearsed.kinds();
  return out;
}

bool promises_kept(const documents::ValidationResult& result) {
  for (const ValidatedStudy& study : result.studies)
    for (const ValidatedStudy::Promise& promise : study.promises)
      if (!promise.kept) return false;
  return true;
}

bool claims_as_expected(const documents::ValidationResult& result) {
  for (const ValidatedStudy& study : result.studies)
    for (const documents::ValidatedClaim& claim : study.claims)
      if (claim.holds != claim.expected) return false;
  return true;
}

}  // namespace ganymede::studies
