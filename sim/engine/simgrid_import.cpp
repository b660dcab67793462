#include "sim/engine/simgrid_import.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "sim/engine/simgrid_platform.hpp"

namespace ganymede::sim {
namespace {

/// The highest number of hosts that a platform may have, and of those whose routes are written one by one: 65,000
/// routes, some 6 MB. Like links that meet in one switch need none.
constexpr std::size_t kMaxHosts = 1024, kMaxRoutedHosts = 256;

template <class Q>
std::string exactly(Q value, const char* unit) {
  return fmt::format("{}{}", std::min(value.si, 1e18), unit);  // a platform file holds no more of most
}

/// A link of each host into one switch.
struct SwitchStar {
  BytesPerSecond bandwidth;
  Seconds latency;  ///< of a message from host to host
  std::optional<BytesPerSecond> per_flow;
  std::optional<BytesPerSecond> middle;  ///< what all messages share; none: it never holds one up
};

/// The platform's star, if it is one: a message crosses a link of its sender alone, one of its receiver alone and what
/// all messages share.
std::optional<SwitchStar> star_of(const SimGridPlatform& platform) {
  const std::size_t hosts = platform.hosts.size();
  if (hosts < 2) return std::nullopt;
  std::vector<std::size_t> crossed(platform.links.size());
  for (const auto& route : platform.routes)
    for (const int link : route.links) ++crossed[static_cast<std::size_t>(link)];
  const auto& first = platform.routes[0];
  std::vector<int> up(hosts, -1), down(hosts, -1);
  std::set<int> middle, ends;
  for (const auto& route : platform.routes) {
    if (route.latency != first.latency || route.per_flow != first.per_flow) return std::nullopt;
    std::vector<int> own;
    for (const int link : route.links) {
      const bool common = hosts > 2 && crossed[static_cast<std::size_t>(link)] == platform.routes.size();
      if (common)
        middle.insert(link);
      else
        own.push_back(link);
    }
    if (own.size() != 2) return std::nullopt;
    int& out = up[static_cast<std::size_t>(route.from)];
    int& in = down[static_cast<std::size_t>(route.to)];
    if ((out >= 0 && out != own[0]) || (in >= 0 && in != own[1])) return std::nullopt;
    out = own[0];
    in = own[1];
  }
  ends.insert(up.begin(), up.end());
  ends.insert(down.begin(), down.end());
  if (ends.size() != 2 * hosts) return std::nullopt;
  const auto bandwidth_of = [&](int link) { return platform.links[static_cast<std::size_t>(link)].bandwidth; };
  SwitchStar star{bandwidth_of(up[0]), first.latency, first.per_flow, {}};
  for (const int link : ends)
    if (bandwidth_of(link) != star.bandwidth) return std::nullopt;
  for (const int link : middle)
    if (bandwidth_of(link) < static_cast<double>(hosts) * star.bandwidth)
      star.middle = std::min(star.middle.value_or(bandwidth_of(link)), bandwidth_of(link));
  return star;
}

/// Leaves out all but these hosts, with their routes.
void keep_hosts(SimGridPlatform& platform, const std::vector<bool>& kept) {
  std::vector<int> numbers;
  std::vector<SimGridHost> hosts;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    numbers.push_back(kept[i] ? static_cast<int>(hosts.size()) : -1);
    if (kept[i]) hosts.push_back(std::move(platform.hosts[i]));
  }
  platform.hosts = std::move(hosts);
  for (auto& route : platform.routes) {
    route.from = numbers[static_cast<std::size_t>(route.from)];
    route.to = numbers[static_cast<std::size_t>(route.to)];
  }
  std::erase_if(platform.routes, [](const platforms::FabricRoute& route) { return route.from < 0 || route.to < 0; });
}

void keep_first(SimGridPlatform& platform, std::size_t count, const char* why) {
  if (platform.hosts.size() <= count) return;
  platform.notes.push_back(fmt::format("the first {} of {} hosts were taken: {}; --zone and --hosts take others", count,
                                       platform.hosts.size(), why));
  std::vector<bool> kept(platform.hosts.size());
  std::fill_n(kept.begin(), count, true);
  keep_hosts(platform, kept);
}

/// Leaves the hosts that the user named, and of these those of the speed that most have, or of the highest such.
void choose_hosts(const SimGridImport& options, SimGridPlatform& platform) {
  const auto fail = [&](const std::string& message) {
    throw ConfigError(fmt::format("{}: {}", options.file, message));
  };
  auto& hosts = platform.hosts;
  if (hosts.empty()) fail("has no host");
  if (!options.zone.empty())
    std::erase_if(hosts, [&](const SimGridHost& host) {
      return std::find(host.zones.begin(), host.zones.end(), options.zone) == host.zones.end();
    });
  if (hosts.empty()) fail(fmt::format("has no host in a zone or cluster \"{}\"", options.zone));
  if (!options.hosts.empty())
    std::erase_if(hosts, [&](const SimGridHost& host) {
      return std::none_of(options.hosts.begin(), options.hosts.end(), [&](const std::string& pattern) {
        return ::fnmatch(pattern.c_str(), host.name.c_str(), 0) == 0;
      });
    });
  if (hosts.empty()) fail(fmt::format("has no host of the name {}", list_of(options.hosts)));
  std::map<FlopsPerSecond, std::size_t> kinds;
  for (const SimGridHost& host : hosts) ++kinds[host.speed];
  const FlopsPerSecond speed = std::max_element(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) {
                                 return std::pair(a.second, a.first) < std::pair(b.second, b.first);
                               })->first;
  const std::size_t all = hosts.size(), alike = kinds.extract(speed).mapped();
  if (!kinds.empty())
    platform.notes.push_back(
        fmt::format("{} of {} hosts were taken, which compute {}: GPUs of a pool are alike; --zone and --hosts take "
                    "others, of {}{}",
                    alike, all, to_string(speed), kinds.size() > 1 ? "up to " : "", to_string(kinds.rbegin()->first)));
  std::erase_if(hosts, [&](const SimGridHost& host) { return host.speed != speed; });
  keep_first(platform, kMaxHosts, "a platform may have no more");
}

/// Leaves out hosts until a route leads from each to each other, those without the most routes first.
void keep_joined(SimGridPlatform& platform) {
  const std::size_t hosts = platform.hosts.size();
  if (platform.routes.size() == hosts * (hosts - 1)) return;
  if (platform.routes.empty()) {
    platform.notes.push_back("no route joins the hosts: each is a machine that stands alone");
    return;
  }
  std::vector<bool> joined(hosts * hosts), kept(hosts, true);
  for (const auto& route : platform.routes)
    joined[static_cast<std::size_t>(route.from) * hosts + static_cast<std::size_t>(route.to)] = true;
  std::vector<std::size_t> missing(hosts);
  const auto lacks = [&](std::size_t a, std::size_t b) {
    return a != b && !(joined[a * hosts + b] && joined[b * hosts + a]);
  };
  for (std::size_t a = 0; a < hosts; ++a)
    for (std::size_t b = 0; b < hosts; ++b) missing[a] += lacks(a, b) ? 1 : 0;
  for (std::size_t left = hosts;; --left) {
    const auto worst = std::max_element(missing.rbegin(), missing.rend());
    if (*worst == 0) {
      platform.notes.push_back(fmt::format(
          "{} of {} hosts were taken, which routes join to each other; --zone and --hosts take others", left, hosts));
      break;
    }
    const auto out = static_cast<std::size_t>(missing.rend() - worst) - 1;
    kept[out] = false;
    missing[out] = 0;
    for (std::size_t other = 0; other < hosts; ++other)
      if (kept[other] && lacks(out, other)) --missing[other];
  }
  keep_hosts(platform, kept);
}

class PlatformMaker {
 public:
  PlatformMaker(const SimGridImport& options, SimGridPlatform& platform)
      : options_(options), sheet_(options.sheet), platform_(platform) {
    for (const auto& [key, value] : platform.properties) properties_.emplace(key, value);
  }

  std::string run() {
    const bool alone = platform_.routes.empty();
    const std::optional<SwitchStar> star = gpus_per_node() == 1 && !alone ? star_of(platform_) : std::nullopt;
    if (!star && !alone)
      keep_first(platform_, kMaxRoutedHosts - kMaxRoutedHosts % static_cast<std::size_t>(gpus_per_node()),
                 "their routes differ");
    count_nodes();
    const std::string source = "SimGrid platform " + std::filesystem::path(options_.file).filename().string();
    OrderedJson out = {{"schema", "ganymede.platform/1"},
                       {"provider", "private"},
                       {"name", std::filesystem::path(options_.file).stem().string()}};
    OrderedJson gpu = gpu_entry();
    OrderedJson instance = {{"gpu", gpu["name"]}, {"gpus", per_node_}};
    if (star)
      add_star(*star, instance);
    else if (!alone)
      add_links(instance);
    instance["available"] = nodes_;
    add_prices(out, instance);
    instance["source"] = source;
    const std::string gpu_name = gpu["name"];
    gpu.erase("name");
    out["gpus"][gpu_name] = std::move(gpu);
    out["instances"][said("instance").value_or("host")] = std::move(instance);
    out["fabric"] = star || alone ? OrderedJson{{"kind", "switch"}} : routes();
    if (star && star->middle) out["fabric"]["bandwidth"] = exactly(*star->middle, "B/s");
    out["fabric"]["label"] = "assumed";
    out["fabric"]["source"] = source;
    std::string text = out.dump(1) + "\n";
    try {
      (void)platforms::read_platform(JsonNode::parse(text, options_.file));
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{} (where /x/y is a member of the platform that it would become)", error.what()));
    }
    return text;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw ConfigError(fmt::format("{}: {}", options_.file, message));
  }

  std::optional<std::string> said(const std::string& key) const {
    const auto found = properties_.find(key);
    return found == properties_.end() || found->second.empty() ? std::nullopt : std::optional(found->second);
  }

  int gpus_per_node() const {
    if (options_.gpus_per_node != 0) return options_.gpus_per_node;
    const auto text = said("gpus_per_node");
    int number = 1;
    if (!text) return number;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    if (error != std::errc{} || end != text->data() + text->size() || number < 1)
      fail(fmt::format("the property gpus_per_node is \"{}\", expected an integer from 1 on", *text));
    return number;
  }

  void count_nodes() {
    const auto hosts = static_cast<int>(platform_.hosts.size());
    per_node_ = gpus_per_node();
    if (hosts % per_node_ != 0 || (per_node_ > 1 && platform_.routes.empty()))
      fail(fmt::format("{} hosts{} are no nodes of {} GPUs each", hosts,
                       platform_.routes.empty() ? " that no route joins" : "", per_node_));
    nodes_ = hosts / per_node_;
  }

  /// The GPU of a host: the data sheet that the user named, else what the file says, as `export simgrid`
  /// writes. The speed is the file's.
  OrderedJson gpu_entry() const {
    const SimGridHost& host = platform_.hosts[0];
    OrderedJson gpu = {{"name", sheet_ ? sheet_->name : said("gpu").value_or("host")}};
    if (sheet_) {
      gpu["family"] = sheet_->family;
      gpu["memory"] = exactly(sheet_->memory, "B");
      gpu["memory_bandwidth"] = exactly(sheet_->memory_bandwidth, "B/s");
      if (sheet_->tensor) gpu["tensor"] = exactly(*sheet_->tensor, "flop/s");
      if (sheet_->launch > Seconds{0}) gpu["launch"] = exactly(sheet_->launch, "s");
    } else {
      const auto memory = said("gpu_memory"), bandwidth = said("gpu_memory_bandwidth");
      if (!memory || !bandwidth)
        fail("says nothing of a host's memory; name the GPU that a host stands for, for example with --gpu A100-40GB");
      gpu["memory"] = *memory;
      gpu["memory_bandwidth"] = *bandwidth;
      for (const auto& [key, property] :
           {std::pair{"family", "gpu_family"}, {"tensor", "gpu_tensor"}, {"launch", "gpu_launch"}})
        if (const auto text = said(property)) gpu[key] = *text;
    }
    gpu["fp32"] = exactly(host.speed, "flop/s");
    if (host.idle) gpu["power"] = {{"idle", exactly(*host.idle, "W")}, {"peak", exactly(*host.peak, "W")}};
    return gpu;
  }

  static void add_star(const SwitchStar& star, OrderedJson& instance) {
    instance["nic"] = {{"bandwidth", exactly(star.bandwidth, "B/s")}, {"latency", exactly(star.latency / 2, "s")}};
    if (star.per_flow) instance["nic"]["per_flow"] = exactly(*star.per_flow, "B/s");
    instance["nic"]["label"] = "assumed";
  }

  const platforms::FabricRoute& route(int from, int to) const {
    // Routes stand in the order of their pairs, without those from a host to itself.
    const auto hosts = platform_.hosts.size();
    const auto row = static_cast<std::size_t>(from) * (hosts - 1);
    return platform_.routes[row + static_cast<std::size_t>(to < from ? to : to - 1)];
  }

  int narrowest(const platforms::FabricRoute& route) const {
    return *std::min_element(route.links.begin(), route.links.end(), [&](int a, int b) {
      return platform_.links[static_cast<std::size_t>(a)].bandwidth <
             platform_.links[static_cast<std::size_t>(b)].bandwidth;
    });
  }

  /// The links that NCCL and schemes look for, of GPUs and of NICs, by the narrowest links of the routes. The routes
  /// give the times.
  void add_links(OrderedJson& instance) const {
    const auto entry = [&](const platforms::FabricRoute& way, int parts) {
      return OrderedJson{
          {"bandwidth", exactly(platform_.links[static_cast<std::size_t>(narrowest(way))].bandwidth, "B/s")},
          {"latency", exactly(way.latency / parts, "s")},
          {"label", "assumed"}};
    };
    if (per_node_ > 1) {
      instance["gpu_links"] = entry(route(0, 1), 1);
      instance["gpu_links"]["kind"] = "nvlink";
    }
    if (nodes_ == 1) return;
    std::set<int> nics;
    for (int gpu = 0; gpu < per_node_; ++gpu)
      for (int other = per_node_; other < 2 * per_node_; ++other) {
        const auto& way = route(gpu, other);
        const auto width = platform_.links[static_cast<std::size_t>(narrowest(way))].bandwidth;
        // The first of the narrowest links is the sender's; the receiver's is as narrow.
        for (const int link : way.links)
          if (platform_.links[static_cast<std::size_t>(link)].bandwidth == width) {
            nics.insert(link);
            break;
          }
      }
    instance["nic"] = entry(route(0, per_node_), 2);
    instance["nic"]["count"] = nics.size();
  }

  void add_prices(OrderedJson& out, OrderedJson& instance) const {
    const auto region = said("region"), price = said("node_per_hour");
    if (!region) return;
    OrderedJson facts = OrderedJson::object();
    if (const auto carbon = said("carbon")) facts["carbon"] = *carbon;
    if (const auto pue = said("pue")) facts["pue"] = OrderedJson::parse_or_null(*pue);
    out["regions"][*region] = std::move(facts);
    if (price)
      instance["prices"] = {{{"region", *region},
                             {"market", "on-demand"},
                             {"per_hour", *price},
                             {"as_of", said("price_as_of").value_or("undated")}}};
  }

  OrderedJson routes() const {
    OrderedJson fabric = {{"kind", "routes"}, {"links", OrderedJson::object()}, {"routes", OrderedJson::array()}};
    for (const auto& way : platform_.routes) {
      OrderedJson links = OrderedJson::array();
      for (const int number : way.links) {
        const auto& link = platform_.links[static_cast<std::size_t>(number)];
        fabric["links"][link.name] = exactly(link.bandwidth, "B/s");
        links.push_back(link.name);
      }
      OrderedJson row = {
          {"from", way.from}, {"to", way.to}, {"links", std::move(links)}, {"latency", exactly(way.latency, "s")}};
      if (way.per_flow) row["per_flow"] = exactly(*way.per_flow, "B/s");
      fabric["routes"].push_back(std::move(row));
    }
    return fabric;
  }

  const SimGridImport& options_;
  const std::optional<platforms::Gpu>& sheet_;
  SimGridPlatform& platform_;
  std::map<std::string, std::string> properties_;
  int per_node_ = 0, nodes_ = 0;
};

}  // namespace

ImportedPlatform import_simgrid_platform(const SimGridImport& options) {
  const std::string made = with_simgrid_platform(
      options.file, [&](SimGridPlatform& platform) { choose_hosts(options, platform); },
      [&](SimGridPlatform& platform) {
        keep_joined(platform);
        const std::string text = PlatformMaker(options, platform).run();
        return OrderedJson(platform.notes).dump() + "\n" + text;  // both leave the child process
      });
  const std::size_t notes = made.find('\n');
  ImportedPlatform out{made.substr(notes + 1), {}};
  for (const Json& note : Json::parse(made.substr(0, notes))) out.notes.push_back(note.get<std::string>());
  const OrderedJson platform = OrderedJson::parse(out.text);
  const auto instance = platform["instances"].begin();
  if (!instance->contains("prices"))
    out.notes.push_back(
        fmt::format("no price: for `simulate`, add one to /instances/{} (ganymede example platform)", instance.key()));
  return out;
}

}  // namespace ganymede::sim
