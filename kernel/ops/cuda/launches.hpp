#pragma once
// The kernels: each spreads the calls of a function object over a GPU's threads. launch_shape.hpp says how many there
// are. The functions launch_* are all that the rest of the backend knows of them; tests/kernel/cuda_stand_in has others
// of the same names, which run on the CPU.

#include <cuda_runtime.h>

#include "kernel/ops/cuda/launch_shape.hpp"
#include "kernel/ops/cuda/portable.hpp"

namespace ganymede::kernel::cuda {

/// Calls body(i) for every i below `count`.
template <class Body>
__global__ void __launch_bounds__(kThreads) each_kernel(std::size_t count, Body body) {
  const std::size_t stride = std::size_t{gridDim.x} * kThreads;
  for (std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += stride) body(i);
}

/// A block of 32 columns by 8 rows of threads sums its chunk of rows. If there is a single chunk, it also calls
/// `finish` and `apply`.
template <int N, class Term, class Finish, class Apply>
__global__ void __launch_bounds__(kThreads)
    columns_kernel(int rows, int columns, int rows_per_chunk, Sums<N>* partial, Term term, Finish finish, Apply apply) {
  __shared__ float shared[kBlockRows][N][kBlockColumns];
  const int column = blockIdx.x * kBlockColumns + threadIdx.x;
  const int begin = blockIdx.y * rows_per_chunk, end = min(rows, begin + rows_per_chunk);
  Sums<N> sum;
  if (column < columns)
    for (int row = begin + threadIdx.y; row < end; row += kBlockRows)
      sum += term(std::size_t(row), std::size_t(column));
  for (int k = 0; k < N; ++k) shared[threadIdx.y][k][threadIdx.x] = sum.of[k];
  __syncthreads();
  const bool last = gridDim.y == 1;
  if (threadIdx.y == 0 && column < columns) {
    for (int y = 1; y < kBlockRows; ++y)
      for (int k = 0; k < N; ++k) sum.of[k] += shared[y][k][threadIdx.x];
    if (last)
      finish(std::size_t(column), sum);
    else
      partial[std::size_t{blockIdx.y} * columns + column] = sum;
  }
  if (!last) return;
  __syncthreads();  // now the block's other threads see what `finish` wrote
  if (column < columns)
    for (int row = threadIdx.y; row < rows; row += kBlockRows) apply(std::size_t(row), std::size_t(column));
}

/// Adds the partial sums of the chunks of each column and calls `finish`.
template <int N, class Finish>
__global__ void __launch_bounds__(kThreads)
    finish_kernel(int columns, int chunks, const Sums<N>* partial, Finish finish) {
  const int column = blockIdx.x * kThreads + threadIdx.x;
  if (column >= columns) return;
  Sums<N> sum;
  for (int chunk = 0; chunk < chunks; ++chunk) sum += partial[std::size_t(chunk) * columns + column];
  finish(std::size_t(column), sum);
}

/// The sum over the threads of a warp, in each of them.
template <int N>
__device__ Sums<N> sum_of_warp(Sums<N> sum) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    for (int k = 0; k < N; ++k) sum.of[k] += __shfl_xor_sync(0xffffffffU, sum.of[k], offset);
  return sum;
}

/// One group of `Threads` threads, a warp or a block, sums each row and then calls `apply` for its elements.
template <int N, int Threads, class Term, class Apply>
__global__ void __launch_bounds__(kThreads) rows_kernel(int rows, int length, Term term, Apply apply) {
  const int row = blockIdx.x * (kThreads / Threads) + threadIdx.x / Threads, lane = threadIdx.x % Threads;
  if (row >= rows) return;  // whole groups leave together, so the synchronisations below are complete
  Sums<N> sum;
  for (int i = lane; i < length; i += Threads) sum += term(std::size_t(row), std::size_t(i));
  sum = sum_of_warp(sum);
  if (Threads > kWarp) {
    __shared__ float shared[kThreads / kWarp][N];
    if (threadIdx.x % kWarp == 0)
      for (int k = 0; k < N; ++k) shared[threadIdx.x / kWarp][k] = sum.of[k];
    __syncthreads();
    sum = {};
    for (int warp = 0; warp < Threads / kWarp; ++warp)
      for (int k = 0; k < N; ++k) sum.of[k] += shared[warp][k];
  }
  for (int i = lane; i < length; i += Threads) apply(std::size_t(row), std::size_t(i), sum);
}

/// Launches each_kernel.
template <class Body>
cudaError_t launch_each(cudaStream_t stream, int multiprocessors, std::size_t count, const Body& body) {
  each_kernel<<<blocks_of_each(count, multiprocessors), kThreads, 0, stream>>>(count, body);
  return cudaGetLastError();
}

/// Launches columns_kernel. If the shape has several chunks, launch_finish must follow.
template <int N, class Term, class Finish, class Apply>
cudaError_t launch_columns(cudaStream_t stream, const ColumnShape& shape, int rows, int columns, Sums<N>* partial,
                           const Term& term, const Finish& finish, const Apply& apply) {
  const dim3 grid(static_cast<unsigned>(shape.column_blocks), static_cast<unsigned>(shape.chunks));
  columns_kernel<N><<<grid, dim3(kBlockColumns, kBlockRows), 0, stream>>>(rows, columns, shape.rows_per_chunk, partial,
                                                                          term, finish, apply);
  return cudaGetLastError();
}

template <int N, class Finish>
cudaError_t launch_finish(cudaStream_t stream, int columns, int chunks, const Sums<N>* partial, const Finish& finish) {
  finish_kernel<N><<<divide_up(static_cast<std::size_t>(columns), kThreads), kThreads, 0, stream>>>(columns, chunks,
                                                                                                    partial, finish);
  return cudaGetLastError();
}

template <int N, class Term, class Apply>
cudaError_t launch_rows(cudaStream_t stream, const RowShape& shape, int rows, int length, const Term& term,
                        const Apply& apply) {
  if (shape.block_a_row)
    rows_kernel<N, kThreads><<<shape.blocks, kThreads, 0, stream>>>(rows, length, term, apply);
  else
    rows_kernel<N, kWarp><<<shape.blocks, kThreads, 0, stream>>>(rows, length, term, apply);
  return cudaGetLastError();
}

}  // namespace ganymede::kernel::cuda
