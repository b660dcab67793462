#include "traces/layer_list.hpp"

#include <fmt/format.h>

#include <set>

#include "common/json.hpp"
#include "traces/layer_walk.hpp"

namespace ganymede::traces {
namespace {

using PassKind = LayerPass::Kind;

/// The default step: the discriminator learns from real and generated images, then the generator learns through it from
/// the same generated images.
const std::vector<LayerPass>& gan_step() {
  static const std::vector<LayerPass> step = {
      {"discriminator.forward_real", "discriminator", PassKind::forward, 1},
      {"discriminator.backward_real", "discriminator", PassKind::backward, 1},
      {"generator.forward", "generator", PassKind::forward, 1},
      {"discriminator.forward_fake", "discriminator", PassKind::forward, 1},
      {"discriminator.backward_fake", "discriminator", PassKind::backward, 1},
      {"discriminator.update", "discriminator", PassKind::update, 1},
      {"generator.forward_through_discriminator", "discriminator", PassKind::forward, 1},
      {"generator.backward_through_discriminator", "discriminator", PassKind::backward_input, 1},
      {"generator.backward", "generator", PassKind::backward, 1},
      {"generator.update", "generator", PassKind::update, 1}};
  return step;
}

std::vector<LayerPass> read_step(const JsonNode& node, const std::map<std::string, LayerNetwork>& networks) {
  std::vector<std::string> names;
  for (const auto& [name, network] : networks) names.push_back(name);
  std::vector<LayerPass> step;
  std::set<std::string> seen;
  for (const JsonNode& entry : node.as_array()) {
    JsonObject in(entry);
    LayerPass pass;
    pass.network = in.required("network").as_choice(names);
    const std::string kind = in.required("pass").as_choice({"forward", "backward", "backward-input", "update"});
    pass.kind = kind == "forward"          ? PassKind::forward
                : kind == "backward"       ? PassKind::backward
                : kind == "backward-input" ? PassKind::backward_input
                                           : PassKind::update;
    if (const auto times = in.optional("times")) pass.times = times->as_number(1e-6, 1e6);
    if (const auto images = in.optional("images")) pass.images = images->as_number(1e-6, 1);
    const auto again = in.optional("differentiable");
    pass.differentiable = again && again->as_bool();
    if (pass.differentiable && kind != "forward") again->fail("only a forward pass is differentiated twice");
    const auto name = in.optional("name");
    pass.name = name ? name->as_string() : pass.network + "." + kind;
    for (int i = 2; !seen.insert(pass.name).second; ++i) pass.name = fmt::format("{}.{}_{}", pass.network, kind, i);
    in.finish();
    step.push_back(std::move(pass));
  }
  return step;
}

void check_step(const JsonNode& at, const LayerList& list) {
  for (const auto& [name, network] : list.networks) {
    if (network.frozen) continue;
    bool learned = false, updated = false;
    for (const LayerPass& pass : list.step) {
      if (pass.network != name) continue;
      if (pass.kind == PassKind::update && !learned)
        at.fail(fmt::format("{} is updated before any backward pass", name));
      learned = learned || pass.kind == PassKind::backward;
      updated = updated || pass.kind == PassKind::update;
    }
    if (!updated) at.fail(fmt::format("{} is never updated", name));
  }
}

}  // namespace

bool read_keeps(const JsonNode& node, double numbers, Layer& layer) {
  const auto each = node.value().is_array() ? node.as_numbers(0, 1000) : std::vector{node.as_number(0, 1000)};
  if (each.empty() || each.size() > 2) node.expected("one number, or two: the second to differentiate gradients");
  layer.kept = kBytesPerNumber * numbers * each[0];
  if (each.size() > 1) layer.again = kBytesPerNumber * numbers * each[1];
  return false;
}

LayerCost& LayerCost::operator+=(const LayerCost& more) {
  flops += more.flops;
  read += more.read;
  written += more.written;
  kept += more.kept;
  launches += more.launches;
  parameters += more.parameters;
  return *this;
}

LayerCost LayerNetwork::total() const {
  LayerCost sum;
  for (const LayerCost& layer : layers) sum += layer;
  return sum;
}

bool is_counted(const TraceSoftware& software) { return software.backend == kRooflineBackend; }

LayerList read_layer_list(const JsonNode& root, std::optional<int> image, const LayerSettings& settings) {
  JsonObject in(at_image(root, image, settings));
  check_schema(in, "ganymede.layers/1");
  LayerList list;
  list.name = in.required("name").as_string();
  if (const auto source = in.optional("source")) list.source = source->as_string();
  const auto precision = in.optional("precision");
  list.precision = precision ? precision->as_choice({"fp32", "tf32", "bf16", "fp16"}) : "fp32";
  const auto format = in.optional("memory_format");
  list.channels_last = format && format->as_choice({"channels_first", "channels_last"}) == "channels_last";
  const auto equalized = in.optional("equalized");
  list.equalized = equalized && equalized->as_bool();
  const auto executor = in.optional("executor");
  list.executor = executor ? executor->as_choice({"eager", "compiled", "graph"}) : "eager";
  const auto optimizer = in.optional("optimizer");
  list.optimizer = optimizer ? optimizer->as_choice({"adam", "sgd"}) : "adam";
  const JsonNode networks = in.required("networks");
  for (const auto& [name, node] : networks.as_map()) list.networks[name] = read_layer_network(node);
  const auto step = in.optional("step");
  if (!step && !(list.networks.contains("generator") && list.networks.contains("discriminator")))
    networks.fail("without a \"step\" they must be called \"generator\" and \"discriminator\"");
  list.step = step ? read_step(*step, list.networks) : gan_step();
  check_step(step ? *step : networks, list);
  if (const auto bytes = in.optional("bytes_per_image")) list.bytes_per_image = bytes->as_number(0, 1e12);
  if (const auto sums = in.optional("gradient_sums")) list.gradient_sums = static_cast<double>(sums->as_integer(0, 16));
  if (const auto bytes = in.optional("bytes_beside")) list.bytes_beside = bytes->as_number(0, 1e12);
  in.finish();
  return list;
}

}  // namespace ganymede::traces
