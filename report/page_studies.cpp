// The section that compares predictions with measurements.

#include <fmt/format.h>

#include <cmath>

#include "common/json_value.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"

namespace ganymede::report {
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
    std::string interval;
    if (cell.contains("interval_90"))
      interval =
          fmt::format("{:.4g} .. {:.4g}{}", amount(cell.at("interval_90").at(0)), amount(cell.at("interval_90").at(1)),
                      cell.value("interval_holds", true) ? "" : " (missed)");
    table.add(
        {cell.value("series", ""), cell.value("what", ""), cell.value("role", ""),
         cell.contains("measured") ? fmt::format("{:.4g}", amount(cell.at("measured"))) : "",
         predicted ? fmt::format("{:.4g}", amount(cell.at("predicted"))) : "", interval,
         cell.contains("error") && cell.at("error").is_number() ? signed_percent(cell.at("error").get<double>()) : "",
         cell.value("unit", "")});
  }
  out.tables = html_of(table, "Figures");
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
