#include "studies/validation_totals.hpp"

#include <algorithm>
#include <cmath>

namespace ganymede::studies {
namespace {
bool has_tag(const OrderedJson& cell, const std::string& tag) {
  return tag.empty() ||
         (cell.contains("tags") && std::find(cell["tags"].begin(), cell["tags"].end(), tag) != cell["tags"].end());
}

}  // namespace

CellErrors errors_of(const OrderedJson& cells, const std::string& tag) {
  CellErrors out;
  for (const OrderedJson& cell : cells) {
    if (!cell.contains("predicted") || cell.contains("alternative") || !has_tag(cell, tag)) continue;
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

OrderedJson coverage_json(const OrderedJson& cells) {
  struct Class {
    int cells = 0, held = 0;
    double width = 0;
  };
  std::map<std::string, Class> classes;
  for (const OrderedJson& cell : cells) {
    if (!cell.contains("evidence") || cell.contains("alternative")) continue;
    Class& mine = classes[cell["evidence"]];
    ++mine.cells;
    mine.held += cell["interval_holds"].get<bool>() ? 1 : 0;
    const auto low = cell["interval_90"][0].get<double>(), high = cell["interval_90"][1].get<double>();
    mine.width += (high - low) / 2 / cell["predicted"].get<double>();
  }
  OrderedJson out = OrderedJson::array();
  for (const auto& [evidence, sums] : classes)
    out.push_back({{"evidence", evidence},
                   {"cells", sums.cells},
                   {"held", static_cast<double>(sums.held) / sums.cells},
                   {"mean_half_width", sums.width / sums.cells}});
  return out;
}

}  // namespace ganymede::studies
