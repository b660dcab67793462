#pragma once
// The functions of kernel/ops/cuda/launches.hpp for a host compiler: a kernel is a loop that the stand-in queues.

#include <cstring>
#include <functional>
#include <vector>

#include "host_loops.hpp"
#include "kernel/ops/cuda/check.hpp"
#include "kernel/ops/cuda/launch_shape.hpp"

namespace ganymede::kernel::stand_in {

cudaError_t launch(const char* name, cudaStream_t stream, std::function<void()> work,
                   std::vector<std::uintptr_t> words);

/// A kernel that the stand-in's cudaLaunchCooperativeKernel takes in place of a function's address.
struct TogetherKernel {
  const char* name;
  std::function<void()> work;
  std::vector<std::uintptr_t> words;
};

/// The words of a kernel's arguments, among which are the addresses that it uses.
template <class... Arguments>
std::vector<std::uintptr_t> words_of(const Arguments&... arguments) {
  std::vector<std::uintptr_t> words;
  const auto add = [&words](const void* from, std::size_t bytes) {
    const std::size_t begin = words.size();
    words.resize(begin + bytes / sizeof(std::uintptr_t));
    std::memcpy(words.data() + begin, from, bytes / sizeof(std::uintptr_t) * sizeof(std::uintptr_t));
  };
  (add(&arguments, sizeof arguments), ...);
  return words;
}

}  // namespace ganymede::kernel::stand_in

namespace ganymede::kernel::cuda {

template <class Body>
cudaError_t launch_each(cudaStream_t stream, int, std::size_t count, const Body& body) {
  return stand_in::launch(
      "each", stream, [=] { each_on_host(count, body); }, stand_in::words_of(body));
}

/// The work of columns_kernel. Blocks come in any order: here the last first, which must not change the sums.
template <int N, class Term, class Finish, class Apply>
std::function<void()> columns_work(bool together, const ColumnShape& shape, int rows, int columns, Sums<N>* partial,
                                   ColumnBarrier* barriers, const Term& term, const Finish& finish,
                                   const Apply& apply) {
  return [=] {
    const std::size_t height = size_of(rows), width = size_of(columns), chunk_rows = size_of(shape.rows_per_chunk);
    if (shape.chunks == 1) return columns_on_host<N>(height, width, term, finish, apply);
    for (std::size_t chunk = size_of(shape.chunks); chunk-- > 0;) {
      const std::size_t first = chunk * chunk_rows, count = std::min(chunk_rows, height - first);
      for (std::size_t c = 0; c < width; ++c)
        partial[chunk * width + c] = sum_on_host<N>(count, [&](std::size_t r) { return term(first + r, c); });
    }
    for (std::size_t c = 0; c < width; ++c)
      finish(c, sum_on_host<N>(size_of(shape.chunks), [&](std::size_t chunk) { return partial[chunk * width + c]; }));
    for (int block = 0; together && block < shape.column_blocks; ++block) ++barriers[block].releases;
    for (std::size_t i = 0; together && i < height * width; ++i) apply(i / width, i % width);
  };
}

template <int N, class Term, class Finish, class Apply>
cudaError_t launch_columns(cudaStream_t stream, const ColumnShape& shape, int rows, int columns, Sums<N>* partial,
                           ColumnBarrier* barriers, const Term& term, const Finish& finish, const Apply& apply) {
  return stand_in::launch("columns", stream,
                          columns_work(false, shape, rows, columns, partial, barriers, term, finish, apply),
                          stand_in::words_of(partial, barriers, term, finish, apply));
}

template <int N, class Term, class Finish, class Apply>
cudaError_t launch_columns_together(cudaStream_t stream, const ColumnShape& shape, int rows, int columns,
                                    Sums<N>* partial, ColumnBarrier* barriers, const Term& term, const Finish& finish,
                                    const Apply& apply) {
  const stand_in::TogetherKernel kernel{
      "columns together", columns_work(true, shape, rows, columns, partial, barriers, term, finish, apply),
      stand_in::words_of(partial, barriers, term, finish, apply)};
  const dim3 grid(static_cast<unsigned>(shape.column_blocks), static_cast<unsigned>(shape.chunks));
  return cudaLaunchCooperativeKernel(&kernel, grid, dim3(kBlockColumns, kBlockRows), nullptr, 0, stream);
}
template <int N, class Term, class Finish, class Apply>
cudaError_t count_together(int* blocks, const Term&, const Finish&, const Apply&) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, static_cast<const void*>(nullptr), kThreads, 0);
}

template <int N, class Term, class Apply>
cudaError_t launch_rows(cudaStream_t stream, const RowShape&, int rows, int length, const Term& term,
                        const Apply& apply) {
  return stand_in::launch(
      "rows", stream, [=] { rows_on_host<N>(size_of(rows), size_of(length), term, apply); },
      stand_in::words_of(term, apply));
}

}  // namespace ganymede::kernel::cuda
