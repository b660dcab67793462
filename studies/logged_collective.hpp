#pragma once
// What ran for a log of nccl-tests, and how long it takes on a machine that is described.

#include <cstdint>
#include <string>
#include <vector>

#include "platforms/platform.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/engine/fabric_graph.hpp"
#include "traces/nccl_log.hpp"

namespace ganymede::studies {

/// What a user says of a log, where the log itself does not.
struct LogOptions {
  std::string scheme = {};  ///< "": NCCL's, in the version and with the settings that the log shows
  int nodes = 0;            ///< 0: as the log says, or 1 if it does not say
  int gpus_per_node = 0;    ///< 0: as the log says, or all of the instance if it does not say
  bool eager = false;       ///< sources do not wait for destinations (ProtocolCost::eager)
};

/// The log without rows whose two times for the same work are too far apart: the measurement was disturbed. Each has a
/// note. Throws ConfigError if no row is left.
traces::NcclLog undisturbed(traces::NcclLog log);

struct LoggedCollective {
  /// Throws ConfigError for a log that contradicts the options or the instance.
  LoggedCollective(const traces::NcclLog& log, const LogOptions& options, const platforms::Instance& instance);

  int nodes = 1, gpus_per_node = 1;
  std::string collective;
  sim::Scheme scheme;
  bool eager = false;

  int ranks() const { return nodes * gpus_per_node; }
  /// True if NCCL is timed from the costs of its choices, as it compares them itself: simulating a fit of hundreds of
  /// GPUs, some hundred collectives, would take minutes.
  bool is_large() const;

  /// The predicted time of a size, NCCL's choice for it and what bounds it.
  struct Prediction {
    Seconds time;
    std::string choice;
    std::string bottleneck;  ///< only if `explain`
  };
  /// On nodes of `groups`, which have `nodes` nodes in all.
  Prediction predict(const platforms::Platform& platform, const std::vector<sim::NodeGroup>& groups, std::int64_t bytes,
                     bool explain) const;

 private:
  void check_against(const traces::NcclLog& log) const;
};

}  // namespace ganymede::studies
