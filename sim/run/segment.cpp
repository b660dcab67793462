#include "sim/run/segment.hpp"

#include <algorithm>
#include <cmath>

namespace ganymede::sim {
namespace {

/// Part of a step that rounding may add or remove.
constexpr double kStepRounding = 1e-9;

}  // namespace

double Segment::steps_to_first_checkpoint() const {
  return checkpoint_every > 0 ? std::max(0.0, checkpoint_every - since_checkpoint) : 0;
}

SegmentProgress Segment::at(Nanoseconds now) const {
  if (measured) return measured->progress;
  double elapsed = static_cast<double>(now - start) + checkpoint_written * checkpoint_ns;
  const double first = steps_to_first_checkpoint();
  if (checkpoint_every == 0 || elapsed <= first * step_ns) return {.steps = elapsed / step_ns, .checkpoints = 0};
  elapsed -= first * step_ns;
  const double cycle = checkpoint_ns + checkpoint_every * step_ns;
  const double cycles = std::floor(elapsed / cycle);
  const double rest = elapsed - cycles * cycle;
  const double before = first + cycles * checkpoint_every;
  const auto complete = static_cast<std::int64_t>(cycles);
  if (rest < checkpoint_ns) return {.steps = before, .checkpoints = complete, .writing_ns = rest};
  return {.steps = before + (rest - checkpoint_ns) / step_ns, .checkpoints = complete + 1};
}

Nanoseconds Segment::time_of(double count) const {
  const double first = steps_to_first_checkpoint();
  double writes = 0;
  if (checkpoint_every > 0 && count > first + kStepRounding)
    writes = std::floor((count - first - kStepRounding) / checkpoint_every) + 1;
  return start + std::llround(count * step_ns + (writes - checkpoint_written) * checkpoint_ns);
}

double Segment::durable_steps(std::int64_t checkpoints) const {
  if (measured) return measured->durable_steps;
  return steps_to_first_checkpoint() + static_cast<double>(checkpoints - 1) * checkpoint_every;
}

double steps_to_whole(double so_far, double more) { return std::max(1e-9, std::ceil(so_far + more - 1e-6) - so_far); }

}  // namespace ganymede::sim
