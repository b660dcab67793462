// Simulates random runs and clusters with faults and checks what must hold of each, whatever happens: the ledger, the
// bill, the images trained, the order of events, and that nothing waits for ever.
//
//   chaos [SCENARIOS] [JOBS] [FIRST-SEED]      10,000 with 2 jobs from seed 1, unless stated
//   chaos --hours H [JOBS] [FIRST-SEED]
//
// Runs are drawn over policies, modes of synchronization, schemes, markets, faults, lifetimes, recorded capacity,
// checkpoints and goals; one in four scenarios is a cluster over schedulers and placements. Every 32nd is simulated
// twice and must give the same bytes. Exits with 1 if anything does not hold, and says the seed. Errors tell the tally.

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>

#include "common/budget.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/process.hpp"
#include "common/random.hpp"
#include "common/units.hpp"
#include "policies/policy.hpp"
#include "policies/schedulers/placement.hpp"
#include "policies/schedulers/scheduler.hpp"
#include "sim/cluster/cluster_simulation.hpp"
#include "sim/run/run_record.hpp"
#include "sim/run/simulate.hpp"
#include "support/made_up.hpp"

namespace ganymede::chaos {
namespace {
bool is_of_its_own(std::uint64_t seed) { return seed % 256 == 0; }  ///< these share nothing with others
bool is_simulated_twice(std::uint64_t seed) { return seed % 32 == 0; }

/// Draws one scenario.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed, "bench/chaos"), seed_(seed) {}

  bool is_cluster() { return one_in(4); }

  /// In 255 of 256 scenarios what steps depend on is one of kWorlds, so that their distributions are found in the
  /// cache: simulating them takes most of the time. All else is drawn anew.
  Json run() {
    Draw world(is_of_its_own(seed_) ? seed_ : seed_ % kWorlds);
    Json content = world.of_steps();
    content["seed"] = seed_;
    if (!one_in(4))
      content["checkpoint"] = {{"every", any({"10s", "60s", "10min", "1epoch", "daly"})}, {"on_notice", one_in(2)}};
    if (one_in(4)) content["evaluation"] = {{"every", any({"1epoch", "5min"})}, {"fixed", seconds(1, 30)}};
    content["faults"] = faults();
    content["policy"] = {{"name", policy()}};
    if (one_in(2)) content["deadline"] = seconds(600, 20'000);
    if (one_in(2)) content["budget"] = "20USD";
    return content;
  }

  Json cluster() {
    Json content = {
        {"schema", "ganymede.cluster/1"},
        {"platform", {{"catalog", Json::parse(made_up_platform())}, {"instance", "four"}, {"nodes", between(1, 4)}}},
        {"preemption", {{"save", seconds(0, 20)}, {"restore", seconds(0, 60)}}},
        {"seed", seed_}};
    std::vector<std::string> schedulers;
    for (const policies::Scheduler& row : policies::schedulers())
      if (row.name != "external") schedulers.emplace_back(row.name);
    content["scheduler"] = {{"name", schedulers[random_.below(schedulers.size())]}};
    content["placement"] = any({"consolidate", "spread", "topology"});
    double arrival = 0;
    for (int i = 0, jobs = between(1, 30); i < jobs; ++i) {
      arrival += random_.exponential() * 200;
      Json job = {{"name", fmt::format("job-{}", i)},
                  {"arrival", fmt::format("{}s", arrival)},
                  {"gpus", between(1, 4 * content["platform"]["nodes"].get<int>())},
                  {"duration", fmt::format("{}s", 1 + random_.exponential() * 1000)}};
      if (one_in(3)) job["priority"] = between(0, 10);
      if (one_in(4)) job["owner"] = fmt::format("owner-{}", between(0, 2));
      if (i > 0 && one_in(5)) job["after"] = {fmt::format("job-{}", between(0, i - 1))};
      content["jobs"].push_back(job);
    }
    return content;
  }

 private:
  bool one_in(std::uint64_t count) { return random_.below(count) == 0; }
  int between(int low, int high) {
    return low + static_cast<int>(random_.below(static_cast<std::uint64_t>(high - low) + 1));
  }
  std::string seconds(int low, int high) { return fmt::format("{}s", between(low, high)); }
  std::string any(std::initializer_list<const char*> values) { return values.begin()[random_.below(values.size())]; }

  static constexpr std::uint64_t kWorlds = 300;

  /// The members of a scenario that decide how long steps take, and those that are hashed with them.
  Json of_steps() {
    const bool aws = one_in(3);
    Json content = {{"schema", "ganymede.scenario/1"}, {"workload", workload()}};
    Json& pool = content["platform"];
    if (aws) {
      pool = {{"catalog", "aws"}, {"region", "us-east-1"}, {"instance", "p3.2xlarge"}, {"market", "spot"}};
    } else {
      pool = {{"catalog", "lab.json"}, {"region", "room-1"}, {"instance", one_in(2) ? "four" : "one"}};
      if (pool["instance"] == "four") pool["gpus_per_node"] = between(1, 4);
    }
    pool["nodes"] = between(1, 4);
    pool["max_nodes"] = 4;
    pool["notice"] = seconds(0, 200);
    if (one_in(2)) pool["lifetimes"] = {{"mean", seconds(300, 20'000)}, {"back_after", seconds(0, 2'000)}};
    if (one_in(4)) pool["lifetimes"] = {{"bathtub", "24h"}};
    if (one_in(4)) pool["capacity"] = "capacity.csv";
    if (aws && one_in(2)) add_on_demand(content["platform"]);
    content["synchronization"] = synchronization();
    content["storage"] = {{"checkpoint", aws ? "s3" : "disk"}};
    if (one_in(2)) content["storage"]["dataset"] = aws ? "gp2" : one_in(2) ? "disk" : "burst";
    content["provisioning"] = {
        {"boot", {{"median", "30s"}, {"spread", 0.5}}}, {"queue", seconds(0, 60)}, {"framework_start", seconds(0, 20)}};
    return content;
  }

  Json workload() {
    Json out = {{"trace", "trace.json"},
                {"dataset", {{"name", "mnist"}, {"images", 60000}, {"bytes_per_image", 784}}},
                {"batch_per_gpu", 64}};
    switch (random_.below(3)) {
      case 0:
        out["steps"] = between(1, 100'000);
        break;
      case 1:
        out["epochs"] = between(1, 50);
        break;
      default:
        out["images"] = between(1, 10'000'000);
    }
    return out;
  }

  /// A second pool, of the other market.
  void add_on_demand(Json& platform) {
    Json spot = platform, demand = platform;
    spot["name"] = "spot";
    demand["name"] = "demand";
    demand["market"] = "on-demand";
    demand["nodes"] = between(1, 2);
    for (const char* key : {"lifetimes", "notice", "capacity"}) demand.erase(key);
    platform = {{"pools", {spot, demand}}};
  }

  Json synchronization() {
    const std::string mode = any({"all-reduce", "all-reduce", "async-parameter-server", "local-sgd", "gossip"});
    Json out = {{"mode", mode}};
    if (mode == "async-parameter-server")
      out["scheme"] = any({"parameter-server", "parameter-server:dedicated"});
    else if (mode == "gossip")
      out["scheme"] = "ring";
    else
      out["scheme"] =
          any({"ring", "tree", "recursive-doubling", "two-level", "reduce-to-one", "parameter-server", "nccl"});
    if (mode == "local-sgd") out["local_steps"] = between(1, 50);
    if (mode == "all-reduce" && one_in(3)) out["overlap"] = one_in(2);
    if (one_in(4)) out["jitter"] = 0.05;
    return out;
  }

  Json faults() {
    Json out = Json::object();
    if (one_in(2)) out["crash"] = {{"every", seconds(500, 20'000)}};
    if (one_in(2)) out["straggler"] = {{"every", seconds(500, 5'000)}, {"factor", 1.5}, {"for", seconds(10, 300)}};
    if (one_in(2)) out["network"] = {{"every", seconds(500, 5'000)}, {"factor", 0.5}, {"for", seconds(10, 300)}};
    out["events"] = Json::array();
    for (int i = between(0, 3); i > 0; --i)
      out["events"].push_back(
          {{"at", seconds(0, 3'000)}, {"kind", any({"crash", "interruption"})}, {"nodes", between(1, 2)}});
    return out;
  }

  /// Names one of all policies but those that need a program or a trained table.
  std::string policy() {
    std::vector<std::string> names;
    for (const policies::Policy& row : policies::policies())
      if (row.name != "external" && row.name != "q-learning") names.emplace_back(row.name);
    return names[random_.below(names.size())];
  }

  RandomStream random_;
  std::uint64_t seed_;
};

/// The rule that does not hold; empty if all do.
class Violations {
 public:
  void unless(bool holds, const std::string& what) {
    if (!holds) text_ += (text_.empty() ? "" : "; ") + what;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void check_ledger(const sim::Result& run, Violations& out) {
  const auto same = [](double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(a, b); };  // sums are rounded
  std::array<double, kGpuUseNames.size()> pools{};
  for (const sim::PoolUse& pool : run.pools) {
    double sum = 0;
    for (std::size_t use = 0; use < kGpuUseNames.size(); sum += pool.gpu_seconds.by_use[use++]) {
      out.unless(pool.gpu_seconds.by_use[use] >= 0, fmt::format("{}: {} is negative", pool.pool, kGpuUseNames[use]));
      pools[use] += pool.gpu_seconds.by_use[use];
    }
    out.unless(same(sum, pool.gpu_seconds.total), pool.pool + ": categories do not sum to the GPU time");
  }
  for (std::size_t use = 0; use < kGpuUseNames.size(); ++use)
    out.unless(same(pools[use], run.gpu_seconds.by_use[use]), "pools do not sum to the run's GPU time");
  MicroUsd items;
  for (const sim::BillItem& item : run.bill.items) items += item.usd;
  out.unless(items == run.bill.total(), "items do not sum to the bill");
  out.unless(run.bill.total().value >= 0, "the bill is negative");
}

std::string check_run(const sim::Scenario& scenario, const sim::Result& run) {
  Violations out;
  check_ledger(run, out);
  if (scenario.target == sim::Target::steps)
    out.unless(run.steps == scenario.steps, fmt::format("{} of {} steps", run.steps, scenario.steps));
  else
    out.unless(run.images == scenario.images, fmt::format("{} of {} images", run.images, scenario.images));
  if (run.losses == 0) out.unless(run.lost_training.si == 0, "training is lost without a loss");
  out.unless(run.lost_training.si >= 0 && run.lost_training <= run.total, "lost training is longer than the run");
  const std::string first = run.events.front().what;
  out.unless(first == "requested" || first == "waiting", "the first event is " + first);
  const sim::RunEvent& last = run.events.back();
  const bool is_cut = run.events.size() == sim::kMaxListedEvents + 1 && last.what == "further events are not listed";
  out.unless(last.what == "finished" || is_cut, "the last event is " + last.what);
  out.unless(last.at == run.total || (is_cut && last.at <= run.total), "the last event is not at the end");
  Seconds before;
  for (const sim::RunEvent& event : run.events) {
    out.unless(event.at >= before, fmt::format("{} comes before what precedes it", event.what));
    before = event.at;
  }
  out.unless(run.interval_s.low <= run.total.si && run.total.si <= run.interval_s.high,
             fmt::format("the time {} s is outside its interval of {} to {} s ({}, {} events)", run.total.si,
                         run.interval_s.low, run.interval_s.high, scenario.policy.policy->name, run.events.size()));
  return out.text();
}

std::string check_cluster(const sim::Cluster& cluster, const sim::ClusterRecord& record) {
  Violations out;
  double held = 0, pools = 0;
  for (std::size_t i = 0; i < record.jobs.size(); ++i) {
    const sim::JobRecord& job = record.jobs[i];
    const std::string name = cluster.jobs[i].name;
    out.unless(job.start_s >= job.ready_s && job.ready_s >= cluster.jobs[i].arrival_s,
               name + " starts before it is there");
    out.unless(job.end_s >= job.start_s, name + " never ends");
    for (const std::size_t other : cluster.jobs[i].after)
      out.unless(job.start_s >= record.jobs[other].end_s, name + " starts before what it waits for has ended");
    double before = 0;
    for (const sim::Stay& stay : job.stays) {
      out.unless(stay.to_s >= stay.from_s && stay.from_s >= before, name + " is in two places at once");
      before = stay.to_s;
    }
    held += job.held_gpu_s;
  }
  for (const double seconds : record.held_gpu_s) pools += seconds;
  // A GPU that two jobs share is held once by the pool and by each of them.
  out.unless(pools <= held * (1 + 1e-9) + 1e-6, "pools hold more GPU time than jobs");
  for (const sim::QueuePoint& point : record.queue)
    out.unless(point.held_gpus >= 0 && point.held_gpus <= cluster.gpus() && point.waiting >= 0,
               fmt::format("{} of {} GPUs are held", point.held_gpus, cluster.gpus()));
  const sim::Bill bill = sim::cluster_costs(cluster, record).bill.bill;
  const sim::OwnerCosts costs = sim::owner_costs(cluster, record, bill);
  MicroUsd sum = costs.idle;
  for (const MicroUsd part : costs.owners) sum += part;
  out.unless(sum == bill.total(), "owners and idle time do not sum to the bill");
  return out.text();
}

/// "" if all holds; else a word of the kind "infeasible", or what does not hold.
std::string try_seed(std::uint64_t seed, const std::filesystem::path& folder, sim::StepDistributionCache& steps) {
  static sim::ScenarioInputCache inputs;
  Draw draw(seed);
  try {
    if (draw.is_cluster()) {
      const sim::Cluster cluster = sim::read_cluster(JsonNode::wrap(draw.cluster(), "cluster.json", folder));
      const sim::ClusterRecord record = sim::simulate_cluster(cluster);
      std::string wrong = check_cluster(cluster, record);
      if (is_simulated_twice(seed) &&
          cluster_result_json(cluster, sim::simulate_cluster(cluster)) != cluster_result_json(cluster, record))
        wrong += "other bytes the second time";
      return wrong;
    }
    const sim::Scenario scenario = sim::read_scenario(JsonNode::wrap(draw.run(), "scenario.json", folder), inputs);
    const auto simulate = [&] {
      return is_of_its_own(seed) ? sim::simulate(scenario) : sim::simulate(scenario, steps);
    };
    const sim::Result run = simulate();
    std::string wrong = check_run(scenario, run);
    if (is_simulated_twice(seed) && documents::result_text(simulate()) != documents::result_text(run))
      wrong += "other bytes the second time";
    return wrong;
  } catch (const Infeasible&) {
    return "infeasible";
  } catch (const ConfigError& error) {  // two choices that exclude each other
    return fmt::format("refused: {}", error.what());
  } catch (const std::exception& error) {  // a run of too many events is given up
    return dynamic_cast<const BudgetExceeded*>(&error) ? "infeasible" : error.what();
  }
}

constexpr std::size_t kPiece = 250;  ///< scenarios of one piece of work

int measure(std::size_t count, double hours, int jobs, std::uint64_t first) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("chaos-{}", ::getpid());
  std::filesystem::create_directories(folder);
  std::vector<double> scale;
  for (int i = 0; i < 60; ++i) scale.push_back(1e-3 * (1 + 0.05 * (i * 7 % 11)));
  write_file(folder / "trace.json", traces::write_step_trace(made_up_trace(scale)));
  write_file(folder / "lab.json", made_up_platform());
  write_file(folder / "capacity.csv", "time_s,nodes\n0,3\n200,1\n500,4\n1500,0\n1800,4\n");
  const auto began = std::chrono::steady_clock::now();
  const auto over = [&] {
    return hours > 0 && std::chrono::steady_clock::now() - began > std::chrono::duration<double>(hours * 3600);
  };
  const std::size_t pieces = hours > 0 ? 10'000'000 / kPiece : (count + kPiece - 1) / kPiece;
  sim::StepDistributionCache steps;
  std::map<std::string, std::size_t> tally, refusals;
  std::size_t tried = 0, wrong = 0;
  const auto said = [&] {
    return fmt::format("{} scenarios: all holds in {}, {} never finish, {} exclude themselves, {} are wrong\n", tried,
                       tally["hold"], tally["infeasible"], tally["refused"], wrong);
  };
  const auto landed = [&](std::size_t piece, ChildOutcome& outcome) {
    if (tried > 0 && tried % 10'000 == 0) fmt::print(stderr, "{}", said());
    if (outcome.kind != ChildOutcome::Kind::ok) {
      ++wrong;
      fmt::print("seeds from {}: {}\n", first + piece * kPiece, outcome.text);
      return;
    }
    for (const auto& row : Json::parse(outcome.text)) {
      const std::string what = row[1];
      ++tried;
      if (what.starts_with("refused: ")) {
        ++tally["refused"], ++refusals[what.substr(0, 140)];
      } else if (what == "infeasible" || what.empty()) {
        ++tally[what.empty() ? "hold" : what];
      } else {
        ++wrong;
        fmt::print("seed {}: {}\n", row[0].get<std::uint64_t>(), what);
      }
    }
  };
  const auto work = [&](std::size_t piece) {
    Json rows = Json::array();
    for (std::size_t i = piece * kPiece; i < std::min((piece + 1) * kPiece, hours > 0 ? SIZE_MAX : count); ++i) {
      const std::clock_t start = std::clock();
      std::string what = try_seed(first + i, folder, steps);
      if (std::clock() - start > 10 * CLOCKS_PER_SEC) what += "takes more than 10 s of a processor";
      rows.push_back({first + i, what});
    }
    return rows.dump();
  };
  run_children(pieces, jobs, work, {}, ChildUse::reused, landed, over);
  std::filesystem::remove_all(folder);
  fmt::print("{}", said());
  for (const auto& [what, times] : refusals) fmt::print(stderr, "{:6} {}\n", times, what);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ganymede::chaos

int main(int argc, char** argv) {
  const bool timed = argc > 2 && std::strcmp(argv[1], "--hours") == 0;
  std::vector<double> numbers = timed ? std::vector<double>{1, 2, 1} : std::vector<double>{10'000, 2, 1};
  const int first = timed ? 2 : 1;
  for (int i = first; i < argc; ++i) {
    char* end = nullptr;
    const auto place = static_cast<std::size_t>(i - first);
    const double value = std::strtod(argv[i], &end);
    const bool hours = timed && place == 0;
    const double most = hours ? 1e4 : place == 1 ? 256 : 1e15;
    if (place >= numbers.size() || end == argv[i] || *end != 0 || !(value > 0 && value <= most) ||
        (!hours && value != std::floor(value))) {
      fmt::print(stderr,
                 "chaos: found '{}', expected [SCENARIOS | --hours H] [JOBS] [FIRST-SEED], whole numbers above 0\n",
                 argv[i]);
      return 2;
    }
    numbers[place] = value;
  }
  return ganymede::chaos::measure(static_cast<std::size_t>(timed ? 0 : numbers[0]), timed ? numbers[0] : 0,
                                  static_cast<int>(numbers[1]), static_cast<std::uint64_t>(numbers[2]));
}
