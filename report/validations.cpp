#include "report/validations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/json_value.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {
std::string number(double value) { return fmt::format("{:.4g}", value); }
std::string exact(double value) { return fmt::format("{:.6g}", value); }
std::string error_text(const OrderedJson& share) { return signed_percent(share.get<double>()); }
std::string plain_percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

const char* role_text(const OrderedJson& cell) {
  if (cell.contains("alternative")) return "other reading";
  if (cell.contains("predicted")) return "predicted";
  return cell.at("role") == "none" ? "not predicted" : cell.at("role") == "shown" ? "not measured" : "fitted";
}

/// The baseline "no communication", and the best other.
std::pair<std::string, std::string> baselines_text(const OrderedJson& cell) {
  std::string ideal, best;
  double least = INFINITY;
  if (cell.contains("predicted"))
    for (const OrderedJson& baseline : cell.at("baselines")) {
      if (baseline.at("name") == "no communication")
        ideal = error_text(baseline.at("error"));
      else if (std::abs(baseline.at("error").get<double>()) < least) {
        least = std::abs(baseline.at("error").get<double>());
        best = fmt::format("{}: {}", baseline.at("name").get<std::string>(), error_text(baseline.at("error")));
      }
    }
  return {ideal, best};
}

std::string cells_text(const OrderedJson& cells, std::size_t width) {
  Table table(
      {"series", "", "unit", "", ">measured", ">predicted", ">90 % interval", "", ">error", ">ideal", "best other"});
  std::string series;
  std::vector<std::pair<std::string, std::string>> unpredicted;  // reason, and the figures that it is of
  for (const OrderedJson& cell : cells) {
    const std::string name = cell.at("series");
    if (!series.empty() && name != series) table.rule();
    const bool predicted = cell.contains("predicted");
    const auto [ideal, best] = baselines_text(cell);
    table.add({name == series ? "" : name, cell.at("what"), cell.at("unit"), role_text(cell),
               cell.contains("measured") ? number(cell.at("measured").get<double>()) : "",
               predicted                    ? number(cell.at("predicted").get<double>())
               : cell.at("role") == "shown" ? number(cell.at("simulated").get<double>())
                                            : "",
               predicted ? fmt::format("{} .. {}", number(cell.at("interval_90").at(0).get<double>()),
                                       number(cell.at("interval_90").at(1).get<double>()))
                         : "",
               predicted && !cell.at("interval_holds").get<bool>() ? "missed" : "",
               predicted ? error_text(cell.at("error")) : "", ideal, best});
    series = name;
    if (!cell.contains("because")) continue;
    const std::string what = cell.at("what"), because = cell.at("because");
    const auto same =
        std::find_if(unpredicted.begin(), unpredicted.end(), [&](const auto& other) { return other.first == because; });
    if (same == unpredicted.end())
      unpredicted.emplace_back(because, what);
    else
      same->second += "; " + what;
  }
  std::string out = table.text(width);
  for (const auto& [because, what] : unpredicted) out += fmt::format("\nnot predicted, because {}: {}", because, what);
  return out + (unpredicted.empty() ? "" : "\n");
}

std::string summary_text(const OrderedJson& summary) {
  if (summary.at("cells") == 0) return "nothing is predicted";
  std::string text = fmt::format("{} predicted: mean error {}, worst {}; the 90 % interval holds {}",
                                 int_of(summary.at("cells")), plain_percent(summary.at("mean_error").get<double>()),
                                 plain_percent(summary.at("worst_error").get<double>()),
                                 plain_percent(summary.at("held_by_interval").get<double>()));
  for (const OrderedJson& baseline : summary.at("baselines"))
    text += fmt::format("; {}: {} (skill {:.2f})", baseline.at("name").get<std::string>(),
                        plain_percent(baseline.at("mean_error").get<double>()), baseline.at("skill").get<double>());
  for (const OrderedJson& baseline : summary.at("baselines"))
    if (!baseline.at("beaten").get<bool>())
      text += fmt::format("; NOT BETTER than \"{}\"", baseline.at("name").get<std::string>());
  return text;
}

/// A claim that comes out as its study expects is no failure.
const char* claim_word(bool holds, bool expected) {
  if (holds == expected) return holds ? "holds" : "does not hold, as expected";
  return holds ? "HOLDS, which the study does not expect" : "DOES NOT HOLD";
}

std::string study_text(const OrderedJson& study, bool details, std::size_t width) {
  std::string out = fmt::format("{}: {}\n  source: {}\n", study.at("name").get<std::string>(),
                                study.at("title").get<std::string>(), study.at("source").get<std::string>());
  if (details)
    for (const OrderedJson& assumption : study.at("assumptions"))
      out += fmt::format("  assumed: {} ({})\n", assumption.at("what").get<std::string>(),
                         assumption.at("source").get<std::string>());
  if (details)
    for (const OrderedJson& choice : study.at("informed_choices"))
      out += fmt::format("  chosen by people who had read the cells: {}\n", choice.get<std::string>());
  else if (!study.at("informed_choices").empty())
    out += fmt::format("  choices made by people who had read the cells: {}\n", study.at("informed_choices").size());
  if (!study.at("in_totals").get<bool>())
    out += "  not part of the totals: constants were chosen with knowledge of the cells\n";
  for (const OrderedJson& fitted : study.at("fitted")) out += fmt::format("  fitted: {}\n", fitted.get<std::string>());
  out += "\n" + cells_text(study.at("cells"), width);
  for (const OrderedJson& claim : study.at("claims")) {
    std::string values;
    for (const OrderedJson& value : claim.at("values"))
      values += fmt::format("{}{} {}", values.empty() ? "" : " > ", value.at("run").get<std::string>(),
                            exact(value.at("value").get<double>()));
    out += fmt::format("\n{}: {} ({}{})", claim_word(claim.at("holds").get<bool>(), claim.at("expected").get<bool>()),
                       claim.at("text").get<std::string>(), values,
                       claim.at("within_error").get<bool>()
                           ? fmt::format("; {} apart, which is less than such a ratio may be off",
                                         plain_percent(std::abs(claim.at("margin").get<double>())))
                           : "");
  }
  if (!study.at("claims").empty()) out += "\n";
  for (const OrderedJson& table : study.at("compute_fractions")) {
    Table fractions({">bytes", ">GPUs", ">compute fraction"});
    for (const OrderedJson& row : table.at("rows"))
      fractions.add({number(row.at("bytes").get<double>()), std::to_string(int_of(row.at("gpus"))),
                     plain_percent(row.at("compute_fraction").get<double>())});
    out += fmt::format("\n{} ({})\n{}", table.at("title").get<std::string>(), table.at("series").get<std::string>(),
                       fractions.text(width));
  }
  out += fmt::format("\n{}\n", summary_text(study.at("summary")));
  if (study.contains("other_quantities"))
    for (const auto& [quantity, summary] : study.at("other_quantities").items())
      out += fmt::format("{}: {}\n", quantity, summary_text(summary));
  for (const OrderedJson& promise : study.at("promises"))
    out += fmt::format("promise {}: {} cells within {} on average{}; {}\n",
                       promise.at("kept").get<bool>() ? "kept" : "BROKEN", promise.at("cells").get<std::string>(),
                       plain_percent(promise.at("mean_error_at_most").get<double>()),
                       promise.at("beats_baselines").get<bool>() ? " and better than every baseline" : "",
                       summary_text(promise.at("measured")));
  return out;
}

/// Classes with fewer sources have too few for an interval of 90 % that has not seen one of them.
constexpr int kCalibratedSources = 10;

std::string coverage_text(const OrderedJson& coverage, std::size_t width) {
  const bool replayed =
      std::any_of(coverage.begin(), coverage.end(), [](const auto& r) { return r.contains("replay"); });
  std::vector<std::string> columns = {"evidence",        ">predicted", ">sources", "", ">in the 90 % interval",
                                      ">mean half-width"};
  if (replayed) columns.insert(columns.end(), {">simulate: in its interval", ">half-width", ">off from here"});
  Table table(columns);
  for (const OrderedJson& row : coverage) {
    const int sources = int_of(row.at("sources"));
    std::vector<std::string> cells = {row.at("evidence"),
                                      std::to_string(int_of(row.at("cells"))),
                                      std::to_string(sources),
                                      sources < kCalibratedSources ? "not calibrated" : "",
                                      plain_percent(row.at("held").get<double>()),
                                      plain_percent(row.at("mean_half_width").get<double>())};
    if (replayed)
      for (const char* figure : {"held", "mean_half_width", "off"})
        cells.push_back(row.contains("replay") ? plain_percent(row.at("replay").at(figure).get<double>()) : "");
    table.add(cells);
  }
  return table.text(width);
}

std::string leave_one_out_text(const OrderedJson& rows, std::size_t width) {
  Table table({"fitted constants", "left out", ">rows", ">error", ">fitted without it", ">without the constants"});
  for (const OrderedJson& row : rows)
    table.add({row.at("constant"), row.at("study"), row.contains("rows") ? std::to_string(int_of(row.at("rows"))) : "",
               row.contains("error") ? plain_percent(row.at("error").get<double>()) : "recorded",
               plain_percent(row.at("left_out_error").get<double>()),
               plain_percent(row.at("without_it").get<double>())});
  return table.text(width) +
         "recorded: not fitted again here, but by bench/step_fits.py (steps) and bench/nccl_logs.py (collectives)\n";
}

/// Says what rehearsals of one's own have changed.
std::string rehearsed_text(const OrderedJson& result) {
  std::string out;
  if (!result.contains("rehearsed")) return out;
  for (const OrderedJson& kind : result.at("rehearsed")) {
    const int count = kind.at("rehearsals").get<int>();
    const auto factor = kind.at("factor").get<double>();
    out += fmt::format(
        "{} rehearsal{} on {}: communication took {} of what was predicted, on average. What such links add to "
        "intervals is {:.2f} times as wide.\n",
        count, count == 1 ? "" : "s",
        kind.at("links") == "played" ? "played networks" : kind.at("links").get<std::string>() + " links",
        plain_percent(1 + kind.at("mean_error").get<double>()), factor);
  }
  return out + "\n";
}

}  // namespace

std::string validation_text(const OrderedJson& result, bool details, std::size_t width) {
  std::string out = wrap_prose(rehearsed_text(result), width);
  for (const OrderedJson& study : result.at("studies"))
    out += wrap_prose(study_text(study, details, width), width) + "\n";
  if (result.at("studies").size() == 1) return out + wrap_prose(std::string(kKnownStudies) + "\n", width);
  Table table({"study", ">predicted", ">mean error", ">worst", ">no communication", ">skill", ">in the 90 % interval"});
  const auto add = [&](const std::string& name, const OrderedJson& summary) {
    if (summary.at("cells") == 0) return table.add({name, "0", "", "", "", "", ""});
    std::string ideal, skill;
    for (const OrderedJson& baseline : summary.at("baselines"))
      if (baseline.at("name") == "no communication") {
        ideal = plain_percent(baseline.at("mean_error").get<double>());
        skill = fmt::format("{:.2f}", baseline.at("skill").get<double>());
      }
    table.add({name, std::to_string(int_of(summary.at("cells"))), plain_percent(summary.at("mean_error").get<double>()),
               plain_percent(summary.at("worst_error").get<double>()), ideal, skill,
               plain_percent(summary.at("held_by_interval").get<double>())});
  };
  for (const OrderedJson& study : result.at("studies"))
    add(study.at("name").get<std::string>() + (study.at("in_totals").get<bool>() ? "" : " (not in the totals)"),
        study.at("summary"));
  table.rule();
  add("all", result.at("summary"));
  out += table.text(width) + "\n" + coverage_text(result.at("coverage"), width);
  if (!result.at("leave_one_out").empty()) out += "\n" + leave_one_out_text(result.at("leave_one_out"), width);
  return out + "\n" + wrap_prose(std::string(kKnownStudies) + "\n", width);
}

std::string validation_csv(const OrderedJson& result) {
  Table table({"study", "series", "cell", "unit", "role", "measured", "predicted", "low_90", "high_90", "error",
               "error_without_communication"});
  for (const OrderedJson& study : result.at("studies"))
    for (const OrderedJson& cell : study.at("cells")) {
      const bool predicted = cell.contains("predicted");
      std::string ideal;
      if (predicted)
        for (const OrderedJson& baseline : cell.at("baselines"))
          if (baseline.at("name") == "no communication") ideal = baseline.at("error").dump();
      table.add({study.at("name"), cell.at("series"), cell.at("what"), cell.at("unit"), cell.at("role"),
                 cell.contains("measured") ? cell.at("measured").dump() : "",
                 predicted ? cell.at("predicted").dump() : "", predicted ? cell.at("interval_90").at(0).dump() : "",
                 predicted ? cell.at("interval_90").at(1).dump() : "", predicted ? cell.at("error").dump() : "",
                 ideal});
    }
  return table.csv();
}

namespace {
std::string error_of(const Json& object, const char* name = "mean_error") {
  return object.contains(name) && object.at(name).is_number() ? percent(object.at(name).get<double>()) : "-";
}

Section overview(const Json& document) {
  Table table({"study", ">predicted", ">mean error", ">worst", ">in the 90 % interval", "better than"});
  const auto add = [&](const std::string& name, const Json& summary) {
    std::string beaten;
    for (const Json& baseline : summary.at("baselines"))
      beaten += (beaten.empty() ? "" : "; ") + baseline.at("name").get<std::string>() +
                fmt::format(" ({}{})", error_of(baseline), baseline.at("beaten").get<bool>() ? "" : ", NOT beaten");
    table.add({name, summary.at("cells").dump(), error_of(summary), error_of(summary, "worst_error"),
               error_of(summary, "held_by_interval"), beaten});
  };
  for (const Json& study : document.at("studies"))
    if (study.contains("summary") && study.at("summary").value("cells", 0) > 0)
      add(study.at("title"), study.at("summary"));
  if (document.contains("summary") && document.at("summary").value("cells", 0) > 0) {
    table.rule();
    add("all", document.at("summary"));
  }
  Section out{"summary", "Summary", "", {{"validation", "Predicted against measured, of each published figure"}}, ""};
  out.about =
      "By study; below, each point is a published figure that is predicted from others, with its 90 % interval; on the "
      "dashed line the two are equal.";
  out.tables = html_of(table, "Error of predictions, beside simpler ones");
  out.tables_first = true;
  return out;
}

/// The section's identifier has `number` instead of the study's name, because a name may hold any text.
Section of_study(const Json& study, std::size_t number) {
  Section out{"study-" + std::to_string(number), study.at("title"), "", {}, ""};
  out.about = "Source: " + escaped(study.value("source", ""));
  Table table({"series", "what", "role", ">measured", ">predicted", "90 % interval", ">error", "unit"});
  for (const Json& cell : study.at("cells")) {
    const bool predicted = cell.contains("predicted") && cell.at("predicted").is_number();
    std::string interval = cell.contains("because") ? "not predicted, because " + cell.value("because", "") : "";
    if (cell.contains("interval_90"))
      interval =
          fmt::format("{:.4g} .. {:.4g}{}", amount(cell.at("interval_90").at(0)), amount(cell.at("interval_90").at(1)),
                      cell.value("interval_holds", true) ? "" : " (missed)");
    table.add(
        {cell.value("series", ""), cell.value("what", ""), cell.value("role", ""),
         cell.contains("measured") ? fmt::format("{:.4g}", amount(cell.at("measured"))) : "",
         predicted                           ? fmt::format("{:.4g}", amount(cell.at("predicted")))
         : cell.value("role", "") == "shown" ? fmt::format("{:.4g}", amount(cell.at("simulated")))
                                             : "",
         interval,
         cell.contains("error") && cell.at("error").is_number() ? signed_percent(cell.at("error").get<double>()) : "",
         cell.value("unit", "")});
  }
  out.tables = html_of(table, "Figures");
  if (study.contains("claims") && !study.at("claims").empty()) {
    Table claims({"claim", "", ">apart", "more than such a ratio may be off"});
    for (const Json& claim : study.at("claims"))
      claims.add({claim.value("text", ""), claim_word(claim.value("holds", false), claim.value("expected", true)),
                  percent(std::abs(claim.value("margin", 0.0))), claim.value("within_error", false) ? "no" : "yes"});
    out.tables += html_of(claims, "Claims");
  }
  if (study.contains("assumptions") && !study.at("assumptions").empty()) {
    out.tables += "<details><summary>What is assumed</summary><ul>\n";
    for (const Json& assumption : study.at("assumptions"))
      out.tables += "<li>" + escaped(assumption.value("what", "")) + " <small>(" +
                    escaped(assumption.value("source", "")) + ")</small></li>\n";
    out.tables += "</ul></details>\n";
  }
  return out;
}

}  // namespace

void add_validation(const PageInput& page, std::vector<Section>& sections) {
  sections.push_back(overview(page.document));
  std::size_t number = 0;
  for (const Json& study : page.document.at("studies")) sections.push_back(of_study(study, ++number));
}

}  // namespace ganymede::report
