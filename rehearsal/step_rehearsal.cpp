#include "rehearsal/step_rehearsal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/statistics.hpp"
#include "common/units.hpp"
#include "kernel/parallel/communicator.hpp"
#include "rehearsal/clock.hpp"
#include "rehearsal/local_hosts.hpp"
#include "rehearsal/local_network.hpp"
#include "rehearsal/mpi_hosts.hpp"
#include "rehearsal/step_player.hpp"

namespace ganymede::rehearsal {
namespace {

/// Throws ConfigError if so many ranks on this machine cannot compute at the same time.
void check_processors(int ranks) {
  const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (ranks > processors)
    throw ConfigError(
        fmt::format("--compute real: found {} ranks on {} processors, expected at most {}: ranks that share one "
                    "compute slower than planned; --compute replay sleeps instead",
                    ranks, processors, processors));
}

using Json = OrderedJson;

constexpr std::size_t kChecked = 2;  // steps before and after those that are timed, whose sums are checked
constexpr std::size_t kMinSteps = 5, kMaxSteps = 2000;

Json json_of(const StepParts& parts) {
  return {{"step_s", parts.step},
          {"compute_s", parts.compute},
          {"exposed_communication_s", parts.exposed},
          {"straggler_s", parts.straggler},
          {"input_stall_s", parts.input_stall}};
}

StepParts parts_of(const std::vector<sim::StepOutcome>& steps) {
  StepParts out;
  const auto n = static_cast<double>(steps.size());
  for (const sim::StepOutcome& step : steps) {
    const double share = 1 / (n * static_cast<double>(step.workers.size()));
    out.step += step.duration.si / n;
    for (const sim::WorkerStep& worker : step.workers) {
      out.compute += worker.compute.si * share;
      out.exposed += worker.exposed_communication.si * share;
      out.straggler += worker.straggler.si * share;
      out.input_stall += worker.input_stall.si * share;
    }
  }
  return out;
}

/// 95 % interval of the mean, from the steps' standard error.
std::array<double, 2> interval_of_mean(const std::vector<double>& values, double mean) {
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto n = static_cast<double>(values.size());
  const double half = 1.96 * std::sqrt(squares / (n - 1) / n);
  return {mean - half, mean + half};
}

/// As many steps as last `length` if all last as long as the one that rank 0 has just played.
std::size_t number_of_steps(Seconds length, double step_s, Group& group) {
  double steps = std::clamp(std::round(length.si / step_s), double{kMinSteps}, double{kMaxSteps});
  group.broadcast({&steps, 1});
  return static_cast<std::size_t>(steps);
}

/// A moment in the near future, the same for all ranks.
double agreed_begin(Group& group) {
  constexpr double kSoon = 0.05;  // seconds
  double begin = group.now() + kSoon;
  group.broadcast({&begin, 1});
  return begin;
}

Json network_json(const Ping& ping) {
  return {{"rate_bytes_per_s", ping.rate.si}, {"latency_s", ping.latency.si}, {"adding_bytes_per_s", ping.adding.si}};
}

const sim::Schedule& largest_schedule(const StepPlan& plan) {
  return *std::max_element(plan.schedules.begin(), plan.schedules.end(),
                           [](const auto& a, const auto& b) { return a.bytes() < b.bytes(); });
}

void prepare_to_compute(Group& group, std::optional<BusyWork>& work) {
  check_processors(group.is_crowded() ? group.ranks() : 1);
  group.barrier();  // all measure at the same time how fast they are
  work.emplace();
}

}  // namespace

Json rehearse_steps(const RehearsalRequest& request, Group& group) {
  const StepPlan& plan = *request.plan;
  group.enter("the ping");
  const Ping ping = measure_ping(group);
  const auto rows = plan.rows(kMaxSteps + 2 * kChecked);
  const auto row = [&](std::size_t step) { return rows[step][static_cast<std::size_t>(group.rank())]; };
  std::optional<BusyWork> work;
  if (request.compute) prepare_to_compute(group, work);
  StepPlayer player(plan, group, agreed_begin(group));
  if (work) player.compute_with(*work);
  std::string fault;
  double before = 0;
  const auto check = [&](std::size_t step) {
    before = group.now();
    const std::string found = player.check(row(step));
    if (fault.empty()) fault = found;
  };
  for (std::size_t step = 0; step < kChecked; ++step) check(step);
  const std::size_t steps = number_of_steps(request.length, group.now() - before, group);
  player.start_at(agreed_begin(group));
  std::vector<double> numbers;
  double processor = processor_time();
  for (std::size_t step = kChecked; step < kChecked + steps; ++step) append_numbers(player.play(row(step)), numbers);
  processor = (processor_time() - processor) / static_cast<double>(steps);
  for (std::size_t step = kChecked + steps; step < 2 * kChecked + steps; ++step) check(step);
  group.enter("the end");
  if (const std::string found = group.first_of(fault); !found.empty()) throw Failure("a sum is wrong: " + found);
  const auto all = group.gather(numbers);
  const auto processors = group.gather({&processor, 1});
  if (!group.is_first()) return nullptr;

  const std::size_t buckets = plan.schedules.size(), length = numbers_of_step(buckets);
  std::vector<std::vector<PlayedStep>> by_step(steps);
  for (std::size_t step = 0; step < steps; ++step)
    for (const auto& rank : all) by_step[step].push_back(step_of_numbers(rank.data() + step * length, buckets));
  const PlayedSteps played(std::move(by_step), player.waiting_phases());
  const StepParts measured = played.parts();
  const std::vector<std::vector<std::size_t>> timed(rows.begin() + kChecked,
                                                    rows.begin() + kChecked + static_cast<std::ptrdiff_t>(steps));
  double processor_s = 0;
  for (const auto& rank : processors) processor_s += rank[0] / group.ranks();
  Json out = {{"ranks", group.ranks()},
              {"steps", steps},
              {"messenger", group.messenger().name()},
              {"compute", request.compute ? "real" : "replay"},
              {"network", {{"stated", nullptr}, {"measured", network_json(ping)}}},
              {"measured", json_of(measured)},
              {"predicted", json_of(parts_of(predict_steps(plan, *request.fabric, timed)))}};
  out["measured"]["interval_s"] = interval_of_mean(played.durations(), measured.step);
  if (plan.topology.nodes() == group.ranks()) {
    out["network"]["stated"] = network_json(stated_ping(*request.fabric));
    const PlainFabric plain(group.ranks(), crowded(ping, largest_schedule(plan), shared_processors(group)));
    out["predicted_from_ping"] = json_of(parts_of(predict_steps(plan, plain.graph(), timed)));
  }
  out["noise"] = {{"late_s", played.median_late()},
                  {"clock_error_s", group.clock().error_s},
                  {"processor_s", processor_s},
                  {"more_ranks_than_processors", group.is_crowded()}};
  return out;
}

namespace {

void check_processes(const ScenarioRehearsal& request, const sim::Scenario& scenario) {
  const int processes = kernel::launched_processes(),
            expected = request.hosts.hosts > 0 ? request.hosts.hosts : processes;
  refuse_launched(request.hosts);
  if (scenario.workers() == 1)
    throw ConfigError(
        fmt::format("{}: /platform: found one GPU, expected two or more, between which a rehearsal sends "
                    "gradients; --hosts 2 --life plays its life",
                    scenario.file));
  if (expected == 1)
    throw ConfigError(
        fmt::format("rehearse: found one process, expected one for each of the {} GPUs of {}: mpirun -n {} "
                    "ganymede rehearse {}{}",
                    scenario.workers(), scenario.file, scenario.workers(), scenario.file,
                    scenario.workers() <= kMaxLocalHosts ? fmt::format(", or --hosts {}", scenario.workers()) : ""));
  if (expected != scenario.workers())
    throw ConfigError(fmt::format("{}: /platform: found {} GPUs, expected {}, as many as there are {}", scenario.file,
                                  scenario.workers(), expected, request.hosts.hosts > 0 ? "--hosts" : "processes"));
}

/// Rehearses on this rank; returns at rank 0 the result as text. If `nodes` is above 1, a study of the links between so
/// many nodes is to be written.
std::string rehearse_as_rank(const RehearsalRequest& request, kernel::Messenger& messenger, int nodes = 1) {
  Group group(messenger);
  if (nodes > 1 && group.clock().same_machine)
    throw ConfigError(
        fmt::format("--output: all ranks are on one machine, expected them on {} as the scenario has nodes: a study "
                    "would take the machine's own memory for the links between nodes; --hosts plays these links",
                    nodes));
  const OrderedJson result = rehearse_steps(request, group);
  return group.is_first() ? result.dump() : "";
}

/// The result of processes that a launcher has started, at the first one; null elsewhere.
OrderedJson rehearse_launched(const ScenarioRehearsal& request, const sim::Scenario& scenario,
                              const sim::FabricGraph& fabric) {
  const bool is_played = !request.played.empty();
  const double scale = is_played ? request.played[0] : 1;
  const StepPlan plan = plan_steps(scenario, fabric.topology(), scale);
  auto messenger = kernel::open_messenger();
  std::optional<ProcessorTurn> turn;
  if (is_played) {
    turn.emplace(ProcessorTurn::Turn::before_others);
    messenger = later_by(Seconds{request.played[1]}, std::move(messenger));
  }
  const PlainFabric stated(fabric.ranks(), scaled(stated_ping(fabric), scale));
  const int nodes = request.is_study && !is_played ? scenario.pools.front().pool.nodes : 1;
  const std::string text = rehearse_as_rank(
      {&plan, request.length, is_played ? &stated.graph() : &fabric, request.computes}, *messenger, nodes);
  if (text.empty()) return nullptr;
  OrderedJson result = OrderedJson::parse(text);
  result["scale"] = scale;
  return result;
}

/// The same for processes that mpirun starts in name spaces.
OrderedJson rehearse_by_mpirun(const ScenarioRehearsal& request, const HostsNetwork& network) {
  const Shaping shaping{network.stated.rate, network.stated.latency, request.hosts.loss};
  const auto command = [&](bool is_delayed) {
    std::vector<std::string> words = {std::filesystem::read_symlink("/proc/self/exe").string()};
    words.insert(words.end(), request.again.begin(), request.again.end());
    words.insert(words.end(), {"--played", fmt::format("{}", network.scale),
                               fmt::format("{}", is_delayed ? 0 : network.stated.latency.si)});
    return words;
  };
  return OrderedJson::parse(run_by_mpi_on_hosts(request.hosts.hosts, shaping, command));
}

}  // namespace

OrderedJson rehearse_scenario(const sim::Scenario& scenario, const ScenarioRehearsal& request, const Remark& remark) {
  check_processes(request, scenario);
  if (!scenario.faults.events.empty() || scenario.checkpoints.every != sim::Checkpoints::Every::never)
    remark("note: faults, checkpoints and the policy are not played here; --life plays them\n");
  const sim::FabricGraph fabric = fabric_of(scenario);
  const int hosts = request.hosts.hosts;
  if (request.computes && hosts > 0) check_processors(hosts);
  if (hosts == 0) return rehearse_launched(request, scenario, fabric);
  const HostsNetwork network = network_of_hosts(request.hosts, fabric, remark);
  if (request.hosts.network == "mpirun") return rehearse_by_mpirun(request, network);
  const StepPlan plan = plan_steps(scenario, fabric.topology(), network.scale);
  const PlainFabric stated(hosts, network.stated);
  OrderedJson result = OrderedJson::parse(run_on_hosts(request.hosts, network, [&](kernel::Messenger& messenger) {
    return rehearse_as_rank({&plan, request.length, &stated.graph(), request.computes}, messenger);
  }));
  result["scale"] = network.scale;
  return result;
}

}  // namespace ganymede::rehearsal
