#include "sim/engine/collective_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "common/written.hpp"
#include "platforms/overlay.hpp"

namespace ganymede::sim {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;

/// The entries of a list with commas. Throws ConfigError, which names `option`, if one is empty.
std::vector<std::string> split_list(const std::string& text, const char* option) {
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

int node_count(const std::string& text, const char* option) {
  const std::int64_t count = parse_count(text).value_or(0);
  if (count < 1 || count > kMaxCollectiveRanks)
    throw ConfigError(fmt::format("{} {}: expected an integer from 1 to {}", option, text, kMaxCollectiveRanks));
  return static_cast<int>(count);
}

/// Lets the instance types' NICs use another transport; EFA and RDMA are refused where the platform's NICs do not have
/// them.
void set_transport(platforms::Platform& platform, const MachineChoice& choice) {
  if (choice.transport.empty()) return;
  const auto& names = platforms::transport_names();
  const auto transport =
      static_cast<platforms::Nic::Transport>(std::find(names.begin(), names.end(), choice.transport) - names.begin());
  for (const std::string& name : split_list(choice.instances, "--instance")) {
    platform.instance(name);  // refuses an unknown name
    for (platforms::Instance& instance : platform.instances) {
      if (instance.name != name) continue;
      if (!instance.nic) throw ConfigError(fmt::format("--transport: {} has no NIC", name));
      platforms::Nic& nic = *instance.nic;
      if (nic.transport == transport) continue;
      if (transport != platforms::Nic::Transport::tcp)
        throw ConfigError(fmt::format("--transport {}: the NICs of {} have {}", choice.transport, name,
                                      names[static_cast<std::size_t>(nic.transport)]));
      use_tcp(instance);
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
std::vector<NodeGroup> node_groups(const platforms::Platform& platform, const MachineChoice& choice) {
  const auto names = split_list(choice.instances, "--instance");
  const auto counts = split_list(choice.nodes, "--nodes");
  if (names.size() != counts.size())
    throw ConfigError(
        fmt::format("--nodes {}: found {} counts, expected one for each of the {} instance types of "
                    "--instance",
                    choice.nodes, counts.size(), names.size()));
  std::vector<NodeGroup> groups;
  std::int64_t ranks = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const platforms::Instance& instance = platform.instance(names[i]);
    NodeGroup group{&instance, node_count(counts[i], "--nodes"), instance.gpus};
    if (choice.gpus_per_node > instance.gpus)
      throw ConfigError(fmt::format("--gpus-per-node {}: {} has {}", choice.gpus_per_node, names[i], instance.gpus));
    if (choice.gpus_per_node > 0) group.gpus_per_node = choice.gpus_per_node;
    if (instance.available && group.nodes > *instance.available)
      throw ConfigError(fmt::format("--nodes {}: the platform has {} of {}", counts[i], *instance.available, names[i]));
    ranks += std::int64_t{group.nodes} * group.gpus_per_node;
    groups.push_back(group);
  }
  if (ranks > kMaxCollectiveRanks)
    throw ConfigError(
        fmt::format("--nodes {}: found {} GPUs in all, expected at most {}", choice.nodes, ranks, kMaxCollectiveRanks));
  return groups;
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

/// Parses "3=20us,5=1ms": when these ranks issue the collective. All others issue it at 0.
std::vector<Seconds> parse_arrivals(const std::string& late, int ranks) {
  std::vector<Seconds> arrivals(static_cast<std::size_t>(ranks));
  if (late.empty()) return arrivals;
  for (const std::string& entry : split_list(late, "--late")) {
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

platforms::Platform chosen_platform(const MachineChoice& choice) {
  platforms::Platform platform = platforms::load_platform_choice(choice.catalog, choice.overlay);
  set_transport(platform, choice);
  return platform;
}

}  // namespace

void use_tcp(platforms::Instance& instance) {
  platforms::Nic& nic = *instance.nic;
  nic.transport = platforms::Nic::Transport::tcp;
  nic.gpu_direct = !instance.host_link.has_value();  // without a host link nothing says what a copy takes
  nic.rendezvous = Seconds{0};                       // that of the network which TCP stands in for
  nic.rendezvous_in_tuner = false;
  if (!nic.tcp) nic.tcp = platforms::Nic::Tcp{};  // one socket, as on an interface that NCCL does not know
}

CollectiveMachine::CollectiveMachine(const MachineChoice& choice)
    : platform_(chosen_platform(choice)), groups_(node_groups(platform_, choice)), fabric_(platform_, groups_) {}

std::string CollectiveMachine::heading(const std::string& collective, int communicators) const {
  std::string text = platform_.name + ":";
  for (const NodeGroup& group : groups_)
    text += fmt::format("{} {} x {}", &group == groups_.data() ? "" : ",", group.nodes, group.instance->name);
  text += fmt::format(", {} GPUs, {}", fabric_.ranks(), collective);
  if (communicators > 1) text += fmt::format(", {} communicators at once", communicators);
  std::set<std::string> labels, nics;
  if (fabric_.topology().nodes() > 1)
    for (const NodeGroup& group : groups_)
      if (const std::string nic = nics_of(*group.instance); nics.insert(nic).second)
        text += fmt::format("; {} a node", nic);
  for (const NodeGroup& group : groups_)
    labels.insert(platform_.fabric_label(*group.instance, fabric_.topology().nodes(), group.gpus_per_node));
  for (const std::string& label : labels) text += fmt::format("; links: {}", label);
  return text + "\n\n";
}

std::vector<std::int64_t> chosen_sizes(const CallChoice& choice) {
  std::vector<std::int64_t> sizes;
  for (const auto& text : split_list(choice.bytes, "--bytes")) sizes.push_back(parse_bytes(text));
  return sizes;
}

std::vector<Scheme> chosen_schemes(const CallChoice& choice) {
  std::vector<Scheme> schemes;
  for (const auto& text : split_list(choice.schemes, "--scheme")) schemes.push_back(parse_scheme(text));
  return schemes;
}

std::vector<CollectiveBenchmark> chosen_benchmarks(const FabricGraph& fabric, const CallChoice& choice) {
  if (choice.groups > 1 && fabric.ranks() % choice.groups != 0)
    throw ConfigError(fmt::format("--groups {}: expected a divisor of the {} ranks", choice.groups, fabric.ranks()));
  const std::vector<std::int64_t> sizes = chosen_sizes(choice);
  const std::vector<Seconds> arrivals = parse_arrivals(choice.late, fabric.ranks());
  const std::vector<Scheme> schemes = chosen_schemes(choice);
  const Collective collective = parse_collective(choice.collective);
  std::vector<CollectiveBenchmark> benchmarks;
  for (const auto size : sizes)
    for (const auto& scheme : schemes)
      benchmarks.emplace_back(fabric, BenchmarkRequest{scheme, size, collective, choice.groups, arrivals});
  return benchmarks;
}

}  // namespace ganymede::sim
