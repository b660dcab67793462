#include "calibration/trace_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "calibration/batch_fit.hpp"
#include "calibration/statistics.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "platforms/catalog.hpp"
#include "report/table.hpp"

namespace ganymede::calibration {
namespace {

std::vector<double> sorted(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values;
}

// The largest relative error of a mean step that is still of use.
constexpr double kTooNoisy = 0.1;
constexpr std::size_t kBlocksToTell = 4;  // a recording with fewer blocks is too short to tell its error

/// The shares of the device's limits that a phase reaches, "63 % + 20 %": the achieved shares of the rate of matrix
/// products and of the memory bandwidth, if each operand crosses memory is moved once.
std::string share_of_limits(const traces::TraceDevice& device, double flops, double bytes, double seconds) {
  return fmt::format("{:.0f} % + {:.0f} %", 100 * flops / seconds / device.fp32.si,
                     100 * bytes / seconds / device.memory_bandwidth.si);
}

/// A table of memory by kind and mean utilization.
std::string resources(const traces::TraceBatch& batch) {
  std::string out = "memory:";
  for (const auto& [kind, bytes] : batch.memory_bytes) out += fmt::format(" {} {},", kind, to_string(Bytes{bytes}));
  out.back() = '\n';
  if (!batch.utilization) return out;
  out += "utilization:";
  for (const auto& [what, samples] : batch.utilization->samples)
    if (!samples.empty() && what != "memory_bytes")
      out += fmt::format(" {} {:.2f},", what,
                         std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size()));
  out.back() = '\n';
  return out;
}

}  // namespace

double mean_waiting_threads(const traces::TraceBatch& batch) {
  if (!batch.utilization) return 0;
  const auto found = batch.utilization->samples.find("cpu_wait");
  if (found == batch.utilization->samples.end() || found->second.empty()) return 0;
  return std::accumulate(found->second.begin(), found->second.end(), 0.0) / static_cast<double>(found->second.size());
}

std::string noise_warning(const traces::StepTrace& trace) {
  std::string out;
  for (const traces::TraceBatch& entry : trace.batches) {
    const BlockMean mean = block_mean(entry.wall_s, kBlockSteps);
    if (mean.blocks >= kBlocksToTell && mean.half_width > kTooNoisy * mean.mean)
      out += fmt::format(
          "TOO NOISY: the mean step at batch {} is known to +-{:.0f} % only ({:.0f} % is the most that is of "
          "use); {:.1f} threads waited for a processor; record more steps, or on a quieter machine\n",
          entry.batch, 100 * mean.half_width / mean.mean, 100 * kTooNoisy, mean_waiting_threads(entry));
  }
  return out;
}

std::string gpu_entry(const traces::TraceDevice& device) {
  for (const std::string& provider : platforms::provider_names())
    for (const platforms::Gpu& gpu : platforms::catalog(provider).gpus)
      if (gpu.name == device.name) return "";
  OrderedJson entry = {{"kind", device.kind},
                       {"memory", fmt::format("{:.0f}MB", device.memory.si / 1e6)},
                       {"fp32", fmt::format("{:.1f}Gflop/s", device.fp32.si / 1e9)},
                       {"memory_bandwidth", fmt::format("{:.1f}GB/s", device.memory_bandwidth.si / 1e9)}};
  if (device.launch) entry["launch"] = fmt::format("{:.0f}ns", device.launch->si * 1e9);
  return fmt::format(
      "No catalog has \"{}\". In \"gpus\" of a platform file (`ganymede example platform`) it would be\n  \"{}\": {}\n",
      device.name, device.name, entry.dump());
}

std::string phase_table(const traces::StepTrace& trace, std::size_t width) {
  const traces::TraceDevice& device = trace.device;
  std::string out = fmt::format("{}, backend {}: products {}, memory {}", device.name, trace.software.backend,
                                to_string(device.fp32), to_string(device.memory_bandwidth));
  const auto add = [&](const char* name, const auto& value) {
    if (value) out += fmt::format(", {} {}", name, to_string(*value));
  };
  add("convolutions", device.convolution);
  add("a launch", device.launch);
  add("copy from the host", device.host_copy);
  add("storage read", device.storage_read);
  out += "\n";
  for (const auto& batch : trace.batches) {
    report::Table table({fmt::format("batch {}", batch.batch), ">median", ">p10", ">p90", ">share", ">rate",
                         ">of the limits", ">kernel launches"});
    const double all = std::accumulate(batch.wall_s.begin(), batch.wall_s.end(), 0.0);
    const auto row = [&](const std::string& name, const std::vector<double>& times, double flops, double bytes,
                         std::int64_t launches) {
      const std::vector<double> seconds = sorted(times);
      const double median = quantile(seconds, 0.5);
      table.add({name, to_string(Seconds{median}), to_string(Seconds{quantile(seconds, 0.1)}),
                 to_string(Seconds{quantile(seconds, 0.9)}),
                 fmt::format("{:.1f} %", 100 * std::accumulate(seconds.begin(), seconds.end(), 0.0) / all),
                 flops > 0 ? to_string(Flops{flops} / Seconds{median}) : "",
                 median > 0 && launches > 0 ? share_of_limits(trace.device, flops, bytes, median) : "",
                 std::to_string(launches)});
    };
    double flops = 0, bytes = 0;
    std::int64_t launches = 0;
    for (const auto& phase : batch.phases) {
      row(phase.name, phase.seconds, phase.flops, phase.bytes_read + phase.bytes_written, phase.launches);
      flops += phase.flops;
      bytes += phase.bytes_read + phase.bytes_written;
      launches += phase.launches;
    }
    table.rule();
    row(fmt::format("step ({} recorded)", batch.wall_s.size()), batch.wall_s, flops, bytes, launches);
    out += "\n" + table.text(width) + resources(batch);
  }
  return out;
}

std::string fit_table(const traces::StepTrace& trace, std::size_t width) {
  std::vector<const traces::TraceBatch*> entries;
  for (const traces::TraceBatch& entry : trace.batches)
    if (entry.stage == trace.batches.front().stage) entries.push_back(&entry);
  if (entries.size() < BatchModel::kMinSizes)
    return fmt::format("No fit over batch sizes: {} of {} at least were recorded\n", entries.size(),
                       BatchModel::kMinSizes);
  const BatchModel model(entries);
  report::Table phases({"phase", ">launching", ">fixed", ">an image", ">binds at smallest", ">binds at largest"});
  const double smallest = model.leave_one_out().front().batch, largest = model.leave_one_out().back().batch;
  for (const auto& [name, fit] : model.phases())
    phases.add({name, to_string(Seconds{fit.floor_s}), to_string(Seconds{fit.fixed_s}),
                to_string(Seconds{fit.per_image_s}), fit.bound_by(smallest), fit.bound_by(largest)});
  report::Table left({">batch", ">step", ">from the others", ">error"});
  for (const auto& size : model.leave_one_out())
    left.add({std::to_string(size.batch), to_string(Seconds{size.measured_s}), to_string(Seconds{size.predicted_s}),
              fmt::format("{:+.1f} %", 100 * size.error())});
  return fmt::format(
      "Phase time against batch: the longer of launching and fixed + an image's x batch\n{}\nEach batch size predicted "
      "from the others: error {:.1f} % on average, {:.1f} % at worst\n{}",
      phases.text(width), 100 * model.mean_error(), 100 * model.worst_error(), left.text(width));
}

}  // namespace ganymede::calibration
