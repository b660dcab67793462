#pragma once
// A layer: its forward and backward pass as tensor operations, and what is needed to plan its memory.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/random.hpp"
#include "kernel/ops/tensor_ops.hpp"
#include "kernel/tensor.hpp"

namespace ganymede::kernel {

// Hands out pieces of one block of device memory. The same planning code runs twice: with an arena that only counts, to
// learn the size of the block, then with an arena over the block.

/// Pieces are handed out one after the other, each aligned to 64 bytes, and are never taken back. The block must be as
/// large as used() is after the same calls on an arena that only counts.
class Arena {
 public:
  /// An arena that only counts; the pieces are null. `elements` is the type of tensors' elements.
  explicit Arena(ElementType elements) : element_type_(elements) {}
  Arena(const Buffer& block, ElementType elements)
      : base_(static_cast<std::byte*>(block.memory.get())), element_type_(elements) {}
  ElementType element_type() const { return element_type_; }

  /// A tensor [features x batch]; its data is null if the arena only counts.
  Tensor tensor(int features, int batch) {
    Tensor result{nullptr, features, batch};
    result.data = take(result.size() * bytes_of(element_type_));
    return result;
  }
  /// An array of floats that keeps its values from the forward to the backward pass, whatever the ActivationStorage.
  float* floats(std::size_t count) { return reinterpret_cast<float*>(persistent().take(count * sizeof(float))); }
  /// A mask [features x batch] that also keeps its values between the passes.
  Mask mask(int features, int batch) {
    Mask result{nullptr, features, batch};
    result.data = reinterpret_cast<std::uint8_t*>(persistent().take(result.size()));
    return result;
  }
  std::byte* bytes(std::size_t count) { return take(count); }  ///< a piece of `count` bytes
  std::size_t used() const { return used_; }  ///< bytes handed out so far, with the gaps between pieces

  /// An arena over `memory` (null: it only counts) for activations that may be overwritten. Arrays of floats and masks
  /// come from this arena.
  Arena over(std::byte* memory) {
    Arena arena = *this;
    arena.base_ = memory;
    arena.used_ = 0;
    arena.persistent_ = this;
    return arena;
  }

 private:
  static constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector

  Arena& persistent() { return persistent_ == nullptr ? *this : *persistent_; }
  std::byte* take(std::size_t bytes) {
    std::byte* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return piece;
  }

  std::byte* base_ = nullptr;
  ElementType element_type_;
  std::size_t used_ = 0;
  Arena* persistent_ = nullptr;
};

/// Floats that an array of `floats` floats takes in its network's buffer. Every array begins at a multiple of 64 bytes:
/// tensor cores and wide loads need 16, and a cache line then belongs to one array.
constexpr std::size_t padded(std::size_t floats) { return (floats + 15) / 16 * 16; }

/// A named array of a layer: a trainable parameter or a running statistic.
struct ParameterSpec {
  std::string name;  ///< as PyTorch names it: "weight", "bias", "running_mean", "running_var"
  std::vector<int> shape;
  float low = 0, high = 0;  ///< initial values: uniform in [low, high)
  float deviation = 0;      ///< if above 0: values are normal instead, with mean `low` and this standard deviation

  std::size_t size() const;  ///< number of floats
};

/// Floats that the arrays take one after the other in their network's buffer.
std::size_t padded(const std::vector<ParameterSpec>& specs);

/// Which gradients a backward pass computes.
struct GradientRequest {
  bool weights = true;      ///< those of the parameters
  bool accumulate = false;  ///< adds the parameters' gradients to those of an earlier pass
  bool input = true;        ///< that of the layer's input
};

/// Memory into which a layer may write the adjoints of its input, each of inputs() x batch elements.
struct AdjointScratch {
  void *value, *tangent;
};

/// For each pair of buffers, the one that `d` does not use.
inline AdjointScratch unused_scratch(const Adjoints& d, const Tensor (&values)[2], const Tensor (&tangents)[2]) {
  return {values[d.value.data == values[0].data ? 1 : 0].data,
          tangents[d.tangent.data == tangents[0].data ? 1 : 0].data};
}

/// One layer of a network. An activation is [features x batch] (see tensor.hpp).
class Layer {
 public:
  explicit Layer(std::string name) : name_(std::move(name)) {}
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  virtual ~Layer() = default;

  const std::string& name() const { return name_; }
  virtual std::string kind() const = 0;  ///< for example "dense 50 -> 1200"
  virtual int inputs() const = 0;        ///< features of the input
  virtual int outputs() const = 0;       ///< features of the output
  /// The trainable arrays, in the order in which bind() expects them.
  virtual std::vector<ParameterSpec> parameters() const { return {}; }
  /// The running statistics, in the order in which bind() expects them.
  virtual std::vector<ParameterSpec> statistics() const { return {}; }
  /// FLOPs of matrix products in one forward pass; each half of the backward pass (data, weights) costs the same.
  virtual double forward_flops_per_image() const { return 0; }
  /// Bytes of scratch memory that the passes need (see TensorOps::reserve_workspace).
  virtual std::size_t workspace_bytes(const TensorOps&, int /*batch*/) const { return 0; }

  /// Takes memory from the arena for the outputs and for what the backward pass needs. Must be called before bind() and
  /// the passes.
  virtual void plan(Arena& arena, int batch) = 0;
  /// Tells where in device memory the parameters, their gradients and the statistics are, each in the order of its
  /// specs; an array begins padded(size) floats after the one before it.
  virtual void bind(float* /*parameters*/, float* /*gradients*/, float* /*statistics*/) {}

  /// Tells the layer which one follows it, after both were bound.
  virtual void join(Layer& /*next*/) {}
  /// Asks for the gradient of a bias that the layer before adds last: the sum over the batch of the gradients of this
  /// layer's input, in d_bias [inputs]. Returns true if backward() computes it along with what it does anyway.
  virtual bool takes_bias_gradient(float* /*d_bias*/) { return false; }
  /// Asks for the forward pass of a layer that follows a convolution. Whoever gets one computes it along with the
  /// convolution: from now on forward() and infer() leave x as it is.
  virtual std::optional<ConvolutionEpilogue> hand_over_forward() { return {}; }

  /// The forward pass of training: returns y [outputs x batch] for x [inputs x batch], valid until the next forward
  /// pass. May overwrite x if the layer before does not need it.
  virtual Tensor forward(TensorOps& ops, Tensor x, RandomStream& noise) = 0;
  /// Repeats the forward pass on the same x and noise, when its results were not kept; running statistics do not move.
  virtual Tensor forward_again(TensorOps& ops, Tensor x, RandomStream& noise) { return forward(ops, x, noise); }
  virtual bool is_in_place() const { return false; }  ///< true if the layer overwrites x
  /// The forward pass of inference: no dropout, running statistics. Leaves nothing for a backward pass.
  virtual Tensor infer(TensorOps& ops, Tensor x) = 0;
  /// Returns the derivative of the loss with respect to x, given that with respect to y. Writes it over dy or, if the
  /// shape changes, into `scratch`. Without request.input the values of the result are undefined.
  virtual Tensor backward(TensorOps& ops, Tensor dy, void* scratch, const GradientRequest& request) = 0;

  // The gradient penalty and the path length regularisation are gradients of gradients (see gan_step.cpp). The layers
  // of discriminators, and those of StyleGAN2's generator from its style vectors on, implement the functions below for
  // them; in other layers tangent() and tangent_backward() fail an assertion.

  /// True if the second derivative of the layer is not zero everywhere. The gradient penalty then depends on the
  /// layer's input too, so that the layers before it get adjoints of their values (Adjoints::value). A piecewise linear
  /// layer such as a leaky ReLU is not curved.
  virtual bool is_curved() const { return false; }
  /// Takes memory from the arena for the tangent.
  virtual void plan_tangent(Arena&, int /*batch*/) {}
  /// Returns the tangent f'(x) x_dot [outputs x batch] of the last forward pass at x. May overwrite x_dot if the layer
  /// works in place.
  virtual Tensor tangent(TensorOps& ops, Tensor x_dot);
  /// Returns the adjoints of x and x_dot, given those of y and y_dot, and adds to the parameters' gradients. Writes the
  /// result over dy or, if the shape changes, into `scratch`. Without `needs_input` its values are undefined.
  virtual Adjoints tangent_backward(TensorOps& ops, Adjoints dy, AdjointScratch scratch, bool needs_input);

 private:
  std::string name_;
};

using Layers = std::vector<std::unique_ptr<Layer>>;

/// y = weight x + bias; initial values are uniform within 1 / sqrt(inputs), as in PyTorch's nn.Linear.
std::unique_ptr<Layer> dense(std::string name, int inputs, int outputs);
/// Standard deviation of a DCGAN's initial weights (Radford et al. 2016).
inline constexpr float kDcganDeviation = 0.02F;
/// A convolution without bias; initial weights are normal(0, deviation).
std::unique_ptr<Layer> convolution(std::string name, const ConvolutionShape& shape, float deviation = kDcganDeviation);
/// The transposed convolution, from `shape`'s outputs to its inputs, as PyTorch's nn.ConvTranspose2d.
std::unique_ptr<Layer> transposed_convolution(std::string name, const ConvolutionShape& shape,
                                              float deviation = kDcganDeviation);

struct BatchNormShape {
  int channels = 1;
  int positions = 1;    ///< pixels of an image; a channel's statistics are taken over them and the batch
  float deviation = 0;  ///< standard deviation of the initial scales around 1
};
/// Batch normalisation of each channel (Ioffe and Szegedy 2015), then LeakyReLU; slope 0 is ReLU.
std::unique_ptr<Layer> batch_norm_leaky(std::string name, BatchNormShape shape, float slope);
/// LeakyReLU: x above zero, slope * x below.
std::unique_ptr<Layer> leaky(std::string name, int features, float slope);
/// leaky(factor x + bias), with one bias for each channel, initially 0. A slope of 1 leaves the activation out.
std::unique_ptr<Layer> bias_leaky(std::string name, int channels, int positions, float factor, float slope);
/// tanh, for images with values in [-1, 1].
std::unique_ptr<Layer> tanh_image(std::string name, int features);
/// LeakyReLU, then dropout. In training it sets a unit to 0 with probability `drop` and scales the others by 1 / (1 -
/// drop); in inference it does nothing.
std::unique_ptr<Layer> leaky_dropout(std::string name, int features, float slope, float drop);
/// leaky_dropout, then a dense layer with one output, whose parameters have the name `name`.
std::unique_ptr<Layer> dropped_logit(std::string name, int features, float slope, float drop);
/// Appends a channel for each class, which is 1 at every position if the image has that class, else 0. `labels`: see
/// Gan::labels; it is read at each pass.
std::unique_ptr<Layer> labelled(std::string name, int channels, int positions, int classes,
                                std::shared_ptr<const Tensor> labels);
/// Instance norm (Ulyanov et al. 2016) without scale and shift, then LeakyReLU; slope 0 is ReLU, 1 leaves it out.
std::unique_ptr<Layer> instance_norm_leaky(std::string name, int channels, int positions, float slope);
/// x + inner(x) (He et al. 2016). The inner layers have as many inputs as outputs and no statistics; the last one's
/// backward pass must not read its output.
std::unique_ptr<Layer> residual(std::string name, Layers inner);
/// 1 / (1 + exp(-x)), for images with values in [0, 1].
std::unique_ptr<Layer> sigmoid(std::string name, int features);

// Layers of progressively growing networks (Karras et al. 2018).
/// x / sqrt(mean over the channels of x^2) at each position.
std::unique_ptr<Layer> pixel_norm(std::string name, int channels, int positions);
std::unique_ptr<Layer> upsample(std::string name, const BlockShape& shape);  ///< from coarse to fine, nearest neighbour
std::unique_ptr<Layer> downsample(std::string name, const BlockShape& shape);  ///< from fine to coarse, mean of a block
/// Appends a channel that holds the mean standard deviation of the features over the batch.
std::unique_ptr<Layer> minibatch_stddev(std::string name, int channels, int positions);
/// Blends two branches: *share main(x) + (1 - *share) skip(x). *share is read at each pass. Neither main nor skip may
/// work in place on x. Parameters are named after the branches' layers, so that their names stay the same when the
/// fading is over.
std::unique_ptr<Layer> faded(Layers main, Layers skip, std::shared_ptr<const float> share);
/// The mean of both branches, as of a residual block whose branches are scaled beforehand.
std::unique_ptr<Layer> mean_of(Layers main, Layers skip);

// Layers of StyleGAN2's generator (Karras et al. 2020).
/// These layers share data beside the activations that pass through them: the style vectors of the batch, which each
/// layer reads and to whose gradient each adds, and the image, to which each size adds its colours.
struct Styles {
  int width = 1;                      ///< numbers of a style vector
  Tensor w = {}, w_dot = {};          ///< [width x batch], and its tangent
  Adjoints d_w = {};                  ///< what the layers after the running one have passed back
  Tensor image = {}, image_dot = {};  ///< of the sizes so far
  Tensor d_image = {};                ///< gradient of the image of the size before
};
/// Takes the style vectors and gives the first activation, [channels x size x size], a parameter that is the same for
/// all images.
std::unique_ptr<Layer> learned_constant(std::string name, int channels, int size, std::shared_ptr<Styles> styles);
/// A convolution without bias that has filters of its own for each image: its input channels are scaled by an affine
/// function of the style vector, and, with `demodulated`, each output is divided by the norm of its scaled filter.
std::unique_ptr<Layer> modulated_convolution(std::string name, const ConvolutionShape& shape,
                                             std::shared_ptr<Styles> styles, bool demodulated = true);
/// Adds colours, a modulated convolution (not demodulated) of the pixels, to the image of the size before, enlarged by
/// nearest neighbour; `first`: there is none. Passes its input on; `last`: passes the image on.
struct Colouring {
  ConvolutionShape shape;
  bool first = false, last = false;
};
std::unique_ptr<Layer> to_colours(std::string name, const Colouring& colouring, std::shared_ptr<Styles> styles);

}  // namespace ganymede::kernel
