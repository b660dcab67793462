#include "sim/run/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <memory>

#include "calibration/statistics.hpp"
#include "sim/engine/communication_engine.hpp"
#include "sim/run/step_sampler.hpp"
#include "sim/step/synchronous_step.hpp"

namespace ganymede {
namespace {

// Without jitter steps repeat after the input queue has filled, each one like the step before the last: where the two
// places of the queue bind, long and short steps alternate. This many in a row that do so say that all further ones
// will.
constexpr int kEqualSteps = 6;
constexpr std::size_t kBlocksAtLeast = 30;   // effective samples behind an interval
constexpr std::size_t kBlocksAtMost = 1000;  // 25,000 steps: enough for 0.5 % of a step that varies by 30 %

/// Mean step and where a step's worker-seconds go, over the steps that were simulated.
struct Steps {
  Seconds total;  ///< of all steps of the run
  Seconds mean;
  double half_width = 0;  ///< 95 %, relative to the mean, from simulating a sample and from the run being one of many
  std::int64_t simulated = 0;
  bool precise = true;  ///< the precision that was asked for was reached
  // Worker-seconds of a mean step.
  Seconds compute, exposed, straggler, stall;
};

/// The gradients of a model as schedules on the fabric of an allocation, and what they load it with.
class Communication {
 public:
  Communication(const Scenario& scenario, const StepModel& model)
      : fabric_(scenario.platform, scenario.instance(), scenario.pool.nodes, scenario.pool.gpus_per_node),
        engine_(std::make_unique<CommunicationEngine>(
            fabric_, ReductionCost{scenario.gpu().memory_bandwidth, scenario.gpu().launch})) {
    for (const auto& bucket : model.buckets)
      schedules_.push_back(scenario.scheme->plan(fabric_.topology(), bucket.bytes));
  }

  /// Without jitter the same arrivals come back every step; `remember` simulates each pattern of arrivals once.
  std::vector<std::vector<Seconds>> reduce(std::span<const Reduction> reductions, bool remember) {
    if (!remember) return simulate(reductions);
    const Seconds first = reductions.front().arrivals.front();
    std::vector<std::int64_t> pattern;  // picoseconds, below which the clock's rounding would tell steps apart
    for (const auto& reduction : reductions) {
      pattern.push_back(static_cast<std::int64_t>(reduction.bucket));
      for (const Seconds arrival : reduction.arrivals) pattern.push_back(std::llround((arrival - first).si * 1e12));
    }
    const auto [known, is_new] = known_.try_emplace(std::move(pattern));
    if (is_new) {
      known->second = simulate(reductions);
      for (auto& times : known->second)
        for (auto& done : times) done -= first;
    }
    auto done = known->second;
    for (auto& times : done)
      for (auto& time : times) time += first;
    return done;
  }

  /// Seconds a step for which the busiest link is needed at its full bandwidth.
  Seconds busiest_link() const {
    std::vector<double> bytes(fabric_.links().size());
    std::vector<Transfer> transfers;
    for (const auto& schedule : schedules_) {
      for (std::int64_t round = 0; round < schedule.rounds(); ++round) {
        schedule.round(round, transfers);
        for (const auto& transfer : transfers)
          for (const int link : fabric_.route(transfer.source, transfer.destination).links)
            bytes[static_cast<std::size_t>(link)] += static_cast<double>(transfer.length);
      }
    }
    Seconds busiest;
    for (std::size_t link = 0; link < bytes.size(); ++link)
      busiest = std::max(busiest, Bytes{bytes[link]} / fabric_.links()[link].bandwidth);
    return busiest;
  }

 private:
  std::vector<std::vector<Seconds>> simulate(std::span<const Reduction> reductions) {
    std::vector<CollectiveCall> calls;
    for (const auto& reduction : reductions) calls.push_back({&schedules_[reduction.bucket], reduction.arrivals});
    std::vector<std::vector<Seconds>> done;
    for (auto& times : engine_->run(calls)) done.push_back(std::move(times.done));
    return done;
  }

  FabricGraph fabric_;
  std::unique_ptr<CommunicationEngine> engine_;
  std::vector<Schedule> schedules_;
  std::map<std::vector<std::int64_t>, std::vector<std::vector<Seconds>>> known_;
};

void add(Steps& sum, const StepOutcome& step, double times = 1) {
  sum.total += times * step.duration;
  for (const auto& worker : step.workers) {
    sum.compute += times * worker.compute;
    sum.exposed += times * worker.exposed_communication;
    sum.straggler += times * worker.straggler;
    sum.stall += times * worker.input_stall;
  }
}

/// From sums over `simulated` steps to a mean step, and to a total over all `steps`.
void settle(Steps& steps, double counted, std::int64_t all) {
  steps.mean = steps.total / counted;
  for (Seconds* part : {&steps.compute, &steps.exposed, &steps.straggler, &steps.stall}) *part = *part / counted;
  steps.total = static_cast<double>(all) * steps.mean;
}

/// Without jitter: simulate until steps repeat, then count the rest as repetitions of the last two.
Steps repeat_steps(SynchronousStep& step, std::size_t workers, std::int64_t all) {
  const std::vector<std::size_t> rows(workers, 0);
  Steps sum;
  int equal = 0;
  StepOutcome before;
  StepOutcome last;
  while (sum.simulated < all && equal < kEqualSteps) {
    StepOutcome next = step.next(rows);
    equal = sum.simulated > 1 && std::abs(next.duration / before.duration - 1) < 1e-9 ? equal + 1 : 0;
    before = std::exchange(last, std::move(next));
    add(sum, last);
    ++sum.simulated;
  }
  const std::int64_t rest = all - sum.simulated;
  const std::int64_t like_last = rest / 2;
  add(sum, before, static_cast<double>(rest - like_last));
  add(sum, last, static_cast<double>(like_last));
  settle(sum, static_cast<double>(all), all);
  return sum;
}

/// With jitter: simulate blocks of drawn steps. `all_steps` simulates each step of the run; otherwise as many blocks as
/// the precision takes.
Steps sample_steps(SynchronousStep& step, const Scenario& scenario, const WorkloadModel& workload, bool all_steps) {
  StepSampler sampler(workload.central.samples, static_cast<std::size_t>(scenario.workers()), kBlockSteps,
                      scenario.seed);
  const std::size_t length = sampler.block_length();
  std::vector<double> durations;
  Steps sum;
  BlockMean spread;
  const auto relative = [&] {
    // The run is itself one sample: its mean lies off the long mean by its own number of blocks.
    const double run_blocks = std::max(1.0, static_cast<double>(scenario.steps) / static_cast<double>(length));
    const double own = all_steps ? 0 : 1.96 * spread.block_deviation / std::sqrt(run_blocks);
    return std::hypot(spread.half_width, own) / spread.mean;
  };
  if (!all_steps)
    for (std::size_t i = 0; i < length; ++i)
      step.next(sampler.next());  // fills the input queue, which happens once a run
  for (std::size_t blocks = 1;; ++blocks) {
    for (std::size_t i = 0; i < length && !(all_steps && sum.simulated == scenario.steps); ++i) {
      const StepOutcome outcome = step.next(sampler.next());
      durations.push_back(outcome.duration.si);
      add(sum, outcome);
      ++sum.simulated;
    }
    if (all_steps && sum.simulated < scenario.steps) continue;
    spread = block_mean(durations, length);
    if (all_steps) break;
    const bool precise = spread.half_width <= scenario.precision * spread.mean;
    if (blocks >= kBlocksAtLeast && (precise || blocks >= kBlocksAtMost)) {
      sum.precise = precise;
      break;
    }
  }
  settle(sum, static_cast<double>(sum.simulated), scenario.steps);
  sum.half_width = relative();
  return sum;
}

Steps simulate_steps(const Scenario& scenario, const WorkloadModel& workload, const StepModel& model,
                     Communication* communication) {
  const Topology topology{scenario.workers(), scenario.pool.gpus_per_node};
  const bool message = scenario.fidelity == Fidelity::message;
  const bool remember = model.samples == 1 && !message;
  Reduce reduce;
  if (communication) reduce = [&](std::span<const Reduction> r) { return communication->reduce(r, remember); };
  SynchronousStep step(model, topology, {.overlap = scenario.overlap}, reduce);
  if (model.samples > 1 || (message && &model == &workload.central))
    return sample_steps(step, scenario, workload, message);
  return repeat_steps(step, static_cast<std::size_t>(scenario.workers()), scenario.steps);
}

/// The facts behind this run that the catalog itself does not vouch for, each once.
std::vector<std::string> unconfirmed(const Scenario& scenario) {
  const Instance& instance = scenario.instance();
  std::vector<std::pair<std::string, const Origin*>> facts = {{scenario.gpu().name, &scenario.gpu().origin},
                                                              {instance.name, &instance.origin},
                                                              {"price", &scenario.price.origin},
                                                              {"provisioning", &scenario.platform.provisioning.origin},
                                                              {"billing", &scenario.platform.billing.origin}};
  if (scenario.pool.nodes > 1) {
    facts.emplace_back("fabric", &scenario.platform.fabric.origin);
    if (instance.nic) facts.emplace_back("NIC", &instance.nic->origin);
  }
  if (scenario.pool.gpus_per_node > 1 && instance.gpu_links)
    facts.emplace_back("GPU links", &instance.gpu_links->origin);
  std::vector<std::string> warnings;
  for (const auto& [what, origin] : facts)
    if (!origin->unconfirmed.empty()) warnings.push_back(fmt::format("unconfirmed: {}: {}", what, origin->unconfirmed));
  return warnings;
}

/// What the run costs if its steps take `training`.
Bill bill_for(const Scenario& scenario, Seconds metered) {
  const std::string pool =
      fmt::format("{} {} {}", scenario.pool.instance, scenario.pool.region, to_string(scenario.pool.market));
  return {{instance_hours(pool, scenario.pool.nodes, scenario.price.per_hour, metered,
                          {scenario.platform.billing.granularity, scenario.platform.billing.minimum})}};
}

double dollars(MicroUsd amount) { return static_cast<double>(amount.value) * 1e-6; }

/// Host seconds of one mean step: input work and launching.
Seconds host_work(const StepModel& model) {
  double sum = 0;
  for (const auto& phase : model.phases)
    for (std::size_t i = 0; i < model.samples; ++i)
      sum += phase.host_s[i] + (phase.stream == Stream::input ? phase.device_s[i] : 0);
  return Seconds{sum / static_cast<double>(model.samples)};
}

double flops_a_step(const StepModel& model) {
  double sum = 0;
  for (const auto& phase : model.phases) sum += phase.flops;
  return sum;
}

void describe(Result& result, const Scenario& scenario, const WorkloadModel& workload) {
  result.platform = scenario.platform.name + " " + scenario.pool.region;
  result.allocation = fmt::format("{} x {}", scenario.pool.nodes, scenario.pool.instance);
  result.gpu = scenario.gpu().name;
  result.gpus = scenario.workers();
  result.scheme = scenario.workers() > 1 ? std::string(scenario.scheme->name) : "none";
  result.fidelity = scenario.fidelity == Fidelity::message ? "message" : "sampled";
  result.memory = gpu_memory(scenario.batch());
  result.hash = scenario.hash;
  result.seed = scenario.seed;
  result.inputs = to_string(workload.provenance);
  result.step_source = workload.rule;
  // Inside one node only the instance's own links are used, whose figures are a data sheet's.
  result.fabric_source = scenario.workers() == 1    ? "not used"
                         : scenario.pool.nodes == 1 ? "datasheet"
                                                    : scenario.platform.fabric.label;
  result.software = fmt::format("{} {} ({})", scenario.trace.software.name, scenario.trace.software.version,
                                scenario.trace.software.backend);
  result.prices_as_of = scenario.price.as_of;
  result.warnings = workload.warnings;
  for (auto& warning : unconfirmed(scenario)) result.warnings.push_back(std::move(warning));
}

void use_of_hardware(Result& result, const Scenario& scenario, const WorkloadModel& workload, const Steps& steps,
                     Seconds busiest_link) {
  const Instance& instance = scenario.instance();
  const double count = static_cast<double>(steps.simulated > 0 ? scenario.steps : 0);
  result.gpu_busy = result.gpu_seconds.share(GpuUse::compute);
  const double peak = scenario.gpu().fp32.si * result.gpu_seconds.total_seconds();
  result.gpu_flops = flops_a_step(workload.central) * scenario.workers() * count / peak;
  if (instance.vcpus > 0)
    result.cpu = std::min(1.0, host_work(workload.central).si * scenario.workers() * count /
                                   (scenario.pool.nodes * instance.vcpus * result.total.si));
  result.network = busiest_link.si * count / result.total.si;

  const Region* region = scenario.platform.region(scenario.pool.region);
  const Gpu& gpu = scenario.gpu();
  if (gpu.idle && gpu.peak && region && region->carbon)
    result.energy =
        gpu_energy({*gpu.idle, *gpu.peak}, result.gpu_busy, std::int64_t{scenario.pool.nodes} * instance.gpus,
                   result.total, region->pue.value_or(1), *region->carbon);
  else
    result.warnings.push_back(
        "energy is not estimated: the platform states no GPU power or no grid carbon for this region");
}

}  // namespace

Result simulate(const Scenario& scenario) {
  const Instance& instance = scenario.instance();
  return simulate(scenario, workload_on(scenario.trace, scenario.batch(), scenario.gpu(),
                                        instance.host_link ? &*instance.host_link : nullptr));
}

Result simulate(const Scenario& scenario, const WorkloadModel& workload) {
  Result result;
  describe(result, scenario, workload);

  std::unique_ptr<Communication> communication;
  if (scenario.workers() > 1) communication = std::make_unique<Communication>(scenario, workload.central);
  const Steps steps = simulate_steps(scenario, workload, workload.central, communication.get());
  if (!steps.precise) result.warnings.push_back(fmt::format("the precision of {} was not reached", scenario.precision));

  const Seconds boot = scenario.platform.boot(scenario.instance());
  result.total = boot + steps.total;
  result.steps = scenario.steps;
  result.images = scenario.images;
  result.step_mean = steps.mean;
  result.steps_simulated = steps.simulated;

  result.sampling_interval_s = {(boot + std::max(0.0, 1 - steps.half_width) * steps.total).si,
                                (boot + (1 + steps.half_width) * steps.total).si};
  if (workload.provenance == Provenance::measured) {
    const double error = std::hypot(steps.half_width, workload.relative_error);
    result.interval_s = {(boot + std::max(0.0, 1 - error) * steps.total).si, (boot + (1 + error) * steps.total).si};
  } else {
    const Seconds low = simulate_steps(scenario, workload, workload.low, communication.get()).total;
    const Seconds high = simulate_steps(scenario, workload, workload.high, communication.get()).total;
    result.interval_s = {(boot + low).si, (boot + high).si};
  }

  const auto count = static_cast<double>(scenario.steps);
  Ledger ledger;
  ledger.add(GpuUse::compute, 1, count * steps.compute);
  ledger.add(GpuUse::exposed_communication, 1, count * steps.exposed);
  ledger.add(GpuUse::straggler, 1, count * steps.straggler);
  ledger.add(GpuUse::input_stall, 1, count * steps.stall);
  const std::int64_t held = std::int64_t{scenario.pool.nodes} * scenario.instance().gpus;
  ledger.add(GpuUse::provisioning, held, boot);
  result.gpu_seconds = ledger.close(held, result.total);

  result.bill = bill_for(scenario, result.total);
  result.cost_usd = {dollars(bill_for(scenario, Seconds{result.interval_s.low}).total()),
                     dollars(bill_for(scenario, Seconds{result.interval_s.high}).total())};
  use_of_hardware(result, scenario, workload, steps, communication ? communication->busiest_link() : Seconds{0});
  result.events = {{Seconds{0}, "requested"}, {boot, "ready"}, {result.total, "finished"}};
  return result;
}

}  // namespace ganymede
