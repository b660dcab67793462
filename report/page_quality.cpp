// The section of a plan whose goal is an FID: FID against dollars.

#include <fmt/format.h>

#include "common/json_value.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"
#include "report/quality_band.hpp"

namespace ganymede::report {

void add_quality(const PageInput& page, std::vector<Section>& sections) {
  if (page.kind != "plan") return;
  const Json& chosen = page.document.at("chosen");
  if (!chosen.is_object() || !chosen.contains("quality") || !chosen.at("quality").contains("curve")) return;
  const Json& quality = chosen.at("quality");
  const double fid = page.document.at("request").at("fid").get<double>();
  Section section;
  section.id = "quality";
  section.title = "FID against dollars";
  section.about = fmt::format(
      "<p>The lowest FID of the chosen training, if its best checkpoint is kept, by what was paid until then: the line "
      "is the median training of the kind, the band holds 90 % of them. The broken line is the FID of the plan, {:g}; "
      "{:.0f} % never get there.</p>\n",
      fid, 100 * quality.at("never").get<double>());
  section.tables =
      quality_band_svg(OrderedJson::parse(quality.at("curve").dump()), {"FID against dollars", "usd", fid, {}});
  Table table({">USD", ">real images", ">FID", "90 %"});
  const auto number = [](double value) { return fmt::format("{:.3g}", value); };
  for (const Json& point : quality.at("curve")) {
    const Json& best = point.at("best_fid");
    table.add({usd(point.at("usd").get<double>()), number(point.at("images").get<double>()),
               number(best.at("median").get<double>()),
               range(best.at("interval").at(0).get<double>(), best.at("interval").at(1).get<double>(), number)});
  }
  section.tables += html_of(table, "FID by dollars");
  sections.push_back(std::move(section));
}

}  // namespace ganymede::report
