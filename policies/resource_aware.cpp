#include <algorithm>
#include <cmath>

#include "policies/choices.hpp"

namespace ganymede {
namespace {

/// Seconds between two changes, at least: what a change costs must be earned back.
bool too_early(const PolicyCall& call, double cooldown) {
  const auto last = call.memory.find("changed_at");
  return last != call.memory.end() && call.seen.now.si - last->second < cooldown;
}

/// Of processors and memory, what is used and half as much again, in eighths; never less than one.
double reserve(double used) { return std::clamp(std::ceil(1.5 * used * 8) / 8, 0.125, 1.0); }

/// Waiting for input so long means too few processors.
constexpr double kStall = 0.02;

Decision nodes_for(const PolicyCall& call) {
  const Observation& seen = call.seen;
  const int now = nodes_now(seen);
  if (unsettled(seen) || too_early(call, call.settings[2])) return with_first(seen, now);
  // A change that would not be earned back before the end is none.
  if (time_left(seen, seen.rate) < 10 * (seen.restart + seen.boot).si) return with_first(seen, now);
  if (useful(seen) < call.settings[0] && now > 1) {
    call.memory["too_many"] = now;
    call.memory.erase("step_s");
    return change(call, std::max(1, now / 2));
  }
  // What turned out to be too many stays so until the steps change: until the model has grown.
  const double step_s = call.memory.try_emplace("step_s", seen.step_s).first->second;
  if (std::abs(seen.step_s / step_s - 1) > 0.15) {
    call.memory.erase("too_many");
    call.memory["step_s"] = seen.step_s;
  }
  const auto too_many = call.memory.find("too_many");
  const int more = std::min(seen.pools[0].most, now * 2);
  const bool known = too_many != call.memory.end() && more >= too_many->second;
  if (useful(seen) > call.settings[1] && more > now && !known) {
    call.memory.erase("step_s");
    return change(call, more);
  }
  return with_first(seen, now);
}

}  // namespace

// settings: low, high, cooldown
Decision decide_resource_aware(const PolicyCall& call) {
  const Observation& seen = call.seen;
  Decision decision = nodes_for(call);
  // What was reserved before there is anything new to see.
  const auto recall = [&](const char* name) { return call.memory.try_emplace(name, 1).first->second; };
  decision.cpus = recall("cpus");
  decision.memory = recall("memory");
  if (unsettled(seen)) return decision;
  decision.cpus = call.memory["cpus"] = seen.input_stall > kStall ? 1 : reserve(seen.cpu);
  decision.memory = call.memory["memory"] = seen.host_memory > 0 ? reserve(seen.host_memory) : 1;
  return decision;
}

}  // namespace ganymede
