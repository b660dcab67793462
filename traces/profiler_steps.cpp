#include "traces/profiler_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace ganymede::traces {
namespace {

using Spans = std::vector<ProfilerSpan>;
using EventKind = ProfilerGpuEvent::Kind;

/// Kineto writes whole nanoseconds. What is less is left over from sums.
constexpr double kLeast = 0.5e-9;

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
      if (cut->start > span.start + kLeast) out.push_back({span.start, cut->start});
      span.start = std::max(span.start, cut->end);
    }
    if (span.start + kLeast < span.end) out.push_back(span);
  }
  return out;
}

/// The parts of merged spans from `start` to `end`.
Spans within(const Spans& spans, double start, double end) {
  Spans out;
  auto at =
      std::lower_bound(spans.begin(), spans.end(), start, [](const auto& span, double t) { return span.end <= t; });
  for (; at != spans.end() && at->start < end; ++at)
    out.push_back({std::max(at->start, start), std::min(at->end, end)});
  return out;
}

/// When the host launched each GPU event. A stream runs its events in the order of their launches: one whose launch is
/// not in the trace follows the one before it, and those before the first launch are from before the trace. A stream
/// that has no launches at all is taken to start its events at once.
std::vector<double> launch_times(const ProfilerEvents& events) {
  std::map<std::int64_t, double> latest;  // by stream
  for (const ProfilerGpuEvent& event : events.gpu)
    if (event.launched >= 0) latest[event.stream] = -std::numeric_limits<double>::infinity();
  std::vector<double> out;
  out.reserve(events.gpu.size());
  for (const ProfilerGpuEvent& event : events.gpu) {
    const auto stream = latest.find(event.stream);
    if (stream != latest.end() && event.launched >= 0) stream->second = event.launched;
    out.push_back(stream == latest.end() ? event.start : stream->second);
  }
  return out;
}

/// An event with the time of its launch.
struct Launched {
  const ProfilerGpuEvent* event;
  double time;
};

/// The stream that computes longest in the steps.
std::int64_t main_stream(const std::vector<std::vector<Launched>>& steps) {
  std::map<std::int64_t, double> seconds;
  for (const auto& step : steps)
    for (const Launched& launched : step)
      if (launched.event->kind == EventKind::compute)
        seconds[launched.event->stream] += launched.event->end - launched.event->start;
  const auto longest = std::max_element(seconds.begin(), seconds.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  return longest == seconds.end() ? -1 : longest->first;
}

/// The events of each of the trace's steps, in the order in which they were launched.
std::vector<std::vector<Launched>> launched_in(const ProfilerEvents& events) {
  std::vector<std::vector<Launched>> steps(events.steps.size());
  const std::vector<double> times = launch_times(events);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto after = std::upper_bound(events.steps.begin(), events.steps.end(), times[i],
                                        [](double t, const ProfilerStep& step) { return t < step.start; });
    if (after == events.steps.begin() || times[i] > std::prev(after)->end) continue;
    steps[static_cast<std::size_t>(std::prev(after) - events.steps.begin())].push_back({&events.gpu[i], times[i]});
  }
  for (auto& step : steps)
    std::stable_sort(step.begin(), step.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
  return steps;
}

const ProfilerAnnotation* annotation_at(const std::vector<ProfilerAnnotation>& outer, double time) {
  const auto after = std::upper_bound(outer.begin(), outer.end(), time,
                                      [](double t, const ProfilerAnnotation& a) { return t < a.start; });
  if (after == outer.begin() || std::prev(after)->end < time) return nullptr;
  return &*std::prev(after);
}

/// Names the phases in the order of their launches, and counts the kernels of each.
void name_phases(ProfilerGpuStep& step, const std::vector<Launched>& events,
                 const std::vector<ProfilerAnnotation>& outer) {
  std::map<std::string, int> seen;
  const ProfilerAnnotation* current = nullptr;
  double seconds = 0, unattributed = 0;
  for (const auto& [event, time] : events) {
    step.events.push_back(event);
    if (event->kind != EventKind::compute) continue;
    const ProfilerAnnotation* annotation = annotation_at(outer, time);
    seconds += event->end - event->start;
    if (annotation == nullptr) unattributed += event->end - event->start;
    // Kernels launched outside of any annotation, for example by optimizers, belong to the phase before.
    if (step.phases.empty() || (annotation != nullptr && annotation != current)) {
      const std::string name = annotation ? annotation->name : outer.empty() ? "step" : "before";
      const int times = ++seen[name];
      step.phases.emplace_back().name = times == 1 ? name : fmt::format("{} ({})", name, times);
      current = annotation;
    }
    ++step.phases.back().launches;
    step.phase_of.push_back(step.phases.size() - 1);
  }
  step.breakdown.unattributed = unattributed / std::max(1e-12, seconds);
}

/// Gives each phase the time of its kernels on the main stream, where phases follow each other. A phase that has none
/// there gets what its kernels need between the phases around it.
void time_phases(ProfilerGpuStep& step, std::int64_t stream) {
  constexpr double kLate = std::numeric_limits<double>::infinity();
  const std::size_t count = step.phases.size();
  Spans own(count, {kLate, -kLate}), other = own;
  std::size_t computing = 0;
  for (const ProfilerGpuEvent* event : step.events) {
    if (event->kind != EventKind::compute) continue;
    ProfilerSpan& span = (event->stream == stream ? own : other)[step.phase_of[computing++]];
    span = {std::min(span.start, event->start), std::max(span.end, event->end)};
  }
  double next = step.start + step.wall;
  for (std::size_t i = count; i-- > 0;) {
    if (own[i].start <= own[i].end)
      next = own[i].start;
    else
      own[i] = {other[i].start, std::min(other[i].end, next)};
  }
  double before = step.start;
  for (std::size_t i = 0; i < count; ++i) {
    step.phases[i].start = std::max(before, std::min(own[i].start, own[i].end));
    step.phases[i].end = before = std::max(step.phases[i].start, own[i].end);
  }
}

/// The GPU's work by kind over the whole trace, merged.
struct Work {
  Spans compute, collective, copy;
  explicit Work(const ProfilerEvents& events) {
    for (const ProfilerGpuEvent& event : events.gpu)
      (event.kind == EventKind::compute      ? compute
       : event.kind == EventKind::collective ? collective
                                             : copy)
          .push_back(event);
    compute = merged(std::move(compute)), collective = merged(std::move(collective)), copy = merged(std::move(copy));
  }
};

void break_down(ProfilerGpuStep& step, const Work& work) {
  const double end = step.start + step.wall;
  const Spans compute = within(work.compute, step.start, end);
  const Spans collective = within(work.collective, step.start, end);
  step.exposed = without(collective, compute);
  Spans busy = compute;
  busy.insert(busy.end(), collective.begin(), collective.end());
  busy = merged(std::move(busy));
  step.breakdown.step = step.wall;
  step.breakdown.compute = length(compute);
  step.breakdown.exposed = length(step.exposed);
  step.breakdown.overlapped = length(collective) - step.breakdown.exposed;
  step.breakdown.copies = length(without(within(work.copy, step.start, end), busy));
  const double idle = step.wall - length(busy) - step.breakdown.copies;
  step.breakdown.idle = idle > kLeast ? idle : 0;
}

double launch_of(const ProfilerGpuEvent& event) { return event.launched >= 0 ? event.launched : event.start; }

/// The thread whose annotations last longest in all.
std::string annotated_thread(const ProfilerEvents& events) {
  std::map<std::string, double> seconds;
  for (const ProfilerAnnotation& annotation : events.annotations)
    seconds[annotation.thread] += annotation.end - annotation.start;
  const auto longest = std::max_element(seconds.begin(), seconds.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  return longest == seconds.end() ? "" : longest->first;
}

}  // namespace

void find_steps(ProfilerEvents& events) {
  std::vector<std::vector<Launched>> all(1);
  double first = std::numeric_limits<double>::infinity(), last = 0;
  for (const ProfilerGpuEvent& event : events.gpu) {
    all[0].push_back({&event, launch_of(event)});
    first = std::min(first, launch_of(event)), last = std::max(last, launch_of(event));
  }
  const std::int64_t stream = main_stream(all);
  std::vector<const ProfilerGpuEvent*> kernels;
  for (const ProfilerGpuEvent& event : events.gpu)
    if (event.stream == stream && event.kind == EventKind::compute) kernels.push_back(&event);
  std::vector<std::size_t> begins = step_begins(kernels);
  events.steps_are = begins.empty() ? ProfilerEvents::Steps::whole : ProfilerEvents::Steps::repeated;
  std::vector<double> bounds = {first};
  if (!begins.empty()) {
    bounds.clear();
    for (const std::size_t place : begins) bounds.push_back(launch_of(*kernels[place]));
    // What begins last is no step, because nothing says when it is over.
    last = std::nextafter(bounds.back(), first);
    bounds.pop_back();
  }
  if (!events.steps.empty()) {  // marked
    const auto off = static_cast<std::int64_t>(begins.size()) - static_cast<std::int64_t>(events.steps.size());
    if (begins.empty() || std::abs(off) > 1) {
      events.steps_are = ProfilerEvents::Steps::marked;
      return;
    }
    events.steps_are = ProfilerEvents::Steps::repeated_unlaunched;
    events.steps.clear();
  }
  const std::string thread = annotated_thread(events);
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    ProfilerStep step;
    step.start = bounds[i];
    step.end = i + 1 < bounds.size() ? bounds[i + 1] : last;
    step.number = static_cast<std::int64_t>(i);
    step.thread = thread;
    events.steps.push_back(std::move(step));
  }
}

std::string ProfilerGpuStep::order() const {
  std::string names;
  for (const ProfilerPhase& phase : phases) names += phase.name + "\n";
  return names;
}

double ProfilerGpuStep::exposed_before(double time) const {
  double sum = 0;
  for (const ProfilerSpan& span : exposed) sum += std::max(0.0, std::min(time, span.end) - span.start);
  return sum;
}

std::vector<ProfilerAnnotation> outermost_annotations(const ProfilerEvents& events) {
  std::vector<ProfilerAnnotation> outer;
  for (const ProfilerAnnotation& annotation : events.annotations) {
    if (annotation.thread != events.steps.front().thread) continue;
    if (!outer.empty() && annotation.end <= outer.back().end) continue;
    outer.push_back(annotation);
  }
  return outer;
}

std::vector<ProfilerGpuStep> gpu_steps(const ProfilerEvents& events, const std::vector<ProfilerAnnotation>& outer) {
  const auto launched = launched_in(events);
  const std::int64_t stream = main_stream(launched);
  std::vector<ProfilerGpuStep> steps;
  double end = 0;        // of the work on the main stream so far
  double host_end = 0;   // of the latest step on the host
  std::size_t last = 0;  // of the steps that compute
  double delay = 0;      // sum over steps: from when both host and GPU are ready for the step until the GPU begins it
  for (std::size_t i = 0; i < launched.size(); ++i) {
    ProfilerSpan work{std::numeric_limits<double>::infinity(), 0};
    bool computes = false;
    for (const auto& [event, time] : launched[i]) {
      if (event->stream != stream) continue;
      work = {std::min(work.start, event->start), std::max(work.end, event->end)};
      computes = computes || event->kind == EventKind::compute;
    }
    if (!computes) continue;
    const double start = std::max(work.start, end);
    // Between steps that were not recorded one after the other, as with a schedule that repeats, is no period.
    const bool follows = !steps.empty() && events.steps[i].number == events.steps[last].number + 1;
    if (!steps.empty() && !follows) {
      steps.back().wall = std::max(end, events.steps[last].end) - steps.back().start;
    } else if (!steps.empty()) {
      delay += std::max(0.0, start - std::max(events.steps[i].start, end));
      steps.back().wall = start - steps.back().start;
    }
    ProfilerGpuStep& step = steps.emplace_back();
    step.start = start;
    end = std::max(start, work.end);
    host_end = events.steps[i].end;
    last = i;
    name_phases(step, launched[i], outer);
  }
  if (steps.empty()) return steps;
  if (steps.size() > 1) delay /= static_cast<double>(steps.size() - 1);
  steps.back().wall = std::max(end, host_end) + delay - steps.back().start;
  std::erase_if(steps, [](const ProfilerGpuStep& step) { return !(step.wall > 0); });
  const Work work(events);
  for (ProfilerGpuStep& step : steps) {
    time_phases(step, stream);
    break_down(step, work);
  }
  return steps;
}

}  // namespace ganymede::traces
