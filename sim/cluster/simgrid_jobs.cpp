#include "sim/cluster/simgrid_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/budget.hpp"
#include "common/errors.hpp"
#include "common/random.hpp"
#include "common/units.hpp"
#include "sim/cluster/cluster_simulation.hpp"
#include "sim/engine/collective_timing.hpp"
#include "sim/engine/joined_network.hpp"
#include "sim/engine/live_simulation.hpp"
#include "sim/ledger/nanoseconds.hpp"
#include "sim/steps/step_simulator.hpp"

namespace ganymede::sim {
namespace {

constexpr std::size_t kMostStores = 64;   // that jobs read from at the same time or one after the other
constexpr double kSameMoment_s = 1e-9;    // jobs that end within this time are seen together by the scheduler
constexpr double kWorkIsDone = 1 - 1e-9;  // share of a job's work: what is left then is rounding

/// The fabrics of all pools, which share no link.
struct ClusterNetwork {
  explicit ClusterNetwork(const Cluster& cluster) {
    std::vector<const Network*> places;
    for (const ScenarioPool& pool : cluster.pools) {
      fabrics.push_back(
          std::make_unique<FabricGraph>(*pool.platform, pool.instance(), pool.pool.nodes, pool.pool.gpus_per_node));
      places.push_back(fabrics.back().get());
    }
    joined = std::make_unique<JoinedNetwork>(places, std::vector<SiteLink>{});
  }
  std::vector<std::unique_ptr<FabricGraph>> fabrics;  // by pool
  std::unique_ptr<JoinedNetwork> joined;
};

/// By endpoint of a job's schedules: the endpoint in the cluster's network.
std::vector<int> endpoints_of(const Topology& job, std::vector<int> members, const FabricGraph& pool, int gpus_per_node,
                              int first) {
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
  for (int& member : members) member += first;
  return members;
}

/// The steps of a job on its GPUs, whose collectives are sent message by message.
class JobSteps {
 public:
  JobSteps(LiveSimulation& live, Scenario scenario, StepDistributionCache& cache, std::uint64_t seed)
      : live_(live),
        scenario_(std::move(scenario)),
        configuration_(all_nodes(scenario_)),
        workloads_(ScenarioSteps(scenario_, cache).models(configuration_)),
        simulator_(scenario_, configuration_, workloads_, seed),
        steps_(simulator_, [this](std::span<const Reduction> reductions) { return reduce(reductions); }) {
    std::vector<NodeGroup> groups;
    const WorkerLayout layout = layout_workers(scenario_, configuration_);
    for (const auto& group : layout.sites.front().groups)
      groups.push_back({group.instance, group.nodes, group.gpus_per_node});
    const FabricGraph fabric(*scenario_.pools.front().platform, groups);
    topology_ = fabric.topology();
    for (const calibration::StepBucket& bucket : workloads_.front().central.buckets)
      schedules_.push_back(plan_on(fabric, scenario_.synchronization.scheme, bucket.bytes, Collective::all_reduce));
  }
  const Topology& topology() const { return topology_; }
  double messages_a_step() const {
    double sum = 0;
    for (const Schedule& schedule : schedules_) sum += static_cast<double>(schedule.messages());
    return sum;
  }
  void place(std::vector<int> endpoints) { endpoints_ = std::move(endpoints); }

  /// When the step that begins now ends; its collectives have ended when this returns.
  double next_end() {
    offset_s_ = live_.now() - clock_s_;
    clock_s_ += steps_.next().si;
    return clock_s_ + offset_s_;
  }

 private:
  std::vector<std::vector<Seconds>> reduce(std::span<const Reduction> reductions) {
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

  LiveSimulation& live_;
  Scenario scenario_;
  Configuration configuration_;
  std::vector<calibration::WorkloadModel> workloads_;
  StepSimulator simulator_;
  StepSimulator::Live steps_;
  Topology topology_;
  std::vector<Schedule> schedules_;  // by bucket
  std::vector<int> endpoints_;
  double clock_s_ = 0;   // of the steps, without the waits for images
  double offset_s_ = 0;  // SimGrid's clock minus that of the steps
};

/// A job that runs, or that ran and was stopped.
struct LiveJob {
  const JobSpeed* speed = nullptr;
  Segment segment;
  Nanoseconds trained = 0;    // when its last step ends at its rate
  double left = 0, done = 0;  // steps
  std::int64_t checkpoints = 0;
  double to_read = 0;  // images
  std::size_t store = 0;
  LiveSimulation::Process process = 0;
  bool ended = false;
  std::unique_ptr<JobSteps> steps;  // null: it goes on at its rate
};

class SimGridJobs : public JobRunner {
 public:
  SimGridJobs(const Cluster& cluster, JobSpeeds& speeds)
      : cluster_(cluster),
        speeds_(speeds),
        network_(cluster),
        live_(open_live_simulation(*network_.joined, kMostStores)) {}

  LiveSimulation& live() { return *live_; }

  Nanoseconds wait(Nanoseconds until) override {
    const double until_s = until == kNever ? std::numeric_limits<double>::infinity() : to_seconds(until).si;
    live_->listen(until_s);
    if (live_->now() >= until_s - kSameMoment_s) return std::max(until, now());
    live_->sleep_until(live_->now() + kSameMoment_s);
    return now();
  }

  void begin(const RunningJob& running, const Segment& segment, double steps, Nanoseconds trained) override {
    jobs_.push_back(std::make_unique<LiveJob>());
    LiveJob* job = jobs_.back().get();
    latest_[running.job] = job;
    job->speed = running.speed;
    job->segment = segment;
    job->trained = trained;
    job->left = steps;
    job->to_read = running.reads ? running.speed->reading.images : 0;
    if (running.reads && running.speed->reading.store_s > 0) job->store = store(running.speed->reading.store);
    const int gpus_per_node = cluster_.pools[running.pool].pool.gpus_per_node;
    const std::vector<int> members = members_of(running.slots, gpus_per_node);
    const int first = network_.joined->first_endpoint(running.pool);
    job->steps = steps_of(running);
    if (job->steps) {
      check_messages(running.job, *job);
      job->steps->place(
          endpoints_of(job->steps->topology(), members, *network_.fabrics[running.pool], gpus_per_node, first));
    }
    constexpr Bytes kStack{8.0 * (1 << 20) + (1 << 16)};  // of a process; it uses some pages of it
    reserve_beyond_budget(kStack);
    job->process = live_->spawn(first + members.front(), [this, job] { live_through(*job); });
  }

  SegmentProgress progress(std::size_t index) const override {
    const LiveJob& job = *latest_.at(index);
    if (job.steps || job.ended) return {.steps = job.done, .checkpoints = job.checkpoints};
    return job.segment.at(std::max(now(), job.segment.start));
  }
  bool ended(std::size_t index) const override { return latest_.at(index)->ended; }
  void stop(std::size_t index) override {
    LiveJob& job = *latest_.at(index);
    if (!job.ended) live_->kill(job.process);
  }

 private:
  Nanoseconds now() const { return to_nanoseconds(Seconds{live_->now()}); }

  /// Null for jobs whose steps are no all-reduces of whole replicas: these go on at their rate alone.
  std::unique_ptr<JobSteps> steps_of(const RunningJob& running) {
    const ClusterJob& job = cluster_.jobs[running.job];
    const ClusterWorkload& workload = cluster_.workloads[job.workload];
    if (!workload.scenario) return nullptr;
    Scenario scenario = speeds_.scenario(workload, running.pool, shape_of(running.slots));
    const Synchronization& sync = scenario.synchronization;
    if (sync.mode != Mode::all_reduce || sync.placement != Placement::data_parallel) return nullptr;
    return std::make_unique<JobSteps>(*live_, std::move(scenario), cache_,
                                      fnv1a(std::to_string(cluster_.seed) + " " + job.name));
  }

  /// Refuses at once what would be refused after minutes.
  void check_messages(std::size_t index, const LiveJob& job) const {
    const double steps = std::ceil(kWorkIsDone * job.left), each = job.steps->messages_a_step();
    if (live_->messages() + steps * each <= LiveSimulation::kMaxMessages) return;
    throw Infeasible(
        fmt::format("{}: /fidelity/mode: at message fidelity the {:g} steps of the job {} would send {:g} messages "
                    "each, expected at "
                    "most {:g} of the whole cluster; fewer steps, or \"sampled\"",
                    cluster_.file, steps, cluster_.jobs[index].name, each, LiveSimulation::kMaxMessages));
  }

  std::size_t store(const std::string& name) {
    const auto [known, is_new] = stores_.try_emplace(name, stores_.size());
    if (known->second >= kMostStores) throw Infeasible("jobs read from more than 64 stores, more than are simulated");
    return known->second;
  }

  void live_through(LiveJob& job) {
    live_->sleep_until(to_seconds(job.segment.start).si);
    if (!job.steps) {
      live_->compute(to_seconds(job.trained - job.segment.start).si);
      job.checkpoints = job.segment.at(job.trained).checkpoints;
    }
    const double write_s = job.segment.checkpoint_ns / kNanosecondsPerSecond;
    double since = job.segment.since_checkpoint;
    while (job.steps && job.done < job.left * kWorkIsDone) {
      step(job);
      if (job.segment.checkpoint_every == 0 || ++since < job.segment.checkpoint_every) continue;
      if (job.done >= job.left * kWorkIsDone) break;
      live_->sleep_until(live_->now() + write_s);
      ++job.checkpoints;
      since = 0;
    }
    job.done = job.left;
    if (job.speed->writes_checkpoints()) live_->sleep_until(live_->now() + write_s);
    job.ended = true;
    live_->tell();
  }

  /// One step. The images of the next one are read meanwhile.
  void step(LiveJob& job) {
    const JobReading& reading = job.speed->reading;
    const double begin_s = live_->now();
    const bool reads = job.to_read > 0;
    std::shared_ptr<LiveSimulation::Read> read;
    if (reads && reading.store_s > 0) read = live_->start_read(job.store, reading.store_s);
    const double end_s = job.steps->next_end();
    live_->compute(end_s - live_->now());
    if (reads) live_->sleep_until(begin_s + reading.step_s);
    if (read) {
      const double took_s = read->wait() - begin_s;
      if (took_s > reading.step_s) live_->sleep_until(begin_s + took_s + reading.latency_s);
    }
    if (reads) job.to_read -= job.speed->step_images;
    job.done = std::min(job.left, job.done + 1);
  }

  const Cluster& cluster_;
  JobSpeeds& speeds_;
  ClusterNetwork network_;
  std::unique_ptr<LiveSimulation> live_;
  StepDistributionCache cache_;
  std::map<std::string, std::size_t> stores_;
  // There is one for every stay of a job, because messages of a stopped stay still end.
  std::vector<std::unique_ptr<LiveJob>> jobs_;
  std::map<std::size_t, LiveJob*> latest_;  // by job
};

}  // namespace

ClusterRecord simulate_on_simgrid(const Cluster& cluster) {
  JobSpeeds speeds(cluster);
  SimGridJobs jobs(cluster, speeds);
  ClusterRecord record;
  jobs.live().spawn(0, [&] { record = simulate_cluster(cluster, speeds, &jobs); });
  jobs.live().run();
  record.messages = jobs.live().messages();
  return record;
}

}  // namespace ganymede::sim
