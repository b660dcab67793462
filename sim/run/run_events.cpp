#include "sim/run/run_events.hpp"

namespace ganymede::sim {
namespace {

/// 285 years: sums of times up to here stay within 64 bits.
constexpr Nanoseconds kLastEvent = 9'000'000'000 * static_cast<Nanoseconds>(1'000'000'000);

}  // namespace

void SimulationQueue::schedule(ScheduledEvent event) {
  if (event.at < kLastEvent) queue_.push({event, order_++});
}

ScheduledEvent SimulationQueue::pop() {
  const ScheduledEvent next = queue_.top().scheduled;
  queue_.pop();
  return next;
}

}  // namespace ganymede::sim
