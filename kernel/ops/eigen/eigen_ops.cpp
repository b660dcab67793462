#include "kernel/ops/eigen/eigen_ops.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "common/budget.hpp"
#include "common/errors.hpp"
#include "kernel/ops/eigen/cpu_ops.hpp"

namespace ganymede::kernel {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
/// FLOPs of one chunk, which then takes some ten microseconds. Handing a chunk to a thread takes about one.
constexpr double kChunkFlops = 2e6;
constexpr std::size_t kChunkElements = 16384;  ///< numbers of one chunk of an element-wise operation
/// Most rows of a chunk. So many rows of weights stay in the second-level cache while the batch passes over them.
constexpr int kChunkRowsMax = 96;
constexpr int kTileRows = 6;

int divide_up(int value, int by) { return (value + by - 1) / by; }

class EigenOps final : public CpuOps {
 public:
  EigenOps(DeviceTimeline& timeline, int threads, const CpuKernels& kernels)
      : CpuOps(timeline, threads, kernels), scratch_(static_cast<std::size_t>(threads) * kProductScratch) {}

  double available_bytes() const override { return std::min(free_memory_bytes(), memory_budget().si); }
  Buffer do_allocate(std::size_t bytes) override {
    const std::size_t alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
    const std::size_t rounded = std::max(alignment, (bytes + alignment - 1) / alignment * alignment);
    void* memory = std::aligned_alloc(alignment, rounded);
    if (memory == nullptr) throw Infeasible(fmt::format("no memory for {} bytes on the CPU", bytes));
    // Weights are also read column by column, which misses the TLB at every element if pages have 4 KiB.
    if (alignment == kHugePage) ::madvise(memory, rounded, MADV_HUGEPAGE);
    std::memset(memory, 0, rounded);
    return {{memory, {[](void* data, std::size_t) { std::free(data); }, bytes}}};
  }

  std::size_t dense_workspace_bytes(int inputs, int /*outputs*/, int batch) const override {
    return static_cast<std::size_t>(inputs) * static_cast<std::size_t>(batch) * sizeof(float);  // the input, transposed
  }
  std::size_t convolution_workspace_bytes(const ConvolutionShape& shape, int /*batch*/) const override {
    return CpuConvolution::workspace_floats(shape, kernels_, pool_.threads()) * sizeof(float);
  }

  void read(std::span<float> host, const float* from) override { std::copy_n(from, host.size(), host.data()); }
  void write(float* to, std::span<const float> host) override { std::copy_n(host.data(), host.size(), to); }

 private:
  /// Calls function(begin, end, the thread's scratch memory) for chunks of the rows [0, rows) of about equal work.
  template <class Function>
  void over_rows(int rows, double flops_per_row, const Function& function) {
    const int wanted = static_cast<int>(std::min(kChunkFlops / std::max(1.0, flops_per_row), double{kChunkRowsMax}));
    const int chunk = std::clamp(divide_up(wanted, kTileRows) * kTileRows, kTileRows, kChunkRowsMax);
    pool_.run(divide_up(rows, chunk), [&](int i, int thread) {
      function(i * chunk, std::min(rows, (i + 1) * chunk), scratch_.data() + std::ptrdiff_t{thread} * kProductScratch);
    });
  }

  /// Calls function(begin, end) for chunks of the features of x.
  template <class Function>
  void over_features(Tensor x, const Function& function) {
    const int chunk = std::max(1, static_cast<int>(kChunkElements) / x.batch);
    pool_.run(divide_up(x.features, chunk),
              [&](int i, int) { function(i * chunk, std::min(x.features, (i + 1) * chunk)); });
  }

  /// Calls function(begin, end) for chunks of the elements [0, count).
  template <class Function>
  void over_elements(std::size_t count, const Function& function) {
    const auto chunks = static_cast<int>((count + kChunkElements - 1) / kChunkElements);
    pool_.run(chunks, [&](int i, int) {
      const std::size_t begin = static_cast<std::size_t>(i) * kChunkElements;
      function(begin, std::min(count, begin + kChunkElements));
    });
  }

  void do_dense_forward(Tensor y, Tensor x, DenseParameters parameters) override {
    const Product product{.a = parameters.weight,
                          .a_row = x.features,
                          .a_column = 1,
                          .b = x.floats(),
                          .b_row = x.batch,
                          .c = y.floats(),
                          .c_row = y.batch,
                          .n = y.batch,
                          .k = x.features,
                          .accumulate = false};
    over_rows(y.features, 2.0 * x.features * y.batch, [&](int begin, int end, float* scratch) {
      kernels_.product(product, begin, end, scratch);
      if (parameters.bias != nullptr) kernels_.add_bias(y.floats(), parameters.bias, y.batch, begin, end);
    });
  }

  void do_dense_backward_data(Tensor dx, Tensor dy, const float* weight) override {
    const Product product{.a = weight,
                          .a_row = 1,
                          .a_column = dx.features,
                          .b = dy.floats(),
                          .b_row = dy.batch,
                          .c = dx.floats(),
                          .c_row = dx.batch,
                          .n = dx.batch,
                          .k = dy.features,
                          .accumulate = false};
    over_rows(dx.features, 2.0 * dy.features * dx.batch,
              [&](int begin, int end, float* scratch) { kernels_.product(product, begin, end, scratch); });
  }

  void do_dense_backward_weights(float* d_weight, float* d_bias, Tensor dy, Tensor x, bool accumulate) override {
    assert(x.size() * sizeof(float) <= workspace().bytes());
    float* transposed = workspace().floats();  // [batch x inputs]
    over_features(
        x, [&](int begin, int end) { kernels_.transpose(x.floats(), transposed, x.features, x.batch, begin, end); });
    const Product product{.a = dy.floats(),
                          .a_row = dy.batch,
                          .a_column = 1,
                          .b = transposed,
                          .b_row = x.features,
                          .c = d_weight,
                          .c_row = x.features,
                          .n = x.features,
                          .k = x.batch,
                          .accumulate = accumulate};
    over_rows(dy.features, 2.0 * x.features * x.batch, [&](int begin, int end, float* scratch) {
      kernels_.product(product, begin, end, scratch);
      if (d_bias != nullptr) kernels_.row_sums(dy.floats(), d_bias, dy.batch, accumulate, begin, end);
    });
  }

  void do_convolve(Tensor y, Tensor x, const ConvolutionShape& shape, const float* weight) override {
    convolution(shape, x.batch).forward(y, x, weight);
  }
  void do_convolve_backward_data(Tensor dx, Tensor dy, const ConvolutionShape& shape, const float* weight) override {
    convolution(shape, dx.batch).backward_data(dx, dy, weight);
  }
  void do_convolve_backward_weights(float* d_weight, Tensor dy, Tensor x, const ConvolutionShape& shape,
                                    bool accumulate) override {
    convolution(shape, x.batch).backward_weights(d_weight, dy, x, accumulate);
  }
  CpuConvolution convolution(const ConvolutionShape& shape, [[maybe_unused]] int batch) {
    assert(convolution_workspace_bytes(shape, batch) <= workspace().bytes());
    return {shape, kernels_, pool_, workspace().floats()};
  }

  static BatchNormRows rows_of(const BatchNormParameters& p) {
    return {.scale = p.scale,
            .shift = p.shift,
            .mean = p.mean,
            .inverse_deviation = p.inverse_deviation,
            .running_mean = p.running_mean,
            .running_variance = p.running_variance,
            .momentum = p.momentum,
            .epsilon = p.epsilon,
            .slope = p.slope};
  }

  void do_batch_norm_leaky_forward(Tensor y, Tensor x, const BatchNormParameters& parameters) override {
    if (norm_communicator() != nullptr)
      return CpuSynchronizedNorm(*norm_communicator(), pool_).forward(y, x, parameters);
    over_features(x, [&](int begin, int end) {
      kernels_.batch_norm_forward(x.floats(), y.floats(), rows_of(parameters), x.batch, begin, end);
    });
  }

  void do_batch_norm_leaky_inference(Tensor y, Tensor x, const BatchNormParameters& parameters) override {
    over_features(x, [&](int begin, int end) {
      kernels_.batch_norm_inference(x.floats(), y.floats(), rows_of(parameters), x.batch, begin, end);
    });
  }

  void do_batch_norm_leaky_backward(Tensor dy, Tensor x, const BatchNormParameters& parameters, float* d_scale,
                                    float* d_shift, bool accumulate) override {
    if (norm_communicator() != nullptr)
      return CpuSynchronizedNorm(*norm_communicator(), pool_).backward(dy, x, parameters, d_scale, d_shift, accumulate);
    over_features(x, [&](int begin, int end) {
      kernels_.batch_norm_backward(dy.floats(), x.floats(), rows_of(parameters), d_scale, d_shift, accumulate, x.batch,
                                   begin, end);
    });
  }

  void do_batch_norm_leaky_tangent(Tensor y_dot, Tensor x_dot, Tensor x, const BatchNormParameters& p) override {
    over_features(x, [&](int begin, int end) {
      kernels_.batch_norm_tangent(y_dot.floats(), x_dot.floats(), x.floats(), rows_of(p), x.batch, begin, end);
    });
  }

  void do_batch_norm_leaky_tangent_backward(Adjoints dx, Adjoints dy, Tensor x_dot, Tensor x,
                                            const BatchNormParameters& p, float* d_scale, float* d_shift,
                                            bool accumulate) override {
    over_features(x, [&](int begin, int end) {
      const BatchNormTangents tangents{dx.value.floats(), dx.tangent.floats(), dy.value.floats(), dy.tangent.floats(),
                                       x_dot.floats()};
      kernels_.batch_norm_tangent_backward(tangents, x.floats(), rows_of(p), d_scale, d_shift, accumulate, x.batch,
                                           begin, end);
    });
  }

  void do_leaky_dropout_forward(Tensor x, Mask mask, LeakyDropoutParameters p, RandomStream& random) override {
    // 16 random bits decide whether a unit is kept, so the probability is `keep` within 1 / 65536.
    const auto threshold = static_cast<std::uint64_t>(std::lround(p.keep * 65536.0F));
    std::uint64_t bits = 0;
    // Bits are drawn for the images of all processes; those of this process are used.
    const auto batch = static_cast<std::size_t>(mask.batch), ranks = static_cast<std::size_t>(shard().ranks);
    const std::size_t first = batch * static_cast<std::size_t>(shard().rank);
    std::uint8_t* kept = mask.data;
    for (std::size_t i = 0; i < mask.size() * ranks; ++i) {
      bits = i % 4 == 0 ? random.next() : bits >> 16;
      if (ranks == 1 || i % (batch * ranks) - first < batch) *kept++ = (bits & 0xffffU) < threshold ? 1 : 0;
    }
    over_elements(x.size(), [&](std::size_t begin, std::size_t end) {
      kernels_.leaky_dropout_forward(x.floats(), mask.data, 1.0F / p.keep, p.slope, begin, end);
    });
  }

  void do_leaky_dropout_backward(Tensor dy, Tensor y, Mask mask, LeakyDropoutParameters p, float* d_bias,
                                 bool accumulate) override {
    over_elements(dy.size(), [&](std::size_t begin, std::size_t end) {
      kernels_.leaky_dropout_backward(dy.floats(), y.floats(), mask.data, 1.0F / p.keep, p.slope, begin, end);
    });
    if (d_bias == nullptr) return;
    over_features(
        dy, [&](int begin, int end) { kernels_.row_sums(dy.floats(), d_bias, dy.batch, accumulate, begin, end); });
  }

  void do_activate(Tensor x, Activation activation) override {
    over_elements(x.size(), [&](std::size_t begin, std::size_t end) {
      switch (activation.kind) {
        case Activation::Kind::leaky_relu:
          return kernels_.leaky_forward(x.floats(), activation.slope, begin, end);
        case Activation::Kind::tanh:
          return kernels_.tanh_forward(x.floats(), begin, end);
        case Activation::Kind::sigmoid:
          return kernels_.sigmoid_forward(x.floats(), begin, end);
      }
    });
  }

  void do_activate_backward(Tensor dy, Tensor y, Activation activation) override {
    over_elements(dy.size(), [&](std::size_t begin, std::size_t end) {
      switch (activation.kind) {
        case Activation::Kind::leaky_relu:
          return kernels_.leaky_backward(dy.floats(), y.floats(), activation.slope, begin, end);
        case Activation::Kind::tanh:
          return kernels_.tanh_backward(dy.floats(), y.floats(), begin, end);
        case Activation::Kind::sigmoid:
          return kernels_.sigmoid_backward(dy.floats(), y.floats(), begin, end);
      }
    });
  }

  void do_combine(Tensor y, float a, Tensor x, float b) override {
    over_elements(y.size(), [&](std::size_t begin, std::size_t end) {
      kernels_.combine(y.floats(), a, x.floats(), b, begin, end);
    });
  }
  void do_fill(Tensor x, float value) override { std::fill_n(x.floats(), x.size(), value); }

  void do_adam(float* parameters, const float* gradients, float* first, float* second, std::size_t count,
               const AdamRule& rule) override {
    over_elements(count, [&](std::size_t begin, std::size_t end) {
      kernels_.adam(parameters, gradients, first, second, rule, begin, end);
    });
  }

  void do_average(float* average, const float* values, std::size_t count, float decay) override {
    over_elements(count,
                  [&](std::size_t begin, std::size_t end) { kernels_.average(average, values, decay, begin, end); });
  }

  void do_fill_normal(Tensor x, RandomStream& random) override {
    if (shard().ranks == 1) return random.fill_normal({x.floats(), x.size()});
    const auto batch = static_cast<std::size_t>(x.batch);
    drawn_.resize(batch * static_cast<std::size_t>(shard().ranks));
    for (int f = 0; f < x.features; ++f) {
      random.fill_normal(drawn_);
      std::copy_n(drawn_.data() + batch * static_cast<std::size_t>(shard().rank), batch,
                  x.floats() + static_cast<std::size_t>(f) * batch);
    }
  }

  void do_load_images(Tensor x, std::span<const std::uint8_t> host_pixels, float low, int) override {
    assert(x.size() * sizeof(float) <= workspace().bytes());
    float* scaled = workspace().floats();
    const float factor = (1.0F - low) / 255.0F;
    for (std::size_t i = 0; i < host_pixels.size(); ++i) scaled[i] = static_cast<float>(host_pixels[i]) * factor + low;
    kernels_.transpose(scaled, x.floats(), x.batch, x.features, 0, x.batch);
  }

  void do_copy(float* to, const float* from, std::size_t count) override {
    over_elements(count, [&](std::size_t begin, std::size_t end) {
      std::memcpy(to + begin, from + begin, (end - begin) * sizeof(float));
    });
  }

  // kChunkElements is a multiple of kInt8Block, so that chunks are whole blocks of a compression.
  void do_pack(Compression compression, std::uint8_t* to, const void* from, std::size_t count) override {
    over_elements(count, [&](std::size_t begin, std::size_t end) {
      compress(compression, {static_cast<const float*>(from) + begin, end - begin},
               to + compressed_bytes(compression, begin));
    });
  }
  void do_unpack(Compression compression, void* to, const std::uint8_t* from, std::size_t count) override {
    over_elements(count, [&](std::size_t begin, std::size_t end) {
      decompress(compression, from + compressed_bytes(compression, begin),
                 {static_cast<float*>(to) + begin, end - begin});
    });
  }

  std::vector<float> scratch_;  // kProductScratch floats for each thread
  std::vector<float> drawn_;    // one feature's random numbers, for the images of all processes
};

}  // namespace

std::unique_ptr<Backend> make_eigen_backend(int threads) {
  return make_eigen_backend(threads, *available_cpu_kernels().front());
}

std::unique_ptr<Backend> make_eigen_backend(int threads, const CpuKernels& kernels) {
  auto backend = std::make_unique<Backend>();
  backend->info = {.backend = "eigen",
                   .device = fmt::format("{}, {} thread{}", cpu_name(), threads, threads == 1 ? "" : "s"),
                   .instructions = kernels.name,
                   .threads = threads};
  backend->timeline = std::make_unique<HostTimeline>();
  backend->ops = std::make_unique<EigenOps>(*backend->timeline, threads, kernels);
  return backend;
}

}  // namespace ganymede::kernel
