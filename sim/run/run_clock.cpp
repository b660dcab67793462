#include "sim/run/run_clock.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/units.hpp"
#include "sim/ledger/ledger.hpp"

namespace ganymede::sim {

Nanoseconds to_nanoseconds(Seconds time) { return whole_nanoseconds(time); }
Seconds to_seconds(Nanoseconds time) { return Seconds{static_cast<double>(time) / kNanosecondsPerSecond}; }

Stretch::Stretch(std::vector<Span> trained, Nanoseconds by) : trained_(std::move(trained)) {
  for (const Span& span : trained_) before_.push_back(before_.back() + span.to - span.from);
  by_ = std::max(by, -before_.back());
}

Nanoseconds Stretch::at(Nanoseconds moment) const {
  if (by_ == 0 || before_.back() == 0) return moment;
  const auto next =
      std::partition_point(trained_.begin(), trained_.end(), [&](const Span& span) { return span.from < moment; });
  Nanoseconds training = before_[static_cast<std::size_t>(next - trained_.begin())];
  if (next != trained_.begin()) training -= std::max<Nanoseconds>(0, std::prev(next)->to - moment);
  const double share = static_cast<double>(training) / static_cast<double>(before_.back());
  return moment + std::llround(share * static_cast<double>(by_));
}

}  // namespace ganymede::sim
