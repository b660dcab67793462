#include "kernel/ops/cuda/product_plan.hpp"

#include <algorithm>

namespace ganymede::kernel::cuda {
namespace {

constexpr int kAlgorithmsAsked = 8;

/// The largest power of two up to 256, which cublasLt takes for granted otherwise, that divides the address.
std::uint32_t alignment_of(const void* memory) {
  const auto address = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(memory) % 256);
  return address == 0 ? 256 : address & (~address + 1);
}

template <class Value>
void set(const MatmulDescriptor& product, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  GANYMEDE_CUDA(cublasLtMatmulDescSetAttribute(product.get(), attribute, &value, sizeof value));
}
template <class Value>
void set(const MatmulPreference& preference, cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
  GANYMEDE_CUDA(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value));
}

MatrixLayout layout_of(ElementType type, int rows, int columns, int lead) {
  return made_by<MatrixLayout>("cublasLtMatrixLayoutCreate", [&](cublasLtMatrixLayout_t* layout) {
    return cublasLtMatrixLayoutCreate(layout, blas_type(type), static_cast<std::uint64_t>(rows),
                                      static_cast<std::uint64_t>(columns), lead);
  });
}

cublasLtEpilogue_t epilogue_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::add_bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::sum_b:
      return CUBLASLT_EPILOGUE_BGRADB;
    case Epilogue::none:
      break;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

std::vector<int> ProductPlan::key_of(const Gemm& call) {
  std::vector<int> key{call.transpose_a ? 1 : 0,
                       call.transpose_b ? 1 : 0,
                       call.m,
                       call.n,
                       call.k,
                       call.a_lead,
                       call.b_lead,
                       call.c_lead,
                       static_cast<int>(call.epilogue),
                       static_cast<int>(call.operands),
                       static_cast<int>(call.result)};
  for (const void* memory : {call.a, call.b, static_cast<const void*>(call.c), static_cast<const void*>(call.vector)})
    key.push_back(static_cast<int>(alignment_of(memory)));
  return key;
}

ProductPlan::ProductPlan(cublasLtHandle_t handle, const Gemm& call, cublasComputeType_t compute,
                         std::size_t workspace_bytes)
    : product_(made_by<MatmulDescriptor>(
          "cublasLtMatmulDescCreate",
          [&](cublasLtMatmulDesc_t* product) { return cublasLtMatmulDescCreate(product, compute, CUDA_R_32F); })),
      a_(layout_of(call.operands, call.transpose_a ? call.k : call.m, call.transpose_a ? call.m : call.k, call.a_lead)),
      b_(layout_of(call.operands, call.transpose_b ? call.n : call.k, call.transpose_b ? call.k : call.n, call.b_lead)),
      c_(layout_of(call.result, call.m, call.n, call.c_lead)) {
  set(product_, CUBLASLT_MATMUL_DESC_TRANSA, call.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(product_, CUBLASLT_MATMUL_DESC_TRANSB, call.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(product_, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(call.epilogue));
  // The heuristics look at the address for its alignment.
  set_vector(call);
  list(handle, call, workspace_bytes);
}

void ProductPlan::set_vector(const Gemm& call) {
  const void* vector = call.vector;
  set(product_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
}

void ProductPlan::list(cublasLtHandle_t handle, const Gemm& call, std::size_t workspace_bytes) {
  const auto preference = made_by<MatmulPreference>("cublasLtMatmulPreferenceCreate", cublasLtMatmulPreferenceCreate);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(call.a));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(call.b));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(call.c));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(call.c));
  cublasLtMatmulHeuristicResult_t found[kAlgorithmsAsked];
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, product_.get(), a_.get(), b_.get(), c_.get(), c_.get(), preference.get(),
                                     kAlgorithmsAsked, found, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return;
  GANYMEDE_CUDA(status);
  for (int i = 0; i < count; ++i)
    if (found[i].state == CUBLAS_STATUS_SUCCESS && found[i].workspaceSize <= workspace_bytes)
      algorithms_.push_back(found[i].algo);
}

bool ProductPlan::run(cublasLtHandle_t handle, const Gemm& call, void* workspace, std::size_t workspace_bytes,
                      cudaStream_t stream) {
  const float one = 1;
  if (taken_ < algorithms_.size()) set_vector(call);
  for (; taken_ < algorithms_.size(); ++taken_) {
    const cublasStatus_t status =
        cublasLtMatmul(handle, product_.get(), &one, call.a, a_.get(), call.b, b_.get(), &call.beta, call.c, c_.get(),
                       call.c, c_.get(), &algorithms_[taken_], workspace, workspace_bytes, stream);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) continue;
    GANYMEDE_CUDA(status);
    return true;
  }
  return false;
}

}  // namespace ganymede::kernel::cuda
