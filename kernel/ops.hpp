#pragma once
// The operations of a training step. A backend implements the private functions; the public ones, written once, check
// shapes and count what each operation costs a device: kernel launches, matrix FLOPs, least traffic with device memory.
// The step trace carries these counts, because on a GPU a small model is bound by its launches and its host's work
// rather than by FLOPs.
//
// Pointers are device memory unless the name says host. Operations run in the order of the calls; only `read` and
// `synchronize` wait for them. None allocates: workspaces are reserved beforehand.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/random.hpp"
#include "kernel/adam_rule.hpp"
#include "kernel/compression.hpp"
#include "kernel/parallel/communicator.hpp"
#include "kernel/tensor.hpp"

namespace ganymede::kernel {

/// What operations cost, whatever the device.
struct Work {
  double flops = 0;       ///< matrix work; a multiply-add is 2
  double bytes_read = 0;  ///< each operand once
  double bytes_written = 0;
  std::int64_t launches = 0;  ///< kernels that a GPU backend launches
  double seconds = 0;         ///< inside the operations; only while timed

  Work& operator+=(const Work& other);
  friend Work operator-(Work a, const Work& b);
};

/// A dense layer's parameters: y = weight x + bias.
struct DenseParameters {
  const float* weight;  ///< [outputs x inputs]
  const float* bias;    ///< [outputs]; null: none
};

/// A convolution without bias, as PyTorch's nn.Conv2d (and, over the frames of a clip, nn.Conv3d) counts: from
/// x [in_channels x in_frames x in_height x in_width] to y [out_channels x out_frames x out_height x out_width],
/// weights [out_channels x in_channels x kernel_frames x kernel x kernel].
struct ConvolutionShape {
  int in_channels = 1, in_height = 1, in_width = 1;
  int out_channels = 1;
  int kernel = 1, stride = 1, padding = 0;
  int in_frames = 1, kernel_frames = 1, padding_frames = 0;  ///< from frame to frame the stride is 1

  int out_height() const { return (in_height + 2 * padding - kernel) / stride + 1; }
  int out_width() const { return (in_width + 2 * padding - kernel) / stride + 1; }
  int out_frames() const { return in_frames + 2 * padding_frames - kernel_frames + 1; }
  int in_features() const { return in_channels * in_frames * in_height * in_width; }
  int out_features() const { return out_channels * out_frames() * out_height() * out_width(); }
  int taps() const { return kernel_frames * kernel * kernel; }  ///< at most 64
  std::size_t weights() const {
    return static_cast<std::size_t>(out_channels) * static_cast<std::size_t>(in_channels) *
           static_cast<std::size_t>(taps());
  }
  /// Of one pass over one image; what meets padding counts, as is usual.
  double flops() const { return 2.0 * out_features() * in_channels * taps(); }
};

/// Which blocks of a grid `pool` and `spread` take together.
struct BlockShape {
  int channels = 1;
  int frames = 1, height = 1, width = 1;  ///< of the finer grid
  int block_frames = 1, block = 2;        ///< of a block: block_frames x block x block; they divide the grid

  int fine_features() const { return channels * frames * height * width; }
  int coarse_features() const { return fine_features() / elements(); }
  int elements() const { return block_frames * block * block; }
};

/// Batch normalisation over the batch, then LeakyReLU.
struct BatchNormParameters {
  const float *scale, *shift;              ///< [features]
  float *running_mean, *running_variance;  ///< [features], moved towards the batch's by `momentum`
  float *mean, *inverse_deviation;         ///< [features], of the batch, from forward to backward
  float momentum, epsilon;
  float slope;  ///< of the LeakyReLU below zero
};

/// LeakyReLU, then dropout that keeps a unit with probability `keep` and scales it by 1 / keep.
struct LeakyDropoutParameters {
  float slope;
  float keep;
};

/// What a discriminator's logit l costs; s is the sigmoid. Named by what lowers it.
enum class LossTerm {
  cross_entropy_up,    ///< -log s(l): should be called real (Goodfellow et al. 2014; the non-saturating generator too)
  cross_entropy_down,  ///< -log(1 - s(l)): should be called fake
  log_probability_fake,  ///< log(1 - s(l)): the saturating generator of the min-max game
  hinge_up,              ///< max(0, 1 - l) (Lim and Ye 2017)
  hinge_down,            ///< max(0, 1 + l)
  logit_up,              ///< -l: the hinge's and the critic's generator; the critic on real images
  logit_down,            ///< l: the critic on fakes (Arjovsky et al. 2017)
};

struct AdamParameters {
  float learning_rate = 1e-4F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
};

/// Of a layer's y = f(x) and of its tangent y_dot = f'(x) x_dot, the derivatives of one number: what a gradient of a
/// gradient passes backwards.
struct Adjoints {
  Tensor value;    ///< by y; no data: zero
  Tensor tangent;  ///< by y_dot
};

inline constexpr float kPixelNormEpsilon = 1e-8F;
inline constexpr float kDeviationEpsilon = 1e-8F;

class Ops {
 public:
  Ops() = default;
  Ops(const Ops&) = delete;
  Ops& operator=(const Ops&) = delete;
  virtual ~Ops() = default;

  virtual std::string backend() const = 0;           ///< "eigen", "cuda"
  virtual std::string device() const = 0;            ///< "AMD EPYC, 2 threads"
  virtual std::string instructions() const = 0;      ///< what its inner loops were compiled for: "AVX-512", "sm_90"
  virtual int threads() const = 0;                   ///< host threads in use
  virtual std::string bus_id() const { return ""; }  ///< of a GPU, its PCI address
  virtual std::string precision() const { return "fp32"; }  ///< of the operands of products

  /// Of the device's memory, free; 0: not known.
  virtual double available_bytes() const = 0;
  /// Zeroed memory. Infeasible when the device has not got it.
  Buffer allocate(std::size_t bytes);
  /// At most so far.
  std::size_t peak_allocated_bytes() const { return memory_->peak; }
  /// Scratch memory that a dense layer's passes need; layers share it.
  virtual std::size_t dense_workspace_bytes(int inputs, int outputs, int batch) const = 0;
  virtual std::size_t convolution_workspace_bytes(const ConvolutionShape& shape, int batch) const = 0;
  /// Makes room for the largest of them; before training.
  void reserve_workspace(std::size_t bytes) {
    if (bytes <= workspace_.bytes()) return;
    forget_step();  // which may have kept where it was
    workspace_ = {};
    workspace_ = allocate(bytes);
  }

  /// y [outputs x batch] = weight x [inputs x batch] + bias
  void dense_forward(Tensor y, Tensor x, DenseParameters parameters);
  /// dx [inputs x batch] = weight^T dy [outputs x batch]
  void dense_backward_data(Tensor dx, Tensor dy, const float* weight);
  /// d_weight [outputs x inputs] = dy x^T, d_bias [outputs] = sum of dy over the batch (null: not wanted); added to
  /// what is there if `accumulate`.
  void dense_backward_weights(float* d_weight, float* d_bias, Tensor dy, Tensor x, bool accumulate);

  /// y = convolution of x by the weights
  void convolve(Tensor y, Tensor x, const ConvolutionShape& shape, const float* weight);
  /// dx from dy. Also the transposed convolution (PyTorch's nn.ConvTranspose2d, weights [its inputs x its outputs x
  /// kernel x kernel]) of dy to dx, whose gradient of its input is then `convolve`.
  void convolve_backward_data(Tensor dx, Tensor dy, const ConvolutionShape& shape, const float* weight);
  /// Added to what is there if `accumulate`.
  void convolve_backward_weights(float* d_weight, Tensor dy, Tensor x, const ConvolutionShape& shape, bool accumulate);

  /// y = leaky(scale (x - mean) / sqrt(variance + epsilon) + shift), mean and (biased) variance over the batch. Moves
  /// the running mean and the running (unbiased) variance, as PyTorch does. Needs a batch of two or more.
  void batch_norm_leaky_forward(Tensor y, Tensor x, const BatchNormParameters& parameters);
  // Of tangents, as below; d_scale and d_shift as in the backward pass.
  void batch_norm_leaky_tangent(Tensor y_dot, Tensor x_dot, Tensor x, const BatchNormParameters& parameters);
  void batch_norm_leaky_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x,
                                         const BatchNormParameters& parameters, float* d_scale, float* d_shift,
                                         bool accumulate);
  /// The same with the running statistics, which stay.
  void batch_norm_leaky_inference(Tensor y, Tensor x, const BatchNormParameters& parameters);
  /// dy becomes dx. `x` is the forward pass's input. The gradients are added to what is there if `accumulate`; both
  /// null: not wanted.
  void batch_norm_leaky_backward(Tensor dy, Tensor x, const BatchNormParameters& parameters, float* d_scale,
                                 float* d_shift, bool accumulate);

  /// In place: x becomes leaky(x) * mask / keep, with a mask drawn from `random`.
  void leaky_dropout_forward(Tensor x, Mask mask, LeakyDropoutParameters parameters, RandomStream& random);
  /// In place: dy becomes dx. `y` and `mask` are what the forward pass left.
  void leaky_dropout_backward(Tensor dy, Tensor y, Mask mask, LeakyDropoutParameters parameters);

  void leaky_forward(Tensor x, float slope);              ///< in place
  void leaky_backward(Tensor dy, Tensor y, float slope);  ///< in place: dy becomes dx; slope above zero or zero
  void tanh_forward(Tensor x);                            ///< in place
  void tanh_backward(Tensor dy, Tensor y);                ///< in place: dy becomes dx
  void sigmoid_forward(Tensor x);                         ///< in place
  void sigmoid_backward(Tensor dy, Tensor y);             ///< in place: dy becomes dx

  /// In place: x [channels x positions x batch] becomes leaky(factor x + bias).
  void bias_leaky_forward(Tensor x, const float* bias, int channels, float factor, float slope);
  /// In place: dy becomes dx. The gradient of the bias is added to what is there if `accumulate`; null: not wanted.
  void bias_leaky_backward(Tensor dy, Tensor y, float* d_bias, int channels, float factor, float slope,
                           bool accumulate);

  /// In place: at each position x / sqrt(mean over the channels of x^2 + 1e-8) (Karras et al. 2018). `scale`
  /// [positions x batch] keeps the factors.
  void pixel_norm_forward(Tensor x, Tensor scale, int channels);
  void pixel_norm_backward(Tensor dy, Tensor y, Tensor scale, int channels);  ///< in place: dy becomes dx

  /// y = x with one more channel of `positions`, which holds everywhere the mean over the features of their standard
  /// deviation over the batch (Karras et al. 2018).
  void append_deviation_forward(Tensor y, Tensor x, int positions);
  void append_deviation_backward(Tensor dx, Tensor dy, Tensor x, int positions);
  // Of tangents, as below.
  void append_deviation_tangent(Tensor y_dot, Tensor x_dot, Tensor x, int positions);
  void append_deviation_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x, int positions);

  /// coarse = factor * sum of each block of fine
  void pool(Tensor coarse, Tensor fine, const BlockShape& shape, float factor);
  /// fine = factor * coarse, in all of a block
  void spread(Tensor fine, Tensor coarse, const BlockShape& shape, float factor);

  /// y = a x + b y; what y held does not matter when b is 0.
  void combine(Tensor y, float a, Tensor x, float b);
  /// between = u real + (1 - u) fake, with one u of [0, 1) an image.
  void interpolate(Tensor between, Tensor real, Tensor fake, RandomStream& random);
  /// Of the gradients g of the sum of the logits, [pixels x batch]: *loss = weight * mean over the batch of
  /// (|g| - 1)^2 (Gulrajani et al. 2017), direction = 2 weight / batch (|g| - 1) g / |g|.
  void gradient_penalty(float* loss, Tensor direction, Tensor gradient, float weight);
  void fill(Tensor x, float value);

  /// *loss = mean over the batch of `term` of logits [1 x batch]; d_logits [1 x batch] = its gradient.
  void adversarial_loss(float* loss, Tensor d_logits, Tensor logits, LossTerm term);

  /// *loss = mean over the batch of -log softmax(logits)[label]; d_logits = its gradient. [classes x batch].
  void classification_loss(float* loss, Tensor d_logits, Tensor logits, std::span<const std::uint8_t> host_labels);

  /// One Adam step (Kingma and Ba 2015, with bias correction) over flat buffers of `count` floats; `step` counts
  /// from 1.
  void adam(float* parameters, const float* gradients, float* first, float* second, std::size_t count,
            const AdamParameters& rule, std::int64_t step);

  /// average = decay average + (1 - decay) values, over `count` floats.
  void average(float* average, const float* values, std::size_t count, float decay);

  /// x = independent standard normal numbers.
  void fill_normal(Tensor x, RandomStream& random);
  /// Images of bytes in host memory, [batch x channels x positions], become x scaled to [low, 1]. Dense layers see all
  /// of an image's features as channels of one position.
  void load_images(Tensor x, std::span<const std::uint8_t> host_pixels, float low, int channels);
  void copy(float* to, const float* from, std::size_t count);
  /// `count` floats into compressed_bytes of them, and back.
  void pack(Compression bits, std::uint8_t* to, const float* from, std::size_t count);
  void unpack(Compression bits, float* to, const std::uint8_t* from, std::size_t count);

  // Between host and device; not counted, because no step needs them but for its losses. Memory is copied as it stands
  // there.
  virtual void read(std::span<float> host, const float* from) = 0;
  virtual void write(float* to, std::span<const float> host) = 0;
  virtual void synchronize() = 0;

  /// How the device orders what has channels: activations as [features x batch] and weights as PyTorch does, or
  /// channels last, [batch x positions x channels] and [outputs x taps x inputs].
  virtual bool channels_last() const { return false; }
  /// [features x batch] with the features of an image [channels x positions], whatever the device's order.
  void read_rows(std::span<float> host, Tensor from, int channels);
  void write_rows(Tensor to, std::span<const float> host, int channels);
  /// An array of parameters, or of anything that is ordered like it, in PyTorch's order.
  void read_array(std::span<float> host, const float* from, std::span<const int> shape);
  void write_array(float* to, std::span<const float> host, std::span<const int> shape);

  /// From here to the next `read` is one step, of the same operations on the same memory as the one before: a backend
  /// may keep them and repeat them.
  virtual void begin_step() {}
  /// The next step is another, and so are the images that were sent ahead for it.
  virtual void forget_step() {}
  /// The batch that load_images will be given after the one it has: may be sent to the device already, while `read`
  /// waits for a step. `host_pixels` stay until then.
  virtual void stage_images(std::span<const std::uint8_t> /*host_pixels*/) {}
  /// Called by `read` while a step's losses are awaited.
  void set_while_waiting(std::function<void()> call) { while_waiting_ = std::move(call); }

  /// Whether it works beside the host and has a clock of its own.
  virtual bool has_clock() const { return false; }
  /// Its i-th reading of a step, when all that was asked for before is done. They begin with 0.
  virtual void mark(std::size_t /*i*/) {}
  /// Seconds from reading 0 to reading i of the last step; one more than were taken: to its end. After `read`.
  virtual double mark_s(std::size_t /*i*/) { return 0; }

  /// Whether it averages gradients between processes by itself, after join(), on the device.
  virtual bool reduces() const { return false; }
  virtual void join(Communicator& /*communicator*/) {}
  /// Begins to average what is computed so far; goes on beside what is asked for next, until finish_reductions().
  virtual void reduce_gradients(float* /*gradients*/, std::size_t /*count*/) {}
  virtual void finish_reductions() {}

  /// Which images of a larger batch those are that it works on: random numbers are drawn for all, and its own kept.
  void set_shard(Shard shard) { shard_ = shard; }
  Shard shard() const { return shard_; }
  /// Whose images the statistics of batch norms are of; null: this process's alone.
  void set_synchronized(Communicator* communicator) { synchronized_ = communicator; }
  Communicator* synchronized() const { return synchronized_; }

  /// What was counted since the beginning.
  const Work& work() const { return work_; }
  /// Also measures the time inside operations: two clock readings each.
  void set_timed(bool timed) { timed_ = timed; }

 protected:
  const Buffer& workspace() const { return workspace_; }
  void wait_usefully() const {
    if (while_waiting_) while_waiting_();
  }

 private:
  virtual Buffer do_allocate(std::size_t bytes) = 0;
  virtual void do_dense_forward(Tensor y, Tensor x, DenseParameters parameters) = 0;
  virtual void do_dense_backward_data(Tensor dx, Tensor dy, const float* weight) = 0;
  virtual void do_dense_backward_weights(float* d_weight, float* d_bias, Tensor dy, Tensor x, bool accumulate) = 0;
  virtual void do_convolve(Tensor y, Tensor x, const ConvolutionShape& shape, const float* weight) = 0;
  virtual void do_convolve_backward_data(Tensor dx, Tensor dy, const ConvolutionShape& shape, const float* weight) = 0;
  virtual void do_convolve_backward_weights(float* d_weight, Tensor dy, Tensor x, const ConvolutionShape& shape,
                                            bool accumulate) = 0;
  virtual void do_batch_norm_leaky_forward(Tensor y, Tensor x, const BatchNormParameters& parameters) = 0;
  virtual void do_batch_norm_leaky_inference(Tensor y, Tensor x, const BatchNormParameters& parameters) = 0;
  virtual void do_batch_norm_leaky_backward(Tensor dy, Tensor x, const BatchNormParameters& parameters, float* d_scale,
                                            float* d_shift, bool accumulate) = 0;
  virtual void do_batch_norm_leaky_tangent(Tensor y_dot, Tensor x_dot, Tensor x,
                                           const BatchNormParameters& parameters) = 0;
  virtual void do_batch_norm_leaky_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x,
                                                    const BatchNormParameters& parameters, float* d_scale,
                                                    float* d_shift, bool accumulate) = 0;
  virtual void do_leaky_dropout_forward(Tensor x, Mask mask, LeakyDropoutParameters parameters,
                                        RandomStream& random) = 0;
  virtual void do_leaky_dropout_backward(Tensor dy, Tensor y, Mask mask, LeakyDropoutParameters parameters) = 0;
  virtual void do_leaky_forward(Tensor x, float slope) = 0;
  virtual void do_leaky_backward(Tensor dy, Tensor y, float slope) = 0;
  virtual void do_tanh_forward(Tensor x) = 0;
  virtual void do_tanh_backward(Tensor dy, Tensor y) = 0;
  virtual void do_sigmoid_forward(Tensor x) = 0;
  virtual void do_sigmoid_backward(Tensor dy, Tensor y) = 0;
  virtual void do_bias_leaky_forward(Tensor x, const float* bias, int channels, float factor, float slope) = 0;
  virtual void do_bias_leaky_backward(Tensor dy, Tensor y, float* d_bias, int channels, float factor, float slope,
                                      bool accumulate) = 0;
  virtual void do_pixel_norm_forward(Tensor x, Tensor scale, int channels) = 0;
  virtual void do_pixel_norm_backward(Tensor dy, Tensor y, Tensor scale, int channels) = 0;
  virtual void do_append_deviation_forward(Tensor y, Tensor x, int positions) = 0;
  virtual void do_append_deviation_backward(Tensor dx, Tensor dy, Tensor x, int positions) = 0;
  virtual void do_append_deviation_tangent(Tensor y_dot, Tensor x_dot, Tensor x, int positions) = 0;
  virtual void do_append_deviation_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x,
                                                    int positions) = 0;
  virtual void do_pool(Tensor coarse, Tensor fine, const BlockShape& shape, float factor) = 0;
  virtual void do_spread(Tensor fine, Tensor coarse, const BlockShape& shape, float factor) = 0;
  virtual void do_combine(Tensor y, float a, Tensor x, float b) = 0;
  virtual void do_interpolate(Tensor between, Tensor real, Tensor fake, RandomStream& random) = 0;
  virtual void do_gradient_penalty(float* loss, Tensor direction, Tensor gradient, float weight) = 0;
  virtual void do_fill(Tensor x, float value) = 0;
  virtual void do_adversarial_loss(float* loss, Tensor d_logits, Tensor logits, LossTerm term) = 0;
  virtual void do_classification_loss(float* loss, Tensor d_logits, Tensor logits,
                                      std::span<const std::uint8_t> host_labels) = 0;
  virtual void do_adam(float* parameters, const float* gradients, float* first, float* second, std::size_t count,
                       const AdamRule& rule) = 0;
  virtual void do_average(float* average, const float* values, std::size_t count, float decay) = 0;
  virtual void do_fill_normal(Tensor x, RandomStream& random) = 0;
  virtual void do_load_images(Tensor x, std::span<const std::uint8_t> host_pixels, float low, int channels) = 0;
  virtual void do_copy(float* to, const float* from, std::size_t count) = 0;
  virtual void do_pack(Compression bits, std::uint8_t* to, const float* from, std::size_t count) = 0;
  virtual void do_unpack(Compression bits, float* to, const std::uint8_t* from, std::size_t count) = 0;

  class Counted;  // counts an operation and, if wanted, its time

  Work work_;
  bool timed_ = false;
  std::shared_ptr<MemoryCount> memory_ = std::make_shared<MemoryCount>();
  Buffer workspace_;
  Shard shard_;
  Communicator* synchronized_ = nullptr;
  std::function<void()> while_waiting_;
};

/// While it lives, one process's operations are its own: for samples and measurements that only one makes.
class Alone {
 public:
  explicit Alone(Ops& ops) : ops_(ops), shard_(ops.shard()), synchronized_(ops.synchronized()) {
    ops.set_shard({});
    ops.set_synchronized(nullptr);
  }
  ~Alone() {
    ops_.set_shard(shard_);
    ops_.set_synchronized(synchronized_);
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  Ops& ops_;
  Shard shard_;
  Communicator* synchronized_;
};

}  // namespace ganymede::kernel
