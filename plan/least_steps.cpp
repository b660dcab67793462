#include "plan/least_steps.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "calibration/worker_variation.hpp"
#include "common/json_value.hpp"
#include "plan/bounds.hpp"
#include "plan/what_if.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/run/run_state.hpp"
#include "sim/steps/gradient_passes.hpp"
#include "sim/steps/synchronous_step.hpp"
#include "sim/steps/worker_models.hpp"
#include "traces/recipe.hpp"

namespace ganymede::plan {

double least_over_seeds(const Request& request, std::span<const double> of_stages) {
  int seeds = std::max({1, request.seeds, request.seeds_at_risk});
  if (request.quality) seeds |= 1;  // runs_for()
  if (request.stage_variation <= 0) seeds = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < seeds; ++i) {
    const std::vector<double> ends = sim::draw_stage_ends(request.seed + static_cast<std::uint64_t>(i),
                                                          request.stage_shares, request.stage_variation, 1);
    double sum = 0;
    for (std::size_t stage = 0; stage < ends.size(); ++stage)
      sum += of_stages[stage] * (ends[stage] - (stage == 0 ? 0 : ends[stage - 1]));
    least = std::min(least, sum);
  }
  return least;
}

LeastSteps::LeastSteps(const Request& request, const Request::Batch& batch, const platforms::Platform& platform,
                       const platforms::Instance& instance, calibration::KnownWorkloads& known)
    : request_(request),
      batch_(batch),
      instance_(instance),
      one_mode_(!request.common.contains("synchronization")),
      flat_(one_mode_ && traces::reduces_flat(request.trace.software)),
      least_traffic_(std::all_of(request.schemes.begin(), request.schemes.end(),
                                 [](const std::string& name) { return sim::parse_scheme(name).row->by_kernels; })
                         ? 2
                         : 1) {
  const platforms::Gpu& gpu = platform.gpu_of(instance);
  once_ = least_start(request, platform, instance);
  for (const std::size_t entry : batch.stages) {
    const calibration::WorkloadModel& workload =
        known.on(request.trace, entry, gpu, instance.host_link ? &*instance.host_link : nullptr);
    Stage stage{sim::accumulate(workload.central, batch.passes), 0, 0, workload.worker_variation};
    if (flat_) stage.step = sim::flatten(std::move(stage.step));
    sim::slow_down(stage.step, step_factor(request, gpu));
    stage.fastest_s = stage.step.step_s(0);
    for (std::size_t sample = 1; sample < stage.step.samples; ++sample)
      stage.fastest_s = std::min(stage.fastest_s, stage.step.step_s(sample));
    for (calibration::StepPhase& phase : stage.step.phases)
      if (phase.stream == calibration::Stream::input) std::ranges::fill(phase.device_s, 0.0);
    for (const calibration::StepBucket& bucket : stage.step.buckets) stage.bytes += static_cast<double>(bucket.bytes);
    const bool copies = flat_ && stage.variation.bandwidth > 0;  // of gradients, in the recorded step already
    stage.variation.seconds_per_byte *= copies ? 0 : calibration::work_on_gradients(stage.variation, gpu);
    stages_.push_back(std::move(stage));
  }
}

// Proof. A worker's simulated step takes the times of its phases, drawn together from one recorded step of its model,
// and may then wait (for its input, its gradients, the slowest worker, a checkpoint). It is never shorter than the
// fastest recorded step (of as many passes as the request states), in which the worker trains a batch. If nodes train
// together step by step, all do so at the pace of the slowest, which is the same factor as in simulations, and each of
// them needs the sum of all gradients before a step ends. Whatever the scheme, each node receives at least one number
// for each gradient, a sum or a part of one, over its NICs. Where nodes and no switches add, each of n nodes but one
// must send its numbers on, and each but one receive the sum: n of them receive 2 (n - 1) numbers in all, and the one
// that receives the most at least 2 (n - 1) / n. Buckets are exchanged one after the other, each after it is ready, and
// a network's update waits for its own: a step whose buckets take no more than that and whose input is always there is
// no longer than a simulated one, in which nothing that is later makes anything earlier.
double LeastSteps::joined_s(const Stage& stage, int nodes, int gpus_per_node) const {
  if (!one_mode_ || nodes < 2) return stage.fastest_s;
  const auto workers = static_cast<std::size_t>(nodes * gpus_per_node);
  const double slowest =
      calibration::synchronization_slowdown(stage.variation, workers, 0, /*steps=*/1, stage.bytes, stage.step.mean_s());
  if (!instance_.nic) return stage.fastest_s * slowest;
  const double traffic = least_traffic_ > 1 ? 2 * (1 - 1.0 / nodes) : 1;
  const double byte_s = traffic / (instance_.nic->burst.value_or(instance_.nic->bandwidth).si * instance_.nic->count);
  if (stage.step.samples > 1) return std::max(stage.fastest_s * slowest, stage.bytes * byte_s);
  calibration::StepModel step = stage.step;
  sim::slow_down(step, slowest);
  const auto exchange = [&](std::span<const sim::Reduction> reductions) {
    std::vector<std::vector<Seconds>> done;
    Seconds free{0};
    for (const sim::Reduction& reduction : reductions) {
      const auto bytes = static_cast<double>(step.buckets[reduction.bucket].bytes);
      free = std::max(free, reduction.arrivals.front()) + Seconds{bytes * byte_s};
      done.push_back({free, free});
    }
    return done;
  };
  sim::SynchronousStep process(step, sim::clustered(2, 1), {.overlap = !flat_}, exchange);
  constexpr std::size_t kRows[] = {0, 0};
  return process.next(kRows).duration.si;
}

LeastWork LeastSteps::work(int nodes, int gpus_per_node) const {
  std::vector<double> alone_s, together_s;
  for (const Stage& stage : stages_) {
    alone_s.push_back(stage.fastest_s / batch_.per_gpu);
    together_s.push_back(joined_s(stage, nodes, gpus_per_node) / batch_.per_gpu);
  }
  LeastWork work = once_;
  work.alone_s = least_over_seeds(request_, alone_s);
  work.joined_s = least_over_seeds(request_, together_s);
  return work;
}

}  // namespace ganymede::plan
