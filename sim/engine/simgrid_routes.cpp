#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <simgrid/s4u.hpp>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "sim/engine/platform_xml.hpp"
#include "sim/engine/simgrid_module.hpp"

namespace ganymede::sim {
namespace {

namespace s4u = simgrid::s4u;

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// Reads "Idle:AllCores" or "Idle:Epsilon:AllCores", in watts, of the first processor state.
void read_power(const s4u::Host& host, SimGridHost& out) {
  const char* property = host.get_property("wattage_per_state");
  if (property == nullptr) return;
  const std::string text = property;
  const std::string first = text.substr(0, text.find(','));
  const auto idle = number_in(first.substr(0, first.find(':')));
  const auto peak = number_in(first.substr(std::min(first.rfind(':'), first.size() - 1) + 1));
  if (!idle || !peak || *idle < 0 || *peak <= 0 || *idle > *peak)
    throw ConfigError(
        fmt::format("host {}: wattage_per_state is \"{}\", expected Idle:AllCores in watts", out.name, text));
  out.idle = Watts{*idle};
  out.peak = Watts{*peak};
}

bool is_inside(const s4u::Host& host, const std::string& zone) {
  const s4u::NetZone* root = s4u::Engine::get_instance()->get_netzone_root();  // whose parent must not be asked for
  for (const s4u::NetZone* at = host.get_englobing_zone(); !zone.empty(); at = at->get_parent()) {
    if (at->get_name() == zone) return true;
    if (at == root) return false;
  }
  return true;
}

class RouteReader {
 public:
  explicit RouteReader(SimGridPlatform& out) : out_(out) {}

  void read(const std::vector<s4u::Host*>& hosts) {
    for (std::size_t from = 0; from < hosts.size(); ++from)
      for (std::size_t to = 0; to < hosts.size(); ++to)
        if (from != to) add(hosts, from, to);
  }

 private:
  void add(const std::vector<s4u::Host*>& hosts, std::size_t from, std::size_t to) {
    std::vector<s4u::Link*> crossed;
    double latency = 0;
    hosts[from]->route_to(hosts[to], crossed, &latency);
    if (crossed.empty())
      throw ConfigError(fmt::format("no route from {} to {}", hosts[from]->get_cname(), hosts[to]->get_cname()));
    platforms::FabricRoute route{static_cast<int>(from), static_cast<int>(to), {}, Seconds{latency}, {}};
    const s4u::Link* narrowest = nullptr;
    double limit = std::numeric_limits<double>::infinity();
    for (const s4u::Link* link : crossed) {
      if (link->get_sharing_policy() == s4u::Link::SharingPolicy::FATPIPE) {
        limit = std::min(limit, link->get_bandwidth());
        continue;
      }
      const int number = number_of(*link);
      if (std::find(route.links.begin(), route.links.end(), number) == route.links.end()) route.links.push_back(number);
      if (narrowest == nullptr || link->get_bandwidth() < narrowest->get_bandwidth()) narrowest = link;
    }
    // Where nothing is shared, the pair gets a link of its own, and each of its messages that speed.
    if (narrowest == nullptr) {
      route.links.push_back(static_cast<int>(out_.links.size()));
      out_.links.push_back(
          {fmt::format("{} to {}", hosts[from]->get_cname(), hosts[to]->get_cname()), BytesPerSecond{limit}});
    } else if (limit < narrowest->get_bandwidth()) {
      route.per_flow = BytesPerSecond{limit};
    }
    out_.routes.push_back(std::move(route));
  }

  int number_of(const s4u::Link& link) {
    const auto [at, added] = numbers_.emplace(link.get_name(), static_cast<int>(out_.links.size()));
    if (added) out_.links.push_back({link.get_name(), BytesPerSecond{link.get_bandwidth()}});
    return at->second;
  }

  SimGridPlatform& out_;
  std::map<std::string, int> numbers_;
};

}  // namespace

SimGridPlatform read_simgrid_platform(const PlatformXml& xml, const std::string& file, const std::string& zone) {
  int argc = 1;
  char program[] = "ganymede";
  char* argv[] = {program, nullptr};
  s4u::Engine engine(&argc, argv);
  engine.load_platform(file);
  SimGridPlatform out;
  out.properties = xml.properties;
  std::vector<s4u::Host*> hosts;
  for (const std::string& name : xml.hosts) {
    s4u::Host* host = s4u::Host::by_name_or_null(name);
    if (host == nullptr || !is_inside(*host, zone)) continue;
    hosts.push_back(host);
    out.hosts.push_back({name, FlopsPerSecond{host->get_speed() * host->get_core_count()}, {}, {}});
    read_power(*host, out.hosts.back());
  }
  if (hosts.empty())
    throw ConfigError(zone.empty() ? "has no host" : fmt::format("has no host in a zone or cluster \"{}\"", zone));
  RouteReader(out).read(hosts);
  return out;
}

}  // namespace ganymede::sim
