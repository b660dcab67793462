#pragma once
// One scheme at one size on one fabric, timed in the terms of nccl-tests: what a row of `ganymede allreduce` needs.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_fwd.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/engine/collective_jobs.hpp"
#include "sim/engine/fabric_graph.hpp"
#include "sim/engine/folded_engine.hpp"

namespace ganymede::sim {

/// Times jobs of collectives on a fabric at the fidelity that the caller wants.
enum class CollectiveFidelity { message, folded };
std::string_view to_string(CollectiveFidelity fidelity);  ///< "message", "folded"

struct TimedJobs {
  JobTimes times;
  CollectiveFidelity fidelity = CollectiveFidelity::message;  ///< the one that was used
  Bottleneck bottleneck;                                      ///< found by folded simulation, at either fidelity
  double difference = 0;                                      ///< FoldedTimes::difference
};

/// Times jobs. A `record` is called for every message, which forces message fidelity whatever `wanted` says. A process
/// may run only one simulation at message fidelity; to run more, fork (common/process.hpp).
TimedJobs time_jobs(const FabricGraph& fabric, std::span<const Job> jobs, CollectiveFidelity wanted,
                    const RecordTransfer& record = {}, double tolerance = kFoldingTolerance);

/// The time of a schedule over `members`, or all ranks if there are none, that call together; nothing else happens.
Seconds time_alone(const FabricGraph& fabric, const Schedule& schedule, const std::vector<int>& members = {});

/// Plans a collective of all ranks of the fabric. Where a curve was measured (FabricGraph::measured), the schedule is
/// stretched so that alone it takes the measured time; on another number of nodes or GPUs, or with another algorithm,
/// by what the curve has over its links at that size. Another scheme or collective keeps to the links.
Schedule plan_on(const FabricGraph& fabric, const Scheme& scheme, std::int64_t bytes, Collective collective);

/// Asks how long one warm call of a collective on all ranks of a fabric takes.
struct BenchmarkRequest {
  Scheme scheme;
  std::int64_t bytes = 0;  ///< size of the whole buffer
  Collective collective = Collective::all_reduce;
  /// The number of communicators that call at the same time, a divisor of the number of ranks. Communicator g has the
  /// ranks g, g + communicators, ..., as the GPUs of one rail are. They share the links of the fabric.
  int communicators = 1;
  std::vector<Seconds> arrivals = {};  ///< when each rank of the fabric calls; empty: all at 0
};

/// One message. Source and destination are endpoints of the fabric.
struct BenchmarkMessage {
  int source = 0, destination = 0;
  std::int64_t round = 0, bytes = 0;
  Seconds start, end;
};

struct BenchmarkResult {
  int ranks = 0;                  ///< number of ranks of one communicator
  Seconds time;                   ///< from the first arrival to the last end
  double algorithm_GB_per_s = 0;  ///< bytes / time, with GB = 1e9 bytes; 0 if the time is 0
  double bus_GB_per_s = 0;        ///< algorithm_GB_per_s x bus_bandwidth_factor()
  std::int64_t messages = 0;      ///< sum over all schedules
  CollectiveFidelity fidelity = CollectiveFidelity::folded;
  double difference = 0;               ///< FoldedTimes::difference
  std::string bottleneck;              ///< Bottleneck::what; "" if no message is sent
  std::string choice;                  ///< Schedule::note()
  std::vector<BenchmarkMessage> sent;  ///< every message, if run() was called with `record`
};

class CollectiveBenchmark {
 public:
  /// Plans the schedules. Throws ConfigError if the scheme cannot serve the request. `fabric` must outlive the object.
  CollectiveBenchmark(const FabricGraph& fabric, BenchmarkRequest request);

  const BenchmarkRequest& request() const { return request_; }
  /// The number of messages of all schedules.
  std::int64_t messages() const;
  double work() const;  ///< the messages as Schedule::work() counts them
  /// The version of NCCL that is assumed, and what another would change (nccl_bound.hpp); "" for other schemes.
  std::string nccl_version() const;

  /// Times the call. With `record`, or at message fidelity, a process may call this only once; to run more simulations,
  /// fork (common/process.hpp).
  BenchmarkResult run(CollectiveFidelity wanted, bool record = false, double tolerance = kFoldingTolerance) const;

 private:
  const FabricGraph& fabric_;
  BenchmarkRequest request_;
  int ranks_ = 0;  // number of ranks of one communicator
  std::vector<Schedule> schedules_;
};

/// How benchmark_rows() runs.
struct BenchmarkMethod {
  CollectiveFidelity fidelity = CollectiveFidelity::folded;
  bool record = false;                   ///< rows get "spans", for a timeline
  int jobs = 1;                          ///< child processes at once
  double tolerance = kFoldingTolerance;  ///< of run_folded()
  /// Called with the number of benchmarks; returns what is called with the number of those that are done.
  std::function<std::function<void(std::size_t)>(std::size_t)> show = {};
};

/// Runs each benchmark in a child process and returns their rows as `allreduce --format json` prints them, in their
/// order; "place" is 1 for the fastest of a size. "spans" are the recorded messages: [source, destination, round,
/// bytes, start in seconds, end in seconds]. Throws ConfigError, which names the option, for more messages than can be
/// simulated one by one or shown.
Json benchmark_rows(const std::vector<CollectiveBenchmark>& benchmarks, const BenchmarkMethod& method);

}  // namespace ganymede::sim
