#include "traces/profiler_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "common/errors.hpp"
#include "common/plain_text.hpp"
#include "traces/profiler_steps.hpp"

namespace ganymede::traces {
namespace {

using Step = ProfilerGpuStep;
using EventKind = ProfilerGpuEvent::Kind;

/// A kernel of a profiled step.
struct ProfiledKernel {
  std::string phase;
  double seconds = 0;
  bool matrix = false;  ///< a convolution or a product
};

struct MeasuredKernels {
  std::vector<TraceKernel> kernels;  ///< of the profile's phases, with TraceKernel::measured_s
  std::string note;                  ///< how they were matched, for people
};

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

/// If each step has as many convolutions and products as the list, they are matched one by one, in order; otherwise the
/// time of all of them is divided in proportion to their FLOPs. That of all other kernels is divided in proportion to
/// the numbers that they move. All steps must have the same phases; there must be at least one. No kernels if the list
/// has convolutions or products and the profile none.
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

/// Makes one phase of each step's phases.
void join_phases(std::vector<Step>& steps) {
  for (Step& step : steps) {
    ProfilerPhase whole;
    whole.start = step.phases.front().start;
    whole.end = step.phases.back().end;
    whole.name = "step";
    for (const ProfilerPhase& phase : step.phases) whole.launches += phase.launches;
    step.phases = {whole};
    std::fill(step.phase_of.begin(), step.phase_of.end(), 0);
  }
}

/// Keeps the steps whose phases come in the most frequent order, if that is the order of at least half of them. Else
/// the phases tell nothing, and all steps are kept without them. Returns what happened, or nothing.
std::string keep_alike(std::vector<Step>& steps) {
  std::map<std::string, std::size_t> counts;
  for (const Step& step : steps) ++counts[step.order()];
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == counts.end() || counts.size() == 1) return "";
  if (2 * most->second < steps.size() || most->second == 1) {
    join_phases(steps);
    return "the phases of each step come in another order: the step is one phase";
  }
  const std::string order = most->first;
  const std::size_t left_out = std::erase_if(steps, [&](const Step& step) { return step.order() != order; });
  return fmt::format("{} of {} steps {} other phases than most and {} left out", left_out, left_out + steps.size(),
                     left_out == 1 ? "has" : "have", left_out == 1 ? "is" : "are");
}

/// Drops the steps that lack kernels, or whose next one does, so that its begin is not known: a file that is cut short
/// need not be sorted by time.
void keep_whole(std::vector<Step>& steps) {
  std::size_t most = 0;
  for (const Step& step : steps) most = std::max(most, step.phase_of.size());
  const auto lacks = [&](const Step& step) { return 10 * step.phase_of.size() < 9 * most; };
  std::vector<Step> whole;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (!lacks(steps[i]) && (i + 1 == steps.size() || !lacks(steps[i + 1]))) whole.push_back(steps[i]);
  if (!whole.empty()) steps = std::move(whole);
}

TraceBatch batch_of(const std::vector<Step>& steps, const ProfilerOptions& options) {
  TraceBatch batch;
  batch.batch = options.batch;
  TracePhase copy;
  copy.name = "copy";
  copy.stream = "copy";
  for (const Step& step : steps) {
    const double wall = step.wall - step.breakdown.exposed;
    batch.wall_s.push_back(wall);
    double bytes = 0, seconds = 0;
    for (const auto* event : step.events)
      if (event->kind == EventKind::copy_in) {
        bytes += static_cast<double>(event->bytes);
        seconds += event->end - event->start;
        ++copy.launches;
      }
    copy.bytes_read += bytes / static_cast<double>(steps.size());
    copy.start_s.push_back(0);
    copy.seconds.push_back(std::min(seconds, wall));
    copy.host_s.push_back(0);
  }
  copy.bytes_written = copy.bytes_read;
  copy.launches =
      (copy.launches + static_cast<std::int64_t>(steps.size()) - 1) / static_cast<std::int64_t>(steps.size());
  if (copy.launches > 0) batch.phases.push_back(copy);
  for (std::size_t s = 0; s < steps.front().phases.size(); ++s) {
    TracePhase phase;
    phase.name = steps.front().phases[s].name;
    phase.network = "model";
    phase.stream = "compute";
    phase.launches = steps.front().phases[s].launches;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      const ProfilerPhase& span = step.phases[s];
      const double start = span.start - step.start - step.exposed_before(span.start);
      const double end = std::min(span.end - step.start - step.exposed_before(span.end), batch.wall_s[i]);
      phase.start_s.push_back(std::max(0.0, std::min(start, batch.wall_s[i])));
      phase.seconds.push_back(std::max(0.0, end - phase.start_s.back()));
      phase.host_s.push_back(0);
    }
    batch.phases.push_back(std::move(phase));
  }
  return batch;
}

/// The all-reduces of a step as buckets in the order of their starts, each after the phase in which it starts.
void add_buckets(TraceBatch& batch, const Step& step, const ProfilerEvents& events) {
  auto by_start = step.events;
  std::stable_sort(by_start.begin(), by_start.end(), [](const auto* a, const auto* b) { return a->start < b->start; });
  for (const auto* event : by_start) {
    if (event->kind != EventKind::collective || event->bytes <= 0) continue;
    const std::string what = lower_case(events.collectives[static_cast<std::size_t>(event->what)]);
    if (what.find("allreduce") == std::string::npos) continue;
    const ProfilerPhase* after = &step.phases.front();
    for (const ProfilerPhase& phase : step.phases)
      if (phase.start <= event->start) after = &phase;
    const double span = std::max(1e-12, after->end - after->start);
    batch.buckets.push_back(
        {"model", event->bytes, after->name, std::clamp((event->start - after->start) / span, 1e-6, 1.0)});
  }
}

/// Divides the layers' FLOPs and bytes among the phases in proportion to their time.
void add_work(TraceBatch& batch, const ProfilerOptions& options, TraceNetwork& network) {
  if (!options.layers) return;
  const StepTrace counted = trace_of(*options.layers, {options.batch}, options.device);
  double flops = 0, read = 0, written = 0, seconds = 0;
  for (const TracePhase& phase : counted.batches.front().phases) {
    if (phase.stream != "compute") continue;
    flops += phase.flops, read += phase.bytes_read, written += phase.bytes_written;
  }
  const auto total = [](const TracePhase& phase) {
    double sum = 0;
    for (const double time : phase.seconds) sum += time;
    return sum;
  };
  for (const TracePhase& phase : batch.phases) seconds += phase.stream == "compute" ? total(phase) : 0;
  for (TracePhase& phase : batch.phases) {
    if (phase.stream != "compute" || seconds <= 0) continue;
    const double share = total(phase) / seconds;
    phase.flops = share * flops, phase.bytes_read = share * read, phase.bytes_written = share * written;
  }
  network.flops_per_image = flops / options.batch;
}

/// The kernels of each step with their phases.
std::vector<std::vector<ProfiledKernel>> profiled_kernels(const std::vector<Step>& steps) {
  std::vector<std::vector<ProfiledKernel>> all;
  for (const Step& step : steps) {
    std::vector<ProfiledKernel> kernels;
    for (const auto* event : step.events)
      if (event->kind == EventKind::compute)
        kernels.push_back({step.phases[step.phase_of[kernels.size()]].name, event->end - event->start, event->matrix});
    all.push_back(std::move(kernels));
  }
  return all;
}

ProfilerBreakdown mean_breakdown(const std::vector<Step>& steps) {
  ProfilerBreakdown mean;
  const auto count = static_cast<double>(steps.size());
  for (const Step& step : steps) {
    const ProfilerBreakdown& one = step.breakdown;
    mean.step += one.step / count, mean.compute += one.compute / count;
    mean.exposed += one.exposed / count, mean.overlapped += one.overlapped / count;
    mean.copies += one.copies / count, mean.idle += one.idle / count;
    mean.unattributed += one.unattributed / count;
  }
  return mean;
}

void add_notes(ProfilerImport& out, const ProfilerEvents& events, const ProfilerOptions& options, bool no_annotations) {
  if (events.steps_are == ProfilerEvents::Steps::marked &&
      std::none_of(events.gpu.begin(), events.gpu.end(), [](const auto& event) { return event.launched >= 0; }))
    out.notes.emplace_back(
        "no launches in it: each kernel counts for the step in which it ran, which is wrong where the GPU lags its "
        "host; "
        "record with ProfilerActivity.CPU too");
  if (!options.layers)
    out.notes.emplace_back(
        "a profiler trace has no FLOPs: on other GPUs its work is taken as a usual mix (--layers counts it)");
  if (no_annotations)
    out.notes.emplace_back("no annotations (record_function) in it: the step is one phase");
  else if (out.mean.unattributed > 0.05)
    out.notes.push_back(
        fmt::format("{:.0f} % of the computing was launched outside any annotation, and counts to the phase "
                    "before",
                    100 * out.mean.unattributed));
  const std::string times = out.steps == 1 ? "once" : fmt::format("{} times", out.steps);
  if (events.steps_are == ProfilerEvents::Steps::repeated)
    out.notes.push_back("no steps marked (ProfilerStep#): its kernels repeat, " + times);
  if (events.steps_are == ProfilerEvents::Steps::repeated_unlaunched)
    out.notes.push_back("no launch in it says which kernels a marked step has: the steps are where kernels repeat, " +
                        times);
  if (events.steps_are == ProfilerEvents::Steps::whole)
    out.notes.emplace_back(
        "no steps marked (ProfilerStep#), and its kernels do not repeat: all of it counts as one step");
  else if (out.steps == 1)
    out.notes.emplace_back("only one step: how much steps vary is not known");
  if (events.cut_short) out.notes.emplace_back("the file is cut short: what it has is used");
  if (events.gpus > 1)
    out.notes.push_back(
        fmt::format("{} GPUs in it: those are the events of the one that computes longest", events.gpus));
}

}  // namespace

ProfilerImport import_profiler(const ProfilerEvents& events, const ProfilerOptions& options) {
  ProfilerImport out;
  const auto outer = outermost_annotations(events);
  std::vector<Step> steps = gpu_steps(events, outer);
  if (steps.empty()) throw ConfigError(fmt::format("{}: none of its steps has a kernel that computes", events.file));
  if (events.cut_short) keep_whole(steps);
  if (std::string unlike = keep_alike(steps); !unlike.empty()) out.notes.push_back(std::move(unlike));
  out.steps = steps.size();
  out.mean = mean_breakdown(steps);
  StepTrace& trace = out.trace;
  trace.device = {options.device.name, "gpu", 1, options.device.rate, options.device.bandwidth, options.device.memory};
  trace.software = {"PyTorch", "unknown", std::string(kProfilerBackend)};
  trace.model = options.model;
  TraceBatch batch = batch_of(steps, options);
  add_buckets(batch, steps.front(), events);
  TraceNetwork network;
  for (const TraceBucket& bucket : batch.buckets) network.gradient_bytes += bucket.bytes;
  std::int64_t parameters = options.parameters;
  if (parameters == 0 && options.layers)
    for (const auto& [name, of] : options.layers->networks)
      parameters += static_cast<std::int64_t>(of.copies) * of.total().parameters;
  if (batch.buckets.empty()) {
    if (parameters == 0)
      throw ConfigError(
          fmt::format("{}: no all-reduce with its size in it: --parameters says how many trainable parameters "
                      "the model has, whose gradients several GPUs would exchange",
                      events.file));
    network.gradient_bytes = 4 * parameters;
    batch.buckets.push_back({"model", network.gradient_bytes, batch.phases.back().name, 1});
    out.notes.emplace_back("no all-reduce in it: gradients are taken as one bucket at the end of the step");
  }
  network.parameters = parameters > 0 ? parameters : network.gradient_bytes / 4;
  add_work(batch, options, network);
  if (options.layers) {
    MeasuredKernels measured = measured_kernels(*options.layers, options.batch, profiled_kernels(steps));
    trace.kernels = std::move(measured.kernels);
    out.notes.push_back(std::move(measured.note));
  }
  trace.networks["model"] = network;
  trace.batches.push_back(std::move(batch));
  add_notes(out, events, options, outer.empty());
  return out;
}

}  // namespace ganymede::traces
