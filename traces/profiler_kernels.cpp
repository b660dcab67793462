#include "traces/profiler_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ganymede::traces {
namespace {

bool has_matrix_work(const TraceKernel& kernel) { return kernel.is_convolution() || kernel.is_product(); }

/// The work by which the time of kernels that are not matched one by one is divided: FLOPs, or numbers moved.
double weight_of(const TraceKernel& kernel, double batch) {
  const double images = kernel.grows == TraceKernel::Growth::none ? 1 : batch;
  if (has_matrix_work(kernel)) return images * kernel.flops();
  return images * static_cast<double>(kernel.rows) * static_cast<double>(kernel.cols) * (kernel.reads + kernel.writes);
}

std::size_t count_matrix(const std::vector<ProfiledKernel>& step) {
  return static_cast<std::size_t>(
      std::count_if(step.begin(), step.end(), [](const ProfiledKernel& kernel) { return kernel.matrix; }));
}

/// True if the steps' convolutions and products are those of the list, one for one.
bool match_one_by_one(const std::vector<TraceKernel>& listed, const std::vector<std::vector<ProfiledKernel>>& steps) {
  std::size_t count = 0;
  for (const TraceKernel& kernel : listed) {
    if (has_matrix_work(kernel) && kernel.times != 1) return false;
    count += has_matrix_work(kernel) ? 1 : 0;
  }
  return std::all_of(steps.begin(), steps.end(),
                     [&](const std::vector<ProfiledKernel>& step) { return count_matrix(step) == count; });
}

/// Mean seconds in a step of all kernels with or without matrix work.
double mean_seconds(const std::vector<std::vector<ProfiledKernel>>& steps, bool matrix) {
  double sum = 0;
  for (const auto& step : steps)
    for (const ProfiledKernel& kernel : step) sum += kernel.matrix == matrix ? kernel.seconds : 0;
  return sum / static_cast<double>(steps.size());
}

/// Divides the time of the kernels with or without matrix work in proportion to weight_of().
void divide(std::vector<TraceKernel>& kernels, double batch, bool matrix, double seconds) {
  double weights = 0;
  for (const TraceKernel& kernel : kernels)
    if (has_matrix_work(kernel) == matrix) weights += kernel.times * weight_of(kernel, batch);
  for (TraceKernel& kernel : kernels)
    if (has_matrix_work(kernel) == matrix && weights > 0)
      kernel.measured_s = seconds * weight_of(kernel, batch) / weights;
}

void match_in_order(std::vector<TraceKernel>& kernels, const std::vector<std::vector<ProfiledKernel>>& steps) {
  std::vector<TraceKernel*> listed;
  for (TraceKernel& kernel : kernels)
    if (has_matrix_work(kernel)) listed.push_back(&kernel);
  for (const auto& step : steps) {
    auto next = listed.begin();
    for (const ProfiledKernel& kernel : step)
      if (kernel.matrix) (*next++)->measured_s += kernel.seconds / static_cast<double>(steps.size());
  }
}

/// Moves each kernel to the profile's phase that runs when as much of the step's kernel time has passed.
void place_in_phases(std::vector<TraceKernel>& kernels, const std::vector<ProfiledKernel>& step) {
  double listed = 0, profiled = 0;
  for (const TraceKernel& kernel : kernels) listed += kernel.times * kernel.measured_s;
  for (const ProfiledKernel& kernel : step) profiled += kernel.seconds;
  auto at = step.begin();
  double passed = 0, now = 0;
  for (TraceKernel& kernel : kernels) {
    const double middle = (now + 0.5 * kernel.times * kernel.measured_s) / listed * profiled;
    while (std::next(at) != step.end() && passed + at->seconds < middle) passed += at++->seconds;
    kernel.phase = at->phase;
    now += kernel.times * kernel.measured_s;
  }
}

}  // namespace

MeasuredKernels measured_kernels(const LayerList& list, int batch,
                                 const std::vector<std::vector<ProfiledKernel>>& steps) {
  MeasuredKernels out;
  out.kernels = kernels_of(list);
  const auto listed = std::count_if(out.kernels.begin(), out.kernels.end(), has_matrix_work);
  if (listed > 0 && mean_seconds(steps, true) == 0) {
    out.kernels.clear();
    out.note = fmt::format(
        "no kernel of the profile has the name of a convolution or a product, the list of layers has {} of them: "
        "phases "
        "are carried to other GPUs as wholes",
        listed);
    return out;
  }
  const bool one_by_one = match_one_by_one(out.kernels, steps);
  if (one_by_one)
    match_in_order(out.kernels, steps);
  else
    divide(out.kernels, batch, true, mean_seconds(steps, true));
  divide(out.kernels, batch, false, mean_seconds(steps, false));
  // Kernels that the profile does not have would be predicted as if they ran.
  std::erase_if(out.kernels, [](const TraceKernel& kernel) { return kernel.measured_s <= 0; });
  if (!out.kernels.empty()) place_in_phases(out.kernels, steps.front());
  out.note = fmt::format(
      "{} convolutions and products in a step, {} in the list of layers: {}", count_matrix(steps.front()), listed,
      one_by_one ? "each layer keeps its own residual on other GPUs" : "all layers keep one residual on other GPUs");
  return out;
}

}  // namespace ganymede::traces
