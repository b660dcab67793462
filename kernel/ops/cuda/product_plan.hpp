#pragma once
// cublasLt's descriptors of a product with an epilogue, and the choice of its algorithm.

#include <cstddef>
#include <vector>

#include "kernel/ops/cuda/device_calls.hpp"
#include "kernel/ops/cuda/handles.hpp"

namespace ganymede::kernel::cuda {

inline cudaDataType_t blas_type(ElementType type) { return type == ElementType::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

/// A plan for the products of one shape, epilogue and alignment.
class ProductPlan {
 public:
  /// `call` is one of them. Algorithms may use a workspace of `workspace_bytes`.
  ProductPlan(cublasLtHandle_t handle, const Gemm& call, cublasComputeType_t compute, std::size_t workspace_bytes);

  /// The products that share a plan have equal keys.
  static std::vector<int> key_of(const Gemm& call);

  /// Computes the product by the fastest algorithm that runs, in the order of cublasLt's heuristics, whose word is no
  /// promise. Returns false if there is none; then nothing has been computed.
  bool run(cublasLtHandle_t handle, const Gemm& call, void* workspace, std::size_t workspace_bytes,
           cudaStream_t stream);

 private:
  void set_vector(const Gemm& call);
  void list(cublasLtHandle_t handle, const Gemm& call, std::size_t workspace_bytes);

  MatmulDescriptor product_;
  MatrixLayout a_, b_, c_;
  std::vector<cublasLtMatmulAlgo_t> algorithms_;  ///< the best first
  std::size_t taken_ = 0;
};

}  // namespace ganymede::kernel::cuda
