#include "kernel/network.hpp"

#include <algorithm>
#include <cassert>

namespace ganymede::kernel {
namespace {

std::size_t append(std::vector<NamedRange>& ranges, std::size_t offset, const Layer& layer,
                   const std::vector<ParameterSpec>& specs) {
  for (const auto& spec : specs) {
    // A composite has no name of its own: its parts' stand in the specs.
    const std::string name = layer.name().empty() ? spec.name : layer.name() + "." + spec.name;
    ranges.push_back({name, spec.shape, offset, spec.size()});
    offset += spec.size();
  }
  return offset;
}

std::size_t total(const std::vector<ParameterSpec>& specs) {
  std::size_t sum = 0;
  for (const auto& spec : specs) sum += spec.size();
  return sum;
}

}  // namespace

Network::Network(std::string name, Layers layers) : name_(std::move(name)), layers_(std::move(layers)) {
  assert(!layers_.empty());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    assert(i == 0 || layers_[i]->inputs() == layers_[i - 1]->outputs());
    parameter_count_ = append(parameter_ranges_, parameter_count_, *layers_[i], layers_[i]->parameters());
    statistic_count_ = append(statistic_ranges_, statistic_count_, *layers_[i], layers_[i]->statistics());
  }
}

std::size_t Network::layer_parameters(std::size_t layer) const { return total(layers_[layer]->parameters()); }

double Network::forward_flops_per_image() const {
  double sum = 0;
  for (const auto& layer : layers_) sum += layer->forward_flops_per_image();
  return sum;
}

double Network::penalty_flops_per_image() const {
  const double all = forward_flops_per_image(), first = first_layer_flops_per_image();
  double flops = 5 * all - first;  // forward, data; tangent, its weights, its data but not into the images
  // What lies before a curved layer passes the adjoint of its own output too.
  double before = 0;
  bool curved = false;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    if (curved) before += layers_[i]->forward_flops_per_image();
    curved = curved || layers_[i]->is_curved();
  }
  if (curved) flops += 2 * before - first;
  return flops;
}

std::size_t Network::planned_activation_bytes(int batch) {
  assert(!parameter_memory_.memory);
  Arena only_counts;
  plan(only_counts, batch);
  return only_counts.used();
}

std::size_t Network::workspace_bytes(const Ops& ops, int batch) const {
  std::size_t most = 0;
  for (const auto& layer : layers_) most = std::max(most, layer->workspace_bytes(ops, batch));
  return most;
}

void Network::plan(Arena& arena, int batch) {
  int widest = 0;
  for (const auto& layer : layers_) {
    layer->plan(arena, batch);
    if (keeps_tangents_) layer->plan_tangent(arena, batch);
    widest = std::max({widest, layer->inputs(), layer->outputs()});
  }
  for (auto& gradient : gradient_) gradient = arena.tensor(widest, batch);
  if (keeps_tangents_)
    for (auto& gradient : gradient_dot_) gradient = arena.tensor(widest, batch);
}

void Network::prepare(Ops& ops, int batch, RandomStream& initial) {
  activation_memory_ = ops.allocate(planned_activation_bytes(batch));
  parameter_memory_ = ops.allocate(parameter_count_ * sizeof(float));
  gradient_memory_ = ops.allocate(parameter_count_ * sizeof(float));
  moment_memory_ = ops.allocate(2 * parameter_count_ * sizeof(float));
  statistic_memory_ = ops.allocate(statistic_count_ * sizeof(float));
  ops.reserve_workspace(workspace_bytes(ops, batch));

  Arena arena(activation_memory_);
  plan(arena, batch);
  std::size_t parameter = 0, statistic = 0;
  for (const auto& layer : layers_) {
    layer->bind(parameter_data() + parameter, gradient_data() + parameter, statistic_data() + statistic);
    parameter += total(layer->parameters());
    statistic += total(layer->statistics());
  }
  draw(ops, initial);
}

void Network::draw(Ops& ops, RandomStream& initial) {
  std::vector<float> parameters, statistics;
  const auto fill = [&initial](std::vector<float>& values, const std::vector<ParameterSpec>& specs) {
    for (const auto& spec : specs) {
      std::vector<float> drawn(spec.size());
      if (spec.deviation > 0) {
        initial.fill_normal(drawn);
        for (float& value : drawn) value = spec.low + spec.deviation * value;
      } else {
        for (float& value : drawn) value = spec.low + (spec.high - spec.low) * static_cast<float>(initial.uniform());
      }
      values.insert(values.end(), drawn.begin(), drawn.end());
    }
  };
  for (const auto& layer : layers_) {
    fill(parameters, layer->parameters());
    fill(statistics, layer->statistics());
  }
  ops.write(parameter_data(), parameters);
  ops.write(statistic_data(), statistics);
}

Tensor Network::forward(Ops& ops, Tensor x, RandomStream& noise) {
  for (const auto& layer : layers_) x = layer->forward(ops, x, noise);
  return x;
}

Tensor Network::tangent(Ops& ops, Tensor x_dot) {
  assert(keeps_tangents_);
  for (const auto& layer : layers_) x_dot = layer->tangent(ops, x_dot);
  return x_dot;
}

Tensor Network::infer(Ops& ops, Tensor x) {
  for (const auto& layer : layers_) x = layer->infer(ops, x);
  return x;
}

void Network::update(Ops& ops, const AdamParameters& rule) {
  float* first = moment_memory_.floats();
  ops.adam(parameter_data(), gradient_data(), first, first + parameter_count_, parameter_count_, rule, ++updates_);
}

}  // namespace ganymede::kernel
