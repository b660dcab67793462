#include <cstdio>
#include <exception>
#include <limits>
#include <thread>

#include "kernel/ops/cuda/direct_convolution.hpp"
#include "kernel/ops/cuda/gpu_device.hpp"
#include "kernel/ops/cuda/products.hpp"
#include "kernel/ops/cuda/vectors.hpp"

namespace ganymede::kernel::cuda {
namespace {

constexpr std::size_t kCublasWorkspace = std::size_t{32} << 20;
constexpr std::size_t kAlignment = 256;
constexpr std::size_t kResultBytes = 4096;  ///< of pinned memory for small copies to the host, such as losses

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::string text_of(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

cublasComputeType_t compute_of(Precision precision) {
  switch (precision) {
    case Precision::tf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Precision::bf16:  // whose operands are stored so
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

GpuDevice::GpuDevice(const CudaOptions& options)
    : exceptions_(std::uncaught_exceptions()),
      choices_(options.choices),
      kept_plans_(options.plans),
      least_fused_outputs_(options.least_fused_outputs) {
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
  runs_together_ = properties.cooperativeLaunch != 0;
  precision_ = options.precision.value_or(major_ >= 8 ? Precision::tf32 : Precision::fp32);
  if (precision_ != Precision::fp32 && major_ < 8)
    throw ConfigError("--precision: found " + precision() + ", expected fp32 on " + name_ +
                      ": only Ampere GPUs and later have the others");
  stream_ = make_stream();
  copies_ = make_stream();
  partials_ = allocate(kPartials * sizeof(float));
  barriers_ = allocate(kColumnBarriers * sizeof(ColumnBarrier));
  cublas_workspace_ = allocate(kCublasWorkspace);
  cublas_ = made_by<CublasHandle>("cublasCreate", [](cublasHandle_t* handle) { return cublasCreate(handle); });
  GANYMEDE_CUDA(cublasSetStream(cublas_.get(), stream_.get()));
  // Without a workspace cuBLAS would allocate memory, which a captured step must not do.
  GANYMEDE_CUDA(cublasSetWorkspace(cublas_.get(), cublas_workspace_.memory.get(), kCublasWorkspace));
  cublas_lt_ = made_by<CublasLtHandle>("cublasLtCreate", cublasLtCreate);
  cudnn_ = made_by<CudnnHandle>("cudnnCreate", [](cudnnHandle_t* handle) { return cudnnCreate(handle); });
  GANYMEDE_CUDA(cudnnSetStream(cudnn_.get(), stream_.get()));
  for (Event& end : ends_) end = make_event();
  pinned_results_ = make_pinned(kResultBytes);
  staged_.resize(kStepsAhead * static_cast<std::size_t>(options.loads_a_step) + 1);
  for (Event& event : staged_) event = make_event();
}

GpuDevice::~GpuDevice() {
  leave();
  discard_capture();
  cudaStreamSynchronize(copies_.get());
  cudaStreamSynchronize(stream_.get());
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
  Buffer buffer{{memory, {[](void* data, std::size_t) { cudaFree(data); }, bytes, nullptr}}};
  GANYMEDE_CUDA(cudaMemsetAsync(memory, 0, wanted, stream_.get()));
  return buffer;
}

Buffer GpuDevice::allocate_host(std::size_t bytes) {
  PinnedMemory memory = make_pinned(std::max<std::size_t>(bytes, 1));
  std::memset(memory.get(), 0, bytes);
  return {{memory.release(), {[](void* data, std::size_t) { cudaFreeHost(data); }, bytes, nullptr}}};
}

void GpuDevice::to_host(void* to, const void* from, std::size_t bytes) {
  if (bytes <= kResultBytes) {
    GANYMEDE_CUDA(cudaMemcpyAsync(pinned_results_.get(), from, bytes, cudaMemcpyDeviceToHost, stream_.get()));
    synchronize();
    std::memcpy(to, pinned_results_.get(), bytes);
    return;
  }
  // A copy to memory that is not pinned waits inside CUDA, where nobody would see that another replica has failed.
  synchronize();
  GANYMEDE_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_.get()));
  synchronize();
}

void GpuDevice::to_device(void* to, const void* from, std::size_t bytes) {
  synchronize();  // for the same reason
  GANYMEDE_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_.get()));
  synchronize();  // the caller may now free `from`
}

void GpuDevice::synchronize() {
  if (nccl_ == nullptr) {
    GANYMEDE_CUDA(cudaStreamSynchronize(stream_.get()));
    return;
  }
  poll([this] { return cudaStreamQuery(stream_.get()); });
}

template <class Query>
void GpuDevice::poll(const Query& query) {
  for (;; std::this_thread::yield()) {
    const cudaError_t status = query();
    if (status != cudaErrorNotReady) return GANYMEDE_CUDA(status);
    check_replicas();
  }
}

void GpuDevice::gemm(const Gemm& g) {
  if (g.epilogue != Epilogue::none) {
    auto& plan = product_plans_[ProductPlan::key_of(g)];
    if (!plan) plan = std::make_unique<ProductPlan>(cublas_lt_.get(), g, compute_of(precision_), kCublasWorkspace);
    if (!plan->run(cublas_lt_.get(), g, cublas_workspace_.memory.get(), kCublasWorkspace, stream_.get()))
      return gemm_in_steps(*this, g);
    ++launched_;
    return;
  }
  const float one = 1;
  const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  GANYMEDE_CUDA(cublasGemmEx(cublas_.get(), operation(g.transpose_a), operation(g.transpose_b), g.m, g.n, g.k, &one,
                             g.a, blas_type(g.operands), g.a_lead, g.b, blas_type(g.operands), g.b_lead, &g.beta, g.c,
                             blas_type(g.result), g.c_lead, compute_of(precision_), CUBLAS_GEMM_DEFAULT));
  ++launched_;
}

void GpuDevice::check_extents(const ConvolutionShape& shape, int batch) const {
  // The documentation of cudnnSetTensorNdDescriptor limits a tensor to 2^31 elements.
  constexpr auto kLimit = std::size_t{std::numeric_limits<int>::max()};
  const Operands one = operands_of(shape, 1);
  const std::size_t fits = kLimit / std::max(one.x, one.y);
  if (static_cast<std::size_t>(batch) <= fits) return;
  throw Infeasible("--batch: " + std::to_string(batch) + " images would give a convolution's operand " +
                   std::to_string(std::max(one.x, one.y) * static_cast<std::size_t>(batch)) +
                   " elements, and cuDNN takes fewer than 2^31: a batch of " + std::to_string(fits) + " would fit");
}

ConvolutionPlan& GpuDevice::plan_of(Pass pass, const ConvolutionShape& s, int batch) {
  const std::vector<int> key{static_cast<int>(pass), batch,           s.in_channels, s.in_height, s.in_width,
                             s.out_channels,         s.kernel,        s.stride,      s.padding,   s.in_frames,
                             s.kernel_frames,        s.padding_frames};
  auto& plan = plans_[key];
  if (plan != nullptr) return *plan;
  check_extents(s, batch);
  plan = std::make_unique<ConvolutionPlan>(cudnn_.get(), pass, s, batch, precision_);
  if (choices_ != nullptr && !capturing_) choose_algorithm(*plan, pass, s, batch);
  return *plan;
}

std::size_t GpuDevice::workspace_bytes_of(const ConvolutionPlan& plan, Pass pass, const ConvolutionShape& shape) const {
  if (precision_ != Precision::bf16 || pass != Pass::weights) return plan.workspace_bytes();
  return aligned(plan.workspace_bytes()) + sizeof(Bf16) * shape.weights();
}

std::size_t GpuDevice::convolution_workspace_bytes(const ConvolutionShape& shape, int batch) {
  std::size_t largest = 0;
  for (const Pass pass : {Pass::forward, Pass::data, Pass::weights})
    largest = std::max(largest, workspace_bytes_of(plan_of(pass, shape, batch), pass, shape));
  return largest;
}

void GpuDevice::convolve_slowly(const ConvolutionPlan& plan, const ConvolutionCall& call) {
  const ConvolutionShape& s = call.shape;
  if (plan.is_first_refusal())
    std::fprintf(stderr,
                 "ganymede: cuDNN has no %s algorithm for a convolution of %d to %d channels at %dx%d: a slow kernel "
                 "stands in\n",
                 precision().c_str(), s.in_channels, s.out_channels, s.in_height, s.in_width);
  if (precision_ == Precision::bf16)
    convolve_directly<Bf16>(*this, call);
  else
    convolve_directly<float>(*this, call);
}

void GpuDevice::convolve_in_steps(const ConvolutionCall& call, const Buffer& workspace) {
  ConvolutionCall plain = call;
  plain.after.reset();
  convolve(plain, workspace);
  if (precision_ == Precision::bf16)
    apply_epilogue<Bf16>(*this, call);
  else
    apply_epilogue<float>(*this, call);
}

bool GpuDevice::convolve_fused(const ConvolutionCall& call, const Buffer& workspace) {
  for (const void* operand : {static_cast<const void*>(call.after->bias), static_cast<const void*>(call.x),
                              static_cast<const void*>(call.y), static_cast<const void*>(call.weight)})
    if (reinterpret_cast<std::uintptr_t>(operand) % kWidestAccess != 0) return false;
  const auto key = FusedConvolution::key_of(call);
  auto found = fused_plans_.find(key);
  if (found == fused_plans_.end()) found = fused_plans_.emplace(key, plan_fused(call, workspace)).first;
  FusedConvolution* plan = found->second.get();
  if (plan == nullptr || !plan->run(cudnn_.get(), call, workspace.memory.get())) return false;
  ++launched_;
  return true;
}

void GpuDevice::convolve(const ConvolutionCall& call, const Buffer& workspace) {
  if (call.after) {
    if (!convolve_fused(call, workspace)) convolve_in_steps(call, workspace);
    return;
  }
  ConvolutionPlan& plan = plan_of(call.pass, call.shape, call.batch);
  if (!plan.found()) return convolve_slowly(plan, call);
  const std::size_t needed = workspace_bytes_of(plan, call.pass, call.shape);
  if (workspace.bytes() < needed)
    throw Failure("a convolution needs a workspace of " + std::to_string(needed) + " bytes, and " +
                  std::to_string(workspace.bytes()) + " are reserved");
  auto* free = static_cast<std::byte*>(workspace.memory.get());
  ++launched_;
  if (precision_ != Precision::bf16 || call.pass != Pass::weights) {
    if (!plan.run(cudnn_.get(), call.x, call.y, call.weight, call.accumulate ? 1.0F : 0.0F, free))
      convolve_slowly(plan, call);
    return;
  }
  // The result has the operands' type, and the gradient is fp32.
  auto* rounded = reinterpret_cast<Bf16*>(free + aligned(plan.workspace_bytes()));
  if (!plan.run(cudnn_.get(), call.x, call.y, rounded, 0, free)) return convolve_slowly(plan, call);
  auto* gradient = static_cast<float*>(call.weight);
  const bool accumulate = call.accumulate;
  const Bf16* added = rounded;
  each_element(
      *this, call.shape.weights(),
      [=] GANYMEDE_DEVICE(std::size_t, float& g, Bf16 v) { g = (accumulate ? g : 0.0F) + static_cast<float>(v); },
      gradient, added);
}

StagedImages GpuDevice::stage(const void* from, std::size_t bytes) {
  if (bytes > stride_) {
    // A captured step keeps the address of the images.
    if (capturing_ || graphs_[0] || graphs_[1])
      throw Failure("a captured step cannot load larger images than the one before it");
    GANYMEDE_CUDA(cudaStreamSynchronize(copies_.get()));
    synchronize();
    staging_ = {};
    pinned_images_.reset();
    stride_ = 0;
    const std::size_t stride = aligned(bytes);
    pinned_images_ = make_pinned(stride * staged_.size());
    staging_ = allocate(stride * staged_.size());
    synchronize();  // the copies' stream must not overtake the zeroing
    stride_ = stride;
  }
  const std::size_t slot = next_slot_++ % staged_.size();
  cudaEvent_t done = staged_[slot].get();
  auto* device = static_cast<std::uint8_t*>(staging_.memory.get());
  auto* pinned = static_cast<std::uint8_t*>(pinned_images_.get());
  // A slot is used again only after a step's losses were read, so no kernel still reads it.
  GANYMEDE_CUDA(cudaEventSynchronize(done));
  std::memcpy(pinned + slot * stride_, from, bytes);
  GANYMEDE_CUDA(
      cudaMemcpyAsync(device + slot * stride_, pinned + slot * stride_, bytes, cudaMemcpyHostToDevice, copies_.get()));
  GANYMEDE_CUDA(cudaEventRecord(done, copies_.get()));
  // A captured stream cannot wait for one that is not captured, so the host waits; the graph runs only after that.
  if (capturing_)
    GANYMEDE_CUDA(cudaEventSynchronize(done));
  else
    GANYMEDE_CUDA(cudaStreamWaitEvent(stream_.get(), done, 0));
  return {device, slot, stride_};
}

void GpuDevice::begin_capture() {
  synchronize();
  GANYMEDE_CUDA(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeRelaxed));
  capturing_ = true;
}

void GpuDevice::end_capture(int which) {
  capturing_ = false;
  const Graph graph = made_by<Graph>("cudaStreamEndCapture",
                                     [&](cudaGraph_t* made) { return cudaStreamEndCapture(stream_.get(), made); });
  graphs_[which] = made_by<GraphExec>(
      "cudaGraphInstantiate", [&](cudaGraphExec_t* made) { return cudaGraphInstantiate(made, graph.get(), 0); });
}

void GpuDevice::discard_capture() {
  for (GraphExec& graph : graphs_) graph.reset();
  if (!std::exchange(capturing_, false)) return;
  cudaGraph_t unfinished = nullptr;
  cudaStreamEndCapture(stream_.get(), &unfinished);
  const Graph destroyed(unfinished);
}

void GpuDevice::replay(int which) { GANYMEDE_CUDA(cudaGraphLaunch(graphs_[which].get(), stream_.get())); }
void GpuDevice::mark_end(std::size_t slot) { GANYMEDE_CUDA(cudaEventRecord(ends_[slot].get(), stream_.get())); }
void GpuDevice::await_end(std::size_t slot) {
  if (nccl_ == nullptr) return GANYMEDE_CUDA(cudaEventSynchronize(ends_[slot].get()));
  poll([this, slot] { return cudaEventQuery(ends_[slot].get()); });
}

void GpuDevice::mark(std::size_t i) {
  while (marks_.size() <= i) marks_.push_back(make_timed_event());
  // In a captured step an external event is recorded at each replay and can be read afterwards.
  GANYMEDE_CUDA(cudaEventRecordWithFlags(marks_[i].get(), stream_.get(),
                                         capturing_ ? cudaEventRecordExternal : cudaEventRecordDefault));
}

double GpuDevice::mark_s(std::size_t i) const {
  float milliseconds = 0;
  GANYMEDE_CUDA(cudaEventElapsedTime(&milliseconds, marks_[0].get(), marks_[i].get()));
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace ganymede::kernel::cuda

extern "C" int ganymede_count_gpus() {
  int count = 0;
  // Without a driver, or with one too old for this runtime, the call fails; that counts as no GPU.
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}
