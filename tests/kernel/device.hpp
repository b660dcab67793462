#pragma once
// Device memory filled with random numbers, and backends to try: what the tests of operations share.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "host_machine.hpp"
#include "kernel/ops/eigen/eigen_ops.hpp"
#include "kernel/ops/eigen/kernels.hpp"

namespace ganymede::kernel {

/// A backend to test.
struct Backend {
  std::string name;
  std::function<std::unique_ptr<Ops>()> make;
};

/// What GoogleTest prints for it.
inline void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }

inline std::vector<Backend> backends() {
  std::vector<Backend> all;
  for (const CpuKernels* kernels : available_cpu_kernels())
    for (const int threads : {1, 3}) {
      std::string name = std::string("eigen_") + kernels->name + "_" + std::to_string(threads);
      std::replace(name.begin(), name.end(), '-', '_');
      all.push_back({name, [=] { return make_eigen_ops(threads, *kernels); }});
    }
  // The GPU backend's own code, run on the CPU.
  all.push_back({"cuda_on_host", [] { return make_hosted_cuda_ops({.graph = false}); }});
  all.push_back({"cuda_on_host_alike", [] { return make_hosted_cuda_ops({.graph = false, .host_random = true}); }});
  if (count_gpus().count > 0)
    all.push_back({"cuda", [] { return open_cuda_ops({.precision = Precision::fp32, .graph = false}); }});
  return all;
}

class Device {
 public:
  Device(const Backend& backend, std::uint64_t seed) : ops_(backend.make()), random_(seed, "tests/kernel") {
    ops_->reserve_workspace(std::size_t{4} << 20);
  }

  Ops& ops() { return *ops_; }

  float* floats(std::size_t count, double low = -1, double high = 1) {
    buffers_.push_back(ops_->allocate(count * sizeof(float)));
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(low + (high - low) * random_.uniform());
    ops_->write(buffers_.back().floats(), values);
    return buffers_.back().floats();
  }
  Tensor tensor(int features, int batch, double low = -1, double high = 1) {
    return {floats(static_cast<std::size_t>(features) * static_cast<std::size_t>(batch), low, high), features, batch};
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
  std::vector<float> singles(Tensor x) { return singles(x.data, x.size()); }
  /// In the order that Ops documents, [channels x positions x batch]; the others are as the device has them.
  std::vector<double> rows(Tensor x, int channels) {
    std::vector<float> host(x.size());
    ops_->read_rows(host, x, channels);
    return {host.begin(), host.end()};
  }
  std::vector<double> rows(Tensor x) { return rows(x, x.features); }
  /// As PyTorch orders a convolution's weights.
  std::vector<double> weights(const float* from, const ConvolutionShape& shape) {
    std::vector<float> host(shape.weights());
    ops_->read_array(host, from, std::vector<int>{shape.out_channels, shape.in_channels, shape.taps()});
    return {host.begin(), host.end()};
  }
  /// The same numbers in double precision, in which the tests reckon.
  std::vector<double> values(const float* from, std::size_t count) {
    const auto host = singles(from, count);
    return {host.begin(), host.end()};
  }
  std::vector<double> values(Tensor x) { return values(x.data, x.size()); }
  void set(float* to, std::size_t index, float value) { ops_->write(to + index, {&value, 1}); }

 private:
  std::unique_ptr<Ops> ops_;
  std::vector<Buffer> buffers_;
  RandomStream random_;
};

}  // namespace ganymede::kernel
