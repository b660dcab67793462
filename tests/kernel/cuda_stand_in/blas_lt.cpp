// The stand-in's cublasLt.

#include <cublasLt.h>

#include <algorithm>
#include <cstring>

#include "host_loops.hpp"
#include "libraries.hpp"

namespace ganymede::kernel::stand_in {
namespace {

struct ProductState {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* vector = nullptr;
};
struct LayoutState {
  cudaDataType_t type;
  std::uint64_t rows, columns;
  std::int64_t lead;
  ElementType stored() const { return type == CUDA_R_16BF ? ElementType::bf16 : ElementType::fp32; }
};
struct PreferenceState {
  std::uint64_t workspace_bytes = 0;
  std::uint32_t a = 256, b = 256, c = 256, d = 256;  ///< alignment of the matrices in bytes
};

/// The part that an algorithm keeps of the question that it answers.
struct Answer {
  std::uint64_t workspace_bytes;
  std::uint32_t a, b, c, d, vector;
  cublasLtEpilogue_t epilogue;
  bool is_broken;
};
static_assert(sizeof(Answer) <= sizeof(cublasLtMatmulAlgo_t));

constexpr std::uint64_t kWorkspace = 4096;  ///< that the stand-in's best algorithm wants

template <class Body>
cublasStatus_t lt_call(const char* name, const Body& body, bool ends = false) {
  return call(name, CUBLAS_STATUS_EXECUTION_FAILED, body, ends);
}

template <class State>
cublasStatus_t destroy(const char* name, const void* handle, const char* kind) {
  return lt_call(
      name,
      [&](Machine& here, auto&) {
        return here.destroy<State>(handle, kind) != nullptr ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
      },
      true);
}

template <class Value>
cublasStatus_t take(Value& to, const void* from, std::size_t bytes) {
  if (from == nullptr || bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

std::uint32_t alignment_of(const void* memory) {
  std::uint32_t bytes = 256;
  while (reinterpret_cast<std::uintptr_t>(memory) % bytes != 0) bytes /= 2;
  return bytes;
}

struct Problem {
  const ProductState* product;
  const LayoutState *a, *b, *c, *d;
  int m = 0, n = 0, k = 0;

  Problem(Machine& here, cublasLtMatmulDesc_t wanted, cublasLtMatrixLayout_t a_layout, cublasLtMatrixLayout_t b_layout,
          cublasLtMatrixLayout_t c_layout, cublasLtMatrixLayout_t d_layout)
      : product(here.use<ProductState>(wanted, "product")),
        a(here.use<LayoutState>(a_layout, "matrix layout")),
        b(here.use<LayoutState>(b_layout, "matrix layout")),
        c(here.use<LayoutState>(c_layout, "matrix layout")),
        d(here.use<LayoutState>(d_layout, "matrix layout")) {
    if (product == nullptr || a == nullptr || d == nullptr) return;
    m = static_cast<int>(d->rows);
    n = static_cast<int>(d->columns);
    k = static_cast<int>(product->a == CUBLAS_OP_T ? a->rows : a->columns);
  }

  bool fits() const {
    if (product == nullptr || a == nullptr || b == nullptr || c == nullptr || d == nullptr) return false;
    const auto is = [](const LayoutState& layout, int rows, int columns) {
      return static_cast<int>(layout.rows) == rows && static_cast<int>(layout.columns) == columns &&
             layout.lead >= rows;
    };
    // The documentation lists these types, among others, for sums in fp32.
    const bool listed = a->type == b->type && c->type == d->type && (a->type == CUDA_R_32F || a->type == CUDA_R_16BF) &&
                        (d->type == CUDA_R_32F || d->type == a->type) &&
                        (product->compute == CUBLAS_COMPUTE_32F ||
                         (product->compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a->type == CUDA_R_32F));
    if (!listed) return false;
    const bool a_turned = product->a == CUBLAS_OP_T, b_turned = product->b == CUBLAS_OP_T;
    return is(*a, a_turned ? k : m, a_turned ? m : k) && is(*b, b_turned ? n : k, b_turned ? k : n) && is(*c, m, n) &&
           is(*d, m, n) && product->scale == CUDA_R_32F;
  }
  /// A bias is added, or a gradient of one is stored.
  bool has_vector() const { return product->epilogue != CUBLASLT_EPILOGUE_DEFAULT; }
  std::size_t vector_bytes() const {
    // It has the result's type unless another is set.
    return bytes_of(d->stored()) * cuda::size_of(product->epilogue == CUBLASLT_EPILOGUE_BIAS ? m : n);
  }
};

void check_matrix(Machine& here, const LibraryState& library, const LayoutState& layout, const void* data,
                  std::uint32_t alignment, const char* what) {
  const auto elements = static_cast<std::uint64_t>(layout.lead) * (layout.columns - 1) + layout.rows;
  here.check_range(data, bytes_of(layout.stored()) * elements, library.device, what);
  if (alignment_of(data) < alignment) here.violate(fmt::format("{} is aligned worse than was said", what));
}

}  // namespace
}  // namespace ganymede::kernel::stand_in

using namespace ganymede::kernel;
using namespace ganymede::kernel::stand_in;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* to) {
  return lt_call("cublasLtCreate", [&](Machine& here, auto&) {
    *to = reinterpret_cast<cublasLtHandle_t>(here.make("cublasLt", LibraryState{current_device()}));
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return stand_in::destroy<LibraryState>("cublasLtDestroy", handle, "cublasLt");
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* to, cublasComputeType_t compute, cudaDataType_t scale) {
  return lt_call("cublasLtMatmulDescCreate", [&](Machine& here, auto&) {
    *to = reinterpret_cast<cublasLtMatmulDesc_t>(here.make("product", ProductState{compute, scale}));
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  return stand_in::destroy<ProductState>("cublasLtMatmulDescDestroy", product, "product");
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                              const void* from, std::size_t bytes) {
  return lt_call("cublasLtMatmulDescSetAttribute", [&](Machine& here, auto&) {
    auto* state = here.use<ProductState>(product, "product");
    if (state == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    switch (attribute) {
      case CUBLASLT_MATMUL_DESC_TRANSA:
        return take(state->a, from, bytes);
      case CUBLASLT_MATMUL_DESC_TRANSB:
        return take(state->b, from, bytes);
      case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return take(state->epilogue, from, bytes);
      case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return take(state->vector, from, bytes);
      default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
  });
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* to, cudaDataType_t type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t lead) {
  return lt_call("cublasLtMatrixLayoutCreate", [&](Machine& here, auto&) {
    *to = reinterpret_cast<cublasLtMatrixLayout_t>(here.make("matrix layout", LayoutState{type, rows, columns, lead}));
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return stand_in::destroy<LayoutState>("cublasLtMatrixLayoutDestroy", layout, "matrix layout");
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* to) {
  return lt_call("cublasLtMatmulPreferenceCreate", [&](Machine& here, auto&) {
    *to = reinterpret_cast<cublasLtMatmulPreference_t>(here.make("preference", PreferenceState{}));
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return stand_in::destroy<PreferenceState>("cublasLtMatmulPreferenceDestroy", preference, "preference");
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* from,
                                                    std::size_t bytes) {
  return lt_call("cublasLtMatmulPreferenceSetAttribute", [&](Machine& here, auto&) {
    auto* state = here.use<PreferenceState>(preference, "preference");
    if (state == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    switch (attribute) {
      case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return take(state->workspace_bytes, from, bytes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        return take(state->a, from, bytes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        return take(state->b, from, bytes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        return take(state->c, from, bytes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return take(state->d, from, bytes);
      default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
  });
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t* found, int* count) {
  return lt_call("cublasLtMatmulAlgoGetHeuristic", [&](Machine& here, auto&) {
    *count = 0;
    const auto* wanted = here.use<PreferenceState>(preference, "preference");
    const Problem problem(here, product, a, b, c, d);
    if (here.use<LibraryState>(handle, "cublasLt") == nullptr || wanted == nullptr || asked < 1)
      return CUBLAS_STATUS_INVALID_VALUE;
    if (!problem.fits()) return CUBLAS_STATUS_INVALID_VALUE;
    const auto epilogue = problem.product->epilogue;
    const bool known = epilogue == CUBLASLT_EPILOGUE_DEFAULT || epilogue == CUBLASLT_EPILOGUE_BIAS ||
                       epilogue == CUBLASLT_EPILOGUE_BGRADA || epilogue == CUBLASLT_EPILOGUE_BGRADB;
    if (!known || here.settings.no_epilogues) return CUBLAS_STATUS_NOT_SUPPORTED;
    const auto offer = [&](std::uint64_t workspace, bool is_broken) {
      if (*count == asked || workspace > wanted->workspace_bytes) return;
      cublasLtMatmulHeuristicResult_t& one = found[(*count)++];
      one = {};
      const Answer answer{workspace, wanted->a, wanted->b, wanted->c, wanted->d, alignment_of(problem.product->vector),
                          epilogue,  is_broken};
      std::memcpy(&one.algo, &answer, sizeof answer);
      one.workspaceSize = workspace;
      one.state = CUBLAS_STATUS_SUCCESS;
    };
    if (here.settings.broken_promises) offer(0, true);
    offer(kWorkspace, false);
    offer(0, false);
    return *count > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
  });
}

namespace {

/// Checks what a product is given against what its algorithm was chosen for.
bool check_product(Machine& here, const LibraryState& library, const Problem& problem, const Answer& answer,
                   const void* a, const void* b, const void* c, const void* d) {
  if (problem.product->epilogue != answer.epilogue) {
    here.violate("a product's algorithm was chosen for another epilogue");
    return false;
  }
  check_matrix(here, library, *problem.a, a, answer.a, "a product's a");
  check_matrix(here, library, *problem.b, b, answer.b, "a product's b");
  check_matrix(here, library, *problem.c, c, answer.c, "a product's c");
  check_matrix(here, library, *problem.d, d, answer.d, "a product's d");
  if (!problem.has_vector()) return true;
  const void* vector = problem.product->vector;
  if (alignment_of(vector) < answer.vector) here.violate("a product's vector is aligned worse than was said");
  return here.check_range(vector, problem.vector_bytes(), library.device, "a product's vector");
}

}  // namespace

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t on) {
  return lt_call("cublasLtMatmul", [&](Machine& here, auto&) {
    const auto* library = here.use<LibraryState>(handle, "cublasLt");
    const Problem problem(here, product, a_layout, b_layout, c_layout, d_layout);
    if (library == nullptr || !problem.fits() || algorithm == nullptr || c != d ||
        *static_cast<const float*>(alpha) != 1)
      return CUBLAS_STATUS_INVALID_VALUE;
    Answer answer;
    std::memcpy(&answer, algorithm, sizeof answer);
    if (answer.is_broken) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (workspace_bytes < answer.workspace_bytes ||
        (workspace_bytes > 0 &&
         !here.check_range(workspace, workspace_bytes, library->device, "a product's workspace")))
      return CUBLAS_STATUS_INVALID_VALUE;
    if (workspace_bytes > 0 && alignment_of(workspace) < 16) here.violate("cublasLt's workspace is not aligned");
    if (!check_product(here, *library, problem, answer, a, b, c, d)) return CUBLAS_STATUS_INVALID_VALUE;
    const auto epilogue = problem.product->epilogue;
    if (epilogue == CUBLASLT_EPILOGUE_BGRADA) return CUBLAS_STATUS_NOT_SUPPORTED;  // the backend does not ask for it
    cuda::Gemm work{problem.product->a == CUBLAS_OP_T,
                    problem.product->b == CUBLAS_OP_T,
                    problem.m,
                    problem.n,
                    problem.k,
                    a,
                    static_cast<int>(problem.a->lead),
                    b,
                    static_cast<int>(problem.b->lead),
                    *static_cast<const float*>(beta),
                    d,
                    static_cast<int>(problem.d->lead),
                    problem.a->stored(),
                    problem.d->stored()};
    if (problem.has_vector()) {
      work.epilogue = epilogue == CUBLASLT_EPILOGUE_BIAS ? cuda::Epilogue::add_bias : cuda::Epilogue::sum_b;
      work.vector = problem.product->vector;
    }
    const LibraryState onto{library->device, on};
    compute(here, onto, "cublasLtMatmul", [work] { gemm_on_host(work); }, {a, b, d, work.vector, workspace});
    return CUBLAS_STATUS_SUCCESS;
  });
}
