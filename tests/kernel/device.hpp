#pragma once
// Device memory filled with random numbers, and backends to try: what the tests of operations share.

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "kernel/ops/eigen/eigen_ops.hpp"
#include "kernel/ops/eigen/kernels.hpp"

namespace ganymede::kernel {

/// A backend to test; a CUDA one joins this list where there is a GPU.
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
