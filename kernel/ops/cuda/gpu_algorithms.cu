// The choice of convolutions' algorithms by timing them.

#include "kernel/bf16.hpp"
#include "kernel/ops/cuda/gpu_device.hpp"

namespace ganymede::kernel::cuda {
namespace {

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

std::unique_ptr<FusedConvolution> GpuDevice::plan_fused(const ConvolutionCall& call, const Buffer& workspace) {
  constexpr int kOneKernel = 0, kTwoKernels = 1;  // numbers of what is timed
  const bool is_timed = choices_ != nullptr && !capturing_;
  const std::string key =
      key_of(name_of_choices(), call.after->bias == nullptr ? "forward and activation" : "forward, bias and activation",
             call.shape, call.batch);
  const auto kept = is_timed ? choices_->find(key) : std::vector<TimedAlgorithm>();
  if (!kept.empty() && kept.front().number == kTwoKernels) return nullptr;
  auto plan = std::make_unique<FusedConvolution>(cudnn_.get(), call, precision_, workspace.bytes());
  if (!is_timed || (!kept.empty() && kept.front().number == kOneKernel)) return plan;
  // The result may be computed again and again, because it is not among the operands.
  const std::int64_t launched = launched_;
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
  const TimedAlgorithm two{kTwoKernels, 0, true, seconds([&] { convolve_in_steps(call, workspace); })};
  bool is_there = true;
  const TimedAlgorithm one{kOneKernel, 0, true, seconds([&] {
                             is_there = is_there && plan->run(cudnn_.get(), call, workspace.memory.get());
                           })};
  launched_ = launched;
  const bool faster = is_there && one.seconds < two.seconds;
  choices_->keep(key, !is_there ? std::vector{two} : faster ? std::vector{one, two} : std::vector{two, one});
  return faster ? std::move(plan) : nullptr;
}

}  // namespace ganymede::kernel::cuda
