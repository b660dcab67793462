#pragma once
// `ganymede train --policy`: a policy decides while it trains how many processes do.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernel/session/session.hpp"
#include "rehearsal/training_world.hpp"
#include "sim/run/result.hpp"

namespace ganymede::rehearsal {

struct ElasticOptions {
  std::string policy, plan;
  std::string launcher = "mpirun -n {}";  ///< "{}" stands for the number of processes
  double scale = 1;                       ///< ElasticPlan::scale
};

/// The options that the user gave to `ganymede train`, by their long names, each with its values.
using GivenOptions = std::vector<std::pair<std::string, std::vector<std::string>>>;

struct ElasticTraining {
  std::vector<ElasticStart> starts;
  std::int64_t steps = 0;
  sim::Result life;
  std::string report;  ///< of the last start, in the format that was asked for
};

/// Starts `ganymede train` again and again, with the options that were `given`, as the policy wants. `format` is that
/// of the report: "table" or "json". Throws ConfigError for options that contradict each other and for a plan that this
/// machine's processes cannot stand for, and ElasticInterrupted.
ElasticTraining train_elastically(const kernel::SessionOptions& session, const ElasticOptions& options,
                                  const GivenOptions& given, const std::string& format,
                                  const std::function<void(const std::string&)>& remark);

std::string to_table(const ElasticTraining& training);
/// `training.report` must be JSON.
std::string to_json(const ElasticTraining& training, const kernel::SessionOptions& session,
                    const ElasticOptions& options);

}  // namespace ganymede::rehearsal
