#include <fmt/format.h>

#include "calibration/kernels/fit.hpp"
#include "common/json_value.hpp"

namespace ganymede::calibration {
namespace {

using Json = OrderedJson;

/// Four significant digits, so that the file stays readable.
Json number(double value) { return Json::parse(fmt::format("{:.4g}", value)); }

/// The text with each array of plain values on one line.
std::string with_short_arrays(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t end = text[at] == '[' ? text.find_first_of("[{]", at + 1) : std::string::npos;
    if (end == std::string::npos || text[end] != ']' || text.substr(at, end - at).find('"') != std::string::npos) {
      result += text[at];
      continue;
    }
    for (; at < end; ++at)
      if (text[at] != '\n' && text[at] != ' ') result += text[at];
    result += ']';
  }
  return result;
}

Json spread_json(const Spread& spread) { return Json::array({number(spread.low), number(spread.high)}); }

Json spreads_json(const std::array<Spread, kDurations>& spreads) {
  Json rows = Json::array();
  for (const Spread& spread : spreads) rows.push_back(spread_json(spread));
  return rows;
}

Json errors_json(const std::vector<ErrorRow>& errors) {
  Json rows = Json::array();
  for (const ErrorRow& row : errors)
    rows.push_back({{"kind", row.kind},
                    {"gpu", row.gpu},
                    {"kernels", row.kernels},
                    {"mean_error", number(row.mean_error)},
                    {"sum20_error", number(row.sum20_error)},
                    {"held", number(row.held)}});
  return rows;
}

Json residual_json(const Residual& residual) {
  Json values = Json::array();
  if (residual.learned())
    for (const double value : residual.values()) values.push_back(number(value));
  return values;
}

Json chip_json(const ChipFit& chip) {
  Json groups;
  for (std::size_t i = 0; i < kGroups; ++i)
    if (chip.residuals[i].learned())
      groups[std::string(to_string(static_cast<Group>(i)))] = {{"residual", residual_json(chip.residuals[i])},
                                                               {"interval", spreads_json(chip.known[i])}};
  return groups;
}

Json groups_json(const KernelParameters& parameters) {
  Json groups;
  for (std::size_t i = 0; i < kGroups; ++i) {
    groups[std::string(to_string(static_cast<Group>(i)))] = {
        {"residual", residual_json(parameters.residuals[i])},
        {"interval_left_out", spreads_json(parameters.left_out[i])}};
  }
  return groups;
}

}  // namespace

std::string parameters_json(const KernelParameters& parameters, const std::vector<ErrorRow>& shapes_left_out,
                            const std::vector<ErrorRow>& gpus_left_out) {
  Json json;
  json["schema"] = "ganymede.kernel-parameters/1";
  json["sources"] = {
      "NeuSight (sitar-lab/NeuSight @6945927d9afc, MIT): 3x3 convolutions, products, elementwise operations, layer "
      "norm, softmax on P100, V100, T4, A100",
      "DeepBench (baidu-research/DeepBench @da81ba782073, Apache-2.0): convolutions with their gradients, products on "
      "P100, GTX 1080 Ti, V100"};
  json["fitted_with"] = "kernel_fit FOLDER OUTPUT";
  json["errors"] = {{"shapes_left_out", errors_json(shapes_left_out)}, {"gpus_left_out", errors_json(gpus_left_out)}};
  for (std::size_t i = 0; i < parameters.scalars.size(); ++i)
    json["scalars"][std::string(range_of(static_cast<Scalar>(i)).name)] = number(parameters.scalars[i]);
  for (const auto& [gpu, shares] : parameters.gpus)
    json["gpus"][gpu] = {{"arithmetic", number(shares.arithmetic)}, {"memory", number(shares.memory)}};
  json["groups"] = groups_json(parameters);
  for (const auto& [name, chip] : parameters.chips) json["chips"][name] = chip_json(chip);
  for (const auto& [gpu, operations] : parameters.floors)
    for (const auto& [operation, seconds] : operations) json["host_floors"][gpu][operation] = number(seconds);
  for (const auto& [gpu, operations] : parameters.floor_spreads)
    for (const auto& [operation, spread] : operations)
      json["host_floor_intervals"][gpu][operation] = spread_json(spread);
  return with_short_arrays(json.dump(1)) + "\n";
}

}  // namespace ganymede::calibration
