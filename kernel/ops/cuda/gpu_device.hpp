#pragma once
// A GPU as the Device of Timeline (timeline.hpp): memory, streams, libraries, launches.

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "kernel/ops/cuda/check.hpp"
#include "kernel/ops/cuda/convolution_plan.hpp"
#include "kernel/ops/cuda/launches.hpp"

namespace ganymede::kernel::cuda {

class GpuDevice {
 public:
  /// Opens options.device. Throws Failure if CUDA fails, Infeasible if memory is short, and ConfigError if the GPU does
  /// not have the precision.
  explicit GpuDevice(const CudaOptions& options);
  ~GpuDevice();
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;

  std::string name() const { return name_; }
  std::string instructions() const;
  std::string bus_id() const { return bus_id_; }
  std::string precision() const { return std::string(kPrecisionNames[static_cast<std::size_t>(precision_)]); }
  double available_bytes() const;
  /// Returns zeroed memory. Throws Infeasible if there is not enough; the message says how much is free.
  Buffer allocate(std::size_t bytes);
  void to_host(void* to, const void* from, std::size_t bytes);    ///< waits until the data has arrived
  void to_device(void* to, const void* from, std::size_t bytes);  ///< waits until `from` may be changed
  void synchronize();

  template <class Body>
  void each(std::size_t count, const Body& body) {
    if (count == 0) return;
    each_kernel<<<blocks_of_each(count, multiprocessors_), kThreads, 0, stream_>>>(count, body);
    GANYMEDE_CUDA(cudaGetLastError());
  }
  template <int N, class Term, class Finish, class Apply>
  void columns(int rows, int columns, const Term& term, const Finish& finish, const Apply& apply) {
    const ColumnShape shape = shape_of_columns(rows, columns, N, multiprocessors_);
    auto* partial = reinterpret_cast<Sums<N>*>(partials_.floats());
    const dim3 grid(static_cast<unsigned>(shape.column_blocks), static_cast<unsigned>(shape.chunks));
    columns_kernel<N><<<grid, dim3(kBlockColumns, kBlockRows), 0, stream_>>>(rows, columns, shape.rows_per_chunk,
                                                                             partial, term, finish, apply);
    GANYMEDE_CUDA(cudaGetLastError());
    if (shape.chunks == 1) return;
    finish_kernel<N><<<divide_up(static_cast<std::size_t>(columns), kThreads), kThreads, 0, stream_>>>(
        columns, shape.chunks, partial, finish);
    GANYMEDE_CUDA(cudaGetLastError());
    apply_to_all(rows, columns, apply);
  }
  void apply_to_all(int, int, const NoApply&) {}
  template <class Apply>
  void apply_to_all(int rows, int columns, const Apply& apply) {
    const std::size_t width = static_cast<std::size_t>(columns);
    each(width * static_cast<std::size_t>(rows), [=] GANYMEDE_DEVICE(std::size_t i) { apply(i / width, i % width); });
  }
  template <int N, class Term, class Apply>
  void rows(int rows, int length, const Term& term, const Apply& apply) {
    const RowShape shape = shape_of_rows(rows, length);
    if (shape.block_a_row)
      rows_kernel<N, kThreads><<<shape.blocks, kThreads, 0, stream_>>>(rows, length, term, apply);
    else
      rows_kernel<N, kWarp><<<shape.blocks, kThreads, 0, stream_>>>(rows, length, term, apply);
    GANYMEDE_CUDA(cudaGetLastError());
  }

  void gemm(const Gemm& call);
  void convolve(const ConvolutionCall& call, const Buffer& workspace);
  std::size_t convolution_workspace_bytes(const ConvolutionShape& shape, int batch) const;

  /// Copies to device memory through pinned memory, on a stream of its own. Kernels launched later wait for the copy.
  StagedImages stage(const void* from, std::size_t bytes);

  // A captured step is a CUDA graph. replay() first copies the words of the step to `device_words`.
  void begin_capture();
  void end_capture();
  void replay(void* device_words, const void* words, std::size_t bytes);

  /// Records event i on the stream.
  void mark(std::size_t i);
  /// Seconds from event 0 to event i.
  double mark_s(std::size_t i) const;

  /// Makes this GPU one rank of an NCCL communicator; all replicas must call it.
  void join(Communicator& communicator);
  void reduce(float* gradients, std::size_t count);
  void finish_reductions();

 private:
  /// The plan of this pass, made when it is first asked for.
  const ConvolutionPlan& plan_of(Pass pass, const ConvolutionShape& shape, int batch) const;

  Precision precision_ = Precision::fp32;
  std::string name_, bus_id_;
  int major_ = 0, minor_ = 0, multiprocessors_ = 1;
  cudaStream_t stream_ = nullptr, copies_ = nullptr;
  cublasHandle_t cublas_ = nullptr;
  cudnnHandle_t cudnn_ = nullptr;
  Buffer partials_, cublas_workspace_;
  mutable std::map<std::vector<int>, std::unique_ptr<ConvolutionPlan>> plans_;

  // Staged images: slots of stride_ bytes in pinned memory and on the device.
  std::uint8_t* pinned_ = nullptr;
  Buffer staging_;
  std::vector<cudaEvent_t> staged_;
  std::size_t stride_ = 0, next_slot_ = 0;

  std::vector<cudaEvent_t> marks_;

  Communicator* communicator_ = nullptr;
  ncclComm_t nccl_ = nullptr;
  cudaStream_t reductions_ = nullptr;
  cudaEvent_t computed_ = nullptr, reduced_ = nullptr;

  void* pinned_words_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
  bool capturing_ = false;
};

}  // namespace ganymede::kernel::cuda
