#include <cstdio>
#include <thread>

#include "kernel/compression_codes.hpp"
#include "kernel/ops/cuda/direct_convolution.hpp"
#include "kernel/ops/cuda/gpu_device.hpp"

namespace ganymede::kernel::cuda {
namespace {

constexpr std::size_t kCublasWorkspace = std::size_t{32} << 20;
constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::string text_of(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

cublasComputeType_t compute_of(Precision precision) {
  switch (precision) {
    case Precision::tf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Precision::bf16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
    case Precision::fp32:
      break;
  }
  return CUBLAS_COMPUTE_32F;
}

/// Numbers of elements of a convolution's operands.
struct Operands {
  std::size_t x, y, weight;
};

Operands operands_of(const ConvolutionShape& shape, int batch) {
  const auto images = static_cast<std::size_t>(batch);
  return {static_cast<std::size_t>(shape.in_features()) * images,
          static_cast<std::size_t>(shape.out_features()) * images, shape.weights()};
}

}  // namespace

GpuDevice::GpuDevice(const CudaOptions& options) {
  GANYMEDE_CUDA(cudaSetDevice(options.device));
  cudaDeviceProp properties;
  GANYMEDE_CUDA(cudaGetDeviceProperties(&properties, options.device));
  name_ = properties.name;
  char bus_id[32] = {};
  GANYMEDE_CUDA(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, options.device));
  bus_id_ = bus_id;
  major_ = properties.major;
  minor_ = properties.minor;
  multiprocessors_ = properties.multiProcessorCount;
  precision_ = options.precision.value_or(major_ >= 8 ? Precision::tf32 : Precision::fp32);
  if (precision_ != Precision::fp32 && major_ < 8)
    throw ConfigError("--precision: found " + precision() + ", expected fp32 on " + name_ +
                      ": only Ampere GPUs and later have the others");
  GANYMEDE_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  GANYMEDE_CUDA(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking));
  partials_ = allocate(kPartials * sizeof(float));
  cublas_workspace_ = allocate(kCublasWorkspace);
  GANYMEDE_CUDA(cublasCreate(&cublas_));
  GANYMEDE_CUDA(cublasSetStream(cublas_, stream_));
  // Without a workspace cuBLAS would allocate memory, which a captured step must not do.
  GANYMEDE_CUDA(cublasSetWorkspace(cublas_, cublas_workspace_.memory.get(), kCublasWorkspace));
  GANYMEDE_CUDA(cudnnCreate(&cudnn_));
  GANYMEDE_CUDA(cudnnSetStream(cudnn_, stream_));
  GANYMEDE_CUDA(cudaMallocHost(&pinned_words_, kMaxStepWords * sizeof(std::uint32_t)));
  staged_.resize(static_cast<std::size_t>(options.loads_a_step) + 1);
  for (cudaEvent_t& event : staged_) GANYMEDE_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
}

// Errors are ignored, because a destructor cannot report them.
GpuDevice::~GpuDevice() {
  if (reductions_ != nullptr) {
    if (nccl_ != nullptr && communicator_->abandoned()) {
      ncclCommAbort(nccl_);
    } else if (nccl_ != nullptr) {
      cudaStreamSynchronize(reductions_);
      ncclCommDestroy(nccl_);
    }
    cudaEventDestroy(reduced_);
    cudaEventDestroy(computed_);
    cudaStreamDestroy(reductions_);
  }
  cudaStreamSynchronize(stream_);
  plans_.clear();
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  for (cudaEvent_t event : staged_) cudaEventDestroy(event);
  for (cudaEvent_t event : marks_) cudaEventDestroy(event);
  cudaFreeHost(pinned_);
  cudaFreeHost(pinned_words_);
  cudnnDestroy(cudnn_);
  cublasDestroy(cublas_);
  cudaStreamDestroy(copies_);
  cudaStreamDestroy(stream_);
}

std::string GpuDevice::instructions() const {
  return "sm_" + std::to_string(major_) + std::to_string(minor_) + ", " + precision();
}

double GpuDevice::available_bytes() const {
  std::size_t free = 0, total = 0;
  GANYMEDE_CUDA(cudaMemGetInfo(&free, &total));
  return static_cast<double>(free);
}

Buffer GpuDevice::allocate(std::size_t bytes) {
  void* memory = nullptr;
  const std::size_t wanted = std::max<std::size_t>(bytes, 1);
  const cudaError_t status = cudaMalloc(&memory, wanted);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears the error, which the next launch would report
    throw Infeasible(name_ + " has not got " + text_of(bytes) + " of memory: " +
                     text_of(static_cast<std::size_t>(available_bytes())) + " are free; a smaller --batch would fit");
  }
  GANYMEDE_CUDA(status);
  GANYMEDE_CUDA(cudaMemsetAsync(memory, 0, wanted, stream_));
  return {{memory, {[](void* data, std::size_t) { cudaFree(data); }, bytes, nullptr}}};
}

void GpuDevice::to_host(void* to, const void* from, std::size_t bytes) {
  GANYMEDE_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_));
  synchronize();
}

void GpuDevice::to_device(void* to, const void* from, std::size_t bytes) {
  GANYMEDE_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
  synchronize();  // the caller may now free `from`
}

void GpuDevice::synchronize() {
  if (nccl_ == nullptr) {
    GANYMEDE_CUDA(cudaStreamSynchronize(stream_));
    return;
  }
  // If a replica has failed, the stream would wait for ever in a reduction.
  for (;;) {
    const cudaError_t status = cudaStreamQuery(stream_);
    if (status != cudaErrorNotReady) {
      GANYMEDE_CUDA(status);
      return;
    }
    if (communicator_->abandoned()) {
      ncclCommAbort(nccl_);
      nccl_ = nullptr;
      throw Failure("another replica has failed");
    }
    std::this_thread::yield();
  }
}

void GpuDevice::gemm(const Gemm& g) {
  const float one = 1;
  const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  GANYMEDE_CUDA(cublasGemmEx(cublas_, operation(g.transpose_a), operation(g.transpose_b), g.m, g.n, g.k, &one, g.a,
                             CUDA_R_32F, g.a_lead, g.b, CUDA_R_32F, g.b_lead, &g.beta, g.c, CUDA_R_32F, g.c_lead,
                             compute_of(precision_), CUBLAS_GEMM_DEFAULT));
}

const ConvolutionPlan& GpuDevice::plan_of(Pass pass, const ConvolutionShape& s, int batch) const {
  const std::vector<int> key{static_cast<int>(pass), batch,           s.in_channels, s.in_height, s.in_width,
                             s.out_channels,         s.kernel,        s.stride,      s.padding,   s.in_frames,
                             s.kernel_frames,        s.padding_frames};
  auto& plan = plans_[key];
  if (plan != nullptr) return *plan;
  plan = std::make_unique<ConvolutionPlan>(cudnn_, pass, s, batch, precision_);
  if (!plan->found())
    std::fprintf(stderr,
                 "ganymede: cuDNN has no %s algorithm for a convolution of %d to %d channels at %dx%d: a slow kernel "
                 "stands in\n",
                 precision().c_str(), s.in_channels, s.out_channels, s.in_height, s.in_width);
  return *plan;
}

std::size_t GpuDevice::convolution_workspace_bytes(const ConvolutionShape& shape, int batch) const {
  std::size_t largest = 0;
  for (const Pass pass : {Pass::forward, Pass::data, Pass::weights})
    largest = std::max(largest, plan_of(pass, shape, batch).workspace_bytes());
  if (precision_ != Precision::bf16) return largest;
  const Operands operands = operands_of(shape, batch);
  return aligned(largest) + aligned(2 * operands.x) + aligned(2 * operands.y) + aligned(2 * operands.weight);
}

void GpuDevice::convolve(const ConvolutionCall& call, const Buffer& workspace) {
  const ConvolutionPlan& plan = plan_of(call.pass, call.shape, call.batch);
  if (!plan.found()) return convolve_directly(*this, call);
  auto* free = static_cast<std::byte*>(workspace.memory.get());
  if (precision_ != Precision::bf16)
    return plan.run(cudnn_, call.x, call.y, call.weight, call.accumulate ? 1.0F : 0.0F, free);
  // Rounds the operands to bf16 in the workspace; the result is converted back to fp32.
  const Operands operands = operands_of(call.shape, call.batch);
  std::byte* at = free + aligned(plan.workspace_bytes());
  const auto take = [&](const float* from, std::size_t count, bool is_operand) {
    auto* half = reinterpret_cast<std::uint16_t*>(at);
    at += aligned(2 * count);
    if (is_operand) each(count, [=] GANYMEDE_DEVICE(std::size_t i) { half[i] = to_bf16(from[i]); });
    return half;
  };
  std::uint16_t* x = take(call.x, operands.x, call.pass != Pass::data);
  std::uint16_t* y = take(call.y, operands.y, call.pass != Pass::forward);
  std::uint16_t* weight = take(call.weight, operands.weight, call.pass != Pass::weights);
  plan.run(cudnn_, x, y, weight, 0, free);
  const auto back = [&](float* to, const std::uint16_t* half, std::size_t count, bool accumulate) {
    each(count, [=] GANYMEDE_DEVICE(std::size_t i) { to[i] = (accumulate ? to[i] : 0.0F) + from_bf16(half[i]); });
  };
  if (call.pass == Pass::forward) back(call.y, y, operands.y, false);
  if (call.pass == Pass::data) back(call.x, x, operands.x, false);
  if (call.pass == Pass::weights) back(call.weight, weight, operands.weight, call.accumulate);
}

StagedImages GpuDevice::stage(const void* from, std::size_t bytes) {
  if (bytes > stride_) {
    if (capturing_) throw Failure("a captured step cannot load larger images than the one before it");
    GANYMEDE_CUDA(cudaStreamSynchronize(copies_));
    synchronize();
    GANYMEDE_CUDA(cudaFreeHost(pinned_));
    pinned_ = nullptr;
    stride_ = aligned(bytes);
    GANYMEDE_CUDA(cudaMallocHost(reinterpret_cast<void**>(&pinned_), stride_ * staged_.size()));
    staging_ = {};
    staging_ = allocate(stride_ * staged_.size());
    synchronize();
  }
  const std::size_t slot = next_slot_++ % staged_.size();
  auto* device = static_cast<std::uint8_t*>(staging_.memory.get());
  // A slot is used again only after a step's losses were read, so no kernel still reads it.
  GANYMEDE_CUDA(cudaEventSynchronize(staged_[slot]));
  std::memcpy(pinned_ + slot * stride_, from, bytes);
  GANYMEDE_CUDA(
      cudaMemcpyAsync(device + slot * stride_, pinned_ + slot * stride_, bytes, cudaMemcpyHostToDevice, copies_));
  GANYMEDE_CUDA(cudaEventRecord(staged_[slot], copies_));
  // A captured stream cannot wait for one that is not captured, so the host waits; the graph runs only after that.
  if (capturing_)
    GANYMEDE_CUDA(cudaEventSynchronize(staged_[slot]));
  else
    GANYMEDE_CUDA(cudaStreamWaitEvent(stream_, staged_[slot], 0));
  return {device, slot, stride_};
}

void GpuDevice::begin_capture() {
  synchronize();
  GANYMEDE_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
  capturing_ = true;
}

void GpuDevice::end_capture() {
  capturing_ = false;
  cudaGraph_t graph = nullptr;
  GANYMEDE_CUDA(cudaStreamEndCapture(stream_, &graph));
  if (graph_ != nullptr) GANYMEDE_CUDA(cudaGraphExecDestroy(graph_));
  graph_ = nullptr;
  GANYMEDE_CUDA(cudaGraphInstantiate(&graph_, graph, 0));
  GANYMEDE_CUDA(cudaGraphDestroy(graph));
}

void GpuDevice::replay(void* device_words, const void* words, std::size_t bytes) {
  // pinned_words_ is free: its last copy was done when the last step's losses were read.
  std::memcpy(pinned_words_, words, bytes);
  if (bytes > 0) GANYMEDE_CUDA(cudaMemcpyAsync(device_words, pinned_words_, bytes, cudaMemcpyHostToDevice, stream_));
  GANYMEDE_CUDA(cudaGraphLaunch(graph_, stream_));
}

void GpuDevice::mark(std::size_t i) {
  while (marks_.size() <= i) GANYMEDE_CUDA(cudaEventCreate(&marks_.emplace_back()));
  // In a captured step an external event is recorded at each replay and can be read afterwards.
  GANYMEDE_CUDA(
      cudaEventRecordWithFlags(marks_[i], stream_, capturing_ ? cudaEventRecordExternal : cudaEventRecordDefault));
}

double GpuDevice::mark_s(std::size_t i) const {
  float milliseconds = 0;
  GANYMEDE_CUDA(cudaEventElapsedTime(&milliseconds, marks_[0], marks_[i]));
  return 1e-3 * static_cast<double>(milliseconds);
}

void GpuDevice::join(Communicator& communicator) {
  const Shard shard = communicator.shard();
  ncclUniqueId id{};
  if (shard.rank == 0) GANYMEDE_CUDA(ncclGetUniqueId(&id));
  std::vector<std::uint8_t> all(sizeof id * static_cast<std::size_t>(shard.ranks));
  communicator.gather_gradients({reinterpret_cast<const std::uint8_t*>(&id), sizeof id}, all);
  std::memcpy(&id, all.data(), sizeof id);  // the id of the first replica
  communicator_ = &communicator;
  GANYMEDE_CUDA(ncclCommInitRank(&nccl_, shard.ranks, id, shard.rank));
  GANYMEDE_CUDA(cudaStreamCreateWithFlags(&reductions_, cudaStreamNonBlocking));
  GANYMEDE_CUDA(cudaEventCreateWithFlags(&computed_, cudaEventDisableTiming));
  GANYMEDE_CUDA(cudaEventCreateWithFlags(&reduced_, cudaEventDisableTiming));
}

void GpuDevice::reduce(float* gradients, std::size_t count) {
  GANYMEDE_CUDA(cudaEventRecord(computed_, stream_));
  GANYMEDE_CUDA(cudaStreamWaitEvent(reductions_, computed_, 0));
  GANYMEDE_CUDA(ncclAllReduce(gradients, gradients, count, ncclFloat, ncclAvg, nccl_, reductions_));
}

void GpuDevice::finish_reductions() {
  GANYMEDE_CUDA(cudaEventRecord(reduced_, reductions_));
  GANYMEDE_CUDA(cudaStreamWaitEvent(stream_, reduced_, 0));
}

}  // namespace ganymede::kernel::cuda

extern "C" int ganymede_count_gpus() {
  int count = 0;
  // Without a driver, or with one too old for this runtime, the call fails; that counts as no GPU.
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}
