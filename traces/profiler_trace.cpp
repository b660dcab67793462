#include "traces/profiler_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "common/errors.hpp"
#include "traces/profiler_kernels.hpp"

namespace ganymede::traces {
namespace {

using Spans = std::vector<ProfilerSpan>;
using EventKind = ProfilerGpuEvent::Kind;

/// Sorts spans and merges those that overlap or touch.
Spans merged(Spans spans) {
  std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
  Spans out;
  for (const ProfilerSpan& span : spans) {
    if (!out.empty() && span.start <= out.back().end)
      out.back().end = std::max(out.back().end, span.end);
    else
      out.push_back(span);
  }
  return out;
}

double length(const Spans& spans) {
  double sum = 0;
  for (const ProfilerSpan& span : spans) sum += span.end - span.start;
  return sum;
}

/// The parts of `from` that no span of `other` covers. Both must be merged.
Spans without(const Spans& from, const Spans& other) {
  Spans out;
  auto next = other.begin();
  for (ProfilerSpan span : from) {
    while (next != other.end() && next->end <= span.start) ++next;
    for (auto cut = next; cut != other.end() && cut->start < span.end; ++cut) {
      if (cut->start > span.start) out.push_back({span.start, cut->start});
      span.start = std::max(span.start, cut->end);
    }
    if (span.start < span.end) out.push_back(span);
  }
  return out;
}

struct Segment : ProfilerSpan {
  std::string name;
  std::int64_t launches = 0;
};

struct Step {
  double start = 0, wall = 0;  ///< seconds: when the GPU begins this step, and how long until it begins the next
  std::vector<const ProfilerGpuEvent*> events;
  std::vector<Segment> segments;
  Spans exposed;
  double unattributed = 0;
  ProfilerBreakdown breakdown;

  std::string order() const {
    std::string names;
    for (const Segment& segment : segments) names += segment.name + "\n";
    return names;
  }
  /// Seconds of exposed communication before the given time.
  double removed(double time) const {
    double sum = 0;
    for (const ProfilerSpan& span : exposed) sum += std::max(0.0, std::min(time, span.end) - span.start);
    return sum;
  }
};

/// The outermost annotations of the thread that calls step().
std::vector<ProfilerAnnotation> outermost(const ProfilerEvents& events) {
  std::vector<ProfilerAnnotation> outer;
  for (const ProfilerAnnotation& annotation : events.annotations) {
    if (annotation.thread != events.steps.front().thread) continue;
    if (!outer.empty() && annotation.end <= outer.back().end) continue;
    outer.push_back(annotation);
  }
  return outer;
}

const ProfilerAnnotation* at(const std::vector<ProfilerAnnotation>& outer, double time) {
  const auto after = std::upper_bound(outer.begin(), outer.end(), time,
                                      [](double t, const ProfilerAnnotation& a) { return t < a.start; });
  if (after == outer.begin() || std::prev(after)->end < time) return nullptr;
  return &*std::prev(after);
}

/// Sorts events into the steps in which they were launched.
std::vector<Step> steps_of(const ProfilerEvents& events) {
  std::vector<Step> steps(events.steps.size());
  for (const ProfilerGpuEvent& event : events.gpu) {
    const double time = event.launched >= 0 ? event.launched : event.start;
    const auto after = std::upper_bound(events.steps.begin(), events.steps.end(), time,
                                        [](double t, const ProfilerStep& step) { return t < step.start; });
    if (after == events.steps.begin() || time > std::prev(after)->end) continue;
    steps[static_cast<std::size_t>(std::prev(after) - events.steps.begin())].events.push_back(&event);
  }
  std::erase_if(steps, [](const Step& step) {
    return std::none_of(step.events.begin(), step.events.end(),
                        [](const auto* e) { return e->kind == EventKind::compute; });
  });
  for (Step& step : steps) {
    step.start = step.events.front()->start;
    for (const auto* event : step.events) step.start = std::min(step.start, event->start);
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    double end = 0;
    for (const auto* event : steps[i].events) end = std::max(end, event->end);
    steps[i].wall = std::max(end, i + 1 < steps.size() ? steps[i + 1].start : 0) - steps[i].start;
  }
  return steps;
}

void find_segments(Step& step, const std::vector<ProfilerAnnotation>& outer) {
  std::map<std::string, int> seen;
  const ProfilerAnnotation* current = nullptr;
  for (const auto* event : step.events) {
    if (event->kind != EventKind::compute) continue;
    const ProfilerAnnotation* annotation = at(outer, event->launched >= 0 ? event->launched : event->start);
    if (annotation == nullptr) step.unattributed += event->end - event->start;
    // Kernels launched outside of any annotation, for example by optimizers, belong to the phase before.
    if (step.segments.empty() || (annotation != nullptr && annotation != current)) {
      const std::string name = annotation ? annotation->name : outer.empty() ? "step" : "before";
      const int times = ++seen[name];
      Segment segment;
      segment.start = event->start;
      segment.end = event->end;
      segment.name = times == 1 ? name : fmt::format("{} ({})", name, times);
      // Kernels of several streams may overlap, but phases must not: each begins no earlier than the one before ends.
      if (!step.segments.empty()) segment.start = std::max(segment.start, step.segments.back().end);
      step.segments.push_back(std::move(segment));
      current = annotation;
    }
    Segment& last = step.segments.back();
    last.end = std::max({last.end, last.start, event->end});
    ++last.launches;
  }
}

void break_down(Step& step) {
  Spans compute, collective, copy;
  for (const auto* event : step.events) {
    Spans& into = event->kind == EventKind::compute      ? compute
                  : event->kind == EventKind::collective ? collective
                                                         : copy;
    into.push_back({event->start, std::min(event->end, step.start + step.wall)});
  }
  std::erase_if(collective, [](const auto& span) { return span.end <= span.start; });
  compute = merged(std::move(compute)), collective = merged(std::move(collective)), copy = merged(std::move(copy));
  step.exposed = without(collective, compute);
  Spans busy = compute;
  busy.insert(busy.end(), collective.begin(), collective.end());
  busy = merged(std::move(busy));
  step.breakdown.step = step.wall;
  step.breakdown.compute = length(compute);
  step.breakdown.exposed = length(step.exposed);
  step.breakdown.overlapped = length(collective) - step.breakdown.exposed;
  step.breakdown.copies = length(without(copy, busy));
  step.breakdown.idle = std::max(0.0, step.wall - length(busy) - step.breakdown.copies);
  step.breakdown.unattributed = step.unattributed / std::max(1e-12, step.breakdown.compute);
}

/// Keeps the steps whose phases come in the most frequent order.
std::vector<Step> alike(std::vector<Step> steps, std::size_t& left_out) {
  std::map<std::string, std::size_t> counts;
  for (const Step& step : steps) ++counts[step.order()];
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == counts.end()) return steps;
  const std::string order = most->first;
  left_out = std::erase_if(steps, [&](const Step& step) { return step.order() != order; });
  return steps;
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
  for (std::size_t s = 0; s < steps.front().segments.size(); ++s) {
    TracePhase phase;
    phase.name = steps.front().segments[s].name;
    phase.network = "model";
    phase.stream = "compute";
    phase.launches = steps.front().segments[s].launches;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      const Segment& segment = step.segments[s];
      const double start = segment.start - step.start - step.removed(segment.start);
      const double end = std::min(segment.end - step.start - step.removed(segment.end), batch.wall_s[i]);
      phase.start_s.push_back(std::max(0.0, std::min(start, batch.wall_s[i])));
      phase.seconds.push_back(std::max(0.0, end - phase.start_s.back()));
      phase.host_s.push_back(0);
    }
    batch.phases.push_back(std::move(phase));
  }
  return batch;
}

/// The all-reduces of a step as buckets, each after the phase in which it starts.
void add_buckets(TraceBatch& batch, const Step& step, const ProfilerEvents& events) {
  for (const auto* event : step.events) {
    if (event->kind != EventKind::collective || event->bytes <= 0) continue;
    std::string what = events.collectives[static_cast<std::size_t>(event->what)];
    std::transform(what.begin(), what.end(), what.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (what.find("allreduce") == std::string::npos) continue;
    const Segment* after = &step.segments.front();
    for (const Segment& segment : step.segments)
      if (segment.start <= event->start) after = &segment;
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
    std::vector<ProfiledKernel>& kernels = all.emplace_back();
    std::size_t segment = 0;
    for (const auto* event : step.events) {
      if (event->kind != EventKind::compute) continue;
      while (segment + 1 < step.segments.size() && event->start >= step.segments[segment + 1].start) ++segment;
      kernels.push_back({step.segments[segment].name, event->end - event->start, event->matrix});
    }
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

void add_notes(ProfilerImport& out, const ProfilerOptions& options, bool no_annotations) {
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
  if (out.left_out > 0)
    out.notes.push_back(fmt::format("{} steps have other phases than most and are left out", out.left_out));
}

}  // namespace

ProfilerImport import_profiler(const ProfilerEvents& events, const ProfilerOptions& options) {
  ProfilerImport out;
  const auto outer = outermost(events);
  std::vector<Step> steps = steps_of(events);
  // The last step is left out, because its end is unknown: no step follows it.
  if (steps.size() > 2) steps.pop_back();
  for (Step& step : steps) {
    find_segments(step, outer);
    break_down(step);
  }
  steps = alike(std::move(steps), out.left_out);
  if (steps.size() < 2)
    throw ConfigError(
        fmt::format("{}: {} steps with kernels whose phases come in the same order, expected at least two", events.file,
                    steps.size()));
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
  add_notes(out, options, outer.empty());
  return out;
}

}  // namespace ganymede::traces
