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

/// The sums of a block's threads over its rows of threads, for those of its first row.
template <int N>
__device__ Sums<N> sum_of_block(Sums<N> sum) {
  __shared__ float shared[kBlockRows][N][kBlockColumns];
  for (int k = 0; k < N; ++k) shared[threadIdx.y][k][threadIdx.x] = sum.of[k];
  __syncthreads();
  if (threadIdx.y == 0)
    for (int y = 1; y < kBlockRows; ++y)
      for (int k = 0; k < N; ++k) sum.of[k] += shared[y][k][threadIdx.x];
  __syncthreads();  // the next call writes there
  return sum;
}

/// Where the blocks of a barrier's columns meet. What each has written before is visible to the last one to arrive.
struct Meeting {
  bool is_last;
  unsigned releases;  ///< of the barrier, when the block came
};
__device__ inline Meeting arrive(ColumnBarrier* barrier) {
  __shared__ Meeting meeting;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    meeting.releases = *static_cast<volatile unsigned*>(&barrier->releases);
    __threadfence();
    // Counts from 0 to the number of blocks - 1 and then from 0 again, so that the next launch finds it as this one
    // did.
    meeting.is_last = atomicInc(&barrier->arrived, gridDim.y - 1) == gridDim.y - 1;
    __threadfence();
  }
  __syncthreads();
  return meeting;
}

/// The last block lets the others go on, which see what it has written.
__device__ inline void release_or_wait(ColumnBarrier* barrier, const Meeting& meeting) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    if (meeting.is_last) atomicAdd(&barrier->releases, 1U);
    while (*static_cast<volatile unsigned*>(&barrier->releases) == meeting.releases) continue;
    __threadfence();
  }
  __syncthreads();
}

/// A block of 32 columns by 8 rows of threads sums its chunk of rows. Of the blocks with the same columns the last one
/// to end adds the sums of all chunks, always in the same order, and calls `finish`. If there is a single chunk, or if
/// `Together`, each block then calls `apply` for its chunk. Blocks that run together wait for each other, so that all
/// of the grid must be resident at once.
template <int N, bool Together, class Term, class Finish, class Apply>
__global__ void __launch_bounds__(kThreads)
    columns_kernel(int rows, int columns, int rows_per_chunk, Sums<N>* partial, ColumnBarrier* barriers, Term term,
                   Finish finish, Apply apply) {
  const int column = blockIdx.x * kBlockColumns + threadIdx.x;
  const int begin = blockIdx.y * rows_per_chunk, end = min(rows, begin + rows_per_chunk);
  const bool is_column = column < columns, is_first = threadIdx.y == 0;
  Sums<N> sum;
  if (is_column)
    for (int row = begin + threadIdx.y; row < end; row += kBlockRows)
      sum += term(std::size_t(row), std::size_t(column));
  sum = sum_of_block(sum);
  const bool is_alone = gridDim.y == 1;
  Meeting meeting{true, 0};
  if (!is_alone) {
    if (is_column && is_first) partial[std::size_t{blockIdx.y} * columns + column] = sum;
    meeting = arrive(barriers + blockIdx.x);
    if (meeting.is_last) {
      sum = {};
      if (is_column)
        for (int chunk = threadIdx.y; chunk < gridDim.y; chunk += kBlockRows)
          for (int k = 0; k < N; ++k) sum.of[k] += __ldcg(&partial[std::size_t(chunk) * columns + column].of[k]);
      sum = sum_of_block(sum);
    }
  }
  if (meeting.is_last && is_column && is_first) finish(std::size_t(column), sum);
  if (!is_alone && !Together) return;
  if (is_alone)
    __syncthreads();  // now the block's other threads see what `finish` wrote
  else
    release_or_wait(barriers + blockIdx.x, meeting);
  if (is_column)
    for (int row = begin + threadIdx.y; row < end; row += kBlockRows) apply(std::size_t(row), std::size_t(column));
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

/// Launches columns_kernel. If the shape has several chunks, `apply` is not called.
template <int N, class Term, class Finish, class Apply>
cudaError_t launch_columns(cudaStream_t stream, const ColumnShape& shape, int rows, int columns, Sums<N>* partial,
                           ColumnBarrier* barriers, const Term& term, const Finish& finish, const Apply& apply) {
  const dim3 grid(static_cast<unsigned>(shape.column_blocks), static_cast<unsigned>(shape.chunks));
  columns_kernel<N, false><<<grid, dim3(kBlockColumns, kBlockRows), 0, stream>>>(
      rows, columns, shape.rows_per_chunk, partial, barriers, term, finish, apply);
  return cudaGetLastError();
}

/// Launches columns_kernel so that its blocks run together. The grid must have at most as many blocks as
/// count_together() gives for each multiprocessor.
template <int N, class Term, class Finish, class Apply>
cudaError_t launch_columns_together(cudaStream_t stream, const ColumnShape& shape, int rows, int columns,
                                    Sums<N>* partial, ColumnBarrier* barriers, const Term& term, const Finish& finish,
                                    const Apply& apply) {
  const dim3 grid(static_cast<unsigned>(shape.column_blocks), static_cast<unsigned>(shape.chunks));
  int rows_per_chunk = shape.rows_per_chunk;
  void* arguments[] = {&rows,
                       &columns,
                       &rows_per_chunk,
                       &partial,
                       &barriers,
                       const_cast<Term*>(&term),
                       const_cast<Finish*>(&finish),
                       const_cast<Apply*>(&apply)};
  const auto kernel = reinterpret_cast<const void*>(&columns_kernel<N, true, Term, Finish, Apply>);
  return cudaLaunchCooperativeKernel(kernel, grid, dim3(kBlockColumns, kBlockRows), arguments, 0, stream);
}
/// Blocks of launch_columns_together() that a multiprocessor can hold at once.
template <int N, class Term, class Finish, class Apply>
cudaError_t count_together(int* blocks, const Term&, const Finish&, const Apply&) {
  const auto kernel = reinterpret_cast<const void*>(&columns_kernel<N, true, Term, Finish, Apply>);
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, kThreads, 0);
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
