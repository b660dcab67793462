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
  /// What prepare(batch) will allocate for activations. Only before prepare(): planning moves the layers' tensors.
  std::size_t planned_activation_bytes(int batch);
  /// What prepare() did allocate for them.
  std::size_t activation_bytes() const { return activation_memory_.bytes(); }
  std::size_t workspace_bytes(const Ops& ops, int batch) const;

  /// Allocates everything for `batch` images a step and draws the initial weights.
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
  void plan(Arena& arena, int batch);
  void draw(Ops& ops, RandomStream& initial);

  std::string name_;
  Layers layers_;
  std::vector<NamedRange> parameter_ranges_, statistic_ranges_;
  std::size_t parameter_count_ = 0, statistic_count_ = 0;
  Buffer parameter_memory_, gradient_memory_, moment_memory_, statistic_memory_, activation_memory_;
  Tensor gradient_[2];  // of the activations, taking turns
  Tensor gradient_dot_[2];
  bool keeps_tangents_ = false;
  std::int64_t updates_ = 0;
};

template <class LayerDone>
Tensor Network::backward(Ops& ops, Tensor dy, const Want& want, const LayerDone& layer_done) {
  for (std::size_t i = layers_.size(); i-- > 0;) {
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
