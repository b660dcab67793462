#pragma once
// Calls of collectives and the nodes on which they are timed, as options of a command name them.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/engine/collective_benchmark.hpp"
#include "sim/engine/fabric_graph.hpp"

namespace ganymede::sim {

inline constexpr int kMaxCollectiveRanks = 65536;

struct MachineChoice {
  std::string catalog, overlay = {};  ///< a provider or a platform file, and a file of measured values or ""
  std::string instances;              ///< instance types, with commas
  std::string nodes = "1";            ///< a count for each of them, with commas
  std::string transport = {};         ///< of the NICs; "": as the platform says
  int gpus_per_node = 0;              ///< 0: all of an instance
};

class CollectiveMachine {
 public:
  /// Throws ConfigError, which names the option, for what the platform does not have.
  explicit CollectiveMachine(const MachineChoice& choice);
  CollectiveMachine(const CollectiveMachine&) = delete;
  CollectiveMachine& operator=(const CollectiveMachine&) = delete;

  const FabricGraph& fabric() const { return fabric_; }
  const std::vector<NodeGroup>& groups() const { return groups_; }
  /// "aws: 2 x p4d.24xlarge, 16 GPUs, all-reduce; links: datasheet", with an empty line below.
  std::string heading(const std::string& collective, int communicators = 1) const;

 private:
  platforms::Platform platform_;
  std::vector<NodeGroup> groups_;  // with pointers into the platform
  FabricGraph fabric_;
};

/// Lets the NICs use TCP, which moves messages between nodes through the memory of the hosts. Precondition: it has a
/// NIC.
void use_tcp(platforms::Instance& instance);

/// Calls of collectives, as options name them.
struct CallChoice {
  std::string bytes;                      ///< sizes with commas: "64KiB,1GB"; a bare number counts bytes
  std::string schemes;                    ///< with commas
  std::string collective = "all-reduce";  ///< one of collective_names()
  int groups = 1;                         ///< communicators that call at once
  std::string late = {};                  ///< "3=20us,5=1ms": when these ranks call; all others call at 0
};

// Each throws ConfigError, which names the option.
std::vector<std::int64_t> chosen_sizes(const CallChoice& choice);
std::vector<Scheme> chosen_schemes(const CallChoice& choice);
/// One benchmark for each size and scheme. `fabric` must outlive them.
std::vector<CollectiveBenchmark> chosen_benchmarks(const FabricGraph& fabric, const CallChoice& choice);

}  // namespace ganymede::sim
