#include "cli/allreduce_real.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "cli/terminal.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "kernel/parallel/communicator.hpp"
#include "rehearsal/gpu_rounds.hpp"
#include "rehearsal/prediction.hpp"
#include "rehearsal/rank_plan.hpp"
#include "rehearsal/timed_call.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::cli {
namespace {
constexpr std::int64_t kMaxRealBytes = std::int64_t{1} << 30;  // a message has at most 2^31 - 1 bytes

void check_request(const RealAllReduce& request, const Shared& shared) {
  const int processes = kernel::launched_processes();
  if (request.hosts.hosts == 0 && processes == 1)
    throw ConfigError(
        "--real: found one process, expected several: mpirun -n 4 ganymede allreduce --real ..., or --hosts 4");
  if (request.hosts.hosts > 0 && processes > 1)
    throw ConfigError("--hosts: found several processes, expected one, which starts the others");
  if (request.hosts.hosts > 0 && request.fabric == nullptr)
    throw ConfigError("--hosts: expected --catalog and --instance, which say how slow the network is");
  if (request.hosts.hosts == 0 && request.fabric != nullptr && request.fabric->ranks() != processes)
    throw ConfigError(
        fmt::format("--real: started as {} processes, expected {}, one for each GPU of --nodes and "
                    "--gpus-per-node",
                    processes, request.fabric->ranks()));
  if (request.hosts.hosts > 0 && request.backend == "cuda")
    throw ConfigError("--backend: found cuda, expected cpu with --hosts, whose network is one of processes");
  if (!shared.output.empty() && (request.link.instance.empty() || request.hosts.hosts > 0))
    throw ConfigError("--output: expected --catalog and one --instance whose links are to be fitted, and no --hosts");
  if (!shared.output.empty() && std::set(request.sizes.begin(), request.sizes.end()).size() < 2)
    throw ConfigError("--bytes: found one size, expected two or more with --output, which fits latency and bandwidth");
  for (const std::int64_t bytes : request.sizes)
    if (bytes < 1 || bytes > kMaxRealBytes)
      throw ConfigError(fmt::format("--bytes: found {}, expected 1B to 1GiB with --real", bytes));
}

/// `scale`: how many times as long everything takes as on the machine that is predicted for.
OrderedJson row_json(const sim::Scheme& scheme, std::int64_t bytes, const sim::Schedule& schedule,
                     const rehearsal::TimedCall& call, const rehearsal::Group& group, const rehearsal::Ping& ping,
                     double scale) {
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

double from_ping(const rehearsal::Group& group, const rehearsal::Ping& ping, const sim::Schedule& schedule) {
  const rehearsal::PlainFabric fabric(group.ranks(),
                                      rehearsal::crowded(ping, schedule, rehearsal::shared_processors(group)));
  return rehearsal::predicted_time(fabric.graph(), schedule).si;
}

/// What a reader of the times should know. On a machine without GPUs nothing is said of GPUs.
std::string circumstances(const rehearsal::Group& group, const std::string& why_no_gpus) {
  std::string text = group.clock().same_machine ? "one machine and one clock"
                                                : "clocks agree within " + to_string(Seconds{group.clock().error_s});
  if (group.is_crowded()) text += "; more ranks than processors, which then wait for each other";
  if (!why_no_gpus.empty() && kernel::count_gpus().count > 0)
    text += "; messages between processes and not between GPUs: " + why_no_gpus;
  return text;
}

/// What is executed, in the order of the rows: all sizes, of each all schemes.
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
      out.schedules.push_back(rehearsal::plan_for_processes(scheme, out.topology, bytes));
  return out;
}

/// All schemes and sizes on all ranks; at rank 0 what is printed. `fabric` predicts, unless it is null, for a network
/// on which everything takes `scale` times as long.
std::string execute(const RealAllReduce& request, const PlannedCalls& calls, const sim::FabricGraph* fabric,
                    double scale, kernel::Messenger& messenger, const Shared& shared) {
  rehearsal::Group group(messenger);
  std::string why_no_gpus;
  const auto gpu = rehearsal::join_gpus(group, request.hosts.hosts > 0 ? "cpu" : request.backend, why_no_gpus);
  const std::string network = gpu != nullptr ? gpu->name() : messenger.name();
  group.enter("the ping");
  const rehearsal::Ping ping = rehearsal::measure_ping(group, gpu.get());
  std::function<void(std::size_t)> progress;
  if (group.is_first()) progress = progress_bar(shared, request.schemes.size() * request.sizes.size(), "collectives");
  OrderedJson rows = OrderedJson::array();
  for (const std::int64_t bytes : request.sizes)
    for (const sim::Scheme& scheme : request.schemes) {
      const sim::Schedule& schedule = calls.schedules[rows.size()];
      const std::string what = fmt::format("{} of {}", scheme.name(), to_string(Bytes{static_cast<double>(bytes)}));
      const rehearsal::TimedCall call = time_call(group, gpu.get(), schedule, what, request.repeats);
      rows.push_back(row_json(scheme, bytes, schedule, call, group, ping, scale));
      if (progress) progress(rows.size());
    }
  if (!group.is_first()) return "";
  // Predicted when nobody waits for rank 0 any more.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (fabric != nullptr) rows[i]["predicted_s"] = rehearsal::predicted_time(*fabric, calls.schedules[i]).si;
    if (calls.topology.nodes() == group.ranks())
      rows[i]["predicted_from_ping_s"] = from_ping(group, ping, calls.schedules[i]);
  }
  return OrderedJson{
      {"heading", fmt::format("{} {}, {}; every sum was right on every rank; {}", group.ranks(),
                              gpu != nullptr ? "GPUs" : "processes", network, circumstances(group, why_no_gpus))},
      {"ping", fmt::format("a ping between two ranks found {} and {}", to_string(ping.rate), to_string(ping.latency))},
      {"messenger", network},
      {"rows", rows}}
      .dump();
}

report::Table table_of(const OrderedJson& rows) {
  report::Table table({">size", "scheme", ">measured", ">95 % interval", ">predicted", ">off by", ">from a ping",
                       ">off by", ">processor", ">starts apart"});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const OrderedJson& row = rows[i];
    const auto measured = row["time_s"].get<double>();
    const auto time = [](const OrderedJson& value) {
      return value.is_null() ? "" : to_string(Seconds{value.get<double>()});
    };
    const auto off = [&](const OrderedJson& value) {
      return value.is_null() ? "" : report::signed_percent(value.get<double>() / measured - 1);
    };
    if (i > 0 && row["bytes"] != rows[i - 1]["bytes"]) table.rule();
    table.add({to_string(Bytes{row["bytes"].get<double>()}), row["scheme"].get<std::string>(), time(row["time_s"]),
               fmt::format("{} to {}", time(row["interval_s"][0]), time(row["interval_s"][1])),
               time(row["predicted_s"]), off(row["predicted_s"]), time(row["predicted_from_ping_s"]),
               off(row["predicted_from_ping_s"]), time(row["processor_s"]), time(row["start_spread_s"])});
  }
  return table;
}

std::string csv_of(const OrderedJson& rows) {
  const std::vector<std::string> keys = {
      "bytes",    "sent_bytes", "scheme",      "ranks", "time_s",           "predicted_s",   "predicted_from_ping_s",
      "messages", "repeats",    "processor_s", "scale", "ping_bytes_per_s", "ping_latency_s"};
  report::Table table(keys);
  for (const OrderedJson& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& key : keys) {
      const OrderedJson& value = row[key];
      cells.push_back(value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump());
    }
    table.add(cells);
  }
  return table.csv();
}

void fit_overlay(const RealAllReduce& request, const OrderedJson& result, const Shared& shared) {
  const OrderedJson& rows = result["rows"];
  std::vector<TimedSize> sizes;
  for (std::size_t i = 0; i < rows.size(); i += request.schemes.size())
    sizes.push_back({rows[i]["sent_bytes"].get<std::int64_t>(), rows[i]["time_s"].get<double>()});
  std::sort(sizes.begin(), sizes.end(), [](const TimedSize& a, const TimedSize& b) { return a.bytes < b.bytes; });
  LinkImport link = request.link;
  link.log = std::filesystem::path(shared.output).replace_extension(".all-reduce.txt").string();
  write_file(link.log,
             log_of_sizes(rows[0]["ranks"].get<int>(), result["messenger"].get<std::string>(), link.instance, sizes));
  import_collective_log(link, shared);
}

void print_result(const RealAllReduce& request, const std::string& machine, const std::string& text,
                  const Shared& shared) {
  const OrderedJson result = OrderedJson::parse(text);
  const OrderedJson& rows = result["rows"];
  Shared to_stdout = shared;
  to_stdout.output.clear();
  if (shared.format == "json")
    emit(to_stdout, rows.dump(2) + "\n");
  else if (shared.format == "csv")
    emit(to_stdout, csv_of(rows));
  else
    emit(to_stdout,
         fmt::format("{}; {}\n{}\n", result["heading"].get<std::string>(), result["ping"].get<std::string>(), machine) +
             table_of(rows).text(result_width(shared)));
  if (!shared.output.empty()) fit_overlay(request, result, shared);
}

}  // namespace

Option add_real(Parser command, bool& execute, RealAllReduce& request) {
  Option real = command.add_flag(
      "--real", execute,
      "execute the schedules between the processes that mpirun or --hosts starts, and time them; --output is then an "
      "overlay of the fitted links");
  command
      .add_option("--backend", request.backend,
                  "where the buffers of --real are: cuda (GPUs, by NCCL's sends and receives), cpu (the processes' "
                  "memory), or auto: cuda if each rank has a GPU of its own")
      .check(one_of({"auto", "cuda", "cpu"}))
      .capture_default_str()
      .needs(real);
  command
      .add_option("--repeats", request.repeats,
                  "calls that --real times for each scheme and size; default: as many as a second holds, from 7 to 101")
      .check(integer_between(7, 100000))
      .needs(real);
  add_hosts(command, request.hosts);
  return real;
}

void run_real_allreduce(const RealAllReduce& request, const Shared& shared) {
  check_request(request, shared);
  const PlannedCalls calls = plan_calls(request);
  const std::string machine = request.machine.empty() ? "" : "predicted for " + request.machine;
  if (request.hosts.hosts == 0) {
    const auto messenger = kernel::open_messenger();
    const std::string text = execute(request, calls, request.fabric, 1, *messenger, shared);
    if (!text.empty()) print_result(request, machine, text, shared);
    return;
  }
  const HostsNetwork network = network_of_hosts(request.hosts, *request.fabric, shared);
  const rehearsal::PlainFabric stated(request.hosts.hosts, network.stated);
  const std::string text = run_on(request.hosts, network, [&](kernel::Messenger& messenger) {
    return execute(request, calls, &stated.graph(), network.scale, messenger, shared);
  });
  print_result(request,
               fmt::format("everything takes {:g} times as long as on the machine that is predicted for:\n{}",
                           network.scale, request.machine),
               text, shared);
}

}  // namespace ganymede::cli
