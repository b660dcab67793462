#include "kernel/network.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>

namespace ganymede::kernel {
namespace {

void append(std::vector<NamedRange>& ranges, const Layer& layer, const std::vector<ParameterSpec>& specs) {
  for (const auto& spec : specs) {
    // A composite layer has no name; its specs begin with the names of its parts.
    const std::string name = layer.name().empty() ? spec.name : layer.name() + "." + spec.name;
    const NamedRange before = ranges.empty() ? NamedRange{} : ranges.back();
    ranges.push_back(
        {name, spec.shape, before.offset + padded(before.size), spec.size(), before.packed_offset + before.size});
  }
}

std::size_t total(const std::vector<ParameterSpec>& specs) {
  std::size_t sum = 0;
  for (const auto& spec : specs) sum += spec.size();
  return sum;
}

}  // namespace

Network::Network(std::string name, Layers first, Layers second) : name_(std::move(name)) {
  assert(!first.empty());
  add_chain(std::move(first));
  if (!second.empty()) add_chain(std::move(second));
}

void Network::add_chain(Layers layers) {
  const std::size_t begin = layers_.size();
  std::move(layers.begin(), layers.end(), std::back_inserter(layers_));
  Chain& chain = chains_.emplace_back(Chain{begin, layers_.size(), begin});
  while (chain.lowest + 1 < chain.end && layers_[chain.lowest]->parameters().empty()) ++chain.lowest;
  for (std::size_t i = begin; i < chain.end; ++i) {
    assert(i == begin || layers_[i]->inputs() == layers_[i - 1]->outputs());
    append(parameter_ranges_, *layers_[i], layers_[i]->parameters());
    append(statistic_ranges_, *layers_[i], layers_[i]->statistics());
    parameter_count_ += total(layers_[i]->parameters());
    statistic_count_ += total(layers_[i]->statistics());
    parameter_floats_ += padded(layers_[i]->parameters());
    statistic_floats_ += padded(layers_[i]->statistics());
  }
}

std::size_t Network::layer_parameters(std::size_t layer) const { return total(layers_[layer]->parameters()); }

std::size_t Network::layer_floats(std::size_t layer) const { return padded(layers_[layer]->parameters()); }

double Network::forward_flops_per_image() const {
  double sum = 0;
  for (const auto& layer : layers_) sum += layer->forward_flops_per_image();
  return sum;
}

double Network::first_layer_flops_per_image() const {
  double sum = 0;
  for (const Chain& chain : chains_) sum += layers_[chain.lowest]->forward_flops_per_image();
  return sum;
}

double Network::penalty_flops_per_image() const {
  const double all = forward_flops_per_image(), first = first_layer_flops_per_image();
  // Five passes cost the same: forward, backward to the images, tangent, and the tangent's gradients of weights and
  // activations. The last leaves out the images.
  double flops = 5 * all - first;
  // Layers before a curved one also have an adjoint of their output, so they compute both gradients once more.
  double before = 0;
  bool curved = false;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    if (curved) before += layers_[i]->forward_flops_per_image();
    curved = curved || layers_[i]->is_curved();
  }
  if (curved) flops += 2 * before - first;
  return flops;
}

double Network::path_length_flops_per_image(std::size_t first) const {
  double before = 0, after = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i)
    (i < first ? before : after) += layers_[i]->forward_flops_per_image();
  return 6 * after + 2 * before - first_layer_flops_per_image();
}

SharedSizes SharedSizes::max_with(const SharedSizes& other) const {
  return {std::max(gradient, other.gradient),
          std::max(gradient_dot, other.gradient_dot),
          {std::max(region[0], other.region[0]), std::max(region[1], other.region[1])}};
}

SharedMemory::SharedMemory(const SharedSizes& sizes, const Buffer& block) {
  Arena arena(block, ElementType::fp32);  // only bytes are taken
  for (void*& piece : gradient) piece = arena.bytes(sizes.gradient);
  for (void*& piece : gradient_dot) piece = arena.bytes(sizes.gradient_dot);
  for (const std::size_t i : {0, 1}) region[i] = arena.bytes(sizes.region[i]);
}

SharedSizes Network::shared_sizes(const TensorOps& ops, int batch) {
  int widest = 0;
  for (const auto& layer : layers_) widest = std::max({widest, layer->inputs(), layer->outputs()});
  Arena counts(ops.element_type());
  counts.tensor(widest, batch);
  SharedSizes sizes{counts.used(), keeps_tangents_ ? counts.used() : 0, {0, 0}};
  if (storage_.is_plain()) return sizes;
  std::size_t number = 0;
  for (Segment& segment : make_segments()) {
    Arena persistent(ops.element_type());
    plan_segment(segment, persistent.over(nullptr), batch);
    std::size_t& region = sizes.region[number++ % 2];
    region = std::max(region, segment.elements * bytes_of(ops.element_type()));
  }
  return sizes;
}

std::size_t Network::planned_activation_bytes(const TensorOps& ops, int batch) {
  assert(!parameter_memory_.memory);
  Arena only_counts(ops.element_type());
  plan(only_counts, batch, {});
  return only_counts.used();
}

std::size_t Network::workspace_bytes(const TensorOps& ops, int batch) const {
  std::size_t most = 0;
  for (const auto& layer : layers_) most = std::max(most, layer->workspace_bytes(ops, batch));
  return most;
}

void Network::plan(Arena& arena, int batch, const SharedMemory& shared) {
  int widest = 0;
  for (const auto& layer : layers_) {
    if (storage_.is_plain()) layer->plan(arena, batch);
    if (keeps_tangents_) layer->plan_tangent(arena, batch);
    widest = std::max({widest, layer->inputs(), layer->outputs()});
  }
  if (!storage_.is_plain()) plan_segments(arena, batch, shared);
  for (const std::size_t i : {0, 1}) {
    gradient_[i] = {shared.gradient[i], widest, batch};
    gradient_dot_[i] = {shared.gradient_dot[i], widest, batch};
  }
}

std::vector<std::size_t> Network::segment_starts() const {
  std::vector<std::size_t> starts;
  for (const Chain& chain : chains_) {
    // A segment's input is kept, so its first layer must not overwrite it.
    std::vector<std::size_t> possible;
    for (std::size_t i = chain.begin; i < chain.end; ++i)
      if (!layers_[i]->is_in_place()) possible.push_back(i);
    const auto root = std::lround(std::sqrt(static_cast<double>(possible.size())));
    const std::size_t wanted = std::max<std::size_t>(1, static_cast<std::size_t>(root));
    starts.push_back(chain.begin);
    for (std::size_t i = 1; i < wanted; ++i) {
      const std::size_t start = possible[i * possible.size() / wanted];
      if (start > starts.back()) starts.push_back(start);
    }
  }
  return starts;
}

std::vector<Network::Segment> Network::make_segments() const {
  const std::vector<std::size_t> starts = segment_starts();
  std::vector<Segment> segments;
  for (std::size_t s = 0; s < starts.size(); ++s)
    segments.push_back({starts[s], s + 1 < starts.size() ? starts[s + 1] : layers_.size(), {}, 0, nullptr, {}});
  return segments;
}

void Network::plan_segment(Segment& segment, Arena memory, int batch) {
  segment.input = memory.tensor(layers_[segment.first]->inputs(), batch);
  for (std::size_t i = segment.first; i < segment.end; ++i) layers_[i]->plan(memory, batch);
  segment.elements = memory.used() / bytes_of(memory.element_type());
}

// Segments use two blocks of memory alternately, so that each segment reads the output of the one before from the other
// block. If no other network overwrites the blocks, the last two segments are still there when the backward pass
// begins.
void Network::plan_segments(Arena& arena, int batch, const SharedMemory& shared) {
  assert(!keeps_tangents_ && (chains_.size() == 1 || memory_is_reused_));
  segments_ = make_segments();
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    Segment& segment = segments_[s];
    plan_segment(segment, arena.over(shared.region[s % 2]), batch);
    if (s + 2 >= segments_.size() && !memory_is_reused_) continue;
    const std::size_t count = storage_.recompute ? segment.input.size() : segment.elements;
    segment.kept = reinterpret_cast<std::uint8_t*>(
        arena.bytes(compressed_bytes(storage_.compression, count, arena.element_type())));
  }
  for (Chain& chain : chains_)
    if (memory_is_reused_) chain.output = arena.tensor(outputs(), batch);
}

void Network::restore(TensorOps& ops, Segment& segment) {
  if (segment.kept == nullptr) return;
  void* memory = segment.input.data;  // the beginning of the segment's memory
  if (!storage_.recompute) return ops.unpack(storage_.compression, memory, segment.kept, segment.elements);
  ops.unpack(storage_.compression, memory, segment.kept, segment.input.size());
  RandomStream noise(0, "kernel/again");
  noise.restore(segment.noise);
  Tensor x = segment.input;
  for (std::size_t i = segment.first; i < segment.end; ++i) x = layers_[i]->forward_again(ops, x, noise);
}

double Network::recomputed_flops_per_image() const {
  if (!storage_.recompute) return 0;
  const std::vector<std::size_t> starts = segment_starts();
  double flops = 0;
  const std::size_t end = memory_is_reused_ ? layers_.size() : starts.size() > 2 ? starts[starts.size() - 2] : 0;
  for (std::size_t i = 0; i < end; ++i) flops += layers_[i]->forward_flops_per_image();
  return flops;
}

void Network::prepare(TensorOps& ops, int batch, RandomStream& initial) {
  const SharedSizes sizes = shared_sizes(ops, batch);
  own_shared_ = ops.allocate(sizes.total());
  prepare(ops, batch, initial, SharedMemory(sizes, own_shared_));
}

void Network::prepare(TensorOps& ops, int batch, RandomStream& initial, const SharedMemory& shared) {
  activation_memory_ = ops.allocate(planned_activation_bytes(ops, batch));
  parameter_memory_ = ops.allocate_parameters(parameter_floats_);
  gradient_memory_ = ops.allocate(parameter_bytes());
  moment_memory_ = ops.allocate(2 * parameter_bytes());
  statistic_memory_ = ops.allocate(statistic_bytes());
  ops.reserve_workspace(workspace_bytes(ops, batch));

  Arena arena(activation_memory_, ops.element_type());
  plan(arena, batch, shared);
  std::size_t parameter = 0, statistic = 0;
  for (const auto& layer : layers_) {
    layer->bind(parameter_data() + parameter, gradient_data() + parameter, statistic_data() + statistic);
    parameter += padded(layer->parameters());
    statistic += padded(layer->statistics());
  }
  for (const Chain& chain : chains_)
    for (std::size_t i = chain.begin; i + 1 < chain.end; ++i) layers_[i]->join(*layers_[i + 1]);
  draw_initial_values(ops, initial);
}

void Network::draw_initial_values(TensorOps& ops, RandomStream& initial) {
  const auto fill = [&](float* to, const std::vector<ParameterSpec>& specs) {
    for (const auto& spec : specs) {
      std::vector<float> drawn(spec.size());
      if (spec.deviation > 0) {
        initial.fill_normal(drawn);
        for (float& value : drawn) value = spec.low + spec.deviation * value;
      } else {
        for (float& value : drawn) value = spec.low + (spec.high - spec.low) * static_cast<float>(initial.uniform());
      }
      ops.write_array(to, drawn, spec.shape);
      to += padded(drawn.size());
    }
    return to;
  };
  float *parameters = parameter_data(), *statistics = statistic_data();
  for (const auto& layer : layers_) {
    parameters = fill(parameters, layer->parameters());
    statistics = fill(statistics, layer->statistics());
  }
}

Tensor Network::forward(TensorOps& ops, Tensor x, RandomStream& noise, std::size_t number) {
  const Chain& chain = chains_[number];
  for (std::size_t i = chain.begin; segments_.empty() && i < chain.end; ++i) {
    ops.begin_layer(layers_[i]->name());
    x = layers_[i]->forward(ops, x, noise);
    ops.begin_layer("");
  }
  for (Segment& segment : segments_) {
    if (segment.first < chain.begin || segment.end > chain.end) continue;
    segment.noise = noise.state();
    ops.copy(segment.input, x);
    x = segment.input;
    if (storage_.recompute && segment.kept != nullptr) ops.pack(storage_.compression, segment.kept, x.data, x.size());
    for (std::size_t i = segment.first; i < segment.end; ++i) x = layers_[i]->forward(ops, x, noise);
    if (!storage_.recompute && segment.kept != nullptr)
      ops.pack(storage_.compression, segment.kept, segment.input.data, segment.elements);
  }
  if (segments_.empty() || !memory_is_reused_) return x;
  ops.copy(chain.output, x);
  return chain.output;
}

Tensor Network::tangent(TensorOps& ops, Tensor x_dot, std::size_t first) {
  assert(keeps_tangents_);
  for (std::size_t i = first; i < layers_.size(); ++i) {
    ops.begin_layer(layers_[i]->name());
    x_dot = layers_[i]->tangent(ops, x_dot);
  }
  ops.begin_layer("");
  return x_dot;
}

Tensor Network::infer(TensorOps& ops, Tensor x, std::size_t number) {
  for (std::size_t i = chains_[number].begin; i < chains_[number].end; ++i) x = layers_[i]->infer(ops, x);
  return x;
}

void Network::update(TensorOps& ops, const AdamParameters& rule) {
  // The gradients between the arrays are zero, so that the padding stays zero.
  ops.adam(parameter_data(), gradient_data(), moment_data(), moment_data(1), parameter_floats_, rule, ++updates_);
}

}  // namespace ganymede::kernel
