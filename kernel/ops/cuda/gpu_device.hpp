#pragma once
// A GPU as the Device of Timeline (timeline.hpp): memory, streams, libraries, launches.

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "kernel/ops/cuda/convolution_plan.hpp"
#include "kernel/ops/cuda/fused_convolution.hpp"
#include "kernel/ops/cuda/handles.hpp"
#include "kernel/ops/cuda/launch_shape.hpp"
#include "kernel/ops/cuda/product_plan.hpp"
#include "kernel/ops/device_timeline.hpp"
#ifdef __CUDACC__
#include "kernel/ops/cuda/launches.hpp"
#else
#include "host_launches.hpp"  // of tests/kernel/cuda_stand_in
#endif

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
  Buffer allocate_host(std::size_t bytes);  ///< zeroed memory of the host that copies do not have to stage
  void to_host(void* to, const void* from, std::size_t bytes);    ///< waits until the data has arrived
  void to_device(void* to, const void* from, std::size_t bytes);  ///< waits until `from` may be changed
  void synchronize();

  template <class Body>
  void each(std::size_t count, const Body& body) {
    if (count == 0) return;
    GANYMEDE_CUDA(launch_each(stream_.get(), multiprocessors_, count, body));
    ++launched_;
  }
  template <int N, class Term, class Finish, class Apply>
  void columns(int rows, int columns, const Term& term, const Finish& finish, const Apply& apply) {
    const int most = multiprocessors_ * kBlocksPerMultiprocessor;
    ColumnShape shape = shape_of_columns(rows, columns, N, most);
    auto* partial = reinterpret_cast<Sums<N>*>(partials_.floats());
    auto* barriers = static_cast<ColumnBarrier*>(barriers_.memory.get());
    ++launched_;
    const bool applies = !std::is_same_v<Apply, NoApply>;
    if (shape.chunks > 1 && applies && runs_together_) {
      int resident = 0;
      GANYMEDE_CUDA(count_together<N>(&resident, term, finish, apply));
      shape = shape_of_columns(rows, columns, N, std::min(most, multiprocessors_ * resident));
      if (shape.chunks > 1) {
        GANYMEDE_CUDA(
            launch_columns_together<N>(stream_.get(), shape, rows, columns, partial, barriers, term, finish, apply));
        return;
      }
    }
    GANYMEDE_CUDA(launch_columns<N>(stream_.get(), shape, rows, columns, partial, barriers, term, finish, apply));
    if (shape.chunks > 1) apply_to_all(rows, columns, apply);
  }
  void apply_to_all(int, int, const NoApply&) {}
  template <class Apply>
  void apply_to_all(int rows, int columns, const Apply& apply) {
    const Divisor width(static_cast<std::size_t>(columns));
    each(width * static_cast<std::size_t>(rows), [=] GANYMEDE_DEVICE(std::size_t i) { apply(i / width, i % width); });
  }
  template <int N, class Term, class Apply>
  void rows(int rows, int length, const Term& term, const Apply& apply) {
    GANYMEDE_CUDA(launch_rows<N>(stream_.get(), shape_of_rows(rows, length), rows, length, term, apply));
    ++launched_;
  }

  void gemm(const Gemm& call);
  void convolve(const ConvolutionCall& call, const Buffer& workspace);
  std::size_t convolution_workspace_bytes(const ConvolutionShape& shape, int batch);

  /// Copies to device memory through pinned memory, on a stream of its own. Kernels launched later wait for the copy.
  StagedImages stage(const void* from, std::size_t bytes);

  // A captured step is a CUDA graph.
  void begin_capture();
  // Two captured steps are kept, for example one with events and one without; `which` is 0 or 1.
  void end_capture(int which);
  void discard_capture();  ///< ends a capture that has begun and destroys the captured graphs
  void replay(int which);
  void mark_end(std::size_t slot);   ///< slot is below kStepsAhead
  void await_end(std::size_t slot);  ///< waits for what was called before mark_end(slot)
  /// Kernels since construction; a call of cuBLAS or cuDNN counts as one.
  std::int64_t launched() const { return launched_; }

  /// Records event i on the stream.
  void mark(std::size_t i);
  /// Seconds from event 0 to event i.
  double mark_s(std::size_t i) const;

  /// Makes this GPU one rank of an NCCL communicator; all replicas must call it.
  void join(Communicator& communicator);
  void reduce(float* gradients, std::size_t count);
  void gather(const std::uint8_t* mine, std::uint8_t* all, std::size_t bytes);
  void finish_reductions();
  /// Leaves the communicator; see GradientReducer.
  void leave() noexcept;

 private:
  /// The plan of this pass, made when it is first asked for. Throws Infeasible if the batch is too large for cuDNN.
  ConvolutionPlan& plan_of(Pass pass, const ConvolutionShape& shape, int batch);
  /// The GPU, cuDNN's version and the precision, with which the keys of choices begin.
  std::string name_of_choices() const;
  /// Makes the plan take the fastest of its algorithms, which it times unless the choice is kept already.
  void choose_algorithm(ConvolutionPlan& plan, Pass pass, const ConvolutionShape& shape, int batch);
  /// Bytes of the workspace of a pass: cuDNN's and, where the result is converted, the result's.
  std::size_t workspace_bytes_of(const ConvolutionPlan& plan, Pass pass, const ConvolutionShape& shape) const;
  /// Times them as two kernels and by the first engines.
  std::vector<TimedAlgorithm> time_fused(FusedConvolution& plan, const ConvolutionCall& call, const Buffer& workspace);
  /// A plan by which a convolution and what follows are one kernel; null: two kernels are faster, or there is no plan.
  std::unique_ptr<FusedConvolution> plan_fused(const ConvolutionCall& call, const Buffer& workspace);
  /// Runs a convolution and what follows as one kernel. Returns false if cuDNN has none; then nothing was computed.
  bool convolve_fused(const ConvolutionCall& call, const Buffer& workspace);
  /// Runs them as two kernels.
  void convolve_in_steps(const ConvolutionCall& call, const Buffer& workspace);
  /// Runs a convolution without cuDNN, which has no algorithm for it.
  void convolve_slowly(const ConvolutionPlan& plan, const ConvolutionCall& call);
  /// Makes later calls on the stream of reductions wait for the kernels launched so far.
  void begin_reduction();
  /// Waits until `query` reports success, and looks at the other replicas meanwhile.
  template <class Query>
  void poll(const Query& query);
  void check_extents(const ConvolutionShape& shape, int batch) const;
  /// Waits until NCCL is done with what it has begun. Throws Failure if that fails or another replica has failed.
  void settle(ncclResult_t state);
  /// Throws Failure if another replica has failed or NCCL reports an error. Waiting would then never end.
  void check_replicas();
  void abort_replica() noexcept;

  Precision precision_ = Precision::fp32;
  std::string name_, bus_id_;
  int major_ = 0, minor_ = 0, multiprocessors_ = 1;
  bool runs_together_ = false;  ///< the GPU can launch a kernel whose blocks wait for each other
  std::int64_t launched_ = 0;
  int exceptions_ = 0;  ///< that were being handled at construction
  // Members are destroyed from the last to the first, so that nothing outlives what it uses.
  Stream stream_, copies_, reductions_;
  Buffer partials_, barriers_, cublas_workspace_;
  CublasHandle cublas_;
  CublasLtHandle cublas_lt_;
  CudnnHandle cudnn_;
  AlgorithmChoices* choices_;
  KeptPlans* kept_plans_;
  int least_fused_outputs_;
  std::map<std::vector<int>, std::unique_ptr<ConvolutionPlan>> plans_;
  std::map<std::vector<int>, std::unique_ptr<FusedConvolution>> fused_plans_;
  std::map<std::vector<int>, std::unique_ptr<ProductPlan>> product_plans_;

  // Staged images: slots of stride_ bytes in pinned memory and on the device.
  PinnedMemory pinned_images_;
  Buffer staging_;
  std::vector<Event> staged_;
  std::size_t stride_ = 0, next_slot_ = 0;

  std::vector<Event> marks_;
  Event ends_[kStepsAhead];
  PinnedMemory pinned_results_;

  Communicator* communicator_ = nullptr;
  ncclComm_t nccl_ = nullptr;  ///< null: not joined, or left; leave() and abort_replica() end it
  Event computed_, reduced_;

  GraphExec graphs_[2];
  bool capturing_ = false;
};

}  // namespace ganymede::kernel::cuda
