// Additions to the times of a distribution of steps: rare stalls, work, traffic and warnings.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "calibration/statistics.hpp"
#include "common/units.hpp"
#include "sim/steps/step_simulator.hpp"

namespace ganymede::sim {

/// Rare stalls of a sample are events of the run: their mean and variance are known without drawing any. In synchronous
/// steps the longest stall of all workers holds them all up; workers that step on their own are held up only by their
/// own stalls.
void StepSimulator::add_stalls(const RareStalls& stalls, StepDistribution& out) const {
  if (stalls.extra_s.empty()) return;
  const Synchronization& sync = scenario_.synchronization;
  const auto count = static_cast<double>(workers());
  const bool alone = workers() > 1 && (sync.mode == Mode::async_parameter_server || sync.mode == Mode::gossip);
  const double steps = sync.mode == Mode::local_sgd ? sync.local_steps : 1;
  const RareStalls::Moments longest = stalls.longest(alone ? 1 : static_cast<std::size_t>(batches()), steps);
  const double extra = longest.mean / steps;
  out.mean += Seconds{extra};
  out.own_variance += std::max(0.0, longest.square - longest.mean * longest.mean) / steps;
  std::vector<double> workers_of_pool(out.pools.size());
  for (const std::size_t pool : layout_.pool_of) ++workers_of_pool[pool];
  for (std::size_t pool = 0; pool < out.pools.size(); ++pool) {
    const double all = extra * workers_of_pool[pool];
    const double own = alone ? all : all / count;
    out.pools[pool].compute += Seconds{own};
    out.pools[pool].straggler += Seconds{all - own};
  }
}

/// Images, host time, operations and storage requests of a step.
void StepSimulator::add_work(const Workers& workers, StepDistribution& out) const {
  out.workers = static_cast<int>(layout_.pool_of.size());
  for (const std::size_t pool : layout_.pool_of) {
    out.images += workers.models.batch[pool];
    out.host += Seconds{workers.host_s[pool]};
    for (const auto& phase : workers.models.by_pool[pool].phases) out.flops += phase.flops;
  }
  // The sums above assume that each worker trains a batch. A pair trains one batch between them, and the images of
  // dropped backup workers do not count, though these workers do work.
  const int loaded = batches();
  out.images = out.images * batches_a_step(scenario_.synchronization, out.workers) / out.workers;
  out.host = out.host * loaded / out.workers;
  out.flops = out.flops * loaded / out.workers;
  out.reads = workers.models.reads;
}

void StepSimulator::add_traffic(StepDistribution& out) const {
  const Synchronization& sync = scenario_.synchronization;
  SiteTraffic traffic;
  if (communication_) {
    const double steps = sync.mode == Mode::local_sgd ? sync.local_steps : 1;
    out.busiest_link = communication_->busiest_link() / steps;
    traffic = sync.mode == Mode::gossip ? communication_->gossip_traffic() : communication_->ring_traffic();
    for (auto& [ends, bytes] : traffic) bytes = bytes / steps;
  }
  if (servers_) {
    // This assumes that all workers push equally often. In fact a worker next to the only server pushes more often, and
    // its link is always busy.
    out.busiest_link = std::min(servers_->busiest_link, out.mean);
    traffic = servers_->between_sites;
  }
  const auto pool_of = [&](std::size_t site) { return layout_.pool_of[layout_.sites[site].first_worker]; };
  for (const auto& [ends, bytes] : traffic)
    out.between_places.push_back({pool_of(ends.first), pool_of(ends.second), bytes});
}

void StepSimulator::add_warnings(const Workers& workers, StepDistribution& out) const {
  const std::size_t count = layout_.pool_of.size();
  if (workers.tail)
    out.warnings.push_back(fmt::format(
        "{} workers are more than a trace's blocks of {} steps tell apart: the slowest is drawn from a fitted tail "
        "(generalised Pareto, shape {:.2f}) beyond its longest tenth of steps",
        count, calibration::kBlockSteps, workers.tail->shape));
  else if (jitter_ && count > calibration::kBlockSteps)
    out.warnings.push_back(
        fmt::format("{} workers draw from a trace too short to fit its tail: the slowest of so many "
                    "is underestimated",
                    count));
  if (communication_ && communication_->starts_late())
    out.warnings.push_back(
        fmt::format("all-reduces start at their last arrival: simulating {:.3g} messages a step for workers that "
                    "arrive at different times would take too long; the time can only be too long for it",
                    communication_->messages_per_step()));
  if (const std::string version = communication_ ? communication_->nccl_version() : ""; !version.empty())
    out.warnings.push_back(version);
  if (!out.precise)
    out.warnings.push_back(fmt::format("the mean step is known to {:.1f} % only, not to the {:.1f} % asked for",
                                       100 * out.half_width, 100 * scenario_.precision));
  const std::vector<double>& stalls = workers.stalls.extra_s;
  if (stalls.empty()) return;
  const double mean_s = std::accumulate(stalls.begin(), stalls.end(), 0.0) / static_cast<double>(stalls.size());
  out.warnings.push_back(
      fmt::format("{} of the trace's {:.0f} steps are rare stalls of {} on average: they come as events at that rate",
                  stalls.size(), workers.stalls.steps, to_string(Seconds{mean_s})));
}

}  // namespace ganymede::sim
