#pragma once
// allreduce --real: the schedules executed between processes, with what was predicted beside what was measured.

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/hosts_options.hpp"
#include "cli/import_links.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/engine/fabric_graph.hpp"

namespace ganymede::cli {

struct RealAllReduce {
  std::vector<sim::Scheme> schemes = {};
  std::vector<std::int64_t> sizes = {};
  int gpus_per_node = 0;                     ///< without a fabric: ranks on a node; 0: one
  const sim::FabricGraph* fabric = nullptr;  ///< null: nothing is predicted
  std::string machine = {};                  ///< names the fabric
  std::string backend = "auto";              ///< cpu, cuda, or auto: cuda if each rank has a GPU of its own
  int repeats = 0;                           ///< calls that are timed; 0: as many as a second holds
  HostsChoice hosts = {};
  LinkImport link = {};  ///< for the overlay; no instance: links cannot be fitted
};

/// Declares --real, which sets `execute`, and the options that need it.
Option add_real(Parser command, bool& execute, RealAllReduce& request);

/// Executes every scheme at every size between the processes that a launcher started, or that this one starts on this
/// machine. Prints the times at rank 0 and, with --output, fits the platform's links to those of the first scheme.
void run_real_allreduce(const RealAllReduce& request, const Shared& shared);

}  // namespace ganymede::cli
