#include "kernel/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "common/budget.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "kernel/launches.hpp"
#include "kernel/models/models.hpp"
#include "kernel/step_clock.hpp"

namespace ganymede::kernel {
namespace {

void describe_network(Description& out, const Network& network) {
  for (std::size_t i = 0; i < network.layers().size(); ++i) {
    const Layer& layer = *network.layers()[i];
    std::int64_t statistics = 0;
    for (const auto& spec : layer.statistics()) statistics += static_cast<std::int64_t>(spec.size());
    out.layers.push_back({network.name(), layer.name(), layer.kind(), layer.outputs(),
                          static_cast<std::int64_t>(network.layer_parameters(i)), statistics,
                          layer.forward_flops_per_image()});
  }
  out.parameters[network.name()] = static_cast<std::int64_t>(network.parameter_count());
  out.statistics[network.name()] = static_cast<std::int64_t>(network.statistic_count());
}

/// Bytes in use in each phase. Parameters, optimizer and data are needed throughout, activations from a network's
/// forward pass to its backward pass.
std::vector<std::pair<std::string, double>> memory_in_use(Gan& gan, const TensorOps& ops, int batch,
                                                          const GanOptions& options,
                                                          const std::map<std::string, double>& kinds) {
  const auto activations = [&](Network& network) {
    return static_cast<double>(network.planned_activation_bytes(ops, batch));
  };
  const auto workspace = [&](const Network& network) {
    return static_cast<double>(network.workspace_bytes(ops, batch));
  };
  const double of_generator = activations(gan.generator), of_discriminator = activations(gan.discriminator);
  double always = 0;
  for (const auto& [kind, bytes] : kinds)
    if (kind != "activations" && kind != "shared" && kind != "workspace") always += bytes;
  std::vector<std::pair<std::string, double>> in_use;
  const bool variational = gan.step == StepKind::variational, cyclic = gan.step == StepKind::cyclic;
  for (const Phase phase : phases_of(gan.step, options.gradient_penalty, gan.lazy.path_every > 0)) {
    const std::string_view name = kPhases[static_cast<std::size_t>(phase)].name;
    const bool computes = phase > Phase::copy && name.find("update") == std::string_view::npos;
    const bool judges = phase == Phase::cycle_a_judge || phase == Phase::cycle_b_judge;
    const bool in_cycle = phase >= Phase::cycle_b_forward;
    const bool by_generator = phase == Phase::generator_forward || phase == Phase::generator_backward ||
                              phase == Phase::generator_path_length || phase == Phase::decoder_forward ||
                              phase == Phase::decoder_backward || (in_cycle && !judges);
    const bool shares = name.find("forward") == std::string_view::npos || !options.activations.is_plain();
    double bytes = always;
    // The generator's activations are needed until its own backward pass, near the end of the step; an encoder's until
    // the end.
    if (cyclic        ? in_cycle
        : variational ? by_generator
                      : phase >= Phase::generator_forward && phase <= Phase::generator_path_length)
      bytes += of_generator;
    if (computes && (variational || !by_generator)) bytes += of_discriminator;
    if (computes && shares) bytes += kinds.at("shared");
    if (computes) bytes += workspace(by_generator ? gan.generator : gan.discriminator);
    in_use.emplace_back(name, bytes);
  }
  return in_use;
}

/// Launches of each phase, in the order of the phases; the mean over steps, where only some have the phase.
std::vector<std::pair<std::string, std::int64_t>> launches_by_phase(const Description& description) {
  std::vector<std::pair<std::string, double>> sums;
  for (const traces::TraceKernel& kernel : description.kernels) {
    if (sums.empty() || sums.back().first != kernel.phase) sums.emplace_back(kernel.phase, 0);
    sums.back().second += kernel.times;
  }
  std::vector<std::pair<std::string, std::int64_t>> launches;
  for (const auto& [phase, sum] : sums) launches.emplace_back(phase, std::llround(std::ceil(sum - 1e-9)));
  return launches;
}

}  // namespace

Description describe(const TrainOptions& options) {
  check(options);
  const auto backend = make_backend(options);
  TensorOps* const ops = backend->ops.get();
  Gan gan = build_gan(options);
  Description out;
  out.model = options.model;
  out.batch = options.batch;
  out.image = gan.image;
  describe_network(out, gan.generator);
  describe_network(out, gan.discriminator);
  out.memory_bytes = gan.planned_memory_bytes(*ops, options.batch, gan_options_of(options));
  out.memory_in_use_bytes = memory_in_use(gan, *ops, options.batch, gan_options_of(options), out.memory_bytes);
  out.flops_per_step =
      gan.step_flops_per_image(options.discriminator_steps, gan_options_of(options).gradient_penalty) * options.batch;
  out.kernels = kernels_of(options);
  return out;
}

std::string to_json(const Description& description) {
  OrderedJson layers = OrderedJson::array();
  for (const auto& layer : description.layers)
    layers.push_back({{"network", layer.network},
                      {"name", layer.name},
                      {"kind", layer.kind},
                      {"outputs", layer.outputs},
                      {"parameters", layer.parameters},
                      {"statistics", layer.statistics},
                      {"forward_flops_per_image", layer.forward_flops_per_image}});
  OrderedJson in_use = OrderedJson::object();
  for (const auto& [phase, bytes] : description.memory_in_use_bytes) in_use[phase] = bytes;
  OrderedJson launches = OrderedJson::object();
  for (const auto& [phase, count] : launches_by_phase(description)) launches[phase] = count;
  const OrderedJson json = {{"model", description.model},
                            {"batch", description.batch},
                            {"image", {description.image.height, description.image.width, description.image.channels}},
                            {"parameters", description.parameters},
                            {"statistics", description.statistics},
                            {"flops_per_step", description.flops_per_step},
                            {"memory_bytes", description.memory_bytes},
                            {"memory_in_use_bytes", in_use},
                            {"launches", launches},
                            {"kernels", documents::kernels_json(description.kernels)},
                            {"layers", layers}};
  return json.dump(2) + "\n";
}

std::string to_table(const Description& description) {
  std::string out =
      fmt::format("{}, batch {}, images {}x{}x{}\n\n{:<14} {:<9} {:<54} {:>8} {:>11} {:>12}\n", description.model,
                  description.batch, description.image.height, description.image.width, description.image.channels,
                  "network", "layer", "kind", "outputs", "parameters", "flop/image");
  for (const auto& layer : description.layers)
    out += fmt::format("{:<14} {:<9} {:<54} {:>8} {:>11} {:>12.0f}\n", layer.network, layer.name, layer.kind,
                       layer.outputs, layer.parameters, layer.forward_flops_per_image);
  out += "\n";
  for (const auto& [network, count] : description.parameters)
    out += fmt::format("{:<14} {} trainable parameters, {} moving statistics\n", network, count,
                       description.statistics.at(network));
  out += fmt::format("{:<14} {} ({} an image)\n\n", "step", to_string(Flops{description.flops_per_step}),
                     to_string(Flops{description.flops_per_step / description.batch}));
  for (const auto& [phase, count] : launches_by_phase(description))
    out += fmt::format("launches       {:<42} {:>12}\n", phase, count);
  double total = 0;
  for (const auto& [kind, bytes] : description.memory_bytes) {
    out += fmt::format("memory         {:<12} {:>12}\n", kind, to_string(Bytes{bytes}));
    total += bytes;
  }
  out += fmt::format("memory         {:<12} {:>12}\n\n", "total", to_string(Bytes{total}));
  for (const auto& [phase, bytes] : description.memory_in_use_bytes)
    out += fmt::format("in use         {:<42} {:>12}\n", phase, to_string(Bytes{bytes}));
  return out;
}

double predicted_memory_bytes(const TrainOptions& options, const TensorOps& ops) {
  const Model& model = find_model(options.model);
  const ImageShape image = image_of(options);
  std::vector<Growth> course{model.final_growth(image)};
  if (options.stage_steps > 0) {
    course = {{0, false}};
    for (int stage = 1; stage < model.stages(image); ++stage)
      course.insert(course.end(), {{stage, true}, {stage, false}});
  }
  double peak = 0, weights_before = 0;
  for (const Growth growth : course) {
    const auto kinds = model.build(image, growth).planned_memory_bytes(ops, options.batch, gan_options_of(options));
    const double all = std::accumulate(kinds.begin(), kinds.end(), 0.0,
                                       [](double sum, const auto& kind) { return sum + kind.second; });
    // While a stage takes over the weights of the one before, both are in memory.
    peak = std::max(peak, all + weights_before);
    weights_before = all;
    for (const char* passing : {"activations", "shared", "workspace", "data"}) weights_before -= kinds.at(passing);
  }
  return peak;
}

void check_memory(const TrainOptions& options, const TensorOps& ops, double available) {
  const double needed = predicted_memory_bytes(options, ops);
  if (available <= 0 || needed <= available) return;
  // Bisects for the largest batch that fits: memory grows with the batch.
  TrainOptions other = options;
  int fits = 1, not_fits = options.batch;
  while (fits + 1 < not_fits) {
    other.batch = std::midpoint(fits, not_fits);
    (predicted_memory_bytes(other, ops) <= available ? fits : not_fits) = other.batch;
  }
  throw Infeasible(fmt::format(
      "--batch: {} of {} needs {} of memory, and {}: {}", options.batch, options.model, to_string(Bytes{needed}),
      available == memory_budget().si ? "--max-memory allows " + to_string(Bytes{available})
                                      : to_string(Bytes{available}) + " are free",
      fits >= kMinBatch ? fmt::format("a batch of {} would fit", fits) : "no batch would fit"));
}

}  // namespace ganymede::kernel
