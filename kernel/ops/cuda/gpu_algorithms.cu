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

}  // namespace

void GpuDevice::choose_algorithm(ConvolutionPlan& plan, Pass pass, const ConvolutionShape& s, int batch) {
  constexpr const char* kPasses[] = {"forward", "data", "weights"};
  std::string key = name_ + ", cuDNN " + std::to_string(cudnnGetVersion()) + ", " + precision() + ", " +
                    kPasses[static_cast<int>(pass)] + ":";
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
  for (const auto& [what, number] : numbers) key += std::string(" ") + what + " " + std::to_string(number);
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

}  // namespace ganymede::kernel::cuda
