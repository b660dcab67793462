// The choice of convolutions' algorithms by timing them.

#include <algorithm>

#include "kernel/bf16.hpp"
#include "kernel/ops/cuda/gpu_device.hpp"

namespace ganymede::kernel::cuda {
namespace {

/// Stands for a convolution and what follows as two kernels, where engines of cuDNN are numbers from 0.
constexpr int kTwoKernels = -1;
/// More engines are not timed, because each is compiled for that.
constexpr std::size_t kMostTimed = 2;

/// Fills memory with fp32 numbers, or pairs of bf16 numbers, between -1 and 1. On zeros a GPU draws less power.
void fill_with_numbers(GpuDevice& device, std::uint32_t* words, std::size_t count, bool halves) {
  device.each(count, [=] GANYMEDE_DEVICE(std::size_t i) {
    const float value = static_cast<float>(i % 251) * 0.008F - 1;
    words[i] = halves ? to_bf16(value) * 0x10001U : bits_of(value);
  });
}

/// The key of AlgorithmChoices.
std::string key_of(const std::string& device, const char* what, const ConvolutionShape& s, int batch) {
  std::string key = device + ", " + what + ":";
  const std::pair<const char*, int> numbers[] = {{"batch", batch},
                                                 {"in", s.in_channels},
                                                 {"frames", s.in_frames},
                                                 {"height", s.in_height},
                                                 {"width", s.in_width},
                                                 {"out", s.out_channels},
                                                 {"kernel", s.kernel},
                                                 {"kernel_frames", s.kernel_frames},
                                                 {"stride", s.stride},
                                                 {"padding", s.padding},
                                                 {"padding_frames", s.padding_frames}};
  for (const auto& [name, number] : numbers) key += std::string(" ") + name + " " + std::to_string(number);
  return key;
}

}  // namespace

std::string GpuDevice::name_of_choices() const {
  return name_ + ", cuDNN " + std::to_string(cudnnGetVersion()) + ", " + precision();
}

void GpuDevice::choose_algorithm(ConvolutionPlan& plan, Pass pass, const ConvolutionShape& s, int batch) {
  constexpr const char* kPasses[] = {"forward", "data", "weights"};
  const std::string key = key_of(name_of_choices(), kPasses[static_cast<int>(pass)], s, batch);
  const auto kept = choices_->find(key);
  if (!kept.empty() && plan.prefer(kept)) return;
  // Room for fp32 numbers; numbers of bf16 take half of it.
  const auto operand = [this](int rows, int columns) {
    const std::size_t count = size_of(rows) * size_of(columns);
    Buffer buffer = allocate(count * sizeof(float));
    fill_with_numbers(*this, static_cast<std::uint32_t*>(buffer.memory.get()), count, precision_ == Precision::bf16);
    return buffer;
  };
  try {
    const Buffer x = operand(s.in_features(), batch), y = operand(s.out_features(), batch),
                 weight = operand(s.taps() * s.in_channels, s.out_channels);
    const Buffer workspace = allocate(plan.workspace_bytes());
    const auto timed = plan.time(cudnn_.get(), stream_.get(), x.memory.get(), y.memory.get(), weight.memory.get(),
                                 workspace.memory.get());
    plan.prefer(timed);
    choices_->keep(key, timed);
  } catch (const Infeasible&) {
    // The training's own memory leaves no room for a second set of operands: the heuristics' choice stays.
  }
}

std::vector<TimedAlgorithm> GpuDevice::time_fused(FusedConvolution& plan, const ConvolutionCall& call,
                                                  const Buffer& workspace) {
  const std::int64_t launched = launched_;
  // The result may be computed again and again, because it is not among the operands.
  const auto seconds = [this](const auto& run) {
    constexpr int kRuns = 5;
    const Event begin = make_timed_event(), end = make_timed_event();
    run();
    GANYMEDE_CUDA(cudaEventRecord(begin.get(), stream_.get()));
    for (int i = 0; i < kRuns; ++i) run();
    GANYMEDE_CUDA(cudaEventRecord(end.get(), stream_.get()));
    GANYMEDE_CUDA(cudaEventSynchronize(end.get()));
    float milliseconds = 0;
    GANYMEDE_CUDA(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
    return 1e-3 * static_cast<double>(milliseconds) / kRuns;
  };
  const auto run = [&] { return plan.run(cudnn_.get(), call, workspace.memory.get()); };
  std::vector<TimedAlgorithm> timed;
  for (std::size_t next = 0; timed.size() < kMostTimed && plan.take(cudnn_.get(), next) && run();
       next = plan.taken() + 1)
    timed.push_back({static_cast<int>(plan.taken()), 0, true, seconds(run)});
  // First stands what is taken without timing.
  timed.insert(precision_ == Precision::fp32 ? timed.begin() : timed.end(),
               {kTwoKernels, 0, true, seconds([&] { convolve_in_steps(call, workspace); })});
  launched_ = launched;
  return timed;
}

std::unique_ptr<FusedConvolution> GpuDevice::plan_fused(const ConvolutionCall& call, const Buffer& workspace) {
  const bool is_timed = choices_ != nullptr && !capturing_;
  // Engines without tensor cores are taken only where they were timed, so none is left for fp32.
  if (call.shape.out_features() < least_fused_outputs_ || (precision_ == Precision::fp32 && !is_timed)) return nullptr;
  const ConvolutionEpilogue& after = *call.after;
  std::string key =
      key_of(name_of_choices(), after.bias == nullptr ? "forward and activation" : "forward, bias and activation",
             call.shape, call.batch);
  auto plan = std::make_unique<FusedConvolution>(call, precision_, is_timed, workspace.bytes());
  int engine = 0;
  if (is_timed) {
    auto timed = choices_->find(key);
    if (timed.empty()) choices_->keep(key, timed = time_fused(*plan, call, workspace));
    engine = std::min_element(timed.begin(), timed.end(), [](const TimedAlgorithm& a, const TimedAlgorithm& b) {
               return a.seconds < b.seconds;
             })->number;
    if (engine == kTwoKernels) return nullptr;
  }
  key += (after.factor != 1 ? " scaled, slope " : " slope ") + std::to_string(after.slope) + ", engine " +
         std::to_string(engine) + (is_timed ? " of all" : "");
  if (kept_plans_ != nullptr && plan->restore(cudnn_.get(), kept_plans_->find(key))) return plan;
  const bool is_kept =
      plan->take(cudnn_.get(), static_cast<std::size_t>(engine)) && kept_plans_ != nullptr && !capturing_;
  // A plan is no promise, so it is kept once it has run.
  if (is_kept && plan->run(cudnn_.get(), call, workspace.memory.get())) {
    const std::string text = plan->text();
    if (!text.empty()) kept_plans_->keep(key, text);
  }
  return plan;
}

}  // namespace ganymede::kernel::cuda
