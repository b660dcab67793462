#include "exports/simgrid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "sim/engine/fabric_graph.hpp"

namespace ganymede::exports {
namespace {

/// The file lists a route for each pair of GPUs: with 512, some 20 MB.
constexpr int kMaxSimGridGpus = 512;

/// The settings by which SimGrid's network models neither scale bandwidths and latencies nor cap or steal from a flow.
/// smpi/os, smpi/or and smpi/ois are the times for a message and for a byte by which SMPI stands for an MPI library.
constexpr std::pair<const char*, const char*> kUnitFactors[] = {{"network/model", "CM02"},
                                                                {"network/bandwidth-factor", "1"},
                                                                {"network/latency-factor", "1"},
                                                                {"network/crosstraffic", "0"},
                                                                {"network/TCP-gamma", "0"},
                                                                {"network/weight-S", "0"},
                                                                {"surf/precision", "1e-12"},
                                                                {"maxmin/precision", "1e-9"},
                                                                {"smpi/os", "0:0:0"},
                                                                {"smpi/or", "0:0:0"},
                                                                {"smpi/ois", "0:0:0"},
                                                                {"smpi/async-small-thresh", "0"},
                                                                {"smpi/send-is-detached-thresh", "0"},
                                                                {"smpi/wtime", "0"},
                                                                {"smpi/test", "0"},
                                                                {"smpi/iprobe", "0"}};

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

class Writer {
 public:
  explicit Writer(const SimGridRequest& request)
      : request_(request), fabric_(request.platform, request.instance, request.nodes, request.gpus_per_node) {
    name_links();
  }

  SimGridExport run() {
    const int gpus = fabric_.ranks();
    for (int from = 0; from < gpus; ++from)
      for (int to = from + 1; to < gpus; ++to) add_routes(from, to);
    std::string out =
        "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
        "<platform version=\"4.1\">\n";
    if (request_.unit_factors) {
      out += "  <config>\n";
      for (const auto& [key, value] : kUnitFactors) out += property("    ", key, value);
      out += "  </config>\n";
    }
    out += fmt::format("  <zone id=\"{}\" routing=\"Full\">\n", xml_text(request_.platform.name));
    out += zone_properties() + hosts() + links() + routes_ + "  </zone>\n</platform>\n";
    warn();
    return {std::move(out), std::move(warnings_)};
  }

 private:
  static std::string property(const char* indent, std::string_view key, std::string_view value) {
    return fmt::format("{}<prop id=\"{}\" value=\"{}\"/>\n", indent, xml_text(key), xml_text(value));
  }

  /// The two directions of a link follow each other as "x.up" and "x.down@3"; they become one link of kind SPLITDUPLEX.
  void name_links() {
    const auto& links = fabric_.links();
    partner_.resize(links.size());
    for (std::size_t i = 0; i < links.size(); ++i) {
      partner_[i] = i;
      std::string other = links[i].name;
      const auto at = other.rfind(".up");
      if (at == std::string::npos || i + 1 == links.size()) continue;
      other.replace(at, 3, ".down");
      if (links[i + 1].name != other || links[i + 1].bandwidth != links[i].bandwidth) continue;
      partner_[i] = i + 1;
      partner_[i + 1] = i;
      ++i;
    }
  }

  bool is_split(std::size_t link) const { return partner_[link] != link; }

  std::string link_name(std::size_t link) const {
    std::string name = fabric_.links()[std::min(link, partner_[link])].name;
    if (is_split(link)) name.erase(name.rfind(".up"), 3);
    return name;
  }

  /// The path of the largest part of a message.
  sim::Path widest(int from, int to) {
    fabric_.paths(from, to, paths_);
    return *std::max_element(paths_.begin(), paths_.end(),
                             [](const sim::Path& a, const sim::Path& b) { return a.share < b.share; });
  }

  void add_routes(int from, int to) {
    const sim::Path there = widest(from, to), back = widest(to, from);
    std::vector<int> mirrored;
    for (auto link = there.links.rbegin(); link != there.links.rend(); ++link)
      mirrored.push_back(static_cast<int>(partner_[static_cast<std::size_t>(*link)]));
    const bool symmetrical = mirrored == back.links && there.latency == back.latency && there.limit() == back.limit();
    add_route(from, to, there, symmetrical);
    if (!symmetrical) add_route(to, from, back, false);
  }

  void add_route(int from, int to, const sim::Path& path, bool symmetrical) {
    routes_ += fmt::format("    <route src=\"{}\" dst=\"{}\" symmetrical=\"{}\"><link_ctn id=\"{}\"/>", host_name(from),
                           host_name(to), symmetrical ? "YES" : "NO", limiter_of(path));
    for (const int index : path.links) {
      const auto link = static_cast<std::size_t>(index);
      used_.insert(std::min(link, partner_[link]));
      routes_ += fmt::format("<link_ctn id=\"{}\"{}/>", xml_text(link_name(link)),
                             !is_split(link)         ? ""
                             : link < partner_[link] ? " direction=\"UP\""
                                                     : " direction=\"DOWN\"");
    }
    routes_ += "</route>\n";
  }

  /// The link that a route crosses besides those that its flows share: it has the latency of the whole path and the
  /// largest bandwidth of one flow, or that of the path's narrowest link.
  std::string limiter_of(const sim::Path& path) {
    BytesPerSecond limit = path.limit();
    for (const int link : path.links)
      limit = std::min(limit, fabric_.links()[static_cast<std::size_t>(link)].bandwidth);
    const auto [at, added] = limiters_.emplace(std::pair(path.latency, limit), limiters_.size());
    return fmt::format("path.{}", at->second);
  }

  std::string host_name(int rank) const {
    const auto digits = [](int count) { return fmt::formatted_size("{}", std::max(count - 1, 0)); };
    return fmt::format("node-{:0{}}.gpu-{:0{}}", rank / request_.gpus_per_node, digits(request_.nodes),
                       rank % request_.gpus_per_node, digits(request_.gpus_per_node));
  }

  std::string zone_properties() const {
    const platforms::Platform& platform = request_.platform;
    const platforms::Gpu& gpu = platform.gpu_of(request_.instance);
    std::vector<std::pair<const char*, std::string>> all = {
        {"instance", request_.instance.name},
        {"gpus_per_node", std::to_string(request_.gpus_per_node)},
        {"gpu", gpu.name},
        {"gpu_family", gpu.family},
        {"gpu_memory", fmt::format("{}B", gpu.memory.si)},
        {"gpu_memory_bandwidth", fmt::format("{}B/s", gpu.memory_bandwidth.si)}};
    if (gpu.tensor) all.emplace_back("gpu_tensor", fmt::format("{}flop/s", gpu.tensor->si));
    if (gpu.launch > Seconds{0}) all.emplace_back("gpu_launch", fmt::format("{}s", gpu.launch.si));
    if (!request_.region.empty()) {
      const platforms::Price& price = platform.price(request_.instance, request_.region, platforms::Market::on_demand);
      all.emplace_back("region", request_.region);
      all.emplace_back("node_per_hour", decimal(price.per_hour) + "USD/h");
      all.emplace_back("price_as_of", price.as_of);
      const platforms::Region* region = platform.region(request_.region);
      if (region != nullptr && region->carbon) all.emplace_back("carbon", fmt::format("{}g/kWh", region->carbon->si));
      if (region != nullptr && region->pue) all.emplace_back("pue", fmt::format("{}", *region->pue));
    }
    std::string out;
    for (const auto& [key, value] : all) out += property("    ", key, value);
    return out;
  }

  /// Each host has the power of its GPU and its part of the node's.
  std::string hosts() {
    const platforms::Instance& instance = request_.instance;
    const platforms::Gpu& gpu = request_.platform.gpu_of(instance);
    std::string power;
    if (gpu.idle && gpu.peak) {
      const double parts = instance.gpus;
      power = property("", "wattage_per_state",
                       fmt::format("{}:{}", gpu.idle->si + instance.idle.value_or(Watts{0}).si / parts,
                                   gpu.peak->si + instance.peak.value_or(Watts{0}).si / parts));
      power.pop_back();
      power += property("", "wattage_off", "0");
      power.pop_back();
    } else {
      warnings_.push_back(fmt::format("{} states no power, so the hosts have no wattage_per_state", gpu.name));
    }
    std::string out;
    for (int rank = 0; rank < fabric_.ranks(); ++rank)
      out += fmt::format("    <host id=\"{}\" speed=\"{}f\">{}</host>\n", host_name(rank), gpu.fp32.si, power);
    return out;
  }

  /// A copy inside a GPU's memory reads and writes each byte.
  std::string links() {
    const platforms::Gpu& gpu = request_.platform.gpu_of(request_.instance);
    std::string out;
    for (const std::size_t link : used_)
      out += fmt::format("    <link id=\"{}\" bandwidth=\"{}Bps\" latency=\"0s\" sharing_policy=\"{}\"/>\n",
                         xml_text(link_name(link)), fabric_.links()[link].bandwidth.si,
                         is_split(link) ? "SPLITDUPLEX" : "SHARED");
    std::vector<std::string> rows(limiters_.size());
    for (const auto& [limiter, number] : limiters_)
      rows[number] =
          fmt::format("    <link id=\"path.{}\" bandwidth=\"{}Bps\" latency=\"{}s\" sharing_policy=\"FATPIPE\"/>\n",
                      number, limiter.second.si, limiter.first.si);
    for (const std::string& row : rows) out += row;
    out += fmt::format("    <link id=\"loopback\" bandwidth=\"{}Bps\" latency=\"0s\" sharing_policy=\"FATPIPE\"/>\n",
                       gpu.memory_bandwidth.si / 2);
    for (int rank = 0; rank < fabric_.ranks(); ++rank)
      out += fmt::format("    <route src=\"{0}\" dst=\"{0}\" symmetrical=\"NO\"><link_ctn id=\"loopback\"/></route>\n",
                         host_name(rank));
    return out;
  }

  void warn() {
    const platforms::Instance& instance = request_.instance;
    const platforms::Gpu& gpu = request_.platform.gpu_of(instance);
    if (fabric_.max_paths() > 1)
      warnings_.push_back("messages that are split over links of several kinds take the widest of them alone");
    if (!fabric_.topology().rings.empty())
      warnings_.push_back("the rings that use every link of a mesh are left out; ranks follow each other by number");
    if (fabric_.topology().node_switch || fabric_.topology().fabric_switch)
      warnings_.push_back("the switches that add and multicast only forward");
    if (limiters_.size() > 1 && limiters_.begin()->first.first != limiters_.rbegin()->first.first)
      warnings_.push_back(fmt::format(
          "latencies of routes differ, from {} to {}: SimGrid gives flows on one link shares in inverse proportion to "
          "them, not equal ones",
          to_string(limiters_.begin()->first.first), to_string(limiters_.rbegin()->first.first)));
    if (instance.nic && request_.nodes > 1 && instance.nic->transport == platforms::Nic::Transport::tcp &&
        instance.nic->tcp && instance.nic->tcp->sockets > 1)
      warnings_.push_back(
          fmt::format("messages take one TCP connection, where NCCL opens {}", instance.nic->tcp->sockets));
    if (instance.nic && request_.nodes > 1)
      warnings_.push_back("the transport of the NICs is left out, by which NCCL chooses its protocols");
    if (instance.nic && request_.nodes > 1 && instance.nic->burst)
      warnings_.push_back("the NICs have the bandwidth that they sustain; the burst before is left out");
    warnings_.push_back(
        fmt::format("adding what arrives takes no time; the GPU needs 3 bytes of memory traffic for a byte, at {}",
                    to_string(gpu.memory_bandwidth)));
    if (gpu.launch > Seconds{0})
      warnings_.push_back(fmt::format("launching a collective takes no time; here it takes {}", to_string(gpu.launch)));
    warnings_.push_back(
        "storage, markets and times to boot are left out; a host's speed is the fp32 peak of the data sheet");
  }

  const SimGridRequest& request_;
  sim::FabricGraph fabric_;
  std::vector<std::size_t> partner_;  // by link: the other direction, or itself
  std::set<std::size_t> used_;        // links that routes cross, the first direction of each
  std::map<std::pair<Seconds, BytesPerSecond>, std::size_t> limiters_;
  std::string routes_;
  std::vector<sim::Path> paths_;
  std::vector<std::string> warnings_;
};

}  // namespace

SimGridExport simgrid_platform(const SimGridRequest& request) {
  const std::int64_t gpus = std::int64_t{request.nodes} * request.gpus_per_node;
  if (gpus > kMaxSimGridGpus)
    throw ConfigError(
        fmt::format("--nodes {}: found {} GPUs in all, expected at most {}: the file lists a route for each "
                    "pair",
                    request.nodes, gpus, kMaxSimGridGpus));
  return Writer(request).run();
}

}  // namespace ganymede::exports
