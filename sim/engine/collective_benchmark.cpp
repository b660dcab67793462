#include "sim/engine/collective_benchmark.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "common/budget.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/process.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "sim/collectives/nccl_bound.hpp"
#include "sim/collectives/nccl_tuner.hpp"
#include "sim/engine/communication_engine.hpp"
#include "sim/engine/simgrid_module.hpp"

namespace ganymede::sim {
namespace {

/// True if the curve was measured with that scheme. One that names no more than NCCL's version was measured with what
/// `nccl` chooses, whose version is that of the machine.
bool is_measured_with(const platforms::MeasuredCollective& curve, const Scheme& scheme) {
  if (curve.scheme == scheme.name()) return true;
  const Scheme measured = parse_scheme(curve.scheme);
  if (measured.row != scheme.row || !scheme.variant.empty()) return false;
  const auto options = scheme.row->by_kernels ? parse_nccl_options(measured.variant) : std::nullopt;
  return options && !options->algorithm && !options->protocol && !options->any_protocol;
}

}  // namespace

std::string_view to_string(CollectiveFidelity fidelity) {
  return fidelity == CollectiveFidelity::message ? "message" : "folded";
}

TimedJobs time_jobs(const FabricGraph& fabric, std::span<const Job> jobs, CollectiveFidelity wanted,
                    const RecordTransfer& record, double tolerance) {
  FoldedTimes folded = run_folded(fabric, jobs, true, tolerance);
  if (wanted == CollectiveFidelity::folded && !record)
    return {std::move(folded.times), CollectiveFidelity::folded, folded.bottleneck, folded.difference};
  return {open_communication_engine(fabric)->run(jobs, record), CollectiveFidelity::message, folded.bottleneck, 0};
}

Seconds time_alone(const FabricGraph& fabric, const Schedule& schedule, const std::vector<int>& members) {
  const Job job{
      {Communicator{members, {{&schedule, std::vector<Seconds>(static_cast<std::size_t>(schedule.ranks()))}}}}};
  const auto times = run_folded(fabric, {&job, 1}).times;
  return *std::max_element(times[0][0][0].done.begin(), times[0][0][0].done.end());
}

Schedule plan_on(const FabricGraph& fabric, const Scheme& scheme, std::int64_t bytes, Collective collective) {
  Schedule schedule = scheme.plan({fabric.topology(), bytes, collective, ""});
  const auto& curve = fabric.measured();
  if (!curve || schedule.rounds() == 0 || curve->collective != to_string(collective) ||
      parse_scheme(curve->scheme).row != scheme.row)
    return schedule;
  constexpr double kLeast = 0.01;  // a curve that is shorter than a launch is of another GPU
  const auto size = static_cast<double>(bytes);
  double factor = curve->ratio(size);
  const Topology& topology = fabric.topology();
  if (topology.nodes() == curve->nodes && topology.gpus_per_node == curve->gpus_per_node &&
      is_measured_with(*curve, scheme)) {
    const Seconds launch = fabric.endpoints()[0].launch, alone = time_alone(fabric, schedule);
    factor = std::max(kLeast, (curve->time(size, alone) - launch) / (alone - launch));
  }
  schedule.set_cost(schedule.cost().stretched(factor));
  return schedule;
}

namespace {

/// The ranks of one of `communicators` communicators; empty if there is only one, which has all ranks.
std::vector<int> communicator_members(int communicator, int communicators, int ranks) {
  std::vector<int> members;
  if (communicators == 1) return members;
  for (int rank = communicator; rank < ranks; rank += communicators) members.push_back(rank);
  return members;
}

/// The topology that one of several communicators sees: without switches, which all would have to share, and without a
/// torus.
Topology communicator_topology(const Topology& whole, int communicators) {
  if (communicators == 1) return whole;
  const bool divides_nodes = whole.node_sizes.empty() && whole.gpus_per_node % communicators == 0;
  Topology part = clustered(whole.ranks / communicators, divides_nodes ? whole.gpus_per_node / communicators : 1);
  part.nccl = whole.nccl;
  return part;
}

/// A row of benchmark_rows() without its place.
Json row_of(const CollectiveBenchmark& benchmark, const BenchmarkMethod& method) {
  const BenchmarkResult result = benchmark.run(method.fidelity, method.record, method.tolerance);
  Json spans = Json::array();
  for (const BenchmarkMessage& sent : result.sent)
    spans.push_back({sent.source, sent.destination, sent.round, sent.bytes, sent.start.si, sent.end.si});
  Json row = {{"scheme", benchmark.request().scheme.name()},
              {"collective", to_string(benchmark.request().collective)},
              {"ranks", result.ranks},
              {"bytes", benchmark.request().bytes},
              {"time_s", result.time.si},
              {"algbw_GBps", result.algorithm_GB_per_s},
              {"busbw_GBps", result.bus_GB_per_s},
              {"messages", result.messages},
              {"fidelity", to_string(result.fidelity)},
              {"limit", nullptr},
              {"choice", nullptr},
              {"spans", std::move(spans)}};
  if (!result.choice.empty()) row["choice"] = result.choice;
  if (const std::string version = benchmark.nccl_version(); !version.empty()) row["nccl_version"] = version;
  if (result.messages > 0) row["limit"] = result.bottleneck;
  if (result.difference > 0) row["difference"] = result.difference;
  return row;
}

/// The highest number of messages in a timeline; viewers cannot show more.
constexpr std::int64_t kMaxTimelineMessages = 500'000;

/// Throws ConfigError, which names the option, for more messages than these, and BudgetExceeded for more than may be
/// simulated one by one.
void check_all_messages(const std::vector<CollectiveBenchmark>& benchmarks, const BenchmarkMethod& method) {
  std::int64_t all = 0;
  for (const CollectiveBenchmark& benchmark : benchmarks) {
    const std::int64_t messages = benchmark.messages();
    const Bytes bytes{static_cast<double>(benchmark.request().bytes)};
    all += messages;
    if (method.fidelity == CollectiveFidelity::message)
      check_work(benchmark.work(), "message",
                 fmt::format("--fidelity message: {} of {}: of {} messages, counted by what they take beside others",
                             benchmark.request().scheme.name(), ganymede::to_string(bytes), with_thousands(messages)),
                 "folded gives the same time");
  }
  if (method.record && all > kMaxTimelineMessages)
    throw ConfigError(fmt::format("--timeline: {} messages, expected at most {}; ask for fewer ranks, sizes or schemes",
                                  all, kMaxTimelineMessages));
}

/// Adds to each row its "place" among those of its size; 1 is the fastest.
void add_places(Json& rows) {
  for (auto& row : rows) {
    int place = 1;
    for (const auto& other : rows)
      if (other["bytes"] == row["bytes"] && other["time_s"].get<double>() < row["time_s"].get<double>()) ++place;
    row["place"] = place;
  }
}

}  // namespace

CollectiveBenchmark::CollectiveBenchmark(const FabricGraph& fabric, BenchmarkRequest request)
    : fabric_(fabric), request_(std::move(request)) {
  const auto ranks = static_cast<std::size_t>(fabric.ranks());
  assert(request_.communicators > 0 && fabric.ranks() % request_.communicators == 0);
  assert(request_.arrivals.empty() || request_.arrivals.size() == ranks);
  request_.arrivals.resize(ranks);
  const Topology topology = communicator_topology(fabric.topology(), request_.communicators);
  ranks_ = topology.ranks;
  for (int i = 0; i < request_.communicators; ++i)
    schedules_.push_back(request_.communicators == 1
                             ? plan_on(fabric, request_.scheme, request_.bytes, request_.collective)
                             : request_.scheme.plan({topology, request_.bytes, request_.collective, ""}));
}

std::int64_t CollectiveBenchmark::messages() const {
  std::int64_t messages = 0;
  for (const Schedule& schedule : schedules_) messages += schedule.messages();
  return messages;
}

double CollectiveBenchmark::work() const {
  double work = 0;
  for (const Schedule& schedule : schedules_) work += schedule.work();
  return work;
}

std::string CollectiveBenchmark::nccl_version() const {
  if (request_.scheme.row->name != std::string_view("nccl") || request_.collective != Collective::all_reduce) return "";
  return nccl_version_effect(communicator_topology(fabric_.topology(), request_.communicators), request_.bytes,
                             request_.scheme.variant);
}

BenchmarkResult CollectiveBenchmark::run(CollectiveFidelity wanted, bool record, double tolerance) const {
  Job job;
  for (int i = 0; i < request_.communicators; ++i) {
    Communicator communicator{communicator_members(i, request_.communicators, fabric_.ranks()), {}};
    CollectiveCall call{&schedules_[static_cast<std::size_t>(i)], request_.arrivals};
    if (!communicator.members.empty()) {
      call.arrivals.clear();
      for (const int rank : communicator.members)
        call.arrivals.push_back(request_.arrivals[static_cast<std::size_t>(rank)]);
    }
    communicator.calls.push_back(std::move(call));
    job.communicators.push_back(std::move(communicator));
  }

  BenchmarkResult result;
  const auto record_message = [&](const TransferRecord& message) {
    const auto& members = job.communicators[message.communicator].members;
    const auto endpoint = [&](int index) { return members.empty() ? index : members[static_cast<std::size_t>(index)]; };
    result.sent.push_back({endpoint(message.transfer.source), endpoint(message.transfer.destination), message.round,
                           message.transfer.length, message.start, message.end});
  };
  const TimedJobs timed =
      time_jobs(fabric_, {&job, 1}, wanted, record ? RecordTransfer(record_message) : RecordTransfer(), tolerance);

  const Seconds first = *std::min_element(request_.arrivals.begin(), request_.arrivals.end());
  Seconds last = first;
  for (const auto& calls : timed.times[0]) {
    last = std::max(last, *std::max_element(calls[0].done.begin(), calls[0].done.end()));
    result.messages += calls[0].messages;
  }
  result.ranks = ranks_;
  result.time = last - first;
  if (result.time > Seconds{0}) result.algorithm_GB_per_s = static_cast<double>(request_.bytes) / result.time.si / 1e9;
  result.bus_GB_per_s = result.algorithm_GB_per_s * bus_bandwidth_factor(request_.collective, ranks_);
  result.fidelity = timed.fidelity;
  result.difference = timed.difference;
  if (result.messages > 0) result.bottleneck = timed.bottleneck.what;
  result.choice = schedules_[0].note();
  return result;
}

Json benchmark_rows(const std::vector<CollectiveBenchmark>& benchmarks, const BenchmarkMethod& method) {
  check_all_messages(benchmarks, method);
  if (method.fidelity == CollectiveFidelity::message) simgrid_module();  // once, for all children
  const auto outcomes = run_children(
      benchmarks.size(), method.jobs, [&](std::size_t i) { return row_of(benchmarks[i], method).dump(); },
      method.show ? method.show(benchmarks.size()) : nullptr);
  Json rows = Json::array();
  for (const auto& outcome : outcomes) {
    rethrow(outcome);
    rows.push_back(Json::parse(outcome.text));
  }
  add_places(rows);
  return rows;
}

}  // namespace ganymede::sim
