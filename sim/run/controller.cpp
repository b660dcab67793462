#include "sim/run/controller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "sim/run/policy_process.hpp"

namespace ganymede::sim {
namespace {
/// One of the built-in policies in policies().
class BuiltInPolicy : public Controller {
 public:
  explicit BuiltInPolicy(const Scenario& scenario)
      : Controller(scenario), random_(scenario.seed, std::string("policy/") + std::string(choice().policy->name)) {}

 private:
  const PolicyChoice& choice() const { return scenario_.policy; }
  policies::Decision ask(const policies::Observation& seen) override {
    const policies::Observation shown = choice().blind ? blinded(seen) : seen;
    return choice().policy->decide({shown, choice().settings, memory_, random_, choice().table.get()});
  }
  policies::PolicyMemory memory_;
  RandomStream random_;
};

/// A program of the user that reads an observation and writes a decision, each as one line of JSON.
class ExternalPolicy : public Controller {
 public:
  explicit ExternalPolicy(const Scenario& scenario) : Controller(scenario) {
    try {
      process_.emplace(scenario.policy.command);
    } catch (const PolicyFault& fault) {
      fail(fault.what());
    }
  }

 private:
  policies::Decision ask(const policies::Observation& seen) override {
    try {
      return parse_decision(
          process_->exchange(observation_json(scenario_, scenario_.policy.blind ? blinded(seen) : seen),
                             scenario_.policy.limit),
          scenario_);
    } catch (const PolicyFault& fault) {
      fail(fault.what());
    }
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw Failure(fmt::format("{}: the external policy {} {}", scenario_.file, scenario_.policy.command.front(), why));
  }

  std::optional<PolicyProcess> process_;
};

}  // namespace

policies::Decision Controller::decide(const policies::Observation& seen) {
  policies::Decision decision = ask(seen);
  const auto& pools = scenario_.pools;
  if (decision.nodes.size() != pools.size())
    throw Failure(fmt::format("{}: the policy {} decided on {} pools, there are {}", scenario_.file,
                              scenario_.policy.policy->name, decision.nodes.size(), pools.size()));
  for (std::size_t p = 0; p < pools.size(); ++p)
    if (decision.nodes[p] < 0 || decision.nodes[p] > pools[p].max_nodes)
      throw Failure(fmt::format("{}: the policy {} asks for {} nodes of \"{}\", which has at most {}", scenario_.file,
                                scenario_.policy.policy->name, decision.nodes[p], pools[p].name, pools[p].max_nodes));
  return decision;
}

policies::Decision parse_decision(const std::string& line, const Scenario& scenario) {
  std::string shown = line.substr(0, 200);
  if (line.size() > 200) shown += "...";
  const auto expected = [&](const std::string& what) {
    throw PolicyFault(fmt::format("answered {}, expected {}", shown.empty() ? "an empty line" : shown, what));
  };
  const Json answer = Json::parse_or_null(line);  // whose members are found without looking at all
  if (!answer.is_object() || !answer.contains("nodes")) expected("one line such as {\"nodes\": {\"pool's name\": 2}}");
  policies::Decision decision{.nodes = std::vector<int>(scenario.pools.size(), 0)};
  if (!answer["nodes"].is_object()) expected("\"nodes\" as an object from a pool's name to a count");
  for (const auto& [name, count] : answer["nodes"].items()) {
    const auto pool = std::find_if(scenario.pools.begin(), scenario.pools.end(),
                                   [&, wanted = name](const ScenarioPool& p) { return p.name == wanted; });
    if (pool == scenario.pools.end()) expected(fmt::format("a pool that exists instead of \"{}\"", name));
    if (!count.is_number_integer() || count.get<std::int64_t>() < 0 || count.get<std::int64_t>() > 65536)
      expected(fmt::format("a whole number of nodes of \"{}\"", name));
    decision.nodes[static_cast<std::size_t>(pool - scenario.pools.begin())] = count.get<int>();
  }
  for (const auto& [key, flag] : {std::pair{"elastic", &decision.elastic}, std::pair{"pause", &decision.pause}})
    if (answer.contains(key)) {
      if (!answer[key].is_boolean()) expected(fmt::format("\"{}\" as true or false", key));
      *flag = answer[key].get<bool>();
    }
  for (const auto& [key, share] : {std::pair{"cpus", &decision.cpus}, std::pair{"memory", &decision.memory}})
    if (answer.contains(key)) {
      if (!answer[key].is_number() || !(answer[key].get<double>() > 0 && answer[key].get<double>() <= 1))
        expected(fmt::format("\"{}\" as a share above 0, at most 1", key));
      *share = answer[key].get<double>();
    }
  return decision;
}

std::unique_ptr<Controller> make_controller(const Scenario& scenario) {
  if (!scenario.policy.policy->decide) return std::make_unique<ExternalPolicy>(scenario);
  return std::make_unique<BuiltInPolicy>(scenario);
}

policies::Observation blinded(const policies::Observation& seen) {
  policies::Observation blind;
  blind.now = seen.now;
  blind.deadline = seen.deadline;
  blind.budget_usd = seen.budget_usd;
  for (const policies::PoolView& pool : seen.pools) {
    policies::PoolView& shown = blind.pools.emplace_back();
    shown.market = pool.market;
    shown.gpus_per_node = pool.gpus_per_node;
    shown.requested = pool.requested;
    shown.most = pool.most;
    shown.ready = pool.ready + pool.noticed;
    shown.starting = pool.starting;
    shown.waiting = pool.waiting;
  }
  return blind;
}

std::string observation_json(const Scenario& scenario, const policies::Observation& seen) {
  OrderedJson out;
  out["now_s"] = seen.now.si;
  out["training"] = seen.training;
  out["done"] = seen.done;
  out["left"] = seen.left;
  out["unit"] = scenario.target == Target::steps ? "steps" : "images";
  out["rate_per_s"] = seen.rate;
  out["training_gpus"] = seen.training_gpus;
  out["step_s"] = seen.step_s;
  for (const auto& [name, share] :
       {std::pair{"gpu_busy", seen.gpu_busy}, std::pair{"exposed_communication", seen.exposed},
        std::pair{"straggler", seen.straggler}, std::pair{"input_stall", seen.input_stall}, std::pair{"cpu", seen.cpu},
        std::pair{"memory", seen.memory}, std::pair{"host_memory", seen.host_memory}})
    out[name] = share;
  out["pause_s_per_unit"] = seen.pause_s;
  out["evaluation_s"] = seen.evaluation.si;
  out["every_s"] = seen.every.si;
  out["save_s"] = seen.save.si;
  out["restart_s"] = seen.restart.si;
  out["boot_s"] = seen.boot.si;
  out["since_durable_s"] = seen.since_durable.si;
  out["spent_usd"] = seen.spent_usd;
  out["deadline_s"] = seen.deadline ? OrderedJson(seen.deadline->si) : OrderedJson(nullptr);
  out["budget_usd"] = seen.budget_usd ? OrderedJson(*seen.budget_usd) : OrderedJson(nullptr);
  for (std::size_t p = 0; p < seen.pools.size(); ++p) {
    const policies::PoolView& pool = seen.pools[p];
    out["pools"][scenario.pools[p].name] = {
        {"market", std::string(platforms::to_string(pool.market))},
        {"gpus_per_node", pool.gpus_per_node},
        {"requested", pool.requested},
        {"most", pool.most},
        {"ready", pool.ready},
        {"starting", pool.starting},
        {"waiting", pool.waiting},
        {"noticed", pool.noticed},
        {"refused_for_s", pool.refused_for.si},
        {"lost", pool.lost},
        {"usd_per_hour", pool.usd_per_hour},
        {"speed", pool.speed},
        {"g_per_kwh", pool.g_per_kwh ? OrderedJson(*pool.g_per_kwh) : OrderedJson(nullptr)},
        {"usd_to_enter", pool.usd_to_enter}};
  }
  return out.dump();
}

}  // namespace ganymede::sim
