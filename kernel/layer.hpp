#pragma once
// A layer: a forward and a backward pass over Ops, and what it needs to be planned.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/random.hpp"
#include "kernel/arena.hpp"
#include "kernel/ops.hpp"

namespace ganymede::kernel {

/// A named array of a layer: a trainable parameter or a moving statistic.
struct ParameterSpec {
  std::string name;  ///< as PyTorch names it: "weight", "bias", "running_mean", "running_var"
  std::vector<int> shape;
  float low = 0, high = 0;  ///< initial values: uniform in [low, high)
  float deviation = 0;      ///< or, if above zero, normal with this deviation around `low`

  std::size_t size() const;
};

/// What a backward pass shall compute.
struct Want {
  bool weights = true;      ///< gradients of the parameters
  bool accumulate = false;  ///< add them to those of an earlier pass
  bool input = true;        ///< the gradient of the layer's input
};

/// Room for the adjoints of a layer's input.
struct Spare {
  float *value, *tangent;
};

/// Of two buffers each those that `d` does not stand in.
inline Spare spare_beside(const Adjoints& d, const Tensor (&values)[2], const Tensor (&tangents)[2]) {
  return {values[d.value.data == values[0].data ? 1 : 0].data,
          tangents[d.tangent.data == tangents[0].data ? 1 : 0].data};
}

class Layer {
 public:
  explicit Layer(std::string name) : name_(std::move(name)) {}
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  virtual ~Layer() = default;

  const std::string& name() const { return name_; }
  virtual std::string kind() const = 0;  ///< "dense 50 -> 1200"
  virtual int inputs() const = 0;
  virtual int outputs() const = 0;
  virtual std::vector<ParameterSpec> parameters() const { return {}; }
  virtual std::vector<ParameterSpec> statistics() const { return {}; }
  /// Matrix work of one forward pass; each backward half (data, weights) costs the same.
  virtual double forward_flops_per_image() const { return 0; }
  virtual std::size_t workspace_bytes(const Ops&, int /*batch*/) const { return 0; }

  /// Takes the memory of its outputs, and of what its backward pass will need, from the arena.
  virtual void plan(Arena& arena, int batch) = 0;
  /// Where its parameters, their gradients and its statistics stand, in the order of the specs.
  virtual void bind(float* /*parameters*/, float* /*gradients*/, float* /*statistics*/) {}

  /// Training. May overwrite x where the layer before does not need it; the result stays valid until the next forward
  /// pass.
  virtual Tensor forward(Ops& ops, Tensor x, RandomStream& noise) = 0;
  /// The forward pass once more on the same x and noise, when what it left was not kept: moves no running statistics.
  virtual Tensor forward_again(Ops& ops, Tensor x, RandomStream& noise) { return forward(ops, x, noise); }
  virtual bool is_in_place() const { return false; }  ///< writes its output over x
  /// No dropout, running statistics; leaves no state for a backward pass.
  virtual Tensor infer(Ops& ops, Tensor x) = 0;
  /// From d loss / dy to d loss / dx, which it writes over dy or, where the shape changes, into `spare`.
  virtual Tensor backward(Ops& ops, Tensor dy, float* spare, const Want& want) = 0;

  // For the gradient of a gradient (see gan_step.cpp), which discriminators pass through: the tangent of the last
  // forward pass along x_dot, and back from the adjoints of output and tangent to those of input and x_dot. Adds to the
  // parameters' gradients. A layer without these fails an assertion.

  /// Takes the memory of its tangent.
  virtual void plan_tangent(Arena&, int /*batch*/) {}
  /// May overwrite x_dot where the layer works in place.
  virtual Tensor tangent(Ops& ops, Tensor x_dot);
  /// Writes over dy or, where the shape changes, into `spare`.
  virtual bool is_curved() const { return false; }  ///< elsewhere than at kinks
  virtual Adjoints tangent_backward(Ops& ops, Adjoints dy, Spare spare, bool want_input);

 private:
  std::string name_;
};

using Layers = std::vector<std::unique_ptr<Layer>>;

std::unique_ptr<Layer> dense(std::string name, int inputs, int outputs);
/// How DCGAN's authors draw initial weights, around 0 (Radford et al. 2016).
inline constexpr float kDcganDeviation = 0.02F;
/// Without bias; initial weights normal(0, deviation).
std::unique_ptr<Layer> convolution(std::string name, const ConvolutionShape& shape, float deviation = kDcganDeviation);
/// From `shape`'s outputs to its inputs: PyTorch's nn.ConvTranspose2d.
std::unique_ptr<Layer> transposed_convolution(std::string name, const ConvolutionShape& shape,
                                              float deviation = kDcganDeviation);

struct BatchNormShape {
  int channels = 1;
  int positions = 1;    ///< of an image; each channel's statistics are over them and the batch
  float deviation = 0;  ///< of the initial scales around 1
};
std::unique_ptr<Layer> batch_norm_leaky(std::string name, BatchNormShape shape, float slope);
std::unique_ptr<Layer> leaky(std::string name, int features, float slope);
/// leaky(factor x + bias), one bias a channel, at first 0.
std::unique_ptr<Layer> bias_leaky(std::string name, int channels, int positions, float factor, float slope);
std::unique_ptr<Layer> tanh_image(std::string name, int features);
std::unique_ptr<Layer> leaky_dropout(std::string name, int features, float slope, float drop);
std::unique_ptr<Layer> sigmoid(std::string name, int features);

// Of growing networks (Karras et al. 2018).
std::unique_ptr<Layer> pixel_norm(std::string name, int channels, int positions);
std::unique_ptr<Layer> upsample(std::string name, const BlockShape& shape);    ///< coarse to fine, nearest pixel
std::unique_ptr<Layer> downsample(std::string name, const BlockShape& shape);  ///< fine to coarse, mean
std::unique_ptr<Layer> minibatch_deviation(std::string name, int channels, int positions);
/// share main(x) + (1 - share) skip(x), with the share as it stands at each pass. Neither may work in place on x. Its
/// parameters have the names of their own layers, so that they are the same when the fading is over.
std::unique_ptr<Layer> faded(Layers main, Layers skip, std::shared_ptr<const float> share);

}  // namespace ganymede::kernel
