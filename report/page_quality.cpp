// The section of a plan whose goal is an FID: FID against dollars.

#include <fmt/format.h>

#include "common/json_value.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"
#include "report/quality_band.hpp"

namespace ganymede::report {

void add_quality(const PageInput& page, std::vector<Section>& sections) {
  if (page.plan == nullptr || !page.plan->chosen || !page.plan->chosen->quality) return;
  const documents::PlanQuality& quality = *page.plan->chosen->quality;
  if (quality.curve.empty()) return;
  const double fid = page.plan->request.fid.value_or(0);
  Section section;
  section.id = "quality";
  section.title = "FID against dollars";
  section.about = fmt::format(
      "<p>The lowest FID of the chosen training, if its best checkpoint is kept, by what was paid until then: the line "
      "is the median training of the kind, the band holds 90 % of them. The broken line is the FID of the plan, {:g}; "
      "{:.0f} % never get there.</p>\n",
      fid, 100 * quality.never);
  OrderedJson curve = OrderedJson::array();
  Table table({">USD", ">real images", ">FID", "90 %"});
  const auto number = [](double value) { return fmt::format("{:.3g}", value); };
  for (const documents::QualityPoint& point : quality.curve) {
    const documents::Measure& best = point.best_fid;
    curve.push_back({{"images", point.images},
                     {"usd", point.usd},
                     {"best_fid", {{"median", best.median}, {"interval", {best.interval.low, best.interval.high}}}}});
    table.add({usd(point.usd), number(point.images), number(best.median),
               range(best.interval.low, best.interval.high, number)});
  }
  section.tables = quality_band_svg(curve, {"FID against dollars", "usd", fid, {}});
  section.tables += html_of(table, "FID by dollars");
  sections.push_back(std::move(section));
}

}  // namespace ganymede::report
