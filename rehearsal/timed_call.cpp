#include "rehearsal/timed_call.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "common/errors.hpp"
#include "common/statistics.hpp"
#include "rehearsal/clock.hpp"
#include "rehearsal/contributions.hpp"
#include "rehearsal/gpu_rounds.hpp"

namespace ganymede::rehearsal {
namespace {

constexpr int kWarmups = 3, kMinRepeats = 7, kMaxRepeats = 101;
constexpr double kBudget = 1;  // seconds of measuring for each call, about

/// One rank's side of the calls.
class Caller {
 public:
  Caller(Group& group, kernel::GpuExchange* gpu, const sim::Schedule& schedule)
      : group_(group), gpu_(gpu), plan_(schedule, group.rank()), buffer_(plan_.floats()) {
    if (gpu_ != nullptr) gpu_->plan(buffer_.size(), gpu_rounds(plan_));
  }

  struct Times {
    double start, end, processor;
  };
  Times call(double start) {
    fill(buffer_, group_.rank());
    if (gpu_ != nullptr) gpu_->write(buffer_);
    group_.sleep_until(start, true);
    Times times{group_.now(), 0, processor_time()};
    if (gpu_ != nullptr) {
      gpu_->start();
      group_.finish(*gpu_, static_cast<std::int64_t>(buffer_.size() * sizeof(float)));
    } else {
      Execution execution(plan_, group_.messenger(), buffer_, Group::kFirstFreeTag);
      group_.finish(execution);
    }
    times.end = group_.now();
    times.processor = processor_time() - times.processor;
    if (gpu_ != nullptr) gpu_->read(buffer_);
    if (fault_.empty()) fault_ = fault_in_sum(buffer_, group_.ranks());
    return times;
  }
  /// The fault of a sum on any rank; "": none.
  std::string fault() { return group_.first_of(fault_); }

 private:
  Group& group_;
  kernel::GpuExchange* gpu_;
  RankPlan plan_;
  std::string fault_;
  std::vector<float> buffer_;
};

/// The 95 % interval of the median of sorted values: ranks (n ± 1.96 sqrt(n)) / 2 of the binomial distribution.
std::array<double, 2> interval_of_median(std::span<const double> sorted) {
  const auto n = static_cast<double>(sorted.size());
  const auto low = std::max(0.0, std::floor((n - 1.96 * std::sqrt(n)) / 2));
  const auto first = static_cast<std::size_t>(low);
  return {sorted[first], sorted[sorted.size() - 1 - first]};
}

/// Seconds between the starts of two calls, and their number.
struct Pace {
  double period;
  int repeats;
};
Pace warm_up(Group& group, Caller& caller, int repeats_asked) {
  constexpr double kMargin = 1.5, kPause = 2e-3;
  double longest = 0;
  for (int i = 0; i < kWarmups; ++i) {
    group.barrier();
    const double before = group.now();
    caller.call(before);
    longest = group.now() - before;  // of the last call: the first ones open connections
  }
  const auto all = group.gather({&longest, 1});
  for (const auto& seconds : all) longest = std::max(longest, seconds[0]);
  group.broadcast({&longest, 1});
  const double repeats = std::clamp(kBudget / longest, double{kMinRepeats}, double{kMaxRepeats});
  return {kMargin * longest + kPause, repeats_asked > 0 ? repeats_asked : static_cast<int>(repeats)};
}

}  // namespace

TimedCall time_call(Group& group, kernel::GpuExchange* gpu, const sim::Schedule& schedule, const std::string& what,
                    int repeats) {
  group.enter(what);
  Caller caller(group, gpu, schedule);
  const Pace pace = warm_up(group, caller, repeats);
  if (const std::string fault = caller.fault(); !fault.empty()) throw Failure(what + ": " + fault);
  double begin = group.now() + pace.period;
  group.broadcast({&begin, 1});
  std::vector<double> mine;
  for (int i = 0; i < pace.repeats; ++i) {
    const Caller::Times times = caller.call(begin + i * pace.period);
    mine.insert(mine.end(), {times.start, times.end, times.processor});
  }
  const auto all = group.gather(mine);
  if (const std::string fault = caller.fault(); !fault.empty()) throw Failure(what + ": " + fault);
  if (!group.is_first()) return {};

  TimedCall out{.repeats = pace.repeats};
  std::vector<double> times, spreads;
  for (std::size_t i = 0; i < mine.size(); i += 3) {
    double first = all[0][i], last = first, end = 0;
    for (const auto& rank : all) {
      first = std::min(first, rank[i]);
      last = std::max(last, rank[i]);
      end = std::max(end, rank[i + 1]);
      out.processor_s += rank[i + 2] / (pace.repeats * group.ranks());
    }
    times.push_back(end - first);
    spreads.push_back(last - first);
  }
  std::sort(times.begin(), times.end());
  std::sort(spreads.begin(), spreads.end());
  out.median_s = quantile(times, 0.5);
  const auto [low, high] = interval_of_median(times);
  out.low_s = low;
  out.high_s = high;
  out.spread_s = quantile(spreads, 0.5);
  return out;
}

}  // namespace ganymede::rehearsal
