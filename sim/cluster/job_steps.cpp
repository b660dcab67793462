#include "sim/cluster/job_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/process.hpp"
#include "common/random.hpp"
#include "sim/cluster/job_speeds.hpp"
#include "sim/engine/collective_benchmark.hpp"
#include "sim/engine/network.hpp"
#include "sim/engine/simgrid_module.hpp"

namespace ganymede::sim {

JobSteps::JobSteps(LiveSimulation& live, const Scenario& scenario, StepDistributionCache& cache, std::uint64_t seed)
    : live_(live),
      configuration_(all_nodes(scenario)),
      workloads_(ScenarioSteps(scenario, cache).models(configuration_)),
      simulator_(scenario, configuration_, workloads_, seed),
      steps_(simulator_, [this](std::span<const Reduction> reductions) { return reduce(reductions); }) {
  std::vector<NodeGroup> groups;
  const WorkerLayout layout = layout_workers(scenario, configuration_);
  for (const auto& group : layout.sites.front().groups)
    groups.push_back({group.instance, group.nodes, group.gpus_per_node});
  const FabricGraph fabric(*scenario.pools.front().platform, groups);
  topology_ = fabric.topology();
  for (const calibration::StepBucket& bucket : workloads_.front().central.buckets)
    schedules_.push_back(plan_on(fabric, scenario.synchronization.scheme, bucket.bytes, Collective::all_reduce));
}

double JobSteps::messages_a_step() const {
  double sum = 0;
  for (const Schedule& schedule : schedules_) sum += static_cast<double>(schedule.messages());
  return sum;
}

double JobSteps::next_end() {
  offset_s_ = live_.now() - clock_s_;
  clock_s_ += steps_.next().si;
  return clock_s_ + offset_s_;
}

std::vector<std::vector<Seconds>> JobSteps::reduce(std::span<const Reduction> reductions) {
  Communicator communicator{endpoints_, {}};
  for (const Reduction& reduction : reductions) {
    CollectiveCall call{&schedules_[reduction.bucket], reduction.arrivals};
    for (Seconds& arrival : call.arrivals) arrival += Seconds{offset_s_};
    communicator.calls.push_back(std::move(call));
  }
  std::vector<std::vector<Seconds>> done;
  for (CollectiveTimes& call : live_.communicate(communicator)) {
    for (Seconds& at : call.done) at -= Seconds{offset_s_};
    done.push_back(std::move(call.done));
  }
  return done;
}

std::vector<int> endpoints_of(const Topology& job, std::vector<int> members, const FabricGraph& pool,
                              int gpus_per_node) {
  const Topology& all = pool.topology();
  if ((job.node_switch && !all.node_switch) || (job.fabric_switch && !all.fabric_switch))
    throw Failure("the switches of a job's nodes are no switches of its pool");
  if (job.node_switch) {
    int last = -1;
    for (int rank = 0; rank < job.ranks; ++rank) {
      if (job.node_of(rank) == last) continue;
      last = job.node_of(rank);
      members.push_back(all.ranks + members[static_cast<std::size_t>(rank)] / gpus_per_node);
    }
  }
  if (job.fabric_switch) members.push_back(all.endpoints() - 1);
  return members;
}

namespace {

// Steps of the job whose steps are longest; each job does at least as many.
constexpr double kMostSteps = 160, kLeastSteps = 8;
// For more than the least steps, and for these, so that no group takes all of a life's.
constexpr double kUsualMessages = 50'000, kMostMessages = 100'000;

/// Jobs that go on side by side until each has done so many steps. A process can have one.
class Beat {
 public:
  Beat(const ClusterContext& context, const std::vector<const RunningJob*>& jobs, std::size_t steps)
      : jobs_(jobs),
        steps_(steps),
        pool_(*context.fabrics[jobs.front()->pool]),
        ends_(jobs.size()),
        left_(jobs.size()) {
    const int gpus_per_node = context.cluster.pools[jobs.front()->pool].pool.gpus_per_node;
    std::vector<std::vector<int>> endpoints;
    for (const RunningJob* job : jobs)
      endpoints.push_back(
          endpoints_of(job->speed->traffic->topology, members_of(job->slots, gpus_per_node), pool_, gpus_per_node));
    network_ = std::make_unique<NetworkPart>(pool_, endpoints);
    live_ = open_live_simulation(*network_, 0);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      for (int& endpoint : endpoints[i]) endpoint = network_->endpoint(endpoint);
      steps_of_.push_back(std::make_unique<JobSteps>(*live_, *jobs[i]->speed->scenario, cache_,
                                                     fnv1a(fmt::format("{} beat {}", context.cluster.seed, i))));
      steps_of_.back()->place(std::move(endpoints[i]));
    }
  }

  std::vector<double> mean_steps() {
    for (std::size_t i = 0; i < jobs_.size(); ++i) live_->spawn(0, [this, i] { live_through(i); });
    live_->run();
    std::vector<double> means;
    for (std::size_t i = 0; i < jobs_.size(); ++i)
      means.push_back((ends_[i].back() - start_of(i)) / static_cast<double>(ends_[i].size()));
    return means;
  }

 private:
  /// When the job begins its first step: what is left of the one under way is not simulated.
  double start_of(std::size_t i) const {
    const TalkingJob& talk = jobs_[i]->talk;
    return talk.phase > 0 ? (1 - talk.phase) * talk.step_s : 0;
  }

  void live_through(std::size_t i) {
    const RunningJob& job = *jobs_[i];
    live_->sleep_until(start_of(i));
    while (left_ > 0) {
      const double begin_s = live_->now();
      live_->sleep_until(std::max(steps_of_[i]->next_end(), job.reads ? begin_s + job.speed->reading.step_s : 0));
      ends_[i].push_back(live_->now());
      if (ends_[i].size() == steps_) --left_;
    }
  }

  const std::vector<const RunningJob*>& jobs_;
  std::size_t steps_;
  const FabricGraph& pool_;
  std::unique_ptr<NetworkPart> network_;
  std::unique_ptr<LiveSimulation> live_;
  StepDistributionCache cache_;
  std::vector<std::unique_ptr<JobSteps>> steps_of_;  // by job, like ends_
  std::vector<std::vector<double>> ends_;            // of each step
  std::size_t left_;                                 // jobs that have not done their steps
};

}  // namespace

std::vector<double> beat(const ClusterContext& context, const std::vector<const RunningJob*>& jobs,
                         double& messages_left) {
  double longest_s = 0, messages = 0;
  for (const RunningJob* job : jobs) longest_s = std::max(longest_s, job->talk.step_s);
  for (const RunningJob* job : jobs) messages += job->speed->traffic->messages * longest_s / job->talk.step_s;
  if (kLeastSteps * messages > std::min(kMostMessages, messages_left)) return {};
  const double usual = std::floor(std::min(kUsualMessages, messages_left) / messages);
  const double steps = std::clamp(usual, kLeastSteps, kMostSteps);
  messages_left -= std::ceil(steps * messages);
  simgrid_module();  // once, for all children
  const std::string means =
      run_child([&] { return Json(Beat(context, jobs, static_cast<std::size_t>(steps)).mean_steps()).dump(); });
  return Json::parse(means).get<std::vector<double>>();
}

}  // namespace ganymede::sim
