// The stand-in's cuBLAS.

#include <cublas_v2.h>

#include "host_loops.hpp"
#include "libraries.hpp"

namespace ganymede::kernel::stand_in {
namespace {

template <class Body>
cublasStatus_t blas_call(const char* name, const Body& body, bool ends = false) {
  return call(name, CUBLAS_STATUS_EXECUTION_FAILED, body, ends);
}

/// Bytes of a column-major matrix.
std::size_t bytes_of(ElementType type, int rows, int columns, int lead) {
  return kernel::bytes_of(type) * (cuda::size_of(lead) * cuda::size_of(columns - 1) + cuda::size_of(rows));
}

}  // namespace

void compute(Machine& here, const LibraryState& library, const char* name, std::function<void()> work,
             std::vector<const void*> operands) {
  std::vector<std::uintptr_t> words;
  for (const void* operand : operands) words.push_back(reinterpret_cast<std::uintptr_t>(operand));
  StreamState* stream = here.use<StreamState>(library.stream, "stream");
  if (stream == nullptr) return;
  Op op{name,
        [work = std::move(work)] {
          work();
          return true;
        },
        std::move(words)};
  op.is_launch = true;
  here.push(*stream, std::move(op));
}

}  // namespace ganymede::kernel::stand_in

using namespace ganymede::kernel;
using namespace ganymede::kernel::stand_in;

const char* cublasGetStatusString(cublasStatus_t) { return "a status of the stand-in"; }

cublasStatus_t cublasCreate_v2(cublasHandle_t* to) {
  return blas_call("cublasCreate", [&](Machine& here, auto&) {
    *to = reinterpret_cast<cublasHandle_t>(here.make("cublas", LibraryState{current_device()}));
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  return blas_call(
      "cublasDestroy",
      [&](Machine& here, auto&) {
        here.destroy<LibraryState>(handle, "cublas");
        return CUBLAS_STATUS_SUCCESS;
      },
      true);
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return blas_call("cublasSetStream", [&](Machine& here, auto&) {
    // A new stream takes the workspace away, as cuBLAS's documentation says.
    if (auto* state = here.use<LibraryState>(handle, "cublas")) state->stream = stream, state->workspace = nullptr;
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  return blas_call("cublasSetWorkspace", [&](Machine& here, auto&) {
    auto* state = here.use<LibraryState>(handle, "cublas");
    if (state == nullptr || !here.check_range(workspace, bytes, state->device, "cublasSetWorkspace"))
      return CUBLAS_STATUS_INVALID_VALUE;
    if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0) here.violate("cuBLAS's workspace is not aligned");
    state->workspace = workspace;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_operation, cublasOperation_t b_operation, int m,
                            int n, int k, const void* alpha, const void* a, cudaDataType a_type, int a_lead,
                            const void* b, cudaDataType b_type, int b_lead, const void* beta, void* c,
                            cudaDataType c_type, int c_lead, cublasComputeType_t compute_type, cublasGemmAlgo_t) {
  return blas_call("cublasGemmEx", [&](Machine& here, auto&) {
    const auto* state = here.use<LibraryState>(handle, "cublas");
    if (state == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
    const auto* stream = here.use<StreamState>(state->stream, "stream");
    // The documentation lists these types, among others, for sums in fp32.
    const auto stored = [](cudaDataType type) { return type == CUDA_R_16BF ? ElementType::bf16 : ElementType::fp32; };
    const bool listed = a_type == b_type && (a_type == CUDA_R_32F || a_type == CUDA_R_16BF) &&
                        (c_type == CUDA_R_32F || c_type == a_type);
    const bool rounds = compute_type == CUBLAS_COMPUTE_32F_FAST_TF32 && a_type == CUDA_R_32F;
    if (stream == nullptr || !listed || (compute_type != CUBLAS_COMPUTE_32F && !rounds) ||
        *static_cast<const float*>(alpha) != 1)
      return CUBLAS_STATUS_NOT_SUPPORTED;
    const ElementType operands = stored(a_type), result = stored(c_type);
    if (stream->capture != nullptr && state->workspace == nullptr) here.violate("cuBLAS allocates in a capture");
    const bool a_turned = a_operation == CUBLAS_OP_T, b_turned = b_operation == CUBLAS_OP_T;
    if (a_lead < (a_turned ? k : m) || b_lead < (b_turned ? n : k) || c_lead < m) return CUBLAS_STATUS_INVALID_VALUE;
    here.check_range(a, bytes_of(operands, a_turned ? k : m, a_turned ? m : k, a_lead), state->device, "a product's a");
    here.check_range(b, bytes_of(operands, b_turned ? n : k, b_turned ? k : n, b_lead), state->device, "a product's b");
    here.check_range(c, bytes_of(result, m, n, c_lead), state->device, "a product's c");
    const cuda::Gemm product{a_turned, b_turned, m,     n, k, a, a_lead, b, b_lead, *static_cast<const float*>(beta), c,
                             c_lead,   operands, result};
    // Tensor cores read 16 bytes at once; other operands take a slower way.
    if (operands == ElementType::bf16)
      for (const void* operand : {a, b})
        if (reinterpret_cast<std::uintptr_t>(operand) % 16 != 0) here.violate("a product's operand is not aligned");
    compute(here, *state, "cublasGemmEx", [product] { gemm_on_host(product); }, {a, b, c, state->workspace});
    return CUBLAS_STATUS_SUCCESS;
  });
}
