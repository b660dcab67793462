// Predicted against measured.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/numbers.hpp"
#include "report/page_parts.hpp"

namespace ganymede {
namespace {

using Json = nlohmann::json;

std::string error_of(const Json& object, const char* name = "mean_error") {
  return object.contains(name) && object[name].is_number() ? percent(object[name].get<double>()) : "-";
}

Section overview(const Json& document) {
  Table table({"study", ">predicted", ">mean error", ">worst", ">in the 90 % interval", "better than"});
  const auto add = [&](const std::string& name, const Json& summary) {
    std::string beaten;
    for (const Json& baseline : summary["baselines"])
      beaten += (beaten.empty() ? "" : "; ") + baseline["name"].get<std::string>() +
                fmt::format(" ({}{})", error_of(baseline), baseline["beaten"].get<bool>() ? "" : ", NOT beaten");
    table.add({name, summary["cells"].dump(), error_of(summary), error_of(summary, "worst_error"),
               error_of(summary, "held_by_interval"), beaten});
  };
  for (const Json& study : document["studies"])
    if (study.contains("summary") && study["summary"].value("cells", 0) > 0) add(study["title"], study["summary"]);
  if (document.contains("summary") && document["summary"].value("cells", 0) > 0) {
    table.rule();
    add("all", document["summary"]);
  }
  Section out{"summary", "Summary", "", {{"validation", "Predicted against measured, of each published figure"}}, ""};
  out.about =
      "Each point is a published figure that the simulator predicts without having seen it, with its 90 % interval; on "
      "the dashed line the two are equal.";
  out.tables = html_of(table, "Error of predictions, beside simpler ones");
  return out;
}

/// Names are somebody's text: no identifiers.
Section of_study(const Json& study, std::size_t number) {
  Section out{"study-" + std::to_string(number), study["title"], "", {}, ""};
  out.about = "Source: " + escaped(study.value("source", ""));
  Table table({"series", "what", "role", ">measured", ">predicted", "90 % interval", ">error", "unit"});
  for (const Json& cell : study["cells"]) {
    const bool predicted = cell.contains("predicted") && cell["predicted"].is_number();
    std::string interval;
    if (cell.contains("interval_90"))
      interval = fmt::format("{:.4g} .. {:.4g}{}", amount(cell["interval_90"][0]), amount(cell["interval_90"][1]),
                             cell.value("interval_holds", true) ? "" : " (missed)");
    table.add({cell.value("series", ""), cell.value("what", ""), cell.value("role", ""),
               cell.contains("measured") ? fmt::format("{:.4g}", amount(cell["measured"])) : "",
               predicted ? fmt::format("{:.4g}", amount(cell["predicted"])) : "", interval,
               cell.contains("error") && cell["error"].is_number()
                   ? fmt::format("{:+.1f} %", 100 * cell["error"].get<double>())
                   : "",
               cell.value("unit", "")});
  }
  out.tables = html_of(table, "Figures");
  if (study.contains("assumptions") && !study["assumptions"].empty()) {
    out.tables += "<details><summary>What is assumed</summary><ul>\n";
    for (const Json& assumption : study["assumptions"])
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
  for (const Json& study : page.document["studies"]) sections.push_back(of_study(study, ++number));
}

}  // namespace ganymede
