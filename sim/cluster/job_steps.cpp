#include "sim/cluster/job_steps.hpp"

#include "common/errors.hpp"
#include "sim/cluster/job_speeds.hpp"
#include "sim/engine/collective_timing.hpp"

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

}  // namespace ganymede::sim
