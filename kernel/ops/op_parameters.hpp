#pragma once
// The shapes and constants that tensor operations take. Plain data: host and device code both include this file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernel/tensor.hpp"

namespace ganymede::kernel {

/// Cost of operations. FLOPs are the same for every backend, and bytes for every one that stores the same type.
struct Work {
  double flops = 0;           ///< FLOPs of matrix products; a multiply-add is 2
  double bytes_read = 0;      ///< least traffic with device memory: each operand once
  double bytes_written = 0;   ///< each result once
  std::int64_t launches = 0;  ///< kernels that a GPU backend has launched; a library's call counts as one
  double seconds = 0;         ///< spent inside the operations; counted only after TensorOps::set_timed(true)

  Work& operator+=(const Work& other);
  friend Work operator-(Work a, const Work& b);
};

/// The parameters of a dense layer, y = weight x + bias.
struct DenseParameters {
  const float* weight;  ///< [outputs x inputs]
  const float* bias;    ///< [outputs]; null: no bias
};

/// The shape of a convolution without bias, counted as in PyTorch's nn.Conv2d (nn.Conv3d for clips of several frames):
/// x [in_channels x in_frames x in_height x in_width], y [out_channels x out_frames x out_height x out_width],
/// weights [out_channels x in_channels x kernel_frames x kernel x kernel].
struct ConvolutionShape {
  int in_channels = 1, in_height = 1, in_width = 1;
  int out_channels = 1;
  int kernel = 1, stride = 1, padding = 0;                   ///< the same in height and width
  int in_frames = 1, kernel_frames = 1, padding_frames = 0;  ///< the stride between frames is 1

  int out_height() const { return (in_height + 2 * padding - kernel) / stride + 1; }
  int out_width() const { return (in_width + 2 * padding - kernel) / stride + 1; }
  int out_frames() const { return in_frames + 2 * padding_frames - kernel_frames + 1; }
  int in_features() const { return in_channels * in_frames * in_height * in_width; }
  int out_features() const { return out_channels * out_frames() * out_height() * out_width(); }
  int taps() const { return kernel_frames * kernel * kernel; }  ///< elements of the kernel, at most 64
  std::size_t weights() const {
    return static_cast<std::size_t>(out_channels) * static_cast<std::size_t>(in_channels) *
           static_cast<std::size_t>(taps());
  }
  /// FLOPs of one pass over one image. Products with padding are counted, as is usual.
  double flops() const { return 2.0 * out_features() * in_channels * taps(); }
};

/// The operation after a convolution: y = leaky(factor * convolution + bias).
struct ConvolutionEpilogue {
  const float* bias = nullptr;  ///< [channels of y]; null: none
  float factor = 1;             ///< above 0
  float slope = 1;              ///< of the LeakyReLU below zero, not negative; 1: no activation
};

/// The blocks of a fine grid that correspond to one element of a coarse grid, for `pool` and `upsample`. For example
/// frames = 1, height = width = 8, block = 2 is a grid of 8 x 8 pixels over one of 4 x 4.
struct BlockShape {
  int channels = 1;
  int frames = 1, height = 1, width = 1;  ///< extents of the fine grid
  int block_frames = 1, block = 2;        ///< a block is block_frames x block x block; it must divide the grid

  int fine_features() const { return channels * frames * height * width; }
  int coarse_features() const { return fine_features() / elements(); }
  int elements() const { return block_frames * block * block; }
};

/// The weights of a convolution whose inputs are scaled by a style, and the scale of its outputs that undoes the
/// style's size (Karras et al. 2020): 1 / sqrt(sum over inputs and taps of (weight style)^2 + epsilon), one for each
/// output.
struct DemodulationParameters {
  const float* weight;  ///< in the order of MemoryLayout, as a convolution has it
  int taps;
  float epsilon;
};

/// Batch normalisation over the batch (Ioffe and Szegedy 2015), followed by LeakyReLU.
struct BatchNormParameters {
  const float *scale, *shift;              ///< [features]
  float *running_mean, *running_variance;  ///< [features], moved towards the batch's statistics by `momentum`
  float *mean, *inverse_deviation;         ///< [features], of the batch; written by the forward pass, then only read
  float momentum, epsilon;
  float slope;  ///< slope of the LeakyReLU below zero
};

/// LeakyReLU, followed by dropout that keeps a unit with probability `keep` and scales it by 1 / keep.
struct LeakyDropoutParameters {
  float slope;
  float keep;  ///< above 0, at most 1
};

/// Where the gradients of logit_backward are written. All null: none of them is computed.
struct LogitGradients {
  float* weight = nullptr;      ///< [features]
  float* bias = nullptr;        ///< [1]
  float* input_bias = nullptr;  ///< [features], of a bias that was added to the input x; null: not computed
};

/// An activation that works in place and whose derivative follows from its output.
struct Activation {
  enum class Kind { leaky_relu, tanh, sigmoid };
  Kind kind;
  float slope = 0;  ///< slope of leaky_relu below zero, not negative; 0: ReLU
};
inline constexpr Activation kTanh{Activation::Kind::tanh}, kSigmoid{Activation::Kind::sigmoid};
constexpr Activation leaky_relu(float slope) { return {Activation::Kind::leaky_relu, slope}; }

/// The loss of one logit l of the discriminator; s is the sigmoid.
enum class LossTerm {
  cross_entropy_real,  ///< -log s(l): low if l says "real" (Goodfellow et al. 2014; also the non-saturating generator)
  cross_entropy_fake,  ///< -log(1 - s(l)): low if l says "fake"
  log_probability_fake,  ///< log(1 - s(l)): the saturating generator of the minimax game
  hinge_real,            ///< max(0, 1 - l) (Lim and Ye 2017)
  hinge_fake,            ///< max(0, 1 + l)
  negative_logit,        ///< -l: the generator of hinge and Wasserstein loss; the critic on real images
  logit,                 ///< l: the critic on fake images (Arjovsky et al. 2017)
  square_real,           ///< (l - 1)^2 / 2: the discriminator on real images (Mao et al. 2017)
  square_fake,           ///< l^2 / 2: the discriminator on fake images
  whole_square_real,     ///< (l - 1)^2: the generator, as CycleGAN weights it (Zhu et al. 2017)
};

struct AdamParameters {
  float learning_rate = 1e-4F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
};

/// For a layer y = f(x) with tangent y_dot = f'(x) x_dot: the derivatives of one scalar with respect to y and to y_dot.
/// The backward pass of a gradient's gradient hands them from layer to layer.
struct Adjoints {
  Tensor value;    ///< with respect to y; data is null: zero
  Tensor tangent;  ///< with respect to y_dot
};

inline constexpr float kPixelNormEpsilon = 1e-8F;
inline constexpr float kInstanceNormEpsilon = 1e-5F;  ///< PyTorch's default for nn.InstanceNorm2d
inline constexpr float kStddevEpsilon = 1e-8F;        ///< added to the variance in minibatch_stddev

/// Arrays of floats, each with a place for a copy of as many numbers of 2 bytes.
class ParameterCopies {
 public:
  /// Adds `count` floats at `first` whose copy begins at `copy`, until the result and its copies are gone.
  std::shared_ptr<void> add(const float* first, std::size_t count, void* copy) {
    arrays_->push_back({first, count, static_cast<std::byte*>(copy)});
    return {nullptr, [arrays = arrays_, first](void*) {
              std::erase_if(*arrays, [first](const Array& array) { return array.first == first; });
            }};
  }
  /// The copy of the float at `parameter`; null: it is in none of the arrays.
  void* of(const float* parameter) const {
    for (const Array& array : *arrays_)
      if (parameter >= array.first && parameter < array.first + array.count)
        return array.copy + 2 * (parameter - array.first);
    return nullptr;
  }

 private:
  struct Array {
    const float* first;
    std::size_t count;
    std::byte* copy;
  };
  std::shared_ptr<std::vector<Array>> arrays_ = std::make_shared<std::vector<Array>>();
};

}  // namespace ganymede::kernel
