#include "sim/run/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <memory>

#include "calibration/statistics.hpp"
#include "sim/run/communication.hpp"
#include "sim/run/step_sampler.hpp"
#include "sim/step/synchronous_step.hpp"

namespace ganymede {
namespace {

// Without jitter steps repeat after the input queue has filled, each one like the step before the last: where the two
// places of the queue bind, long and short steps alternate. This many in a row that do so say that all further ones
// will.
constexpr int kEqualSteps = 6;
constexpr std::size_t kBlocksAtLeast = 30;  // effective samples behind an interval
constexpr std::size_t kBlocksAtMost = 200;  // 5,000 steps: enough for 0.5 % of blocks that vary by 3.5 %
constexpr double kMessagesAtMost = 2e6;     // of a sample, beyond its thirty blocks: a few seconds
constexpr double kMessagesOfARun = 1e8;     // of message fidelity: some minutes, and a duration kept of each step

/// Mean step and where a step's worker-seconds go, over the steps that were simulated.
struct Steps {
  Seconds total;  ///< of all steps of the run
  Seconds mean;
  double half_width = 0;  ///< 95 %, relative to the mean, from simulating a sample and from the run being one of many
  std::int64_t simulated = 0;
  bool precise = true;  ///< the precision that was asked for was reached
  double reached = 0;   ///< the precision that was
  // Worker-seconds of a mean step.
  Seconds compute, exposed, straggler, stall, device;
};

void add(Steps& sum, const StepOutcome& step, double times = 1) {
  sum.total += times * step.duration;
  for (const auto& worker : step.workers) {
    sum.compute += times * worker.compute;
    sum.exposed += times * worker.exposed_communication;
    sum.straggler += times * worker.straggler;
    sum.stall += times * worker.input_stall;
    sum.device += times * worker.device;
  }
}

/// From sums over `simulated` steps to a mean step, and to a total over all `steps`.
void settle(Steps& steps, double counted, std::int64_t all) {
  steps.mean = steps.total / counted;
  for (Seconds* part : {&steps.compute, &steps.exposed, &steps.straggler, &steps.stall, &steps.device})
    *part = *part / counted;
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

double deviation(const std::vector<double>& values) {
  double mean = 0;
  double square = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) square += (value - mean) * (value - mean);
  return std::sqrt(square / static_cast<double>(std::max<std::size_t>(1, values.size() - 1)));
}

/// With jitter: simulate blocks of drawn steps, as many as the precision takes and `blocks_at_most` allows, but no more
/// than the run has; `message` simulates each of those.
Steps sample_steps(SynchronousStep& step, const Scenario& scenario, const WorkloadModel& workload,
                   std::size_t blocks_at_most, bool message) {
  StepSampler sampler(workload.central.samples, static_cast<std::size_t>(scenario.workers()), kBlockSteps,
                      scenario.seed);
  const std::size_t length = sampler.block_length();
  const auto run_steps = static_cast<double>(scenario.steps);
  // A sample of a short run would be no cheaper than the run.
  const bool all_steps = message || static_cast<double>(length * kBlocksAtLeast) >= run_steps;
  std::vector<double> durations;
  Steps sum;
  BlockMean spread;
  if (!all_steps)
    for (std::size_t i = 0; i < length; ++i)
      step.next(sampler.next());  // fills the input queue, which happens once a run
  for (std::size_t block = 1; sum.simulated < scenario.steps; ++block) {
    for (std::size_t i = 0; i < length && sum.simulated < scenario.steps; ++i) {
      const StepOutcome outcome = step.next(sampler.next());
      durations.push_back(outcome.duration.si);
      add(sum, outcome);
      ++sum.simulated;
    }
    if (all_steps || block < kBlocksAtLeast) continue;
    spread = block_mean(durations, length);
    sum.precise = spread.half_width <= scenario.precision * spread.mean;
    if (sum.precise || block >= blocks_at_most) break;
  }
  spread = block_mean(durations, length);
  settle(sum, static_cast<double>(sum.simulated), scenario.steps);
  // The run is itself one sample: its mean lies off the long mean by its own number of blocks or, below one block, of
  // steps.
  const double blocks = run_steps / static_cast<double>(length);
  const double own = blocks >= 1 ? spread.block_deviation / std::sqrt(blocks)
                                 : std::max(spread.block_deviation, deviation(durations) / std::sqrt(run_steps));
  sum.reached = spread.half_width / spread.mean;
  // Message fidelity is asked for this very run, step by step.
  sum.half_width = message ? sum.reached : in_quadrature(spread.half_width, 1.96 * own) / spread.mean;
  return sum;
}

Steps simulate_steps(const Scenario& scenario, const WorkloadModel& workload, const StepModel& model,
                     Communication* communication) {
  const Topology topology = clustered(scenario.workers(), scenario.pool.gpus_per_node);
  const bool message = scenario.fidelity == Fidelity::message;
  const bool remember = model.samples == 1 && !message;
  Reduce reduce;
  if (communication) reduce = [&](std::span<const Reduction> r) { return communication->reduce(r, remember); };
  SynchronousStep step(model, topology, {.overlap = scenario.overlap}, reduce);
  const double messages = communication ? communication->messages_a_step() : 0;
  if (message && (messages + 1) * static_cast<double>(scenario.steps) > kMessagesOfARun)
    throw ConfigError(
        fmt::format("{}: /fidelity/mode: message fidelity would simulate {} steps of {:.0f} messages; expected "
                    "\"sampled\" or fewer steps",
                    scenario.file, scenario.steps, messages));
  if (model.samples > 1 || (message && &model == &workload.central)) {
    const double affordable = kMessagesAtMost / (messages * static_cast<double>(kBlockSteps) + 1);
    const std::size_t blocks = std::clamp(static_cast<std::size_t>(affordable), kBlocksAtLeast, kBlocksAtMost);
    return sample_steps(step, scenario, workload, blocks, message);
  }
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
  const bool inside = scenario.pool.gpus_per_node > 1 && !instance.gpu_links;
  const bool staged = scenario.pool.nodes > 1 && instance.nic && !instance.nic->gpu_direct;
  if (instance.host_link && (inside || staged)) facts.emplace_back("host link", &instance.host_link->origin);
  if (const Region* region = scenario.platform.region(scenario.pool.region))
    facts.emplace_back("region", &region->origin);
  if (scenario.pool.gpus_per_node > 1 && instance.gpu_links)
    facts.emplace_back("GPU links", &instance.gpu_links->origin);
  std::vector<std::string> warnings;
  for (const auto& [what, origin] : facts)
    if (!origin->unconfirmed.empty()) warnings.push_back(fmt::format("unconfirmed: {}: {}", what, origin->unconfirmed));
  return warnings;
}

/// What the run costs if its nodes are metered for that long.
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
  result.market = to_string(scenario.pool.market);
  result.allocation = fmt::format("{} x {}", scenario.pool.nodes, scenario.pool.instance);
  result.gpu = scenario.gpu().name;
  result.gpus = scenario.workers();
  result.scheme = scenario.workers() > 1 ? scenario.scheme.name() : "none";
  result.fidelity = scenario.fidelity == Fidelity::message ? "message" : "sampled";
  result.memory = gpu_memory(scenario.batch());
  result.hash = scenario.hash;
  result.seed = scenario.seed;
  result.inputs = to_string(workload.provenance);
  result.step_source = workload.rule;
  result.fabric_source =
      scenario.platform.fabric_label(scenario.instance(), scenario.pool.nodes, scenario.pool.gpus_per_node);
  result.software = fmt::format("{} {} ({})", scenario.trace.software.name, scenario.trace.software.version,
                                scenario.trace.software.backend);
  result.prices_as_of = scenario.price.as_of;
  result.warnings = workload.warnings;
  result.warnings.insert(result.warnings.end(), scenario.warnings.begin(), scenario.warnings.end());
  for (auto& warning : unconfirmed(scenario)) result.warnings.push_back(std::move(warning));
}

void use_of_hardware(Result& result, const Scenario& scenario, const WorkloadModel& workload, const Steps& steps,
                     Seconds busiest_link) {
  const Instance& instance = scenario.instance();
  const auto count = static_cast<double>(scenario.steps);
  result.gpu_busy = count * steps.device.si / result.gpu_seconds.total_seconds();
  const double peak = peak_rate(scenario.trace, scenario.gpu()).si * result.gpu_seconds.total_seconds();
  result.gpu_flops = flops_a_step(workload.central) * scenario.workers() * count / peak;
  if (instance.vcpus > 0) {
    result.cpu = host_work(workload.central).si * scenario.workers() * count /
                 (scenario.pool.nodes * instance.vcpus * result.total.si);
    if (*result.cpu > 1)
      result.warnings.push_back(
          fmt::format("input and launching need {:.1f} times the vCPUs of {}: the run will be slower than this",
                      *result.cpu, instance.name));
  }
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
  // The only policy so far keeps what the scenario asks for; one that does not needs a run that can be resized.
  const Allocation requested{{scenario.pool}};
  if (scenario.policy->decide({Seconds{0}, requested, {}, 0, scenario.steps}).allocation != requested)
    throw Failure(
        fmt::format("the policy {} asks for another allocation, which a run cannot serve yet", scenario.policy->name));
  Result result;
  describe(result, scenario, workload);

  std::unique_ptr<Communication> communication;
  if (scenario.workers() > 1) communication = std::make_unique<Communication>(scenario, workload.central);
  const Steps steps = simulate_steps(scenario, workload, workload.central, communication.get());
  if (workload.central.samples > 1 && static_cast<std::size_t>(scenario.workers()) > kBlockSteps)
    result.warnings.push_back(
        fmt::format("{} workers draw from blocks of {} recorded steps: the slowest of so many is underestimated",
                    scenario.workers(), kBlockSteps));
  if (communication && communication->starts_late())
    result.warnings.push_back(
        fmt::format("all-reduces start at their last arrival: simulating {:.3g} messages a step for workers that "
                    "arrive at different "
                    "times would take too long; the time can only be too long for it",
                    communication->messages_a_step()));
  if (!steps.precise)
    result.warnings.push_back(fmt::format("the mean step is known to {:.1f} % only, not to the {:.1f} % asked for",
                                          100 * steps.reached, 100 * scenario.precision));

  const Seconds boot = scenario.platform.boot(scenario.instance());
  result.total = boot + steps.total;
  result.steps = scenario.steps;
  result.images = scenario.images;
  result.step_mean = steps.mean;
  result.steps_simulated = steps.simulated;

  result.sampling_interval_s = {(boot + std::max(0.0, 1 - steps.half_width) * steps.total).si,
                                (boot + (1 + steps.half_width) * steps.total).si};
  if (workload.provenance == Provenance::measured) {
    const double error = in_quadrature(steps.half_width, workload.relative_error);
    result.interval_s = {(boot + std::max(0.0, 1 - error) * steps.total).si, (boot + (1 + error) * steps.total).si};
  } else {
    const Seconds low = simulate_steps(scenario, workload, workload.low, communication.get()).total;
    const Seconds high = simulate_steps(scenario, workload, workload.high, communication.get()).total;
    result.interval_s = {(boot + low).si, (boot + high).si};
  }

  constexpr double kLongest_s = 9e9;  // 285 years; the ledger counts nanoseconds
  if (!(std::max(result.total.si, result.interval_s.high) < kLongest_s))
    throw ConfigError(fmt::format("{}: the run would take {}, longer than can be accounted for", scenario.file,
                                  to_string(result.total)));

  Ledger ledger;
  const double steps_each = static_cast<double>(scenario.steps) / scenario.workers();
  ledger.add(GpuUse::compute, scenario.workers(), steps_each * steps.compute);
  ledger.add(GpuUse::exposed_communication, scenario.workers(), steps_each * steps.exposed);
  ledger.add(GpuUse::straggler, scenario.workers(), steps_each * steps.straggler);
  ledger.add(GpuUse::input_stall, scenario.workers(), steps_each * steps.stall);
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
