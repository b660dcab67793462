#pragma once
// A step as the sum of its kernels: what a trace's list of kernels takes on a GPU on which it never ran.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/kernels/kernel_model.hpp"
#include "platforms/platform.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::calibration {

/// A kernel of a step on one GPU.
struct StepKernel {
  std::string phase;
  double times = 1;  ///< launches in a step; may be a mean over steps
  Kernel kernel;
  KernelTime time;
  double measured_s = 0;  ///< of one launch on the recording GPU; 0: not measured
  double beside_s = 0;    ///< what a training takes beside one launch, if a list of layers counts it
};

/// How the host launches a trace's kernels: what it states, or else what its software does (StepTrace::executor).
std::string_view executor_of(const traces::StepTrace& trace);

/// Seconds for which the host is busy with one launch, while the GPU works: 0 where a graph is replayed. An eager
/// executor takes kEagerLaunch_s.
double host_launch_s(std::string_view executor);

/// An eager launch of PyTorch: from the call in Python to the launch, with what is noted for the backward pass.
/// Published rates differ by kEagerLaunchFactor to each side.
inline constexpr double kEagerLaunch_s = 10e-6, kEagerLaunchFactor = 2;

/// The data sheet of a platform's GPU: by its name or family, if the rates that the platform states are about those of
/// the table; otherwise from what the platform states, if that includes the number of multiprocessors. Nothing if
/// neither is known.
std::optional<GpuSheet> sheet_of(const platforms::Gpu& gpu);

/// The kernels of the entry's steps, in the order in which they are launched. With the executor "compiled", kernels
/// that move numbers one after the other are one.
std::vector<StepKernel> kernels_at(const traces::StepTrace& trace, const traces::TraceBatch& entry);

/// The time that a training takes beside the kernels that its layers count: kernels without a layer, gaps between
/// kernels, caches that others have filled. Beside each counted kernel it is three times the kernel's time, at most 130
/// us on a GPU of 900 GB/s, and in inverse proportion to the bandwidth on others. A step of long kernels hardly
/// notices; one of short kernels takes twice as long. Grouped convolutions in 16 bits, of which no single kernel was
/// measured, take 2.5 times as long as the model of kernel times says before Ampere, and since then where a group has
/// an odd number of channels. Estimated from 43 steps of ten publications, each counted once (`bench/networks.py
/// --fit`, which also leaves each out): 130 us is 117 to 141 without one of them. The 2.5 is 1.3 without NVAE and 2.5
/// without StyleGAN3-T, whose steps are then 4.6 % off: two publications have such kernels. That they do not take it on
/// Ampere in even numbers, that what is beside a kernel is three times it at most, and that it follows the bandwidth,
/// was chosen on all. A step that is carried from one GPU to another has it in what was measured: there the ratio of
/// the kernels is better.
inline constexpr double kBesideShare = 3, kBeside_s = 130e-6, kBesideBandwidth = 900e9, kSlowGroups = 2.5;

/// Predicts each kernel, and if they are of a list of layers what a training takes beside them. Equal kernels are
/// predicted once.
void predict(std::vector<StepKernel>& kernels, const KernelModel& model, bool of_layers = false);

/// Half of the 90 % interval of ln(step) for what a list of kernels leaves out: copies, synchronization, other versions
/// of libraries. Our own training's list is exact but for these. That of PyTorch's networks comes from their layers:
/// 0.4 holds the steps of nine of ten publications when each is left out (not NVAE's); to hold all ten takes 0.75.
inline constexpr double kListError = 0.3, kCountedListError = 0.4;
double list_error(const traces::StepTrace& trace);

/// Half of the 90 % interval of ln(step), from the intervals of the kernels (their own errors, which partly cancel, and
/// what a GPU's kernels have in common) and from what the list leaves out.
double step_spread(const std::vector<StepKernel>& kernels, double list_error);

/// A step as the sum of its kernels and of what is beside them, while the host launches them: the longer of the two.
struct StepSum {
  double launches = 0, device_s = 0, beside_s = 0, host_s = 0;
  double seconds = 0, low_s = 0, high_s = 0;  ///< 90 % interval
  std::string decided_by;                     ///< "launching", or the kernels that take most of the time
};
StepSum sum_of(const std::vector<StepKernel>& kernels, std::string_view executor, double list_error = kListError);

/// "convolution-dgrad of conv2 in generator.forward and 2 like it 22 %, ...": the kernels that take most of a step's
/// time, of which those of one shape count together.
std::string deciding(const std::vector<StepKernel>& kernels, std::size_t count);

}  // namespace ganymede::calibration
