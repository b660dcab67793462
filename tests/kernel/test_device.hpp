#pragma once
// For the tests of operations: the backends to test, and device memory filled with random numbers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "host_device.hpp"
#include "kernel/ops/eigen/eigen_ops.hpp"
#include "kernel/ops/eigen/kernels.hpp"

namespace ganymede::kernel {

/// A backend to test.
struct BackendCase {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
};

/// GoogleTest prints a case by this function.
inline void PrintTo(const BackendCase& backend, std::ostream* out) { *out << backend.name; }

/// The backends that store fp32. Their gradients can be compared with finite differences.
inline std::vector<BackendCase> fp32_backends() {
  std::vector<BackendCase> all;
  for (const CpuKernels* kernels : available_cpu_kernels())
    for (const int threads : {1, 3}) {
      std::string name = std::string("eigen_") + kernels->name + "_" + std::to_string(threads);
      std::replace(name.begin(), name.end(), '-', '_');
      all.push_back({name, [=] { return make_eigen_backend(threads, *kernels); }});
    }
  // The GPU backend's code, run on the CPU.
  all.push_back({"cuda_on_host", [] { return make_hosted_cuda_backend({.graph = false}); }});
  all.push_back({"cuda_on_host_alike", [] { return make_hosted_cuda_backend({.graph = false, .host_random = true}); }});
  if (count_gpus().count > 0)
    all.push_back({"cuda", [] { return open_cuda_backend({.precision = Precision::fp32, .graph = false}); }});
  return all;
}

inline std::unique_ptr<Backend> make_hosted_bf16_backend(bool host_random = false) {
  return make_hosted_cuda_backend({.precision = Precision::bf16, .graph = false, .host_random = host_random});
}

inline std::vector<BackendCase> backends() {
  std::vector<BackendCase> all = fp32_backends();
  all.push_back({"cuda_on_host_bf16", [] { return make_hosted_bf16_backend(); }});
  if (count_gpus().count > 0)
    all.push_back({"cuda_bf16", [] { return open_cuda_backend({.precision = Precision::bf16, .graph = false}); }});
  return all;
}

class TestDevice {
 public:
  TestDevice(const BackendCase& backend, std::uint64_t seed)
      : backend_(backend.make()), ops_(backend_->ops.get()), random_(seed, "tests/kernel") {
    ops_->reserve_workspace(std::size_t{4} << 20);
  }

  TensorOps& ops() { return *ops_; }

  float* floats(std::size_t count, double low = -1, double high = 1) {
    buffers_.push_back(ops_->allocate(count * sizeof(float)));
    ops_->write(buffers_.back().floats(), drawn(count, low, high));
    return buffers_.back().floats();
  }
  /// Weights, as the operations want them. If tensors are bf16, so are these numbers.
  float* parameters(std::size_t count, double low = -1, double high = 1) {
    buffers_.push_back(ops_->allocate_parameters(count));
    std::vector<float> values = drawn(count, low, high);
    if (ops_->element_type() == ElementType::bf16)
      for (float& value : values) value = from_bf16(to_bf16(value));
    ops_->write(buffers_.back().floats(), values);
    return buffers_.back().floats();
  }
  Tensor tensor(int features, int batch, double low = -1, double high = 1) {
    Tensor tensor{nullptr, features, batch};
    buffers_.push_back(ops_->allocate(tensor.size() * bytes_of(ops_->element_type())));
    tensor.data = buffers_.back().memory.get();
    ops_->write(tensor, drawn(tensor.size(), low, high));
    return tensor;
  }
  /// Error bound of a number of that size that was stored in tensors so many times: a rounding to bf16, whose numbers
  /// have 8 bits, changes it by at most 2^-8 of itself.
  double stored(double size, int times = 1) const {
    return ops_->element_type() == ElementType::bf16 ? times * 0x1p-8 * std::abs(size) : 0;
  }
  Mask mask(int features, int batch) {
    Mask mask{nullptr, features, batch};
    buffers_.push_back(ops_->allocate(mask.size()));
    mask.data = static_cast<std::uint8_t*>(buffers_.back().memory.get());
    return mask;
  }

  std::vector<float> singles(const float* from, std::size_t count) {
    std::vector<float> host(count);
    ops_->read(host, from);
    return host;
  }
  std::vector<float> singles(Tensor x) {
    std::vector<float> host(x.size());
    ops_->read(host, x);
    return host;
  }
  /// Values in the order [channels x positions x batch]; the functions above return them in the device's order.
  std::vector<double> rows(Tensor x, int channels) {
    std::vector<float> host(x.size());
    ops_->read_rows(host, x, channels);
    return {host.begin(), host.end()};
  }
  std::vector<double> rows(Tensor x) { return rows(x, x.features); }
  /// A convolution's weights in PyTorch's order.
  std::vector<double> weights(const float* from, const ConvolutionShape& shape) {
    std::vector<float> host(shape.weights());
    ops_->read_array(host, from, std::vector<int>{shape.out_channels, shape.in_channels, shape.taps()});
    return {host.begin(), host.end()};
  }
  /// The same numbers in double precision, with which the tests compute.
  std::vector<double> values(const float* from, std::size_t count) {
    const auto host = singles(from, count);
    return {host.begin(), host.end()};
  }
  std::vector<double> values(Tensor x) {
    const auto host = singles(x);
    return {host.begin(), host.end()};
  }
  void set(float* to, std::size_t index, float value) { ops_->write(to + index, {&value, 1}); }
  void set(Tensor to, std::size_t index, float value) { ops_->write(element(to, index), {&value, 1}); }
  float get(Tensor from, std::size_t index) { return singles(element(from, index))[0]; }
  /// d loss / d data[index] by a central difference. The number is there again afterwards.
  double slope(float* data, std::size_t index, float step, const std::function<double()>& loss) {
    const float middle = singles(data + index, 1)[0];
    set(data, index, middle + step);
    const double above = loss();
    set(data, index, middle - step);
    const double below = loss();
    set(data, index, middle);
    return (above - below) / (2.0 * static_cast<double>(step));
  }

 private:
  Tensor element(Tensor x, std::size_t index) const {
    return {static_cast<std::byte*>(x.data) + index * bytes_of(ops_->element_type()), 1, 1};
  }
  std::vector<float> drawn(std::size_t count, double low, double high) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(low + (high - low) * random_.uniform());
    return values;
  }

  std::unique_ptr<Backend> backend_;
  TensorOps* ops_;
  std::vector<Buffer> buffers_;
  RandomStream random_;
};

/// Tests of operations on each backend, for suites of one's own: `class MyTest : public OperationsTest {};`.
class OperationsTest : public testing::TestWithParam<BackendCase> {
 protected:
  TestDevice device_{GetParam(), 2};
  TensorOps& ops_ = device_.ops();
};

}  // namespace ganymede::kernel
