#pragma once
// A chain of layers, or several that are updated together. Its parameters, gradients and Adam moments are one flat
// buffer each, so that an update is a single operation and a bucket of gradients is a plain range. Between the arrays
// of a buffer there may be padding, which is zero (see padded()); files hold the arrays without it.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel/layer.hpp"

namespace ganymede::kernel {

/// The place of a named array in its network's flat buffer.
struct NamedRange {
  std::string name;  ///< for example "dense1.weight"
  std::vector<int> shape;
  std::size_t offset = 0;  ///< in floats
  std::size_t size = 0;
  std::size_t packed_offset = 0;  ///< in floats, if there were no padding
};

/// How a network keeps its activations from the forward pass to the backward pass. Plain: all of them, in memory of
/// their own. Otherwise the layers are divided into segments, about as many as the square root of the number of layers
/// (Chen et al. 2016), and two blocks of memory serve all segments: the even ones use the first, the odd ones the
/// second.
struct ActivationStorage {
  bool recompute = false;  ///< keeps only the segments' inputs; the backward pass computes the rest again
  /// Compression of what is kept; all but `none` are lossy and change what is trained.
  Compression compression = Compression::none;
  bool is_plain() const { return !recompute && compression == Compression::none; }
};

/// Sizes in bytes of memory that several networks may use in turns.
struct SharedSizes {
  /// One buffer for gradients of activations, and one for adjoints of tangents. There are two buffers of each kind.
  std::size_t gradient = 0, gradient_dot = 0;
  std::size_t region[2] = {0, 0};  ///< the two blocks that segments use (see ActivationStorage)

  /// The sizes that serve both.
  SharedSizes max_with(const SharedSizes& other) const;
  std::size_t total() const { return 2 * gradient + 2 * gradient_dot + region[0] + region[1]; }
};
/// The memory itself; see SharedSizes.
struct SharedMemory {
  void *gradient[2] = {nullptr, nullptr}, *gradient_dot[2] = {nullptr, nullptr};
  std::byte* region[2] = {nullptr, nullptr};

  SharedMemory() = default;
  /// Divides a block of sizes.total() bytes.
  SharedMemory(const SharedSizes& sizes, const Buffer& block);
};

/// Some of a network's layers, those from `first` to before `end`.
struct LayerRange {
  std::size_t first = 0, end = SIZE_MAX;
};

class Network {
 public:
  /// Each layer's outputs() must equal the next one's inputs(). With `second` the network has two chains, which take
  /// and give tensors of the same shapes: a pass goes through one of them, an update changes both.
  Network(std::string name, Layers first, Layers second = {});

  const std::string& name() const { return name_; }
  int inputs() const { return layers_.front()->inputs(); }
  int outputs() const { return layers_.back()->outputs(); }
  const Layers& layers() const { return layers_; }

  std::size_t parameter_count() const { return parameter_count_; }
  std::size_t statistic_count() const { return statistic_count_; }
  std::size_t gradient_bytes() const { return parameter_count_ * sizeof(float); }  ///< without padding
  std::size_t layer_parameters(std::size_t layer) const;
  // Sizes of the buffers, with padding.
  std::size_t parameter_floats() const { return parameter_floats_; }
  std::size_t parameter_bytes() const { return parameter_floats_ * sizeof(float); }
  std::size_t statistic_bytes() const { return statistic_floats_ * sizeof(float); }
  std::size_t layer_floats(std::size_t layer) const;  ///< of the layer's parameters
  const std::vector<NamedRange>& parameters() const { return parameter_ranges_; }
  const std::vector<NamedRange>& statistics() const { return statistic_ranges_; }

  /// FLOPs of matrix products in one forward pass, through each chain.
  double forward_flops_per_image() const;
  /// FLOPs of the lowest layer with parameters (of each chain), which are saved where nothing needs the gradients of
  /// the network's input.
  double first_layer_flops_per_image() const;
  /// FLOPs of a gradient penalty: forward pass, backward pass to the input, tangent, backward pass through both.
  double penalty_flops_per_image() const;
  /// FLOPs of a path length regularisation (see gan_step.cpp) by the input of layer `first`: its four passes begin
  /// there, and all layers from there on are curved; then a backward pass through the layers before.
  double path_length_flops_per_image(std::size_t first) const;
  /// Tells whether tangent() will be called. Must be called before the functions below that plan memory.
  void keep_tangents(bool kept) { keeps_tangents_ = kept; }
  /// Sets how activations are kept. Must also be called before memory is planned; a network that keeps tangents must
  /// store plainly. `memory_is_reused`: another network overwrites the shared memory between this one's forward and
  /// backward pass.
  void store_activations(ActivationStorage storage, bool memory_is_reused) {
    storage_ = storage;
    memory_is_reused_ = memory_is_reused;
  }
  /// FLOPs of matrix products that a backward pass computes again (ActivationStorage::recompute).
  double recomputed_flops_per_image() const;
  /// Sizes of the shared memory that the network uses for batches of `batch` images. This function and
  /// planned_activation_bytes() must be called before prepare(), because planning moves the layers' tensors.
  SharedSizes shared_sizes(const TensorOps& ops, int batch);
  /// Bytes that prepare(batch) will allocate for the network's own activations.
  std::size_t planned_activation_bytes(const TensorOps& ops, int batch);
  /// Bytes that prepare() allocated for the activations.
  std::size_t activation_bytes() const { return activation_memory_.bytes(); }
  /// Bytes of scratch memory that the largest layer needs; all layers share it.
  std::size_t workspace_bytes(const TensorOps& ops, int batch) const;
  /// Frees the activations. The network must be prepared again before its next pass.
  void release_activations() { activation_memory_ = {}; }

  /// Allocates everything for batches of `batch` images and draws the initial weights. Throws Infeasible if memory is
  /// short. `shared` must outlive the network.
  void prepare(TensorOps& ops, int batch, RandomStream& initial, const SharedMemory& shared);
  /// The same with shared memory of its own.
  void prepare(TensorOps& ops, int batch, RandomStream& initial);

  float* parameter_data() const { return parameter_memory_.floats(); }
  float* gradient_data() const { return gradient_memory_.floats(); }
  /// Adam's first moments (0), or the second (1).
  float* moment_data(std::size_t moment = 0) const { return moment_memory_.floats() + moment * parameter_floats_; }
  float* statistic_data() const { return statistic_memory_.floats(); }

  // The passes through a chain, as in Layer; gan_step calls them through the free functions below.
  Tensor forward(TensorOps& ops, Tensor x, RandomStream& noise, std::size_t chain = 0);
  Tensor infer(TensorOps& ops, Tensor x, std::size_t chain = 0);
  /// Calls layer_done(i) after layer i's part, when the gradients of its parameters are computed. Through a range of
  /// the chain's layers, dy is the gradient of the last one's output.
  template <class LayerDone>
  Tensor backward(TensorOps& ops, Tensor dy, const GradientRequest& request, const LayerDone& layer_done,
                  std::size_t chain = 0, LayerRange range = {});
  void update(TensorOps& ops, const AdamParameters& rule);
  /// The tangent of the last forward pass along x_dot, a direction of layer `first`'s input.
  Tensor tangent(TensorOps& ops, Tensor x_dot, std::size_t first = 0);
  /// Adds to the parameters' gradients those of a scalar whose derivative with respect to the tangent is dy_dot, and
  /// with respect to the output zero. Returns the adjoints of layer `first`'s input.
  template <class LayerDone>
  Adjoints tangent_backward(TensorOps& ops, Tensor dy_dot, const LayerDone& layer_done, std::size_t first = 0);

  std::int64_t updates() const { return updates_; }  ///< since the initial weights; Adam's bias correction needs it
  void set_updates(std::int64_t updates) { updates_ = updates; }

 private:
  struct Chain {
    std::size_t begin, end;  ///< range of layers
    std::size_t lowest;      ///< its first layer with parameters; those above it always need gradients of their input
    Tensor output = {};      ///< a copy, if memory_is_reused_
  };

  /// Layers whose activations are kept, and overwritten, together.
  struct Segment {
    std::size_t first, end;     ///< range of layers
    Tensor input;               ///< a copy; the segment's memory begins with it
    std::size_t elements;       ///< number of elements in the segment's memory
    std::uint8_t* kept;         ///< copy of the content while others use the memory; null: no others use it
    RandomStream::State noise;  ///< state before the segment's forward pass, to draw the same noise again
  };

  /// Adds layers as the next chain.
  void add_chain(Layers layers);
  void plan(Arena& arena, int batch, const SharedMemory& shared);
  void plan_segments(Arena& arena, int batch, const SharedMemory& shared);
  std::vector<Segment> make_segments() const;
  void plan_segment(Segment& segment, Arena memory, int batch);
  std::vector<std::size_t> segment_starts() const;
  /// Brings the segment's activations back for the backward pass.
  void restore(TensorOps& ops, Segment& segment);
  void draw_initial_values(TensorOps& ops, RandomStream& initial);

  std::string name_;
  Layers layers_;
  std::vector<Chain> chains_;
  std::vector<NamedRange> parameter_ranges_, statistic_ranges_;
  std::size_t parameter_count_ = 0, statistic_count_ = 0, parameter_floats_ = 0, statistic_floats_ = 0;
  Buffer parameter_memory_, gradient_memory_, moment_memory_, statistic_memory_, activation_memory_, own_shared_;
  Tensor gradient_[2];      // gradients of the activations; a layer reads one and writes the other
  Tensor gradient_dot_[2];  // the same for the tangents
  bool keeps_tangents_ = false;
  ActivationStorage storage_;
  bool memory_is_reused_ = false;
  std::vector<Segment> segments_;  // empty: activations are stored plainly
  std::int64_t updates_ = 0;
};

template <class LayerDone>
Tensor Network::backward(TensorOps& ops, Tensor dy, const GradientRequest& request, const LayerDone& layer_done,
                         std::size_t chain, LayerRange range) {
  const auto [begin, end, lowest, output] = chains_[chain];
  const std::size_t last = std::min(end, range.end);
  std::size_t segment = segments_.size();
  while (segment > 0 && segments_[segment - 1].end > last) --segment;
  for (std::size_t i = last; i-- > std::max(begin, range.first);) {
    if (segment > 0 && i + 1 == segments_[segment - 1].end) restore(ops, segments_[--segment]);
    void* scratch = gradient_[dy.data == gradient_[0].data ? 1 : 0].data;
    ops.begin_layer(layers_[i]->name());
    dy = layers_[i]->backward(ops, dy, scratch, {request.weights, request.accumulate, request.input || i > lowest});
    ops.begin_layer("");
    layer_done(i);
  }
  return dy;
}

template <class LayerDone>
Adjoints Network::tangent_backward(TensorOps& ops, Tensor dy_dot, const LayerDone& layer_done, std::size_t first) {
  Adjoints d{{}, dy_dot};
  for (std::size_t i = layers_.size(); i-- > first;) {
    ops.begin_layer(layers_[i]->name());
    d = layers_[i]->tangent_backward(ops, d, unused_scratch(d, gradient_, gradient_dot_), i > chains_[0].lowest);
    ops.begin_layer("");
    layer_done(i);
  }
  return d;
}

// Free functions with which gan_step reads like the algorithm.
inline Tensor forward(Network& network, TensorOps& ops, Tensor x, RandomStream& noise, std::size_t chain = 0) {
  return network.forward(ops, x, noise, chain);
}
template <class LayerDone>
Tensor backward(Network& network, TensorOps& ops, Tensor dy, const GradientRequest& request,
                const LayerDone& layer_done, std::size_t chain = 0, LayerRange range = {}) {
  return network.backward(ops, dy, request, layer_done, chain, range);
}
inline void update(Network& network, TensorOps& ops, const AdamParameters& rule) { network.update(ops, rule); }

}  // namespace ganymede::kernel
