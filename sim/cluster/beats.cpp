#include "sim/cluster/beats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "common/json.hpp"
#include "common/process.hpp"
#include "common/random.hpp"
#include "sim/cluster/job_steps.hpp"
#include "sim/engine/joined_network.hpp"
#include "sim/engine/simgrid_module.hpp"

namespace ganymede::sim {
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
