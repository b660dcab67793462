#pragma once
// GANYMEDE_CUDA(call) throws Failure if a call into CUDA's libraries fails; the message has file, line, call and
// reason.

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <nccl.h>

#include <string>

#include "common/errors.hpp"

namespace ganymede::kernel::cuda {

inline const char* reason_of(cudaError_t status) { return cudaGetErrorString(status); }
inline const char* reason_of(cublasStatus_t status) { return cublasGetStatusString(status); }
inline const char* reason_of(cudnnStatus_t status) { return cudnnGetErrorString(status); }
inline const char* reason_of(ncclResult_t status) { return ncclGetErrorString(status); }

template <class Status>
void check(Status status, const char* call, const char* file, int line) {
  // Success is 0 in all of these libraries.
  if (static_cast<int>(status) == 0) return;
  const std::string path(file);
  throw Failure(path.substr(path.rfind('/') + 1) + ":" + std::to_string(line) + ": " + call + ": " + reason_of(status));
}

}  // namespace ganymede::kernel::cuda

#define GANYMEDE_CUDA(call) ::ganymede::kernel::cuda::check((call), #call, __FILE__, __LINE__)
