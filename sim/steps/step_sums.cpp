#include "sim/steps/step_sums.hpp"

#include <utility>

#include "common/units.hpp"

namespace ganymede::sim {

StepSums::StepSums(std::vector<std::size_t> pool_of, std::vector<double> slowest)
    : pool_of_(std::move(pool_of)), slowest_(std::move(slowest)), pools_(slowest_.size()) {}

void StepSums::add(const StepOutcome& step, double times) {
  total_ += times * step.duration;
  for (std::size_t w = 0; w < step.workers.size(); ++w) {
    const WorkerStep& worker = step.workers[w];
    PoolStep& sum = pools_[pool_of_[w]];
    sum.compute += times * worker.compute;
    sum.exposed += times * worker.exposed_communication;
    sum.straggler += times * worker.straggler;
    sum.stall += times * worker.input_stall;
    sum.lost += times * worker.lost;
    sum.device += times * worker.device;
  }
}

void StepSums::write_mean_step(double steps, StepDistribution& out) const {
  out.mean = total_ / steps;
  out.pools = pools_;
  for (std::size_t p = 0; p < out.pools.size(); ++p) {
    PoolStep& pool = out.pools[p];
    const Seconds mean_worker = pool.compute / slowest_[p];
    pool.straggler += pool.compute - mean_worker;
    pool.compute = mean_worker;
    pool.device = pool.device / slowest_[p];
    for (Seconds* part : {&pool.compute, &pool.exposed, &pool.straggler, &pool.stall, &pool.lost, &pool.device})
      *part = *part / steps;
  }
}

}  // namespace ganymede::sim
