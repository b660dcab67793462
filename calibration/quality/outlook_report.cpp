#include "calibration/quality/outlook_report.hpp"

#include <fmt/format.h>

#include "common/json_value.hpp"
#include "report/table.hpp"

namespace ganymede::calibration {
namespace {

OrderedJson interval_json(const QualityInterval& interval) {
  return {{"median", interval.median}, {"interval", {interval.low, interval.high}}};
}

}  // namespace

OrderedJson to_json(const QualityModel& model, const QualityQuestion& question, const QualityOutlook& outlook,
                    const std::string& run) {
  OrderedJson out = {{"schema", "ganymede.quality-forecast/1"}, {"model", model.name}};
  out["run"] = run.empty() ? OrderedJson(nullptr) : OrderedJson(run);
  for (std::size_t f = 0; f < kQualityFactors; ++f)
    if (const std::string& level = question.kind.levels.at(f); !level.empty())
      out["kind"][kQualityFactorNames.at(f)] = level;
  if (question.kind.batch > 0) out["kind"]["batch"] = question.kind.batch;
  out["points"] = question.points.size();
  out["images_seen"] = outlook.images_seen;
  out["best_seen"] = outlook.best_seen > 0 ? OrderedJson(outlook.best_seen) : OrderedJson(nullptr);
  out["diverged"] = outlook.diverged;
  out["horizon_images"] = outlook.horizon;
  out["targets"] = OrderedJson::array();
  for (const TargetOutlook& target : outlook.targets)
    out["targets"].push_back(
        {{"fid", target.fid},
         {"reached", target.reached},
         {"probability", target.probability},
         {"images", target.images.median > 0 ? interval_json(target.images) : OrderedJson(nullptr)}});
  out["best_fid"] = interval_json(outlook.best);
  out["curve"] = OrderedJson::array();
  for (const OutlookPoint& point : outlook.curve)
    out["curve"].push_back({{"images", point.images}, {"best_fid", interval_json(point.best)}});
  out["notes"] = outlook.notes;
  return out;
}

std::string to_table(const QualityOutlook& outlook) {
  report::Table table({"FID", "real images", "90 % of those that get there", "never"});
  for (const TargetOutlook& target : outlook.targets) {
    const bool known = target.images.median > 0;
    table.add({fmt::format("{:g}", target.fid), known ? fmt::format("{:.3g}", target.images.median) : "-",
               target.reached ? "reached"
               : known        ? fmt::format("{:.3g} to {:.3g}", target.images.low, target.images.high)
                              : "-",
               fmt::format("{:.0f} %", 100 * (1 - target.probability))});
  }
  std::string text = table.text();
  text += fmt::format("best FID within {:.3g} images: {:.3g} ({:.3g} to {:.3g})\n", outlook.horizon,
                      outlook.best.median, outlook.best.low, outlook.best.high);
  for (const std::string& note : outlook.notes) text += note + "\n";
  return text;
}

OrderedJson to_json(const PolicyQuestion& question, const PolicyComparison& all, double usd_per_million) {
  OrderedJson out = {{"schema", "ganymede.quality-policies/1"}, {"fid", question.fid}};
  out["horizon_images"] = all.horizon;
  out["check_images"] = question.check;
  out["seeds"] = question.seeds;
  out["policies"] = OrderedJson::array();
  for (const PolicyOutlook& one : all.policies) {
    OrderedJson row = {{"name", one.name}, {"probability", one.probability}, {"images", nullptr}};
    if (one.images.median > 0)
      row["images"] = {{"median", one.images.median}, {"interval", {one.images.low, one.images.high}}};
    row["mean_images"] = one.mean_images;
    row["mean_trainings"] = one.mean_trainings;
    row["images_a_success"] =
        one.probability > 0 ? OrderedJson(one.mean_images / one.probability) : OrderedJson(nullptr);
    row["usd"] = usd_per_million > 0 ? OrderedJson(one.mean_images * 1e-6 * usd_per_million) : OrderedJson(nullptr);
    out["policies"].push_back(std::move(row));
  }
  out["notes"] = all.notes;
  return out;
}

std::string to_table(const PolicyQuestion& question, const PolicyComparison& all, double usd_per_million) {
  report::Table table({"policy", "reaches it", "images if so", "90 % of these", "trainings", "mean images",
                       "images a success", "mean USD"});
  std::string summaries;
  for (const PolicyOutlook& one : all.policies) {
    const bool known = one.images.median > 0;
    table.add({one.name, fmt::format("{:.0f} %", 100 * one.probability),
               known ? fmt::format("{:.3g}", one.images.median) : "-",
               known ? fmt::format("{:.3g} to {:.3g}", one.images.low, one.images.high) : "-",
               fmt::format("{:.2f}", one.mean_trainings), fmt::format("{:.3g}", one.mean_images),
               one.probability > 0 ? fmt::format("{:.3g}", one.mean_images / one.probability) : "-",
               usd_per_million > 0 ? fmt::format("{:.2f}", one.mean_images * 1e-6 * usd_per_million) : "-"});
    summaries += fmt::format("{}: {}\n", one.name, one.summary);
  }
  std::string out = table.text() + summaries;
  out += fmt::format("a training has at most {:.3g} images, and an evaluation every {:.3g}\n", all.horizon,
                     question.check);
  for (const std::string& note : all.notes) out += note + "\n";
  return out;
}

}  // namespace ganymede::calibration
