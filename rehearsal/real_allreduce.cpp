#include "rehearsal/real_allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/parallel/communicator.hpp"
#include "rehearsal/gpu_rounds.hpp"
#include "rehearsal/prediction.hpp"
#include "rehearsal/rank_plan.hpp"
#include "rehearsal/timed_call.hpp"

namespace ganymede::rehearsal {
namespace {
constexpr std::int64_t kMaxRealBytes = std::int64_t{1} << 30;  // a message has at most 2^31 - 1 bytes

void check_request(const RealAllReduce& request) {
  const int processes = kernel::launched_processes();
  if (request.hosts.hosts == 0 && processes == 1)
    throw ConfigError(
        "--real: found one process, expected several: mpirun -n 4 ganymede allreduce --real ..., or --hosts 4");
  refuse_launched(request.hosts);
  if (request.hosts.hosts > 0 && request.fabric == nullptr)
    throw ConfigError("--hosts: expected --catalog and --instance, which say how slow the network is");
  if (request.hosts.hosts == 0 && request.fabric != nullptr && request.fabric->ranks() != processes)
    throw ConfigError(
        fmt::format("--real: started as {} processes, expected {}, one for each GPU of --nodes and "
                    "--gpus-per-node",
                    processes, request.fabric->ranks()));
  if (request.hosts.hosts > 0 && request.backend == "cuda")
    throw ConfigError("--backend: found cuda, expected cpu with --hosts, whose network is one of processes");
  if (request.is_fitted && (!request.has_links || request.hosts.hosts > 0))
    throw ConfigError("--output: expected --catalog and one --instance whose links are to be fitted, and no --hosts");
  if (request.is_fitted && std::set(request.sizes.begin(), request.sizes.end()).size() < 2)
    throw ConfigError("--bytes: found one size, expected two or more with --output, which fits latency and bandwidth");
  for (const std::int64_t bytes : request.sizes)
    if (bytes < 1 || bytes > kMaxRealBytes)
      throw ConfigError(fmt::format("--bytes: found {}, expected 1B to 1GiB with --real", bytes));
}

/// `scale`: how many times as long everything takes as on the machine that is predicted for.
OrderedJson row_json(const sim::Scheme& scheme, std::int64_t bytes, const sim::Schedule& schedule,
                     const TimedCall& call, const Group& group, const Ping& ping, double scale) {
  const double rate = static_cast<double>(bytes) / call.median_s / 1e9;
  return {{"scheme", scheme.name()},
          {"collective", "all-reduce"},
          {"ranks", group.ranks()},
          {"bytes", bytes},
          {"sent_bytes", schedule.bytes()},
          {"time_s", call.median_s},
          {"interval_s", {call.low_s, call.high_s}},
          {"predicted_s", nullptr},
          {"predicted_from_ping_s", nullptr},
          {"scale", scale},
          {"ping_bytes_per_s", ping.rate.si},
          {"ping_latency_s", ping.latency.si},
          {"algbw_GBps", rate},
          {"busbw_GBps", rate * sim::bus_bandwidth_factor(sim::Collective::all_reduce, group.ranks())},
          {"messages", schedule.messages()},
          {"fidelity", "real"},
          {"repeats", call.repeats},
          {"start_spread_s", call.spread_s},
          {"processor_s", call.processor_s}};
}

double from_ping(const Group& group, const Ping& ping, const sim::Schedule& schedule) {
  const PlainFabric fabric(group.ranks(), crowded(ping, schedule, shared_processors(group)));
  return predicted_time(fabric.graph(), schedule).si;
}

/// Says under which circumstances the times were measured. On a machine without GPUs nothing is said of GPUs.
std::string circumstances(const Group& group, const std::string& why_no_gpus) {
  std::string text = group.clock().same_machine ? "one machine and one clock"
                                                : "clocks agree within " + to_string(Seconds{group.clock().error_s});
  if (group.is_crowded()) text += "; more ranks than processors, which then wait for each other";
  if (!why_no_gpus.empty() && kernel::count_gpus().count > 0)
    text += "; messages between processes and not between GPUs: " + why_no_gpus;
  return text;
}

/// The schedules in the order of the rows: all sizes, and for each size all schemes.
struct PlannedCalls {
  sim::Topology topology;
  std::vector<sim::Schedule> schedules = {};
};

/// Plans before any rank is started, so that what cannot be planned is refused once and at once.
PlannedCalls plan_calls(const RealAllReduce& request) {
  const int ranks = request.hosts.hosts > 0 ? request.hosts.hosts : kernel::launched_processes();
  PlannedCalls out{request.fabric != nullptr ? request.fabric->topology()
                                             : sim::clustered(ranks, std::max(1, request.gpus_per_node))};
  for (const std::int64_t bytes : request.sizes)
    for (const sim::Scheme& scheme : request.schemes)
      out.schedules.push_back(plan_for_processes(scheme, out.topology, bytes));
  return out;
}

/// All schemes and sizes on all ranks; at rank 0 the result as text. `fabric` predicts, unless it is null, for a
/// network on which everything takes `scale` times as long.
std::string execute(const RealAllReduce& request, const PlannedCalls& calls, const sim::FabricGraph* fabric,
                    double scale, kernel::Messenger& messenger) {
  Group group(messenger);
  std::string why_no_gpus;
  const auto gpu = join_gpus(group, request.hosts.hosts > 0 ? "cpu" : request.backend, why_no_gpus);
  const std::string network = gpu != nullptr ? gpu->name() : messenger.name();
  group.enter("the ping");
  const Ping ping = measure_ping(group, gpu.get());
  std::function<void(std::size_t)> progress;
  if (group.is_first() && request.show) progress = request.show(request.schemes.size() * request.sizes.size());
  OrderedJson rows = OrderedJson::array();
  for (const std::int64_t bytes : request.sizes)
    for (const sim::Scheme& scheme : request.schemes) {
      const sim::Schedule& schedule = calls.schedules[rows.size()];
      const std::string what = fmt::format("{} of {}", scheme.name(), to_string(Bytes{static_cast<double>(bytes)}));
      const TimedCall call = time_call(group, gpu.get(), schedule, what, request.repeats);
      rows.push_back(row_json(scheme, bytes, schedule, call, group, ping, scale));
      if (progress) progress(rows.size());
    }
  if (!group.is_first()) return "";
  // Predicted when nobody waits for rank 0 any more.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (fabric != nullptr) rows[i]["predicted_s"] = predicted_time(*fabric, calls.schedules[i]).si;
    if (calls.topology.nodes() == group.ranks())
      rows[i]["predicted_from_ping_s"] = from_ping(group, ping, calls.schedules[i]);
  }
  return OrderedJson{
      {"heading", fmt::format("{} {}, {}; every sum was right on every rank; {}", group.ranks(),
                              gpu != nullptr ? "GPUs" : "processes", network, circumstances(group, why_no_gpus))},
      {"ping", fmt::format("a ping between two ranks found {} and {}", to_string(ping.rate), to_string(ping.latency))},
      {"messenger", network},
      {"scale", scale},
      {"rows", rows}}
      .dump();
}

}  // namespace

OrderedJson real_allreduce(const RealAllReduce& request, const Remark& remark) {
  check_request(request);
  const PlannedCalls calls = plan_calls(request);
  std::string text;
  if (request.hosts.hosts == 0) {
    const auto messenger = kernel::open_messenger();
    text = execute(request, calls, request.fabric, 1, *messenger);
  } else {
    const HostsNetwork network = network_of_hosts(request.hosts, *request.fabric, remark);
    const PlainFabric stated(request.hosts.hosts, network.stated);
    text = run_on_hosts(request.hosts, network, [&](kernel::Messenger& messenger) {
      return execute(request, calls, &stated.graph(), network.scale, messenger);
    });
  }
  return text.empty() ? OrderedJson(nullptr) : OrderedJson::parse(text);
}

}  // namespace ganymede::rehearsal
