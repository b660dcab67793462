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
#include "sim/cluster/job_steps.hpp"
#include "sim/engine/network.hpp"
#include "sim/ledger/ledger.hpp"

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
  explicit SimGridJobs(const Cluster& cluster)
      : cluster_(cluster), network_(cluster), live_(open_live_simulation(*network_.joined, kMostStores)) {}

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
      std::vector<int> endpoints =
          endpoints_of(job->steps->topology(), members, *network_.fabrics[running.pool], gpus_per_node);
      for (int& endpoint : endpoints) endpoint += first;
      job->steps->place(std::move(endpoints));
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
    const auto& scenario = running.speed->scenario;
    if (!scenario || scenario->synchronization.mode != Mode::all_reduce ||
        scenario->synchronization.placement != Placement::data_parallel)
      return nullptr;
    return std::make_unique<JobSteps>(*live_, *scenario, cache_,
                                      fnv1a(std::to_string(cluster_.seed) + " " + cluster_.jobs[running.job].name));
  }

  /// Refuses at once what would be refused after minutes.
  void check_messages(std::size_t index, const LiveJob& job) const {
    const double steps = std::ceil(kWorkIsDone * job.left), each = job.steps->messages_a_step();
    check_work(live_->messages() + steps * each, "message",
               fmt::format("{}: /fidelity/mode: with the {:g} steps of the job {}", cluster_.file, steps,
                           cluster_.jobs[index].name),
               "fewer steps, \"sampled\"");
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
  SimGridJobs jobs(cluster);
  ClusterRecord record;
  jobs.live().spawn(0, [&] { record = simulate_cluster(cluster, speeds, &jobs); });
  jobs.live().run();
  record.messages = jobs.live().messages();
  return record;
}

}  // namespace ganymede::sim
