// ganymede allreduce: times collectives on a fabric and prints them as nccl-tests does.

#include "sim/collectives/allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "cli/allreduce_real.hpp"
#include "cli/command.hpp"
#include "cli/names.hpp"
#include "cli/terminal.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "common/process.hpp"
#include "common/units.hpp"
#include "exports/collectives_trace.hpp"
#include "platforms/overlay.hpp"
#include "report/collectives.hpp"
#include "report/wrap.hpp"
#include "sim/engine/collective_benchmark.hpp"
#include "sim/engine/fabric_graph.hpp"
#include "sim/engine/simgrid_module.hpp"

namespace ganymede::cli {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
constexpr int kMaxRanks = 65536;

struct AllReduceOptions {
  std::string catalog, overlay, bytes, schemes, late, timeline;
  std::string instances, nodes = "1";
  std::string transport;  ///< empty: as the platform says
  int gpus_per_node = 0;
  int groups = 1;
  bool execute = false;  ///< by `real`, in place of a simulation
  RealAllReduce real;
  std::string collective = "all-reduce";
  std::string fidelity = "folded";
};

std::vector<std::string> split(const std::string& text, const char* option) {
  std::vector<std::string> items;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) {
    if (item.empty()) throw ConfigError(fmt::format("{} {}: found an empty entry", option, text));
    items.push_back(item);
  }
  if (text.ends_with(',')) throw ConfigError(fmt::format("{} {}: found an empty entry", option, text));
  if (items.empty()) throw ConfigError(fmt::format("{}: found nothing, expected at least one", option));
  return items;
}

/// Parses "64KiB", or a bare number of bytes.
std::int64_t parse_bytes(const std::string& text) {
  double bytes = -1;
  try {
    const bool bare = text.find_first_not_of("-.0123456789") == std::string::npos;
    bytes = parse_quantity<Bytes>(bare ? text + "B" : text).si;
  } catch (const std::invalid_argument& error) {
    throw ConfigError(fmt::format("--bytes {}: {}", text, error.what()));
  }
  if (!(bytes >= 0 && bytes <= static_cast<double>(kMaxBytes)) || bytes != static_cast<double>(std::int64_t(bytes)))
    throw ConfigError(fmt::format("--bytes {}: expected a whole number of bytes from 0 to 1TiB", text));
  return static_cast<std::int64_t>(bytes);
}

int nodes_of(const std::string& text, const char* option) {
  const bool digits = !text.empty() && text.size() < 9 && text.find_first_not_of("0123456789") == std::string::npos;
  const int count = digits ? std::stoi(text) : 0;
  if (count < 1 || count > kMaxRanks)
    throw ConfigError(fmt::format("{} {}: expected an integer from 1 to {}", option, text, kMaxRanks));
  return count;
}

/// Lets the instance types' NICs use another transport. TCP moves messages between nodes through the memory of the
/// hosts; EFA and RDMA are refused where the platform's NICs do not have them.
void set_transport(platforms::Platform& platform, const AllReduceOptions& options) {
  if (options.transport.empty()) return;
  const auto& names = platforms::transport_names();
  const auto transport =
      static_cast<platforms::Nic::Transport>(std::find(names.begin(), names.end(), options.transport) - names.begin());
  for (const std::string& name : split(options.instances, "--instance")) {
    platform.instance(name);  // refuses an unknown name
    for (platforms::Instance& instance : platform.instances) {
      if (instance.name != name) continue;
      if (!instance.nic) throw ConfigError(fmt::format("--transport: {} has no NIC", name));
      platforms::Nic& nic = *instance.nic;
      if (nic.transport == transport) continue;
      if (transport != platforms::Nic::Transport::tcp)
        throw ConfigError(fmt::format("--transport {}: the NICs of {} have {}", options.transport, name,
                                      names[static_cast<std::size_t>(nic.transport)]));
      nic.transport = transport;
      nic.gpu_direct = !instance.host_link.has_value();  // without a host link nothing says what a copy takes
      nic.rendezvous = Seconds{0};                       // that of the network which TCP stands in for
      nic.rendezvous_in_tuner = false;
      if (!nic.tcp) nic.tcp = platforms::Nic::Tcp{};  // one socket, as on an interface that NCCL does not know
    }
  }
}

/// The NICs of an instance type, such as "4 x 100 Gbit/s efa"; empty without one.
std::string nics_of(const platforms::Instance& instance) {
  if (!instance.nic) return "";
  const platforms::Nic& nic = *instance.nic;
  return fmt::format("{}{:g} Gbit/s {}", nic.count > 1 ? fmt::format("{} x ", nic.count) : "", nic.bandwidth.si * 8e-9,
                     platforms::transport_names()[static_cast<std::size_t>(nic.transport)]);
}

/// The nodes that --instance A,B --nodes 2,1 ask for: two of A and one of B.
std::vector<sim::NodeGroup> node_groups(const platforms::Platform& platform, const AllReduceOptions& options) {
  const auto names = split(options.instances, "--instance");
  const auto counts = split(options.nodes, "--nodes");
  if (names.size() != counts.size())
    throw ConfigError(
        fmt::format("--nodes {}: found {} counts, expected one for each of the {} instance types of "
                    "--instance",
                    options.nodes, counts.size(), names.size()));
  std::vector<sim::NodeGroup> groups;
  std::int64_t ranks = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const platforms::Instance& instance = platform.instance(names[i]);
    sim::NodeGroup group{&instance, nodes_of(counts[i], "--nodes"), instance.gpus};
    if (options.gpus_per_node > instance.gpus)
      throw ConfigError(fmt::format("--gpus-per-node {}: {} has {}", options.gpus_per_node, names[i], instance.gpus));
    if (options.gpus_per_node > 0) group.gpus_per_node = options.gpus_per_node;
    if (instance.available && group.nodes > *instance.available)
      throw ConfigError(fmt::format("--nodes {}: the platform has {} of {}", counts[i], *instance.available, names[i]));
    ranks += std::int64_t{group.nodes} * group.gpus_per_node;
    groups.push_back(group);
  }
  if (ranks > kMaxRanks)
    throw ConfigError(
        fmt::format("--nodes {}: found {} GPUs in all, expected at most {}", options.nodes, ranks, kMaxRanks));
  return groups;
}

/// Parses "3=20us,5=1ms": when these ranks issue the collective. All others issue it at 0.
std::vector<Seconds> parse_arrivals(const std::string& late, int ranks) {
  std::vector<Seconds> arrivals(static_cast<std::size_t>(ranks));
  if (late.empty()) return arrivals;
  for (const std::string& entry : split(late, "--late")) {
    const std::size_t sign = entry.find('=');
    const std::string rank = entry.substr(0, sign);
    if (sign == std::string::npos || rank.empty() || rank.size() > 8 ||
        rank.find_first_not_of("0123456789") != std::string::npos || std::stoi(rank) >= ranks)
      throw ConfigError(
          fmt::format("--late {}: expected RANK=TIME with a rank from 0 to {}, for example 3=20us", entry, ranks - 1));
    try {
      const Seconds time = parse_quantity<Seconds>(entry.substr(sign + 1));
      if (time < Seconds{0}) throw std::invalid_argument("expected zero or more");
      arrivals[static_cast<std::size_t>(std::stoi(rank))] = time;
    } catch (const std::invalid_argument& error) {
      throw ConfigError(fmt::format("--late {}: {}", entry, error.what()));
    }
  }
  return arrivals;
}

/// A row of the output and, under "spans", the messages for a timeline.
Json row_of(const sim::CollectiveBenchmark& benchmark, const AllReduceOptions& options) {
  const bool message = options.fidelity == "message";
  const sim::BenchmarkResult result = benchmark.run(
      message ? sim::CollectiveFidelity::message : sim::CollectiveFidelity::folded, !options.timeline.empty());
  Json spans = Json::array();
  for (const sim::BenchmarkMessage& sent : result.sent)
    spans.push_back({sent.source, sent.destination, sent.round, sent.bytes, sent.start.si, sent.end.si});
  Json row = {{"scheme", benchmark.request().scheme.name()},
              {"collective", options.collective},
              {"ranks", result.ranks},
              {"bytes", benchmark.request().bytes},
              {"time_s", result.time.si},
              {"algbw_GBps", result.algorithm_GB_per_s},
              {"busbw_GBps", result.bus_GB_per_s},
              {"messages", result.messages},
              {"fidelity", sim::to_string(result.fidelity)},
              {"limit", nullptr},
              {"choice", nullptr},
              {"spans", std::move(spans)}};
  if (!result.choice.empty()) row["choice"] = result.choice;
  if (result.messages > 0) row["limit"] = result.bottleneck;
  return row;
}

/// The highest number of messages in a timeline; viewers cannot show more.
constexpr std::int64_t kMaxTimelineMessages = 500'000;
/// The highest number of messages that are simulated one by one, which takes minutes.
constexpr std::int64_t kMaxMessages = 20'000'000;

void check_messages(const std::vector<sim::CollectiveBenchmark>& benchmarks, const AllReduceOptions& options) {
  std::int64_t all = 0;
  for (const sim::CollectiveBenchmark& benchmark : benchmarks) {
    const std::int64_t messages = benchmark.messages();
    const Bytes bytes{static_cast<double>(benchmark.request().bytes)};
    all += messages;
    if (options.fidelity == "message" && messages > kMaxMessages)
      throw ConfigError(
          fmt::format("--fidelity message: {} of {} is {} messages, expected at most {}; folded gives the same time",
                      benchmark.request().scheme.name(), to_string(bytes), messages, kMaxMessages));
  }
  if (!options.timeline.empty() && all > kMaxTimelineMessages)
    throw ConfigError(fmt::format("--timeline: {} messages, expected at most {}; ask for fewer ranks, sizes or schemes",
                                  all, kMaxTimelineMessages));
}

/// One benchmark for each scheme and size.
std::vector<sim::CollectiveBenchmark> benchmarks_of(const sim::FabricGraph& fabric, const AllReduceOptions& options) {
  if (options.groups > 1 && fabric.ranks() % options.groups != 0)
    throw ConfigError(fmt::format("--groups {}: expected a divisor of the {} ranks", options.groups, fabric.ranks()));
  std::vector<std::int64_t> sizes;
  for (const auto& text : split(options.bytes, "--bytes")) sizes.push_back(parse_bytes(text));
  const std::vector<Seconds> arrivals = parse_arrivals(options.late, fabric.ranks());
  const std::vector<std::string> names = split(options.schemes, "--scheme");
  const sim::Collective collective = sim::parse_collective(options.collective);
  std::vector<sim::Scheme> schemes;
  for (const auto& text : names) schemes.push_back(sim::parse_scheme(text));
  std::vector<sim::CollectiveBenchmark> benchmarks;
  for (const auto size : sizes)
    for (const auto& scheme : schemes)
      benchmarks.emplace_back(fabric, sim::BenchmarkRequest{scheme, size, collective, options.groups, arrivals});
  return benchmarks;
}

/// Runs each benchmark in a child process, since SimGrid allows one simulation a process.
Json rows_of(const std::vector<sim::CollectiveBenchmark>& benchmarks, const AllReduceOptions& options,
             const Shared& shared) {
  if (options.fidelity == "message") sim::simgrid_module();  // once, for all children
  const auto outcomes = run_children(
      benchmarks.size(), jobs(shared), [&](std::size_t i) { return row_of(benchmarks[i], options).dump(); },
      progress_bar(shared, benchmarks.size(), "collectives"));
  Json rows = Json::array();
  for (const auto& outcome : outcomes) {
    rethrow(outcome);
    rows.push_back(Json::parse(outcome.text));
  }
  return rows;
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

/// The line above the table, such as "aws: 2 x p4d.24xlarge, 16 GPUs, all-reduce; links: datasheet".
std::string heading(const platforms::Platform& platform, const std::vector<sim::NodeGroup>& groups,
                    const sim::FabricGraph& fabric, const AllReduceOptions& options) {
  std::string text = platform.name + ":";
  for (const sim::NodeGroup& group : groups)
    text += fmt::format("{} {} x {}", &group == groups.data() ? "" : ",", group.nodes, group.instance->name);
  text += fmt::format(", {} GPUs, {}", fabric.ranks(), options.collective);
  if (options.groups > 1) text += fmt::format(", {} communicators at once", options.groups);
  std::set<std::string> labels, nics;
  if (fabric.topology().nodes() > 1)
    for (const sim::NodeGroup& group : groups)
      if (const std::string nic = nics_of(*group.instance); nics.insert(nic).second)
        text += fmt::format("; {} a node", nic);
  for (const sim::NodeGroup& group : groups)
    labels.insert(platform.fabric_label(*group.instance, fabric.topology().nodes(), group.gpus_per_node));
  for (const std::string& label : labels) text += fmt::format("; links: {}", label);
  return text + "\n\n";
}

/// What the processes of --real execute, and the machine on which it is predicted, if one is named.
void run_real(const AllReduceOptions& options, const Shared& shared) {
  RealAllReduce real = options.real;
  real.gpus_per_node = options.gpus_per_node;
  for (const auto& text : split(options.schemes, "--scheme")) real.schemes.push_back(sim::parse_scheme(text));
  for (const auto& text : split(options.bytes, "--bytes")) real.sizes.push_back(parse_bytes(text));
  if (options.catalog.empty() != options.instances.empty())
    throw ConfigError("--real: found one of --catalog and --instance, expected both or neither");
  if (options.catalog.empty()) return run_real_allreduce(real, shared);
  platforms::Platform platform = platforms::load_platform_choice(options.catalog, options.overlay);
  set_transport(platform, options);
  const auto groups = node_groups(platform, options);
  const sim::FabricGraph fabric(platform, groups);
  real.fabric = &fabric;
  real.machine = heading(platform, groups, fabric, options);
  if (groups.size() == 1)
    real.link = {.catalog = options.catalog,
                 .overlay = options.overlay,
                 .instance = options.instances,
                 .scheme = real.schemes[0].name(),
                 .nodes = groups[0].nodes,
                 .gpus_per_node = groups[0].gpus_per_node,
                 .eager = true};
  run_real_allreduce(real, shared);
}

void run_allreduce(const AllReduceOptions& options, const Shared& shared) {
  check_output(shared);
  if (options.execute) return run_real(options, shared);
  if (options.real.hosts.hosts > 0) throw ConfigError("--hosts: expected --real with it");
  if (options.catalog.empty() || options.instances.empty())
    throw ConfigError(fmt::format("{} is required, unless --real executes the schedules",
                                  options.catalog.empty() ? "--catalog" : "--instance"));
  if (!options.timeline.empty()) check_writable(options.timeline);
  platforms::Platform platform = platforms::load_platform_choice(options.catalog, options.overlay);
  set_transport(platform, options);
  const auto groups = node_groups(platform, options);
  const sim::FabricGraph fabric(platform, groups);
  const std::vector<sim::CollectiveBenchmark> benchmarks = benchmarks_of(fabric, options);
  check_messages(benchmarks, options);
  const std::string head = heading(platform, groups, fabric, options);
  Json rows = rows_of(benchmarks, options, shared);
  if (!options.timeline.empty()) write_file(options.timeline, exports::collectives_trace(rows, fabric.ranks()));
  for (auto& row : rows) row.erase("spans");
  add_places(rows);
  if (shared.format == "json") return emit(shared, rows.dump(2) + "\n");
  if (shared.format == "csv") return emit(shared, report::collectives_csv(rows));
  const std::size_t width = result_width(shared);
  emit(shared, report::wrap_prose(head, width) + report::collectives_text(rows, width));
}

void declare_allreduce(Parser command, Shared& shared) {
  auto options = std::make_shared<AllReduceOptions>();
  command.add_option("--catalog", options->catalog, "a provider (ganymede list providers) or a platform file")
      .check(suggest("@providers @files"));
  command.add_option("--overlay", options->overlay,
                     "a file of measured values that replace the platform's (ganymede import nccl-tests)");
  command.add_option("--instance", options->instances, "instance type; for nodes of unlike GPUs several, with commas")
      .check(suggest("@instances @list"));
  command.add_option("--nodes", options->nodes, "number of nodes; with several instance types a count for each")
      .capture_default_str();
  command.add_option("--gpus-per-node", options->gpus_per_node, "GPUs used on each node; default: all")
      .check(integer_between(1, 1024));
  command
      .add_option("--transport", options->transport,
                  "transport of the NICs in place of the platform's: tcp shows what EFA or RDMA is worth")
      .check(one_of(platforms::transport_names()));
  command.add_option("--scheme", options->schemes, "schemes, with commas; `ganymede list schemes` names them")
      .check(suggest("@schemes @list"))
      .required();
  command.add_option("--bytes", options->bytes, "sizes with commas: 8, 64KiB, 1GB").required();
  Option real = add_real(command, options->execute, options->real);
  command.add_option("--collective", options->collective, "the collective to time")
      .check(one_of(sim::collective_names()))
      .capture_default_str()
      .excludes(real);
  command
      .add_option("--fidelity", options->fidelity,
                  "folded: simulate one of each class of like ranks and rounds; message: simulate every message")
      .check(one_of({"folded", "message"}))
      .capture_default_str()
      .excludes(real);
  command
      .add_option(
          "--groups", options->groups,
          "number of communicators that call at once and share the links; with N, communicator i has the ranks i, i+N, "
          "i+2N, ...")
      .check(integer_between(1, kMaxRanks))
      .capture_default_str()
      .excludes(real);
  command.add_option("--late", options->late, "RANK=TIME[,RANK=TIME]: ranks that call later than the others")
      .excludes(real);
  command.add_option("--timeline", options->timeline, "file for a Chrome trace of every message (at message fidelity)")
      .excludes(real);
  add_jobs(command, shared);
  add_format(command, shared, {"table", "json", "csv"});
  add_output(command, shared);
  command.callback([options, &shared] { run_allreduce(*options, shared); });
}

}  // namespace

Command allreduce_command() {
  return {.name = "allreduce",
          .summary = "schemes against each other on one fabric, as nccl-tests prints them",
          .examples =
              "  ganymede allreduce --catalog aws --instance p4d.24xlarge --nodes 2 --scheme ring,tree,nccl \\\n"
              "                     --bytes 8,64KiB,1MiB,64MiB,1GiB [--transport tcp]\n"
              "  ganymede allreduce --catalog lab.json --instance node --nodes 64 --scheme nccl:2.18.3 --bytes 64MiB "
              "--format json\n"
              "  ganymede allreduce --catalog aws --instance p3.16xlarge --scheme multi-ring --bytes 64MiB --timeline "
              "rounds.json\n"
              "  mpirun -n 4 ganymede allreduce --real --scheme ring,two-level --gpus-per-node 2 --bytes 64KiB,1MiB\n",
          .about =
              "Times collectives on a fabric: one warm call, from the first start to the last finish. algbw and busbw\n"
              "are those of nccl-tests, and a GB is 1e9 bytes. With --real the schedules are executed over MPI, or\n"
              "by NCCL's sends and receives between GPUs; a platform "
              "then shows what was predicted beside what was measured.",
          .declare = declare_allreduce};
}

}  // namespace ganymede::cli
