#include "rehearsal/life.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/errors.hpp"
#include "common/gpu_use.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "common/usd.hpp"
#include "documents/rehearsal.hpp"
#include "rehearsal/clock.hpp"
#include "rehearsal/local_cluster.hpp"
#include "sim/run/run_result.hpp"
#include "sim/run/run_simulation.hpp"

namespace ganymede::rehearsal {
namespace {

/// A played step takes at least so long, in seconds: beside it, what a processor wakes up late is small.
constexpr double kShortestStep = 0.04;
/// A life has at least so many played steps, or their length would show in its times.
constexpr double kFewestSteps = 50;
constexpr std::size_t kRows = 1000;

/// Notes what another controller decides.
class DecisionLog final : public sim::Controller {
 public:
  explicit DecisionLog(const sim::Scenario& scenario) : Controller(scenario), inner_(sim::make_controller(scenario)) {}

  /// The decisions that differ from the one before, each with its time.
  const std::vector<std::pair<Seconds, policies::Decision>>& changes() const { return changes_; }
  static bool same(const policies::Decision& a, const policies::Decision& b) {
    return a.nodes == b.nodes && a.elastic == b.elastic && a.pause == b.pause && a.cpus == b.cpus &&
           a.memory == b.memory;
  }

 private:
  policies::Decision ask(const policies::Observation& seen) override {
    policies::Decision decision = inner_->decide(seen);
    if (changes_.empty() || !same(changes_.back().second, decision)) changes_.emplace_back(seen.now, decision);
    return decision;
  }

  std::unique_ptr<sim::Controller> inner_;
  std::vector<std::pair<Seconds, policies::Decision>> changes_;
};

/// The pool whose nodes train; all pools have the same instance type in the same region.
std::size_t rented_pool_of(const sim::Scenario& scenario) {
  std::size_t pool = 0;
  while (scenario.pools[pool].pool.nodes == 0) ++pool;
  return pool;
}

sim::FabricGraph fabric_of_nodes(const sim::Scenario& scenario, int nodes) {
  const sim::ScenarioPool& pool = scenario.pools[rented_pool_of(scenario)];
  return {*pool.platform, pool.instance(), nodes, 1};
}

/// The steps of each number of workers that can train; numbers for which the scheme has no schedule are left out.
std::map<int, StepsOfWorkers> steps_of_life(const sim::Scenario& scenario, int most, double scale) {
  std::map<int, StepsOfWorkers> out;
  for (int nodes = 1; nodes <= most; ++nodes) {
    try {
      const sim::FabricGraph fabric = fabric_of_nodes(scenario, nodes);
      StepPlan plan = plan_steps(scenario, rented_pool_of(scenario), nodes, fabric.topology(), scale);
      auto rows = plan.rows(kRows);
      out.emplace(nodes, StepsOfWorkers{std::move(plan), std::move(rows)});
    } catch (const ConfigError&) {
      if (nodes == scenario.workers()) throw;
    }
  }
  return out;
}

/// How many steps of the scenario a played one stands for.
double fold_of(const sim::Scenario& scenario, double scale, double step_s, double step_scale) {
  const double fold = std::max(1.0, std::ceil(std::max(step_scale, kShortestStep / step_s) / scale));
  const double steps = static_cast<double>(scenario.steps) / fold;
  if (steps < kFewestSteps) {
    const double longer = scale * kFewestSteps / steps;
    throw ConfigError(fmt::format(
        "{}: a played step would stand for {:.0f} of {} steps, too coarse for a life; expected --scale {:.2g} or more "
        "(or --for {:.1f} times as long)",
        scenario.file, fold, scenario.steps, longer, longer / scale));
  }
  return fold;
}

std::vector<documents::Rehearsal::Decision> decisions_of(const sim::Scenario& scenario, const DecisionLog& log) {
  std::vector<documents::Rehearsal::Decision> out;
  for (const auto& [at, decision] : log.changes()) {
    OrderedJson nodes = OrderedJson::object();
    for (std::size_t p = 0; p < decision.nodes.size(); ++p)
      if (decision.nodes[p] > 0) nodes[scenario.pools[p].name] = decision.nodes[p];
    out.push_back({at.si, {nodes.dump()}, decision.elastic, decision.pause});
  }
  return out;
}

bool same_decisions(const DecisionLog& a, const DecisionLog& b) {
  return std::equal(a.changes().begin(), a.changes().end(), b.changes().begin(), b.changes().end(),
                    [](const auto& x, const auto& y) { return DecisionLog::same(x.second, y.second); });
}

double total_usd(const sim::Result& result) { return usd_of(result.bill.total()); }

/// The compared figures: the time, each use of the GPUs and the bill, with their shares of the life.
std::vector<documents::Rehearsal::Figure> comparison_of(const sim::Result& predicted, const sim::Result& measured) {
  std::vector<documents::Rehearsal::Figure> out;
  const auto add = [&](std::string_view what, const char* unit, double expected, double found, double share) {
    out.push_back({std::string(what), unit, expected, found,
                   found == 0 ? std::nullopt : std::optional((expected - found) / found), share});
  };
  add("time", "s", predicted.total.si, measured.total.si, 1);
  for (std::size_t use = 0; use < kGpuUseNames.size(); ++use) {
    const auto id = static_cast<GpuUse>(use);
    add(kGpuUseNames[use], "GPU-s", predicted.gpu_seconds.seconds(id), measured.gpu_seconds.seconds(id),
        measured.gpu_seconds.share(id));
  }
  add("bill", "USD", total_usd(predicted), total_usd(measured), 1);
  return out;
}

/// A result as a rehearsal holds it: without its scenario and its files.
documents::Rehearsal::Life life_of(sim::Result result) {
  result.scenario.text.clear();
  result.file_hashes.reset();
  return {std::move(result)};
}

/// Throws ConfigError, located in the scenario, for what a life does not play: several GPUs on a node, pools of several
/// instance types or regions, a dataset in a storage that is modelled.
void check_life(const sim::Scenario& scenario) {
  const auto refuse = [&](const char* where, const std::string& why) {
    throw ConfigError(fmt::format("{}: {}: {}", scenario.file, where, why));
  };
  const sim::ScenarioPool& first = scenario.pools.front();
  for (const sim::ScenarioPool& pool : scenario.pools) {
    if (pool.pool.gpus_per_node != 1)
      refuse("/platform", fmt::format("found {} GPUs on a node, expected 1: each process of a life stands for one",
                                      pool.pool.gpus_per_node));
    if (pool.pool.instance != first.pool.instance || !sim::same_place(pool, first))
      refuse("/platform", fmt::format("found the pools \"{}\" and \"{}\", expected one instance type in one place: a "
                                      "life has one network",
                                      first.name, pool.name));
  }
  if (scenario.input.storage) refuse("/storage/dataset", "reading the dataset from storage is not played in a life");
}

}  // namespace

OrderedJson rehearse_life(const sim::Scenario& scenario, const LifeRequest& request, const Remark& remark) {
  refuse_launched(request.hosts);
  refuse_mpirun(request.hosts);
  const int hosts = request.hosts.hosts;
  if (scenario.workers() > hosts)
    throw ConfigError(fmt::format("{}: /platform: found {} GPUs, expected at most {}, as many as there are --hosts",
                                  scenario.file, scenario.workers(), hosts));
  check_life(scenario);
  const Ping stated = stated_ping(fabric_of_nodes(scenario, std::max(2, scenario.workers())));
  const bool name_spaces = choose_name_spaces(request.hosts, remark);
  sim::StepDistributionCache cache;
  sim::ScenarioSteps steps(scenario, cache);
  DecisionLog expected(scenario);
  const sim::RunRecord simulated = sim::simulate_run(scenario, steps, expected);
  const sim::Result predicted = sim::result_of(scenario, simulated);
  if (const int most = sim::most_held(simulated); most > hosts)
    throw ConfigError(
        fmt::format("--hosts {}: found up to {} nodes at once in the simulated life, expected --hosts {} "
                    "or more",
                    hosts, most, most));

  LifePlan plan{.scenario = &scenario, .hosts = hosts, .name_spaces = name_spaces};
  plan.scale = request.hosts.scale > 0 ? request.hosts.scale : request.length.si / predicted.total.si;
  plan.fold = fold_of(scenario, plan.scale, predicted.step_mean.si, slowest_scale(stated.rate, hosts));
  plan.shaping = {stated.rate * (1 / plan.step_scale()), stated.latency * plan.step_scale(), request.hosts.loss};
  plan.steps = steps_of_life(scenario, hosts, plan.step_scale());
  plan.margin_s = 1.5 * predicted.step_mean.si * plan.step_scale() + 0.03;
  plan.longest_s = 300 + 3 * predicted.total.si * plan.scale;

  DecisionLog decided(scenario);
  const double begin = machine_time();
  const EndSignals signals;
  const ProcessorTurn turn(ProcessorTurn::Turn::before_others);
  LocalCluster world(plan);
  const sim::RunRecord played = sim::RunSimulation(scenario, steps, decided, &world).run();
  const double took_s = machine_time() - begin;
  const sim::Result measured = sim::result_of(scenario, played);
  const LifeFacts& facts = world.facts();
  documents::Rehearsal out;
  out.scenario = std::filesystem::path(scenario.file).filename().string();
  out.hosts = hosts;
  out.network = name_spaces ? "namespaces" : "paced";
  out.scale = plan.scale;
  out.steps_each = plan.fold;
  out.took_s = took_s;
  out.latest_s = facts.late_s;
  out.comparison = comparison_of(predicted, measured);
  out.same_decisions = same_decisions(expected, decided);
  out.predicted_decisions = decisions_of(scenario, expected);
  out.measured_decisions = decisions_of(scenario, decided);
  out.processes = {facts.nodes_started, facts.nodes_killed,        facts.notices_heard,   facts.starts,
                   facts.steps_played,  facts.checkpoints_written, facts.checkpoints_read};
  out.predicted = life_of(predicted);
  out.measured = life_of(measured);
  return documents::rehearsal_json(out);
}

}  // namespace ganymede::rehearsal
