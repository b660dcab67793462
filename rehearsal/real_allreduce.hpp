#pragma once
// Schedules executed between processes, with what was predicted beside what was measured.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "rehearsal/local_hosts.hpp"
#include "sim/collectives/allreduce.hpp"

namespace ganymede::rehearsal {

struct RealAllReduce {
  std::vector<sim::Scheme> schemes = {};
  std::vector<std::int64_t> sizes = {};      ///< bytes
  int gpus_per_node = 0;                     ///< without a fabric: ranks on a node; 0: one
  const sim::FabricGraph* fabric = nullptr;  ///< null: nothing is predicted
  std::string backend = "auto";              ///< cpu, cuda, or auto: cuda if each rank has a GPU of its own
  int repeats = 0;                           ///< calls that are timed; 0: as many as a second holds
  HostsChoice hosts = {};
  bool is_fitted = false;  ///< links are to be fitted to the times, which takes two sizes,
  bool has_links = false;  ///< and a fabric of one instance type
  /// Called at rank 0 with the number of calls; returns what is called with the number of those that are done.
  std::function<std::function<void(std::size_t)>(std::size_t)> show = {};
};

/// Executes every scheme at every size between the processes that a launcher started, or that this one starts on this
/// machine. Returns at rank 0 { "heading", "ping", "messenger", "scale", "rows" }, with a row of docs/rehearse.md for
/// each call, all sizes and for each size all schemes; null elsewhere. Throws ConfigError, which names the option, if
/// the processes, the sizes or the network do not suit, and Failure if a sum is wrong.
OrderedJson real_allreduce(const RealAllReduce& request, const Remark& remark);

}  // namespace ganymede::rehearsal
