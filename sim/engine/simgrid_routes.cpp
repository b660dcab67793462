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

/// Reads "Idle:AllCores" or "Idle:Epsilon:AllCores", in watts, of the processor state that the host is in.
void read_power(const s4u::Host& host, SimGridHost& out) {
  const char* property = host.get_property("wattage_per_state");
  if (property == nullptr) property = host.get_property("watt_per_state");  // before SimGrid 3.26
  if (property == nullptr) return;
  std::string_view text = property;
  for (unsigned long state = 0; state < host.get_pstate() && text.find(',') != text.npos; ++state)
    text.remove_prefix(text.find(',') + 1);
  text = text.substr(0, text.find(','));
  const auto idle = number_in(text.substr(0, text.find(':'))), peak = number_in(text.substr(text.rfind(':') + 1));
  if (!idle || !peak || *idle < 0 || *peak <= 0 || *idle > *peak) return;
  out.idle = Watts{*idle};
  out.peak = Watts{*peak};
}

std::vector<std::string> zones_around(const s4u::Host& host) {
  const s4u::NetZone* root = s4u::Engine::get_instance()->get_netzone_root();  // whose parent must not be asked for
  std::vector<std::string> out;
  for (const s4u::NetZone* at = host.get_englobing_zone();; at = at->get_parent()) {
    out.push_back(at->get_name());
    if (at == root) return out;
  }
}

class RouteReader {
 public:
  RouteReader(const PlatformXml& xml, SimGridPlatform& out) : xml_(xml), out_(out) {}

  void read() {
    std::vector<s4u::Host*> hosts;
    std::vector<std::size_t> numbers;  // in the file; both are in one order
    for (const SimGridHost& host : out_.hosts) {
      hosts.push_back(s4u::Host::by_name(host.name));
      std::size_t number = numbers.empty() ? 0 : numbers.back() + 1;
      while (xml_.hosts[number] != host.name) ++number;
      numbers.push_back(number);
    }
    for (std::size_t from = 0; from < hosts.size(); ++from)
      for (std::size_t to = 0; to < hosts.size(); ++to)
        if (from != to && xml_.joined(numbers[from], numbers[to])) add(hosts, from, to);
  }

 private:
  void add(const std::vector<s4u::Host*>& hosts, std::size_t from, std::size_t to) {
    std::vector<s4u::Link*> crossed;
    double latency = 0;
    try {
      hosts[from]->route_to(hosts[to], crossed, &latency);
    } catch (const std::exception&) {
      return;  // for example two hosts of a zone of coordinates, which have no links of their own
    }
    if (crossed.empty()) return;
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
      if (narrowest == nullptr || bandwidth_of(*link) < bandwidth_of(*narrowest)) narrowest = link;
    }
    // Where nothing is shared, the pair gets a link of its own, and each of its messages that speed.
    if (narrowest == nullptr) {
      route.links.push_back(static_cast<int>(out_.links.size()));
      out_.links.push_back(
          {fmt::format("{} to {}", hosts[from]->get_cname(), hosts[to]->get_cname()), BytesPerSecond{limit}});
    } else if (limit < bandwidth_of(*narrowest)) {
      route.per_flow = BytesPerSecond{limit};
    }
    out_.routes.push_back(std::move(route));
  }

  int number_of(const s4u::Link& link) {
    const auto [at, added] = numbers_.emplace(link.get_name(), static_cast<int>(out_.links.size()));
    if (added) out_.links.push_back({link.get_name(), BytesPerSecond{bandwidth_of(link)}});
    return at->second;
  }

  double bandwidth_of(const s4u::Link& link) const {
    const auto wireless = xml_.wireless.find(link.get_name());
    return wireless == xml_.wireless.end() ? link.get_bandwidth() : wireless->second.si;
  }

  const PlatformXml& xml_;
  SimGridPlatform& out_;
  std::map<std::string, int> numbers_;
};

}  // namespace

SimGridPlatform read_simgrid_platform(const PlatformXml& xml, const std::string& file,
                                      const std::function<void(SimGridPlatform&)>& choose) {
  int argc = 1;
  char program[] = "ganymede";
  char* argv[] = {program, nullptr};
  s4u::Engine engine(&argc, argv);
  engine.load_platform(file);
  engine.seal_platform();  // without it zones of shortest paths know only their neighbours
  SimGridPlatform out;
  out.properties = xml.properties;
  out.notes = xml.notes;
  for (const std::string& name : xml.hosts) {
    const s4u::Host* host = s4u::Host::by_name(name);
    out.hosts.push_back(
        {name, FlopsPerSecond{host->get_speed() * host->get_core_count()}, {}, {}, zones_around(*host)});
    read_power(*host, out.hosts.back());
  }
  choose(out);
  RouteReader(xml, out).read();
  return out;
}

}  // namespace ganymede::sim
