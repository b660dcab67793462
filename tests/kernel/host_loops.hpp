#pragma once
// The GPU backend's kernels and products as loops on the CPU. A kernel's threads are the iterations of a loop, products
// follow their definition, sums are taken in double precision.

#include <cstddef>

#include "kernel/ops/cuda/device_calls.hpp"

namespace ganymede::kernel {

template <int N, class Term>
cuda::Sums<N> sum_on_host(std::size_t count, const Term& term) {
  double sums[N] = {};
  for (std::size_t i = 0; i < count; ++i) {
    const cuda::Sums<N> one = term(i);
    for (int k = 0; k < N; ++k) sums[k] += static_cast<double>(one.of[k]);
  }
  cuda::Sums<N> all;
  for (int k = 0; k < N; ++k) all.of[k] = static_cast<float>(sums[k]);
  return all;
}

template <class Body>
void each_on_host(std::size_t count, const Body& body) {
  for (std::size_t i = 0; i < count; ++i) body(i);
}

template <int N, class Term, class Finish, class Apply>
void columns_on_host(std::size_t rows, std::size_t columns, const Term& term, const Finish& finish,
                     const Apply& apply) {
  for (std::size_t c = 0; c < columns; ++c) {
    finish(c, sum_on_host<N>(rows, [&](std::size_t r) { return term(r, c); }));
    for (std::size_t r = 0; r < rows; ++r) apply(r, c);
  }
}

template <int N, class Term, class Apply>
void rows_on_host(std::size_t rows, std::size_t length, const Term& term, const Apply& apply) {
  for (std::size_t r = 0; r < rows; ++r) {
    const cuda::Sums<N> sums = sum_on_host<N>(length, [&](std::size_t i) { return term(r, i); });
    for (std::size_t i = 0; i < length; ++i) apply(r, i, sums);
  }
}

/// A product whose operands are stored as `From` and whose result as `To`.
template <class From, class To>
void multiply_on_host(const cuda::Gemm& g) {
  const auto at = [](const void* matrix, int lead, bool transposed, int row, int column) {
    const auto i = transposed ? std::ptrdiff_t{row} * lead + column : std::ptrdiff_t{column} * lead + row;
    return static_cast<double>(static_cast<float>(static_cast<const From*>(matrix)[i]));
  };
  for (int j = 0; j < g.n; ++j)
    for (int i = 0; i < g.m; ++i) {
      double sum = 0;
      for (int k = 0; k < g.k; ++k)
        sum += at(g.a, g.a_lead, g.transpose_a, i, k) * at(g.b, g.b_lead, g.transpose_b, k, j);
      To& c = static_cast<To*>(g.c)[std::ptrdiff_t{j} * g.c_lead + i];
      c = static_cast<float>(sum) + (g.beta == 0 ? 0.0F : g.beta * static_cast<float>(c));
      if (g.epilogue == cuda::Epilogue::add_bias) c += static_cast<float>(static_cast<const To*>(g.vector)[i]);
    }
  if (g.epilogue != cuda::Epilogue::sum_b) return;
  for (int j = 0; j < g.n; ++j)
    static_cast<To*>(g.vector)[j] =
        sum_on_host<1>(static_cast<std::size_t>(g.k), [&](std::size_t k) {
          return cuda::Sums<1>{{static_cast<float>(at(g.b, g.b_lead, g.transpose_b, static_cast<int>(k), j))}};
        }).of[0];
}

inline void gemm_on_host(const cuda::Gemm& g) {
  if (g.operands == ElementType::fp32) return multiply_on_host<float, float>(g);
  if (g.result == ElementType::fp32) return multiply_on_host<Bf16, float>(g);
  multiply_on_host<Bf16, Bf16>(g);
}

}  // namespace ganymede::kernel
