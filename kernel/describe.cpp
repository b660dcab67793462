#include "kernel/describe.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernel/models/models.hpp"

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

}  // namespace

Description describe(const TrainOptions& options) {
  check(options);
  const auto ops = make_ops(options);
  Gan gan = build_gan(options);
  Description out;
  out.model = options.model;
  out.batch = options.batch;
  out.image = gan.image;
  describe_network(out, gan.generator);
  describe_network(out, gan.discriminator);
  out.memory_bytes = gan.planned_memory_bytes(*ops, options.batch, gan_options_of(options));
  out.flops_per_step =
      gan.step_flops_per_image(options.discriminator_steps, gan_options_of(options).gradient_penalty) * options.batch;
  return out;
}

std::string to_json(const Description& description) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const auto& layer : description.layers)
    layers.push_back({{"network", layer.network},
                      {"name", layer.name},
                      {"kind", layer.kind},
                      {"outputs", layer.outputs},
                      {"parameters", layer.parameters},
                      {"statistics", layer.statistics},
                      {"forward_flops_per_image", layer.forward_flops_per_image}});
  const nlohmann::ordered_json json = {
      {"model", description.model},
      {"batch", description.batch},
      {"image", {description.image.height, description.image.width, description.image.channels}},
      {"parameters", description.parameters},
      {"statistics", description.statistics},
      {"flops_per_step", description.flops_per_step},
      {"memory_bytes", description.memory_bytes},
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
  double total = 0;
  for (const auto& [kind, bytes] : description.memory_bytes) {
    out += fmt::format("memory         {:<12} {:>12}\n", kind, to_string(Bytes{bytes}));
    total += bytes;
  }
  return out + fmt::format("memory         {:<12} {:>12}\n", "total", to_string(Bytes{total}));
}

}  // namespace ganymede::kernel
