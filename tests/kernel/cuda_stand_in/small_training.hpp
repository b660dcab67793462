#pragma once
// A training small enough to be run hundreds of times: it calls every function of CUDA's libraries that a model does.

#include <memory>
#include <numeric>
#include <vector>

#include "opened.hpp"

namespace ganymede::kernel::stand_in {

class SmallTraining {
 public:
  /// Opens the GPU, on which its small convolution may be fused; joins the group unless it is null.
  SmallTraining(const CudaOptions& options, Communicator* group)
      : backend_(open_for_small(options)), ops_(*backend_->ops) {
    if (group != nullptr) backend_->gradient_reducer->join(*group);
    in_group_ = group != nullptr;
    ops_.reserve_workspace(ops_.convolution_workspace_bytes(shape_, kBatch));
    elements_ = ops_.allocate(kElements * bytes_of(ops_.element_type()));
    moments_ = ops_.allocate(kMoments * sizeof(float));
    parameters_ = ops_.allocate_parameters(kFloats);
    ops_.write(parameters_.floats(), numbers(kFloats));
    ops_.write(elements(0, static_cast<int>(kElements), 1), numbers(kElements));
    images_.assign(static_cast<std::size_t>(kBatch * shape_.in_features()), 0);
    ops_.timeline().set_while_waiting([this] { ops_.timeline().prefetch_images(images_); });
  }
  ~SmallTraining() { backend_->gradient_reducer->leave(); }
  SmallTraining(const SmallTraining&) = delete;
  SmallTraining& operator=(const SmallTraining&) = delete;

  Backend& backend() { return *backend_; }
  /// Elements of the gradients.
  std::size_t weights() const { return shape_.weights(); }

  /// A step that ends with the loss. `between` is called after the gradients' reduction has begun.
  template <class Between>
  float step(const Between& between) {
    std::iota(images_.begin(), images_.end(), static_cast<std::uint8_t>(++steps_));
    ops_.timeline().begin_step();
    ops_.timeline().record_event(0);
    const Tensor x = elements(0, shape_.in_features(), kBatch), y = elements(2048, shape_.out_features(), kBatch);
    const Tensor logits = elements(4096, 1, kBatch), d_logits = elements(4160, 1, kBatch);
    const Tensor noise = elements(4224, 16, kBatch);
    float *filter = parameters_.floats(), *dense = filter + 512, *bias = filter + 1024;
    float *d_filter = moments_.floats(), *first = d_filter + 512, *second = d_filter + 1024, *loss = d_filter + 1536;
    ops_.load_images(x, images_, -1, shape_.in_channels);
    ops_.fill_normal(noise, random_);
    ops_.convolve(y, x, shape_, filter, {bias, 0.5F, 0.2F});
    ops_.dense_forward(logits, y, {dense, nullptr});
    ops_.adversarial_loss(loss, d_logits, logits, LossTerm::cross_entropy_real);
    ops_.dense_backward_data(y, d_logits, dense);
    ops_.convolve_backward_weights(d_filter, y, x, shape_, false);
    if (in_group_) {
      backend_->gradient_reducer->reduce(d_filter, weights(), {});
      const auto bytes = [d_filter](std::size_t at) { return reinterpret_cast<std::uint8_t*>(d_filter + at); };
      backend_->gradient_reducer->reduce(d_filter + 1600, 64,
                                         {Compression::int8, 68, bytes(1664), bytes(1728), d_filter + 1856});
    }
    between();
    ops_.convolve_backward_data(x, y, shape_, filter);
    if (in_group_) backend_->gradient_reducer->finish();
    ops_.adam(filter, d_filter, first, second, weights(), {}, steps_);
    float value = 0;
    ops_.end_step(loss, 1);
    ops_.take({&value, 1});
    return value + static_cast<float>(0 * ops_.timeline().elapsed_s(1));
  }
  /// The losses of some steps: the first runs call by call, the second is captured, the others are replayed.
  std::vector<float> run(int steps) {
    std::vector<float> losses;
    for (int i = 0; i < steps; ++i) losses.push_back(step([] {}));
    return losses;
  }

 private:
  static constexpr int kBatch = 4;
  static constexpr std::size_t kElements = 4352, kFloats = 1600, kMoments = 1920;

  /// A tensor of elements that begin at a number that is a multiple of 64, so that it is aligned as arenas align.
  Tensor elements(std::size_t at, int features, int batch) const {
    return {static_cast<std::byte*>(elements_.memory.get()) + at * bytes_of(ops_.element_type()), features, batch};
  }
  static std::unique_ptr<Backend> open_for_small(CudaOptions options) {
    options.least_fused_outputs = 0;
    return open(options);
  }
  static std::vector<float> numbers(std::size_t count) {
    std::vector<float> numbers(count);
    for (std::size_t i = 0; i < count; ++i) numbers[i] = 0.01F * static_cast<float>(i * 7 % 31) - 0.15F;
    return numbers;
  }

  std::unique_ptr<Backend> backend_;
  TensorOps& ops_;
  ConvolutionShape shape_{
      .in_channels = 4, .in_height = 8, .in_width = 8, .out_channels = 8, .kernel = 3, .stride = 2, .padding = 1};
  bool in_group_ = false;
  Buffer elements_, parameters_;
  Buffer moments_;  // the filter's gradient, its moments, the loss and a compressed bucket
  std::vector<std::uint8_t> images_;
  RandomStream random_{1, "tests/stand_in"};
  std::int64_t steps_ = 0;
};

}  // namespace ganymede::kernel::stand_in
