#include "report/validations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/numbers.hpp"
#include "report/page_sections.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {
std::string number(double value) { return fmt::format("{:.4g}", value); }
std::string exact(double value) { return fmt::format("{:.6g}", value); }
std::string plain_percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

const char* role_text(const documents::ValidatedCell& cell) {
  if (cell.alternative) return "other reading";
  if (cell.predicted) return "predicted";
  return cell.role == "none" ? "not predicted" : cell.role == "shown" ? "not measured" : "fitted";
}

/// The baseline "no communication", and the best other.
std::pair<std::string, std::string> baselines_text(const documents::ValidatedCell& cell) {
  std::string ideal, best;
  double least = INFINITY;
  for (const documents::ValidatedCell::Baseline& baseline : cell.baselines) {
    if (&baseline == cell.without_communication()) {
      ideal = signed_percent(baseline.error);
    } else if (std::abs(baseline.error) < least) {
      least = std::abs(baseline.error);
      best = fmt::format("{}: {}", baseline.name, signed_percent(baseline.error));
    }
  }
  return {ideal, best};
}

/// The prediction, or what is shown without a measurement.
std::string predicted_text(const documents::ValidatedCell& cell) {
  if (cell.predicted) return number(*cell.predicted);
  return cell.role == "shown" ? number(cell.simulated.value_or(NAN)) : "";
}

std::string interval_text(const documents::ValidatedCell& cell) {
  return fmt::format("{} .. {}", number(cell.interval_90.low), number(cell.interval_90.high));
}

std::string cells_text(const std::vector<documents::ValidatedCell>& cells, std::size_t width) {
  Table table(
      {"series", "", "unit", "", ">measured", ">predicted", ">90 % interval", "", ">error", ">ideal", "best other"});
  std::string series;
  std::vector<std::pair<std::string, std::string>> unpredicted;  // reason, and the figures that it is of
  for (const documents::ValidatedCell& cell : cells) {
    if (!series.empty() && cell.series != series) table.rule();
    const bool predicted = cell.predicted.has_value();
    const auto [ideal, best] = baselines_text(cell);
    table.add({cell.series == series ? "" : cell.series, cell.what, cell.unit, role_text(cell),
               cell.measured ? number(*cell.measured) : "", predicted_text(cell), predicted ? interval_text(cell) : "",
               predicted && !cell.interval_holds ? "missed" : "", predicted ? signed_percent(cell.error) : "", ideal,
               best});
    series = cell.series;
    if (cell.because.empty()) continue;
    const auto same = std::find_if(unpredicted.begin(), unpredicted.end(),
                                   [&](const auto& other) { return other.first == cell.because; });
    if (same == unpredicted.end())
      unpredicted.emplace_back(cell.because, cell.what);
    else
      same->second += "; " + cell.what;
  }
  std::string out = table.text(width);
  for (const auto& [because, what] : unpredicted) out += fmt::format("\nnot predicted, because {}: {}", because, what);
  return out + (unpredicted.empty() ? "" : "\n");
}

std::string summary_text(const documents::ErrorSummary& summary) {
  if (summary.cells == 0) return "nothing is predicted";
  std::string text = fmt::format("{} predicted: mean error {}, worst {}; the 90 % interval holds {}", summary.cells,
                                 plain_percent(summary.mean_error), plain_percent(summary.worst_error),
                                 plain_percent(summary.held_by_interval));
  for (const documents::ErrorSummary::Baseline& baseline : summary.baselines)
    text += fmt::format("; {}: {} (skill {:.2f})", baseline.name, plain_percent(baseline.mean_error), baseline.skill);
  for (const documents::ErrorSummary::Baseline& baseline : summary.baselines)
    if (!baseline.beaten) text += fmt::format("; NOT BETTER than \"{}\"", baseline.name);
  return text;
}

/// A claim that comes out as its study expects is no failure.
const char* claim_word(bool holds, bool expected) {
  if (holds == expected) return holds ? "holds" : "does not hold, as expected";
  return holds ? "HOLDS, which the study does not expect" : "DOES NOT HOLD";
}

std::string claim_text(const documents::ValidatedClaim& claim) {
  std::string values;
  for (const documents::ValidatedClaim::Value& value : claim.values)
    values += fmt::format("{}{} {}", values.empty() ? "" : " > ", value.run, exact(value.value));
  return fmt::format("\n{}: {} ({}{})", claim_word(claim.holds, claim.expected), claim.text, values,
                     claim.within_error ? fmt::format("; {} apart, which is less than such a ratio may be off",
                                                      plain_percent(std::abs(claim.margin)))
                                        : "");
}

std::string study_text(const documents::ValidatedStudy& study, bool details, std::size_t width) {
  std::string out = fmt::format("{}: {}\n  source: {}\n", study.name, study.title, study.source);
  if (details) {
    for (const auto& assumption : study.assumptions)
      out += fmt::format("  assumed: {} ({})\n", assumption.what, assumption.source);
    for (const std::string& choice : study.informed_choices)
      out += fmt::format("  chosen by people who had read the cells: {}\n", choice);
  } else if (!study.informed_choices.empty()) {
    out += fmt::format("  choices made by people who had read the cells: {}\n", study.informed_choices.size());
  }
  if (!study.in_totals) out += "  not part of the totals: constants were chosen with knowledge of the cells\n";
  for (const std::string& fitted : study.fitted) out += fmt::format("  fitted: {}\n", fitted);
  out += "\n" + cells_text(study.cells, width);
  for (const documents::ValidatedClaim& claim : study.claims) out += claim_text(claim);
  if (!study.claims.empty()) out += "\n";
  for (const auto& table : study.compute_fractions) {
    Table fractions({">bytes", ">GPUs", ">compute fraction"});
    for (const auto& row : table.rows)
      fractions.add({number(row.bytes), std::to_string(row.gpus), plain_percent(row.compute_fraction)});
    out += fmt::format("\n{} ({})\n{}", table.title, table.series, fractions.text(width));
  }
  out += fmt::format("\n{}\n", summary_text(study.summary));
  for (const char* quantity : documents::kOtherQuantities)
    if (study.other_quantities.contains(quantity))
      out += fmt::format("{}: {}\n", quantity, summary_text(study.other_quantities.at(quantity)));
  for (const documents::ValidatedStudy::Promise& promise : study.promises)
    out +=
        fmt::format("promise {}: {} cells within {} on average{}; {}\n", promise.kept ? "kept" : "BROKEN",
                    promise.cells, plain_percent(promise.mean_error_at_most),
                    promise.beats_baselines ? " and better than every baseline" : "", summary_text(promise.measured));
  return out;
}

/// Classes with fewer sources have too few for an interval of 90 % that has not seen one of them.
constexpr int kCalibratedSources = 10;

std::string coverage_text(const std::vector<documents::ValidationResult::Evidence>& coverage, std::size_t width) {
  const bool replayed =
      std::any_of(coverage.begin(), coverage.end(), [](const auto& row) { return row.replay.has_value(); });
  std::vector<std::string> columns = {"evidence",        ">predicted", ">sources", "", ">in the 90 % interval",
                                      ">mean half-width"};
  if (replayed) columns.insert(columns.end(), {">simulate: in its interval", ">half-width", ">off from here"});
  Table table(columns);
  for (const auto& row : coverage) {
    std::vector<std::string> cells = {row.evidence,
                                      std::to_string(row.coverage.cells),
                                      std::to_string(row.sources),
                                      row.sources < kCalibratedSources ? "not calibrated" : "",
                                      plain_percent(row.coverage.held),
                                      plain_percent(row.coverage.mean_half_width)};
    if (row.replay)
      for (const double figure : {row.replay->coverage.held, row.replay->coverage.mean_half_width, row.replay->off})
        cells.push_back(plain_percent(figure));
    cells.resize(columns.size());
    table.add(cells);
  }
  return table.text(width);
}

std::string leave_one_out_text(const std::vector<documents::ValidationResult::LeftOut>& rows, std::size_t width) {
  Table table({"fitted constants", "left out", ">rows", ">error", ">fitted without it", ">without the constants"});
  for (const auto& row : rows)
    table.add({row.constant, row.study, row.rows ? std::to_string(*row.rows) : "",
               row.error ? plain_percent(*row.error) : "recorded", plain_percent(row.left_out_error),
               plain_percent(row.without_it)});
  return table.text(width) +
         "recorded: not fitted again here, but by bench/step_fits.py (steps) and bench/nccl_logs.py (collectives)\n";
}

/// Says what rehearsals of one's own have changed.
std::string rehearsed_text(const std::vector<documents::ValidationResult::Rehearsed>& kinds) {
  std::string out;
  for (const auto& kind : kinds)
    out += fmt::format(
        "{} rehearsal{} on {}: communication took {} of what was predicted, on average. What such links add to "
        "intervals is {:.2f} times as wide.\n",
        kind.rehearsals, kind.rehearsals == 1 ? "" : "s",
        kind.links == "played" ? "played networks" : kind.links + " links", plain_percent(1 + kind.mean_error),
        kind.factor);
  return out + (kinds.empty() ? "" : "\n");
}

}  // namespace

std::string validation_text(const documents::ValidationResult& result, bool details, std::size_t width) {
  std::string out = wrap_prose(rehearsed_text(result.rehearsed), width);
  for (const documents::ValidatedStudy& study : result.studies)
    out += wrap_prose(study_text(study, details, width), width) + "\n";
  if (result.studies.size() == 1) return out + wrap_prose(std::string(kKnownStudies) + "\n", width);
  Table table({"study", ">predicted", ">mean error", ">worst", ">no communication", ">skill", ">in the 90 % interval"});
  const auto add = [&](const std::string& name, const documents::ErrorSummary& summary) {
    if (summary.cells == 0) return table.add({name, "0", "", "", "", "", ""});
    const auto* ideal = summary.without_communication();
    table.add({name, std::to_string(summary.cells), plain_percent(summary.mean_error),
               plain_percent(summary.worst_error), ideal ? plain_percent(ideal->mean_error) : "",
               ideal ? fmt::format("{:.2f}", ideal->skill) : "", plain_percent(summary.held_by_interval)});
  };
  for (const documents::ValidatedStudy& study : result.studies)
    add(study.name + (study.in_totals ? "" : " (not in the totals)"), study.summary);
  table.rule();
  add("all", result.summary);
  out += table.text(width) + "\n" + coverage_text(result.coverage, width);
  if (!result.leave_one_out.empty()) out += "\n" + leave_one_out_text(result.leave_one_out, width);
  return out + "\n" + wrap_prose(std::string(kKnownStudies) + "\n", width);
}

std::string validation_csv(const documents::ValidationResult& result) {
  Table table({"study", "series", "cell", "unit", "role", "measured", "predicted", "low_90", "high_90", "error",
               "error_without_communication"});
  for (const documents::ValidatedStudy& study : result.studies)
    for (const documents::ValidatedCell& cell : study.cells) {
      const auto if_predicted = [&](double value) { return cell.predicted ? as_in_json(value) : ""; };
      const auto* ideal = cell.without_communication();
      table.add({study.name, cell.series, cell.what, cell.unit, cell.role,
                 cell.measured ? as_in_json(*cell.measured) : "", if_predicted(cell.predicted.value_or(0)),
                 if_predicted(cell.interval_90.low), if_predicted(cell.interval_90.high), if_predicted(cell.error),
                 ideal ? as_in_json(ideal->error) : ""});
    }
  return table.csv();
}

namespace {

Section overview(const documents::ValidationResult& result) {
  Table table({"study", ">predicted", ">mean error", ">worst", ">in the 90 % interval", "better than"});
  const auto add = [&](const std::string& name, const documents::ErrorSummary& summary) {
    std::string beaten;
    for (const documents::ErrorSummary::Baseline& baseline : summary.baselines)
      beaten += fmt::format("{}{} ({}{})", beaten.empty() ? "" : "; ", baseline.name, percent(baseline.mean_error),
                            baseline.beaten ? "" : ", NOT beaten");
    table.add({name, std::to_string(summary.cells), percent(summary.mean_error), percent(summary.worst_error),
               percent(summary.held_by_interval), beaten});
  };
  for (const documents::ValidatedStudy& study : result.studies)
    if (study.summary.cells > 0) add(study.title, study.summary);
  if (result.summary.cells > 0) {
    table.rule();
    add("all", result.summary);
  }
  Section out{"summary", "Summary", "", {{"validation", "Predicted against measured, of each published figure"}}, ""};
  out.about =
      "By study; below, each point is a published figure that is predicted from others, with its 90 % interval; on the "
      "dashed line the two are equal.";
  out.tables = html_of(table, "Error of predictions, beside simpler ones");
  out.tables_first = true;
  return out;
}

/// The section's identifier has a number instead of the study's name, because a name may hold any text.
Section of_study(const documents::ValidatedStudy& study, std::size_t number_of_study) {
  Section out{"study-" + std::to_string(number_of_study), study.title, "", {}, ""};
  out.about = "Source: " + escaped(study.source);
  Table table({"series", "what", "role", ">measured", ">predicted", "90 % interval", ">error", "unit"});
  for (const documents::ValidatedCell& cell : study.cells) {
    std::string interval = cell.because.empty() ? "" : "not predicted, because " + cell.because;
    if (cell.predicted) interval = interval_text(cell) + (cell.interval_holds ? "" : " (missed)");
    table.add({cell.series, cell.what, cell.role, cell.measured ? number(*cell.measured) : "", predicted_text(cell),
               interval, cell.predicted ? signed_percent(cell.error) : "", cell.unit});
  }
  out.tables = html_of(table, "Figures");
  if (!study.claims.empty()) {
    Table claims({"claim", "", ">apart", "more than such a ratio may be off"});
    for (const documents::ValidatedClaim& claim : study.claims)
      claims.add({claim.text, claim_word(claim.holds, claim.expected), percent(std::abs(claim.margin)),
                  claim.within_error ? "no" : "yes"});
    out.tables += html_of(claims, "Claims");
  }
  if (!study.assumptions.empty()) {
    out.tables += "<details><summary>What is assumed</summary><ul>\n";
    for (const auto& assumption : study.assumptions)
      out.tables +=
          fmt::format("<li>{} <small>({})</small></li>\n", escaped(assumption.what), escaped(assumption.source));
    out.tables += "</ul></details>\n";
  }
  return out;
}

}  // namespace

void add_validation(const PageInput& page, std::vector<Section>& sections) {
  sections.push_back(overview(*page.validation));
  std::size_t number_of_study = 0;
  for (const documents::ValidatedStudy& study : page.validation->studies)
    sections.push_back(of_study(study, ++number_of_study));
}

}  // namespace ganymede::report
