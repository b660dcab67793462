// Times the products and convolutions of the CPU backend beside oneDNN's, on the layers of the MLP GAN and of DCGAN-32:
//   OMP_NUM_THREADS=1 onednn [BATCH [REPEATS]]
// On one thread, in seconds of the processor; the least of all repeats, which take turns. oneDNN's convolutions have
// the layouts that it likes best, so what it would cost to bring the kernel's tensors into them is left out.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <dnnl.hpp>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernel/ops/eigen/eigen_ops.hpp"

namespace {

using namespace ganymede::kernel;
using dnnl::memory;
using Arguments = std::unordered_map<int, memory>;

double processor_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds(const std::function<void()>& work) {
  const double begin = processor_s();
  work();
  return processor_s() - begin;
}

class Comparison {
 public:
  Comparison(int batch, int repeats) : batch_(batch), repeats_(repeats) {}

  void dense(int inputs, int outputs) {
    const std::string name = fmt::format("dense {} to {}", inputs, outputs);
    const Tensor x = tensor(inputs), y = tensor(outputs);
    float* weight = parameters(static_cast<std::size_t>(inputs) * static_cast<std::size_t>(outputs));
    ops_.reserve_workspace(ops_.dense_workspace_bytes(inputs, outputs, batch_));
    print(
        name + ", forward",
        [&] {
          ops_.dense_forward(y, x, {weight, nullptr});
        },
        product(outputs, inputs, batch_, false, false));
    print(
        name + ", data", [&] { ops_.dense_backward_data(x, y, weight); },
        product(inputs, outputs, batch_, true, false));
    print(
        name + ", weights", [&] { ops_.dense_backward_weights(weight, nullptr, y, x, false); },
        product(outputs, batch_, inputs, false, true));
  }

  void convolution(const ConvolutionShape& shape) {
    const std::string name = fmt::format("conv {} of {} to {}, {} x {}", shape.in_channels, shape.in_height,
                                         shape.out_channels, shape.kernel, shape.kernel);
    const Tensor x = tensor(shape.in_features()), y = tensor(shape.out_features());
    float* weight = parameters(shape.weights());
    ops_.reserve_workspace(ops_.convolution_workspace_bytes(shape, batch_));
    const auto md = [](const memory::dims& dims) {
      return memory::desc(dims, memory::data_type::f32, memory::format_tag::any);
    };
    const memory::dim k = shape.kernel;
    const auto source = md({batch_, shape.in_channels, shape.in_height, shape.in_width});
    const auto weights = md({shape.out_channels, shape.in_channels, k, k});
    const auto target = md({batch_, shape.out_channels, shape.out_height(), shape.out_width()});
    const memory::dims strides{shape.stride, shape.stride}, padding{shape.padding, shape.padding};
    const auto direct = dnnl::algorithm::convolution_auto;
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, direct, source, weights, target, strides, padding, padding}, engine_);
    const dnnl::convolution_backward_data::primitive_desc data(
        {direct, source, weights, target, strides, padding, padding}, engine_, forward);
    const dnnl::convolution_backward_weights::primitive_desc gradient(
        {direct, source, weights, target, strides, padding, padding}, engine_, forward);
    print(
        name + ", forward", [&] { ops_.convolve(y, x, shape, weight); },
        runs(dnnl::convolution_forward(forward), {{DNNL_ARG_SRC, made(forward.src_desc())},
                                                  {DNNL_ARG_WEIGHTS, made(forward.weights_desc())},
                                                  {DNNL_ARG_DST, made(forward.dst_desc())}}));
    print(
        name + ", data", [&] { ops_.convolve_backward_data(x, y, shape, weight); },
        runs(dnnl::convolution_backward_data(data), {{DNNL_ARG_DIFF_DST, made(data.diff_dst_desc())},
                                                     {DNNL_ARG_WEIGHTS, made(data.weights_desc())},
                                                     {DNNL_ARG_DIFF_SRC, made(data.diff_src_desc())}}));
    print(
        name + ", weights", [&] { ops_.convolve_backward_weights(weight, y, x, shape, false); },
        runs(dnnl::convolution_backward_weights(gradient),
             {{DNNL_ARG_SRC, made(gradient.src_desc())},
              {DNNL_ARG_DIFF_DST, made(gradient.diff_dst_desc())},
              {DNNL_ARG_DIFF_WEIGHTS, made(gradient.diff_weights_desc())}}));
  }

  void print_sum(const std::string& name) {
    fmt::print("{:<40} {:9.3f} {:9.3f} {:7.2f}\n", name + ", together", 1e3 * ours_, 1e3 * theirs_, theirs_ / ours_);
    ours_ = theirs_ = 0;
  }

 private:
  Tensor tensor(int features) {
    buffers_.push_back(
        ops_.allocate(static_cast<std::size_t>(features) * static_cast<std::size_t>(batch_) * sizeof(float)));
    return {buffers_.back().floats(), features, batch_};
  }
  float* parameters(std::size_t count) {
    buffers_.push_back(ops_.allocate_parameters(count));
    return buffers_.back().floats();
  }
  memory made(const memory::desc& desc) { return {desc, engine_}; }

  std::function<void()> runs(dnnl::primitive primitive, Arguments arguments) {
    return [this, primitive = std::move(primitive), arguments = std::move(arguments)] {
      primitive.execute(stream_, arguments);
      stream_.wait();
    };
  }

  /// A [rows x inner] times [inner x columns], in the kernel's own layouts.
  std::function<void()> product(int rows, int inner, int columns, bool a_transposed, bool b_transposed) {
    const auto md = [](int of_rows, int of_columns, bool transposed) {
      return memory::desc({of_rows, of_columns}, memory::data_type::f32,
                          transposed ? memory::format_tag::ba : memory::format_tag::ab);
    };
    const dnnl::matmul::primitive_desc desc(
        {md(rows, inner, a_transposed), md(inner, columns, b_transposed), md(rows, columns, false)}, engine_);
    return runs(dnnl::matmul(desc), {{DNNL_ARG_SRC, made(desc.src_desc())},
                                     {DNNL_ARG_WEIGHTS, made(desc.weights_desc())},
                                     {DNNL_ARG_DST, made(desc.dst_desc())}});
  }

  void print(const std::string& name, const std::function<void()>& our, const std::function<void()>& their) {
    double ours = 1e9, theirs = 1e9;
    for (int i = 0; i < repeats_; ++i) {
      ours = std::min(ours, seconds(our));
      theirs = std::min(theirs, seconds(their));
    }
    ours_ += ours, theirs_ += theirs;
    fmt::print("{:<40} {:9.3f} {:9.3f} {:7.2f}\n", name, 1e3 * ours, 1e3 * theirs, theirs / ours);
  }

  int batch_, repeats_;
  Backend backend_ = std::move(*make_eigen_backend(1));
  TensorOps& ops_ = *backend_.ops;
  std::vector<Buffer> buffers_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  double ours_ = 0, theirs_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  if (const char* threads = std::getenv("OMP_NUM_THREADS"); threads == nullptr || std::string(threads) != "1") {
    fmt::print(stderr, "OMP_NUM_THREADS: expected 1: oneDNN's threads would wait in seconds of the processor\n");
    return 2;
  }
  const int batch = count > 1 ? std::max(1, std::atoi(arguments[1])) : 64;
  const int repeats = count > 2 ? std::max(1, std::atoi(arguments[2])) : 50;
  Comparison layers(batch, repeats);
  fmt::print("{:<40} {:>9} {:>9} {:>7}\n", fmt::format("batch {}", batch), "ours, ms", "oneDNN", "ratio");
  for (const auto& [inputs, outputs] : {std::pair{50, 1200}, {1200, 1000}, {1000, 784}, {784, 256}, {256, 128}})
    layers.dense(inputs, outputs);
  layers.print_sum("MLP GAN");
  for (const ConvolutionShape& shape : {ConvolutionShape{3, 32, 32, 64, 4, 2, 1},
                                        {64, 16, 16, 128, 4, 2, 1},
                                        {128, 8, 8, 256, 4, 2, 1},
                                        {256, 4, 4, 100, 4, 1, 0},
                                        {256, 4, 4, 1, 4, 1, 0}})
    layers.convolution(shape);
  layers.print_sum("DCGAN-32");
}
