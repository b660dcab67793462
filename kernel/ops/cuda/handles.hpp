#pragma once
// Owners of the handles of CUDA's libraries, so that a constructor that throws halfway leaves nothing behind. Errors of
// their destruction are ignored, because a destructor cannot report them.

#include <memory>
#include <type_traits>

#include "kernel/ops/cuda/check.hpp"

namespace ganymede::kernel::cuda {

template <class Handle, auto destroy>
struct DestroyHandle {
  void operator()(Handle handle) const { destroy(handle); }
};
template <class Handle, auto destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, DestroyHandle<Handle, destroy>>;

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;
using PinnedMemory = Owned<void*, cudaFreeHost>;
using CublasHandle = Owned<cublasHandle_t, cublasDestroy>;
using CublasLtHandle = Owned<cublasLtHandle_t, cublasLtDestroy>;
using MatmulDescriptor = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using MatrixLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using MatmulPreference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;
using CudnnHandle = Owned<cudnnHandle_t, cudnnDestroy>;
using TensorDescriptor = Owned<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>;
using FilterDescriptor = Owned<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor>;
using BackendDescriptor = Owned<cudnnBackendDescriptor_t, cudnnBackendDestroyDescriptor>;
using ConvolutionDescriptor = Owned<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor>;

/// The owner of what `create(&handle)` makes. Throws Failure if that fails.
template <class Owner, class Create>
Owner made_by(const char* what, const Create& create) {
  typename Owner::pointer handle = nullptr;
  check(create(&handle), what, __FILE__, __LINE__);
  return Owner(handle);
}

/// A stream beside the default one, with which it does not synchronise.
inline Stream make_stream() {
  return made_by<Stream>("cudaStreamCreateWithFlags",
                         [](cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking); });
}
/// An event without a time; waiting for it is cheaper.
inline Event make_event() {
  return made_by<Event>("cudaEventCreateWithFlags",
                        [](cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDisableTiming); });
}
inline Event make_timed_event() {
  return made_by<Event>("cudaEventCreate", [](cudaEvent_t* event) { return cudaEventCreate(event); });
}
inline PinnedMemory make_pinned(std::size_t bytes) {
  return made_by<PinnedMemory>("cudaMallocHost", [bytes](void** memory) { return cudaMallocHost(memory, bytes); });
}

}  // namespace ganymede::kernel::cuda
