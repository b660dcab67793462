#pragma once
// A scheduler that is a program of the user: a JSON line in, a JSON line out.

#include <memory>
#include <string>

#include "policies/schedulers/scheduler.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/run/policy_process.hpp"

namespace ganymede::sim {

class ExternalScheduler {
 public:
  explicit ExternalScheduler(const ClusterScheduler& scheduler);
  /// Throws Failure if the program fails, or answers what is no schedule.
  policies::JobSchedule decide(const policies::ClusterView& view);

 private:
  const ClusterScheduler& scheduler_;
  std::unique_ptr<PolicyProcess> process_;
};

/// The program is told in one line: now_s, pools, owners and jobs with the seconds that each takes alone.
std::string view_json(const policies::ClusterView& view);
/// Reads {"run": [{"job": name, "pool": index, "gpus": n}], "again_in_s": s}. Throws ConfigError for anything else.
policies::JobSchedule parse_schedule(const std::string& line, const policies::ClusterView& view);

}  // namespace ganymede::sim
