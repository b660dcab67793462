#pragma once
// The tensor operations of a training step. A backend implements the private functions; the public ones, written once,
// check shapes and count the cost of each operation.
//
// Pointers are device memory unless the name says host. Tensors are [features x batch] (see tensor.hpp). Operations run
// in the order of the calls; only `read` and DeviceTimeline::synchronize wait for them. None allocates: workspaces are
// reserved beforehand. Shapes that do not fit fail an assertion. A `float*` is an array of floats whatever the type of
// the tensors' elements.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "common/random.hpp"
#include "kernel/adam_rule.hpp"
#include "kernel/compression.hpp"
#include "kernel/ops/device_timeline.hpp"
#include "kernel/ops/op_parameters.hpp"
#include "kernel/parallel/communicator.hpp"
#include "kernel/tensor.hpp"

namespace ganymede::kernel {

/// The order of activations and convolution weights in device memory.
enum class MemoryLayout {
  batch_innermost,     ///< [channels x positions x batch]; weights [outputs x inputs x taps], as in PyTorch
  channels_innermost,  ///< [batch x positions x channels]; weights [outputs x taps x inputs]
};

struct LaunchList;  // launch_list.hpp, which a GPU's compiler cannot read

class TensorOps {
 public:
  /// `timeline` must outlive the operations.
  TensorOps(DeviceTimeline& timeline, MemoryLayout layout, ElementType elements = ElementType::fp32)
      : timeline_(timeline), layout_(layout), element_type_(elements) {}
  TensorOps(const TensorOps&) = delete;
  TensorOps& operator=(const TensorOps&) = delete;
  virtual ~TensorOps() = default;

  DeviceTimeline& timeline() const { return timeline_; }
  /// The type of the elements of all tensors.
  ElementType element_type() const { return element_type_; }

  // ---- Memory ----

  /// Bytes of device memory that are free; 0: not known.
  virtual double available_bytes() const = 0;
  /// Returns zeroed memory. Throws Infeasible if the device has fewer than `bytes` bytes free.
  Buffer allocate(std::size_t bytes);
  /// Zeroed memory for `floats` parameters. Dense layers and convolutions must have their weights in such memory: if
  /// the elements of tensors are bf16, it also holds a copy of each parameter in bf16, which is what products read.
  /// `write`, `copy`, `average` and `adam` keep the copies up to date.
  Buffer allocate_parameters(std::size_t floats);
  std::size_t parameter_bytes(std::size_t floats) const;  ///< of such memory
  /// Zeroed host memory from which `write` copies as fast as the device can: pinned, if it is a GPU's.
  virtual Buffer allocate_host(std::size_t bytes);
  /// Peak bytes allocated since construction.
  std::size_t peak_allocated_bytes() const { return memory_->peak; }
  /// Scratch memory, in bytes, that the passes of such a layer need. Layers share one workspace.
  virtual std::size_t dense_workspace_bytes(int inputs, int outputs, int batch) const = 0;
  virtual std::size_t convolution_workspace_bytes(const ConvolutionShape& shape, int batch) const = 0;
  /// Grows the workspace to at least `bytes`. Must be called between steps.
  void reserve_workspace(std::size_t bytes);

  /// Copies host.size() floats between host and device memory, in the device's layout; not counted as work. `read`
  /// waits until the operations are done and ends the running step (see DeviceTimeline).
  virtual void read(std::span<float> host, const float* from) = 0;
  virtual void write(float* to, std::span<const float> host) = 0;
  /// The same for a tensor, whose elements are converted.
  void read(std::span<float> host, Tensor from) { do_read_elements(host, from); }
  void write(Tensor to, std::span<const float> host) { do_write_elements(to, host); }
  /// The same for an activation, which the host has as [channels x positions x batch] whatever the device's layout.
  void read_rows(std::span<float> host, Tensor from, int channels);
  void write_rows(Tensor to, std::span<const float> host, int channels);
  /// The same for an array of parameters (or their moments) of this shape, which the host has in PyTorch's order.
  void read_array(std::span<float> host, const float* from, std::span<const int> shape);
  void write_array(float* to, std::span<const float> host, std::span<const int> shape);
  /// Ends the running step, whose results are `count` floats in device memory, at most kStepResults. Does not wait: the
  /// host may begin the next step while the device still computes this one. Two steps may have ended whose results were
  /// not taken.
  virtual void end_step(const float* results, std::size_t count);
  /// The results of the first of these steps; waits until it is done.
  virtual void take(std::span<float> results);

  // ---- Dense layers and convolutions ----

  /// y [outputs x batch] = weight x [inputs x batch] + bias
  void dense_forward(Tensor y, Tensor x, DenseParameters parameters);
  /// dx [inputs x batch] = weight^T dy [outputs x batch]
  void dense_backward_data(Tensor dx, Tensor dy, const float* weight);
  /// d_weight [outputs x inputs] = dy x^T, d_bias [outputs] = sum of dy over the batch (null: not computed); with
  /// `accumulate` both are added to the present values.
  void dense_backward_weights(float* d_weight, float* d_bias, Tensor dy, Tensor x, bool accumulate);

  /// y = convolution of x with `weight`
  void convolve(Tensor y, Tensor x, const ConvolutionShape& shape, const float* weight);
  /// The same with what follows.
  void convolve(Tensor y, Tensor x, const ConvolutionShape& shape, const float* weight,
                const ConvolutionEpilogue& after);
  /// dx from dy. This is also the forward pass of the transposed convolution (PyTorch's nn.ConvTranspose2d, weights
  /// [its inputs x its outputs x kernel x kernel]) from dy to dx; `convolve` then computes its input's gradient.
  void convolve_backward_data(Tensor dx, Tensor dy, const ConvolutionShape& shape, const float* weight);
  /// d_weight from dy and x; with `accumulate` it is added to the present values.
  void convolve_backward_weights(float* d_weight, Tensor dy, Tensor x, const ConvolutionShape& shape, bool accumulate);

  // ---- Normalisation ----

  /// y = leaky(scale (x - mean) / sqrt(variance + epsilon) + shift) with mean and biased variance over the batch, which
  /// must be at least 2. Moves the running mean and the running unbiased variance, as PyTorch does.
  void batch_norm_leaky_forward(Tensor y, Tensor x, const BatchNormParameters& parameters);
  /// The same with the running statistics, which it leaves unchanged.
  void batch_norm_leaky_inference(Tensor y, Tensor x, const BatchNormParameters& parameters);
  /// In place: dy becomes dx. `x` is the forward pass's input. With `accumulate` the gradients d_scale and d_shift
  /// [features] are added to the present values; both null: not computed.
  void batch_norm_leaky_backward(Tensor dy, Tensor x, const BatchNormParameters& parameters, float* d_scale,
                                 float* d_shift, bool accumulate);
  /// y_dot = the tangent of the forward pass at x along x_dot.
  void batch_norm_leaky_tangent(Tensor y_dot, Tensor x_dot, Tensor x, const BatchNormParameters& parameters);
  /// dx = the adjoints of x and x_dot from those of y and y_dot; d_scale and d_shift as in the backward pass.
  void batch_norm_leaky_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x,
                                         const BatchNormParameters& parameters, float* d_scale, float* d_shift,
                                         bool accumulate);

  /// y = leaky((x - mean) / sqrt(variance + kInstanceNormEpsilon)) with mean and biased variance of each channel of
  /// each image over its positions (Ulyanov et al. 2016). `moments`, floats [2 x channels x batch], receives the means
  /// and the inverse deviations.
  void instance_norm_leaky_forward(Tensor y, Tensor x, float* moments, int channels, float slope);
  /// In place: dy becomes dx; `x` is the forward pass's input, `moments` what it has written.
  void instance_norm_leaky_backward(Tensor dy, Tensor x, const float* moments, int channels, float slope);

  /// In place: x / sqrt(mean over the channels of x^2 + 1e-8) at each position (Karras et al. 2018). `scale`, floats
  /// [positions x batch], receives the factors.
  void pixel_norm_forward(Tensor x, float* scale, int channels);
  /// In place: dy becomes dx; y and scale are the forward pass's results.
  void pixel_norm_backward(Tensor dy, Tensor y, const float* scale, int channels);

  /// y = x with one more channel of `positions`. It holds one number everywhere: each feature's standard deviation over
  /// the batch, averaged over the features (Karras et al. 2018).
  void minibatch_stddev_forward(Tensor y, Tensor x, int positions);
  /// dx from dy; `x` is the forward pass's input.
  void minibatch_stddev_backward(Tensor dx, Tensor dy, Tensor x, int positions);
  /// y_dot = the tangent of the forward pass at x along x_dot.
  void minibatch_stddev_tangent(Tensor y_dot, Tensor x_dot, Tensor x, int positions);
  /// dx = the adjoints of x and x_dot from those of y and y_dot.
  void minibatch_stddev_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x, int positions);

  // ---- Modulated convolutions (Karras et al. 2020); styles and factors are [channels x batch] ----

  /// y [channels x positions x batch] = factors x, added to the present values if `accumulate`; y may be x.
  void scale_channels(Tensor y, Tensor x, Tensor factors, bool accumulate = false);
  /// products [channels x batch] = sum over the positions of x y, added to the present values if `accumulate`.
  void channel_products(Tensor products, Tensor x, Tensor y, bool accumulate = false);
  /// factors [outputs x batch] of the styles [inputs x batch]
  void demodulate(Tensor factors, Tensor styles, DemodulationParameters parameters);
  /// factors_dot = the tangent along styles_dot; `factors` are the forward pass's result.
  void demodulate_tangent(Tensor factors_dot, Tensor styles_dot, Tensor factors, Tensor styles,
                          DemodulationParameters parameters);
  /// Adds to d_styles and to d_weight (null: not computed) the adjoints that d_factors, which is overwritten, passes
  /// on. In a backward pass all tangents are null.
  void demodulate_backward(Adjoints d_styles, float* d_weight, Adjoints d_factors, Adjoints factors, Adjoints styles,
                           DemodulationParameters parameters);

  // ---- Activations; all in place ----

  /// x becomes activation(x).
  void activate(Tensor x, Activation activation);
  /// dy becomes dx; y is the output of `activate`.
  void activate_backward(Tensor dy, Tensor y, Activation activation);
  /// x becomes leaky(x) * mask / keep, with a mask drawn from `random`.
  void leaky_dropout_forward(Tensor x, Mask mask, LeakyDropoutParameters parameters, RandomStream& random);
  /// dy becomes dx; y and mask are the forward pass's results. d_bias [features] = the sum of dx over the batch, added
  /// to the present values if `accumulate`; null: not computed.
  void leaky_dropout_backward(Tensor dy, Tensor y, Mask mask, LeakyDropoutParameters parameters,
                              float* d_bias = nullptr, bool accumulate = false);
  /// leaky_dropout_forward, then a dense layer with one output: y [1 x batch] = weight x + bias.
  void logit_forward(Tensor y, Tensor x, Mask mask, LeakyDropoutParameters parameters, DenseParameters dense,
                     RandomStream& random);
  /// dx from dy [1 x batch]; x and mask are the forward pass's results. With `accumulate` the gradients are added to
  /// the present values.
  void logit_backward(Tensor dx, Tensor dy, Tensor x, Mask mask, LeakyDropoutParameters parameters, const float* weight,
                      const LogitGradients& gradients, bool accumulate);
  /// x [channels x positions x batch] becomes leaky(factor x + bias); bias [channels].
  void bias_leaky_forward(Tensor x, const float* bias, int channels, float factor, float slope);
  /// dy becomes dx; y is the forward pass's result; slope and factor must be above 0. d_bias [channels] is added to the
  /// present values if `accumulate`; null: not computed.
  void bias_leaky_backward(Tensor dy, Tensor y, float* d_bias, int channels, float factor, float slope,
                           bool accumulate);

  // ---- Grids and element-wise operations ----

  /// coarse = factor * sum of each block of fine
  void pool(Tensor coarse, Tensor fine, const BlockShape& shape, float factor);
  /// fine = factor * coarse, the same in all of a block (nearest neighbour)
  void upsample(Tensor fine, Tensor coarse, const BlockShape& shape, float factor);
  /// y = a x + b y. If b is 0, y may hold anything before.
  void combine(Tensor y, float a, Tensor x, float b);
  void fill(Tensor x, float value);
  /// y [channels of x, then those of `more`] = x, and `more` [channels x batch] at every position; its data is null:
  /// zero.
  void append_channels(Tensor y, Tensor x, Tensor more);
  /// The backward pass to x: dx = the first channels of dy, at so many positions.
  void leading_channels(Tensor dx, Tensor dy, int positions);
  /// average = decay average + (1 - decay) values, over `count` floats; decay from 0 to below 1.
  void average(float* average, const float* values, std::size_t count, float decay);
  /// Copies `count` floats within device memory.
  void copy(float* to, const float* from, std::size_t count);
  void copy(Tensor to, Tensor from);
  /// Compresses `count` elements of tensors into compressed_bytes(compression, count, element_type()) bytes, and back.
  void pack(Compression compression, std::uint8_t* to, const void* from, std::size_t count);
  void unpack(Compression compression, void* to, const std::uint8_t* from, std::size_t count);
  /// One Adam step (Kingma and Ba 2015, with bias correction) over `count` floats; first, second: its moments. `step`
  /// counts from 1.
  void adam(float* parameters, const float* gradients, float* first, float* second, std::size_t count,
            const AdamParameters& rule, std::int64_t step);

  // ---- Inputs ----

  /// x = independent standard normal numbers.
  void fill_normal(Tensor x, RandomStream& random);
  /// x = images scaled from bytes 0..255 to [low, 1]; host_pixels is [batch x channels x positions]. `channels` is how
  /// the network sees an image: dense layers see every feature as a channel of one position.
  void load_images(Tensor x, std::span<const std::uint8_t> host_pixels, float low, int channels);
  /// between = u real + (1 - u) fake, with one random u of [0, 1) for each image.
  void interpolate(Tensor between, Tensor real, Tensor fake, RandomStream& random);

  // ---- Losses; `loss` is one float in device memory ----

  /// *loss = mean over the batch of `term` of logits [1 x batch]; d_logits [1 x batch] = its gradient.
  void adversarial_loss(float* loss, Tensor d_logits, Tensor logits, LossTerm term);
  /// For the gradients g [pixels x batch] of the sum of the logits: *loss = weight * mean over the batch of (|g| -
  /// centre)^2 (Gulrajani et al. 2017: 1; Mescheder et al. 2018: 0), direction = its derivative by g: 2 weight / batch
  /// (|g| - centre) g / |g|. *length = mean over the batch of |g|; null: not computed.
  void gradient_penalty(float* loss, Tensor direction, Tensor gradient, float weight, float centre = 1,
                        float* length = nullptr);
  /// *loss = mean over the batch of -log softmax(logits)[label], logits [classes x batch]; d_logits = its gradient.
  void classification_loss(float* loss, Tensor d_logits, Tensor logits, std::span<const std::uint8_t> host_labels);
  /// *loss = weight * mean over the batch of |y - x|^2, dy = its gradient.
  void squared_error(float* loss, Tensor dy, Tensor y, Tensor x, float weight);
  /// *loss = weight * mean over the batch of the sum of |y - x|, dy = its gradient, 0 where both are equal.
  void absolute_error(float* loss, Tensor dy, Tensor y, Tensor x, float weight);
  /// A variational autoencoder's sample (Kingma and Welling 2014): z = mean + exp(log variance / 2) noise, where `code`
  /// [2 z.features x batch] holds the means and then the logarithms of the variances.
  void sample_code(Tensor z, Tensor code, Tensor noise);
  /// *loss = mean over the batch of the divergence of the code's normal distribution from the standard one; d_code =
  /// its gradient, and what dz passes on.
  void sample_code_backward(float* loss, Tensor d_code, Tensor dz, Tensor code, Tensor noise);

  // ---- Data-parallel training ----

  /// Which part of a larger batch this process has. Random numbers are drawn for the whole batch and only the shard's
  /// are used, so that all processes together compute what one process would.
  void set_shard(Shard shard) { shard_ = shard; }
  Shard shard() const { return shard_; }
  /// Communicator over whose images batch norm takes its statistics; null: over this process's images alone.
  void set_norm_communicator(Communicator* communicator) { norm_communicator_ = communicator; }
  Communicator* norm_communicator() const { return norm_communicator_; }

  // ---- Cost ----

  /// Kernels that a GPU backend has launched; only differences between two readings in one step count. 0 on the CPU.
  virtual std::int64_t launched() const { return 0; }
  /// Cost of all operations since construction.
  const Work& work() const { return work_; }
  /// Adds the launches of each later operation to the list; null: no more. The list must outlive the operations or be
  /// taken away.
  void list_launches(LaunchList* list) { launches_ = list; }
  /// Names the layer to which the next operations belong; "" for none.
  void begin_layer(std::string_view name) { layer_ = name; }
  /// Also measures Work::seconds, which takes two clock readings for each operation.
  void set_timed(bool timed) { timed_ = timed; }

 protected:
  const Buffer& workspace() const { return workspace_; }
  /// The copy in bf16 of the parameter at `parameter`, if there is one (see allocate_parameters()); else null.
  void* copy_of(const float* parameter) const { return copies_.of(parameter); }

 private:
  virtual Buffer do_allocate(std::size_t bytes) = 0;
  // The functions for elements of tensors are overridden by a backend that stores bf16.
  virtual void do_read_elements(std::span<float> host, Tensor from) { read(host, from.floats()); }
  virtual void do_write_elements(Tensor to, std::span<const float> host) { write(to.floats(), host); }

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
  virtual void do_instance_norm_leaky_forward(Tensor y, Tensor x, float* moments, int channels, float slope) = 0;
  virtual void do_instance_norm_leaky_backward(Tensor dy, Tensor x, const float* moments, int channels,
                                               float slope) = 0;
  virtual void do_pixel_norm_forward(Tensor x, float* scale, int channels) = 0;
  virtual void do_pixel_norm_backward(Tensor dy, Tensor y, const float* scale, int channels) = 0;
  virtual void do_minibatch_stddev_forward(Tensor y, Tensor x, int positions) = 0;
  virtual void do_minibatch_stddev_backward(Tensor dx, Tensor dy, Tensor x, int positions) = 0;
  virtual void do_minibatch_stddev_tangent(Tensor y_dot, Tensor x_dot, Tensor x, int positions) = 0;
  virtual void do_minibatch_stddev_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x,
                                                    int positions) = 0;

  virtual void do_scale_channels(Tensor y, Tensor x, Tensor factors, bool accumulate) = 0;
  virtual void do_channel_products(Tensor products, Tensor x, Tensor y, bool accumulate) = 0;
  virtual void do_demodulate(Tensor factors, Tensor styles, DemodulationParameters parameters) = 0;
  virtual void do_demodulate_tangent(Tensor factors_dot, Tensor styles_dot, Tensor factors, Tensor styles,
                                     DemodulationParameters parameters) = 0;
  virtual void do_demodulate_backward(Adjoints d_styles, float* d_weight, Adjoints d_factors, Adjoints factors,
                                      Adjoints styles, DemodulationParameters parameters) = 0;

  virtual void do_activate(Tensor x, Activation activation) = 0;
  virtual void do_activate_backward(Tensor dy, Tensor y, Activation activation) = 0;
  virtual void do_leaky_dropout_forward(Tensor x, Mask mask, LeakyDropoutParameters parameters,
                                        RandomStream& random) = 0;
  virtual void do_leaky_dropout_backward(Tensor dy, Tensor y, Mask mask, LeakyDropoutParameters parameters,
                                         float* d_bias, bool accumulate) = 0;
  // One operation after the other, for backends that gain nothing by doing both at once.
  virtual void do_convolve_leaky(Tensor y, Tensor x, const ConvolutionShape& shape, const float* weight,
                                 const ConvolutionEpilogue& after);
  virtual void do_logit_forward(Tensor y, Tensor x, Mask mask, LeakyDropoutParameters parameters, DenseParameters dense,
                                RandomStream& random);
  virtual void do_logit_backward(Tensor dx, Tensor dy, Tensor x, Mask mask, LeakyDropoutParameters parameters,
                                 const float* weight, const LogitGradients& gradients, bool accumulate);
  virtual void do_bias_leaky_forward(Tensor x, const float* bias, int channels, float factor, float slope) = 0;
  virtual void do_bias_leaky_backward(Tensor dy, Tensor y, float* d_bias, int channels, float factor, float slope,
                                      bool accumulate) = 0;

  virtual void do_pool(Tensor coarse, Tensor fine, const BlockShape& shape, float factor) = 0;
  virtual void do_upsample(Tensor fine, Tensor coarse, const BlockShape& shape, float factor) = 0;
  virtual void do_combine(Tensor y, float a, Tensor x, float b) = 0;
  virtual void do_fill(Tensor x, float value) = 0;
  virtual void do_append_channels(Tensor y, Tensor x, Tensor more, int positions) = 0;
  virtual void do_leading_channels(Tensor dx, Tensor dy, int positions) = 0;
  virtual void do_average(float* average, const float* values, std::size_t count, float decay) = 0;
  virtual void do_copy(float* to, const float* from, std::size_t count) = 0;
  virtual void do_copy_elements(Tensor to, Tensor from) { do_copy(to.floats(), from.floats(), to.size()); }
  virtual void do_pack(Compression compression, std::uint8_t* to, const void* from, std::size_t count) = 0;
  virtual void do_unpack(Compression compression, void* to, const std::uint8_t* from, std::size_t count) = 0;
  virtual void do_adam(float* parameters, const float* gradients, float* first, float* second, std::size_t count,
                       const AdamRule& rule) = 0;

  virtual void do_fill_normal(Tensor x, RandomStream& random) = 0;
  virtual void do_load_images(Tensor x, std::span<const std::uint8_t> host_pixels, float low, int channels) = 0;
  virtual void do_interpolate(Tensor between, Tensor real, Tensor fake, RandomStream& random) = 0;

  virtual void do_adversarial_loss(float* loss, Tensor d_logits, Tensor logits, LossTerm term) = 0;
  virtual void do_gradient_penalty(float* loss, Tensor direction, Tensor gradient, float weight, float centre,
                                   float* length) = 0;
  virtual void do_classification_loss(float* loss, Tensor d_logits, Tensor logits,
                                      std::span<const std::uint8_t> host_labels) = 0;
  virtual void do_squared_error(float* loss, Tensor dy, Tensor y, Tensor x, float weight) = 0;
  virtual void do_absolute_error(float* loss, Tensor dy, Tensor y, Tensor x, float weight) = 0;
  virtual void do_sample_code(Tensor z, Tensor code, Tensor noise) = 0;
  virtual void do_sample_code_backward(float* loss, Tensor d_code, Tensor dz, Tensor code, Tensor noise) = 0;

  // Bytes are counted in floats of 4 bytes.
  double traffic(Tensor x) const;       ///< bytes of the tensor
  double operands(double count) const;  ///< bytes of so many numbers of element_type()
  class Counted;                        // counts the cost of an operation and, if wanted, its time

  DeviceTimeline& timeline_;
  MemoryLayout layout_;
  ElementType element_type_;
  ParameterCopies copies_;
  Work work_;
  LaunchList* launches_ = nullptr;
  std::string_view layer_;
  bool timed_ = false;
  std::shared_ptr<MemoryCount> memory_ = std::make_shared<MemoryCount>();
  Buffer workspace_;
  Shard shard_;
  Communicator* norm_communicator_ = nullptr;
  float results_[kStepsAhead][kStepResults] = {};
  std::size_t ended_ = 0, taken_ = 0;  ///< steps
};

}  // namespace ganymede::kernel
