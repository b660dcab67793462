// ganymede allreduce: collectives on a fabric, in the manner of nccl-tests.

#include "sim/collectives/allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/command.hpp"
#include "cli/names.hpp"
#include "cli/terminal.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/process.hpp"
#include "exports/collectives_trace.hpp"
#include "platforms/overlay.hpp"
#include "report/collectives.hpp"
#include "sim/engine/fabric_graph.hpp"
#include "sim/engine/time_call.hpp"

namespace ganymede::cli {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
constexpr int kMaxRanks = 65536;

struct AllReduceOptions {
  std::string catalog, overlay, bytes, schemes, late, timeline;
  std::string instances, nodes = "1";
  int gpus_per_node = 0;
  int groups = 1;
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

/// "64KiB", or a bare number of bytes.
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

int parse_count(const std::string& text, const char* option) {
  const bool digits = !text.empty() && text.size() < 9 && text.find_first_not_of("0123456789") == std::string::npos;
  const int count = digits ? std::stoi(text) : 0;
  if (count < 1 || count > kMaxRanks)
    throw ConfigError(fmt::format("{} {}: expected an integer from 1 to {}", option, text, kMaxRanks));
  return count;
}

/// "--instance A,B --nodes 2,1": so many nodes of each.
std::vector<NodeGroup> groups_of(const Platform& platform, const AllReduceOptions& options) {
  const auto names = split(options.instances, "--instance");
  const auto counts = split(options.nodes, "--nodes");
  if (names.size() != counts.size())
    throw ConfigError(
        fmt::format("--nodes {}: found {} counts, expected one for each of the {} instance types of "
                    "--instance",
                    options.nodes, counts.size(), names.size()));
  std::vector<NodeGroup> groups;
  std::int64_t ranks = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Instance& instance = platform.instance(names[i]);
    NodeGroup group{&instance, parse_count(counts[i], "--nodes"), instance.gpus};
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

/// "3=20us,5=1ms": when ranks issue the collective; the others at 0.
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

Collective parse_collective(const std::string& name) {
  const auto names = collective_names();
  return static_cast<Collective>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// The factor between algorithm and bus bandwidth, as nccl-tests defines it (doc/PERFORMANCE.md there).
double bus_factor(Collective collective, int ranks) {
  const double share = static_cast<double>(ranks - 1) / ranks;
  switch (collective) {
    case Collective::all_reduce:
      return 2 * share;
    case Collective::reduce_scatter:
    case Collective::all_gather:
      return share;
    case Collective::broadcast:
      return ranks == 1 ? 0 : 1;
  }
  return 0;
}

/// Every groups-th rank, starting with `group`, as the GPUs of one rail are.
std::vector<int> members_of(int group, int groups, int ranks) {
  std::vector<int> members;
  for (int rank = group; rank < ranks; rank += groups) members.push_back(rank);
  return members;
}

/// What a communicator of those members sees of the fabric: no switch that it would have to share, no torus.
Topology part_of(const Topology& whole, int groups, std::size_t members) {
  const int in_node = whole.node_sizes.empty() && whole.gpus_per_node % groups == 0 ? whole.gpus_per_node / groups : 1;
  Topology part = clustered(static_cast<int>(members), in_node);
  part.nccl = whole.nccl;
  return part;
}

/// One scheme at one size: the whole fabric is a communicator, or `groups` communicators call at once.
class Case {
 public:
  Case(const FabricGraph& fabric, const AllReduceOptions& options, const Scheme& scheme, std::int64_t bytes)
      : fabric_(fabric),
        options_(options),
        scheme_(scheme),
        bytes_(bytes),
        arrivals_(parse_arrivals(options.late, fabric.ranks())) {
    job_.communicators.resize(static_cast<std::size_t>(options.groups));
    schedules_.reserve(job_.communicators.size());
    for (int group = 0; group < options.groups; ++group) {
      Communicator& communicator = job_.communicators[static_cast<std::size_t>(group)];
      if (options.groups > 1) communicator.members = members_of(group, options.groups, fabric.ranks());
      request_ = {fabric.topology(), bytes, parse_collective(options.collective), ""};
      if (options.groups > 1)
        request_.topology = part_of(fabric.topology(), options.groups, communicator.members.size());
      schedules_.push_back(scheme.plan(request_));
      communicator.calls.push_back({&schedules_.back(), {}});
      for (int rank = 0; rank < request_.topology.ranks; ++rank) {
        const auto member = static_cast<std::size_t>(rank);
        communicator.calls[0].arrivals.push_back(
            arrivals_[communicator.members.empty() ? member : static_cast<std::size_t>(communicator.members[member])]);
      }
    }
  }

  /// A row of the output and, under "spans", the messages where a timeline is wanted.
  nlohmann::json run() const {
    nlohmann::json spans = nlohmann::json::array();
    RecordTransfer record;
    if (!options_.timeline.empty()) record = [&](const TransferRecord& message) { spans.push_back(span_of(message)); };
    const bool message = options_.fidelity == "message";
    const TimedJobs timed =
        time_jobs(fabric_, {&job_, 1}, message ? CollectiveFidelity::message : CollectiveFidelity::folded, record);

    const Seconds first = *std::min_element(arrivals_.begin(), arrivals_.end());
    Seconds last = first;
    std::int64_t messages = 0;
    for (const auto& calls : timed.times[0]) {
      last = std::max(last, *std::max_element(calls[0].done.begin(), calls[0].done.end()));
      messages += calls[0].messages;
    }
    const double time = (last - first).si;
    const int ranks = request_.topology.ranks;
    const double algbw = time > 0 ? static_cast<double>(bytes_) / time / 1e9 : 0;
    nlohmann::json row = {{"scheme", scheme_.name()},
                          {"collective", options_.collective},
                          {"ranks", ranks},
                          {"bytes", bytes_},
                          {"time_s", time},
                          {"algbw_GBps", algbw},
                          {"busbw_GBps", algbw * bus_factor(request_.collective, ranks)},
                          {"messages", messages},
                          {"fidelity", to_string(timed.fidelity)},
                          {"limit", nullptr},
                          {"choice", nullptr},
                          {"spans", spans}};
    if (const std::string& note = schedules_[0].note(); !note.empty()) row["choice"] = note;
    if (messages > 0) row["limit"] = timed.limit.what;
    return row;
  }

  std::int64_t bytes() const { return bytes_; }
  std::string scheme() const { return scheme_.name(); }
  std::int64_t messages() const {
    std::int64_t messages = 0;
    for (const Schedule& schedule : schedules_) messages += schedule.messages();
    return messages;
  }

 private:
  nlohmann::json span_of(const TransferRecord& record) const {
    const auto& members = job_.communicators[record.communicator].members;
    const auto endpoint = [&](int index) { return members.empty() ? index : members[static_cast<std::size_t>(index)]; };
    return {endpoint(record.transfer.source),
            endpoint(record.transfer.destination),
            record.round,
            record.transfer.length,
            record.start.si,
            record.end.si};
  }

  const FabricGraph& fabric_;
  const AllReduceOptions& options_;
  const Scheme& scheme_;
  std::int64_t bytes_;
  std::vector<Seconds> arrivals_;
  PlanRequest request_;
  std::vector<Schedule> schedules_;
  Job job_;
};

/// The most messages that a timeline shows; a viewer takes no more.
constexpr std::int64_t kMaxSpans = 500'000;
/// And that are simulated one by one: minutes' worth.
constexpr std::int64_t kMaxMessages = 20'000'000;

void check_messages(const std::vector<Case>& cases, const AllReduceOptions& options) {
  std::int64_t all = 0;
  for (const Case& item : cases) {
    const std::int64_t messages = item.messages();
    all += messages;
    if (options.fidelity == "message" && messages > kMaxMessages)
      throw ConfigError(
          fmt::format("--fidelity message: {} of {} is {} messages, expected at most {}; folded gives the same time",
                      item.scheme(), to_string(Bytes{static_cast<double>(item.bytes())}), messages, kMaxMessages));
  }
  if (!options.timeline.empty() && all > kMaxSpans)
    throw ConfigError(fmt::format("--timeline: {} messages, expected at most {}; ask for fewer ranks, sizes or schemes",
                                  all, kMaxSpans));
}

/// "place" 1 is the fastest of its size.
void add_places(nlohmann::json& rows) {
  for (auto& row : rows) {
    int place = 1;
    for (const auto& other : rows)
      if (other["bytes"] == row["bytes"] && other["time_s"] < row["time_s"]) ++place;
    row["place"] = place;
  }
}

/// "aws: 2 x p4d.24xlarge, 16 GPUs; links: datasheet".
std::string heading(const Platform& platform, const std::vector<NodeGroup>& groups, const FabricGraph& fabric,
                    const AllReduceOptions& options) {
  std::string text = platform.name + ":";
  for (const NodeGroup& group : groups)
    text += fmt::format("{} {} x {}", &group == groups.data() ? "" : ",", group.nodes, group.instance->name);
  text += fmt::format(", {} GPUs, {}", fabric.ranks(), options.collective);
  if (options.groups > 1) text += fmt::format(", {} communicators at once", options.groups);
  std::set<std::string> labels;
  for (const NodeGroup& group : groups)
    labels.insert(platform.fabric_label(*group.instance, fabric.topology().nodes(), group.gpus_per_node));
  for (const std::string& label : labels) text += fmt::format("; links: {}", label);
  return text + "\n\n";
}

void run_allreduce(const AllReduceOptions& options, const Shared& shared) {
  check_output(shared);
  if (!options.timeline.empty()) check_writable(options.timeline);
  const Platform platform = load_platform_choice(options.catalog, options.overlay);
  const auto groups = groups_of(platform, options);
  const FabricGraph fabric(platform, groups);
  if (options.groups > 1 && fabric.ranks() % options.groups != 0)
    throw ConfigError(fmt::format("--groups {}: expected a divisor of the {} ranks", options.groups, fabric.ranks()));

  std::vector<std::int64_t> sizes;
  for (const auto& text : split(options.bytes, "--bytes")) sizes.push_back(parse_bytes(text));
  std::vector<Scheme> schemes;
  for (const auto& text : split(options.schemes, "--scheme")) schemes.push_back(parse_scheme(text));
  std::vector<Case> cases;
  for (const auto size : sizes)
    for (const auto& scheme : schemes) cases.emplace_back(fabric, options, scheme, size);
  check_messages(cases, options);
  // SimGrid allows one simulation a process.
  const auto outcomes = run_children(
      cases.size(), jobs(shared), [&](std::size_t i) { return cases[i].run().dump(); },
      progress_bar(shared, cases.size(), "collectives"));
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& outcome : outcomes) {
    rethrow(outcome);
    rows.push_back(nlohmann::json::parse(outcome.text));
  }
  if (!options.timeline.empty()) write_file(options.timeline, collectives_trace(rows, fabric.ranks()));
  for (auto& row : rows) row.erase("spans");
  add_places(rows);
  if (shared.format == "json") return emit(shared, rows.dump(2) + "\n");
  if (shared.format == "csv") return emit(shared, collectives_csv(rows));
  emit(shared, heading(platform, groups, fabric, options) + collectives_text(rows, result_width(shared)));
}

void declare_allreduce(CLI::App& command, Shared& shared) {
  auto options = std::make_shared<AllReduceOptions>();
  command.add_option("--catalog", options->catalog, "a provider (ganymede list providers) or a platform file")
      ->check(suggest("@providers @files"))
      ->required();
  command.add_option("--overlay", options->overlay, "measured values to lay over it (ganymede import nccl-tests)");
  command.add_option("--instance", options->instances, "instance type; several, with commas, for nodes of unlike GPUs")
      ->check(suggest("@instances @list"))
      ->required();
  command.add_option("--nodes", options->nodes, "how many; one count for each instance type")->capture_default_str();
  command.add_option("--gpus-per-node", options->gpus_per_node, "default: all of the instance")
      ->check(CLI::Range(1, 1024));
  command.add_option("--scheme", options->schemes, "with commas; ganymede list schemes")
      ->check(suggest("@schemes @list"))
      ->required();
  command.add_option("--bytes", options->bytes, "sizes with commas: 8, 64KiB, 1GB")->required();
  command.add_option("--collective", options->collective, "what to do")
      ->check(CLI::IsMember(collective_names()))
      ->capture_default_str();
  command
      .add_option("--fidelity", options->fidelity,
                  "folded: one of each class of like ranks and rounds; message: every message")
      ->check(CLI::IsMember({"folded", "message"}))
      ->capture_default_str();
  command
      .add_option("--groups", options->groups,
                  "so many communicators at once, each of every so-manieth rank, as rails are; they share the links")
      ->check(CLI::Range(1, kMaxRanks))
      ->capture_default_str();
  command.add_option("--late", options->late, "RANK=TIME[,RANK=TIME]: ranks that call later than the others");
  command.add_option("--timeline", options->timeline, "write every message as a Chrome trace (at message fidelity)");
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
              "                     --bytes 8,64KiB,1MiB,64MiB,1GiB\n"
              "  ganymede allreduce --catalog lab.json --instance node --nodes 64 --scheme nccl:2.18.3 --bytes 64MiB "
              "--format json\n"
              "  ganymede allreduce --catalog aws --instance p3.16xlarge --scheme multi-ring --bytes 64MiB --timeline "
              "rounds.json\n",
          .about =
              "Time collectives on a fabric. Of one warm call, from its first start to its last finish; algbw and "
              "busbw as in\n"
              "nccl-tests; GB = 1e9 bytes.",
          .declare = declare_allreduce};
}

}  // namespace ganymede::cli
