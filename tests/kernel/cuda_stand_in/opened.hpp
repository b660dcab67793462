#pragma once
// For the tests: the GPU backend on the stand-in's GPUs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "kernel/ops/cuda/cuda_backend.hpp"
#include "stand_in.hpp"

extern "C" ganymede::kernel::Backend* ganymede_make_cuda_backend(const ganymede::kernel::CudaOptions& options);

namespace ganymede::kernel::stand_in {

inline std::unique_ptr<Backend> open(const CudaOptions& options) {
  return std::unique_ptr<Backend>(ganymede_make_cuda_backend(options));
}

/// The stand-in's machine for as long as this lives; then there must be no violation.
class Session {
 public:
  explicit Session(const Settings& settings = {}) { begin(settings); }
  ~Session() {
    if (ended_) return;
    EXPECT_THAT(end(), testing::IsEmpty());
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// Ends it and returns the violations.
  std::vector<std::string> violations() {
    ended_ = true;
    return end();
  }

 private:
  bool ended_ = false;
};

}  // namespace ganymede::kernel::stand_in
