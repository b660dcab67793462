#pragma once
// A chain of layers whose parameters, gradients and Adam moments stand in one flat buffer each: one fused update, and
// buckets of gradients that are plain ranges.

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/layer.hpp"

namespace ganymede::kernel {

/// Where a named array stands in its network's flat buffer.
struct NamedRange {
  std::string name;  ///< "dense1.weight"
  std::vector<int> shape;
  std::size_t offset;  ///< in floats
  std::size_t size;
};

/// What of its activations a network keeps from the forward pass to the backward pass. If not all, the layers are taken
/// in segments, about as many as the square root of the layers (Chen et al. 2016), which share the memory of two.
struct ActivationStorage {
  bool recompute = false;                ///< only the segments' inputs: the rest is computed again
  Compression bits = Compression::none;  ///< in which they are kept; changes results
  bool is_plain() const { return !recompute && bits == Compression::none; }
};

/// Memory that networks use in turns: gradients of activations while they go backwards, and the segments of those that
/// do not keep their activations. In bytes.
struct SharedNeeds {
  std::size_t gradient = 0, gradient_dot = 0;  ///< two of each
  std::size_t region[2] = {0, 0};

  SharedNeeds with(const SharedNeeds& other) const;
  std::size_t total() const { return 2 * gradient + 2 * gradient_dot + region[0] + region[1]; }
};
struct SharedMemory {
  float *gradient[2] = {nullptr, nullptr}, *gradient_dot[2] = {nullptr, nullptr};
  std::byte* region[2] = {nullptr, nullptr};

  SharedMemory() = default;
  /// Pieces of a block of needs.total() bytes.
  SharedMemory(const SharedNeeds& needs, const Buffer& block);
};

class Network {
 public:
  /// Layers must fit each other: outputs of one, inputs of the next.
  Network(std::string name, Layers layers);

  const std::string& name() const { return name_; }
  int inputs() const { return layers_.front()->inputs(); }
  int outputs() const { return layers_.back()->outputs(); }
  const Layers& layers() const { return layers_; }

  std::size_t parameter_count() const { return parameter_count_; }
  std::size_t statistic_count() const { return statistic_count_; }
  std::size_t gradient_bytes() const { return parameter_count_ * sizeof(float); }
  std::size_t layer_parameters(std::size_t layer) const;  ///< floats
  const std::vector<NamedRange>& parameters() const { return parameter_ranges_; }
  const std::vector<NamedRange>& statistics() const { return statistic_ranges_; }

  double forward_flops_per_image() const;
  double first_layer_flops_per_image() const { return layers_.front()->forward_flops_per_image(); }
  /// Of a forward pass, one back to the input, a tangent, and back through both.
  double penalty_flops_per_image() const;
  /// Whether it will be asked for tangents; before planning.
  void keep_tangents(bool kept) { keeps_tangents_ = kept; }
  /// How it keeps its activations; before planning. Not together with tangents.
  /// `disturbed`: others use the shared memory between its forward and its backward pass.
  void store_activations(ActivationStorage storage, bool disturbed) {
    storage_ = storage;
    disturbed_ = disturbed;
  }
  /// Matrix work that a backward pass does again.
  double recomputed_flops_per_image() const;
  /// What it uses of shared memory. Only before prepare(), as the next: planning moves the layers' tensors.
  SharedNeeds shared_needs(int batch);
  /// What prepare(batch) will allocate for activations of its own.
  std::size_t planned_activation_bytes(int batch);
  /// What prepare() did allocate for them.
  std::size_t activation_bytes() const { return activation_memory_.bytes(); }
  std::size_t workspace_bytes(const Ops& ops, int batch) const;
  /// Gives the activations back: no more passes, until it is prepared anew.
  void release_activations() { activation_memory_ = {}; }

  /// Allocates everything for `batch` images a step and draws the initial weights.
  void prepare(Ops& ops, int batch, RandomStream& initial, const SharedMemory& shared);
  /// With such memory of its own.
  void prepare(Ops& ops, int batch, RandomStream& initial);

  float* parameter_data() const { return parameter_memory_.floats(); }
  float* gradient_data() const { return gradient_memory_.floats(); }
  float* moment_data() const { return moment_memory_.floats(); }  ///< Adam's first moments, then the second
  float* statistic_data() const { return statistic_memory_.floats(); }

  // The passes; gan_step calls them through the free functions below.
  Tensor forward(Ops& ops, Tensor x, RandomStream& noise);
  Tensor infer(Ops& ops, Tensor x);
  /// `layer_done(i)`, if given, is called once layer i's gradients are final.
  template <class LayerDone>
  Tensor backward(Ops& ops, Tensor dy, const Want& want, const LayerDone& layer_done);
  void update(Ops& ops, const AdamParameters& rule);
  /// Of the last forward pass, along x_dot.
  Tensor tangent(Ops& ops, Tensor x_dot);
  /// Adds to the gradients those of a number with the derivatives dy_dot by the tangent (and none by the output).
  template <class LayerDone>
  void tangent_backward(Ops& ops, Tensor dy_dot, const LayerDone& layer_done);

  std::int64_t updates() const { return updates_; }  ///< so far, by which Adam corrects its bias
  void set_updates(std::int64_t updates) { updates_ = updates; }

 private:
  /// Layers whose activations are kept, and lost, together.
  struct Segment {
    std::size_t first, end;  ///< layers
    Tensor input;            ///< a copy, in the segment's memory
    std::size_t floats;      ///< of the segment's memory
    std::uint8_t* kept;      ///< where it is while others use that memory; null: none do
    RandomStream::State noise;
  };

  void plan(Arena& arena, int batch, const SharedMemory& shared);
  void plan_segments(Arena& arena, int batch, const SharedMemory& shared);
  std::vector<Segment> cut_segments() const;
  void plan_segment(Segment& segment, Arena memory, int batch);
  std::vector<std::size_t> segment_starts() const;
  void restore(Ops& ops, Segment& segment);
  void draw(Ops& ops, RandomStream& initial);

  std::string name_;
  Layers layers_;
  std::vector<NamedRange> parameter_ranges_, statistic_ranges_;
  std::size_t parameter_count_ = 0, statistic_count_ = 0;
  Buffer parameter_memory_, gradient_memory_, moment_memory_, statistic_memory_, activation_memory_, own_shared_;
  Tensor gradient_[2];  // of the activations, taking turns
  Tensor gradient_dot_[2];
  bool keeps_tangents_ = false;
  ActivationStorage storage_;
  bool disturbed_ = false;
  Tensor output_;                  // a copy, where others use the segments' memory
  std::vector<Segment> segments_;  // none: all activations have memory of their own
  std::int64_t updates_ = 0;
};

template <class LayerDone>
Tensor Network::backward(Ops& ops, Tensor dy, const Want& want, const LayerDone& layer_done) {
  std::size_t segment = segments_.size();
  for (std::size_t i = layers_.size(); i-- > 0;) {
    if (segment > 0 && i + 1 == segments_[segment - 1].end) restore(ops, segments_[--segment]);
    float* spare = gradient_[dy.data == gradient_[0].data ? 1 : 0].data;
    dy = layers_[i]->backward(ops, dy, spare, {want.weights, want.accumulate, want.input || i > 0});
    layer_done(i);
  }
  return dy;
}

template <class LayerDone>
void Network::tangent_backward(Ops& ops, Tensor dy_dot, const LayerDone& layer_done) {
  Adjoints d{{}, dy_dot};
  for (std::size_t i = layers_.size(); i-- > 0;) {
    d = layers_[i]->tangent_backward(ops, d, spare_beside(d, gradient_, gradient_dot_), i > 0);
    layer_done(i);
  }
}

// gan_step reads like the algorithm with these.
inline Tensor forward(Network& network, Ops& ops, Tensor x, RandomStream& noise) {
  return network.forward(ops, x, noise);
}
template <class LayerDone>
Tensor backward(Network& network, Ops& ops, Tensor dy, const Want& want, const LayerDone& layer_done) {
  return network.backward(ops, dy, want, layer_done);
}
inline void update(Network& network, Ops& ops, const AdamParameters& rule) { network.update(ops, rule); }

}  // namespace ganymede::kernel
