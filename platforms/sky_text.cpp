// Writes a platform file of the machines of one of SkyPilot's lists.

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "common/units.hpp"
#include "platforms/providers.hpp"
#include "platforms/sky_machines.hpp"

namespace ganymede::platforms {
namespace {

/// What joins several machines of a cloud of which nothing is known.
constexpr const char* kAssumedNic =
    R"("nic": { "bandwidth": "10Gbit/s", "transport": "tcp", "latency": "22us", "gpu_direct": false, "tcp": { "sockets": 1 }, "label": "assumed", )"
    R"("source": "assumption: Ethernet; latency NCCL-TCP", )"
    R"("unconfirmed": "no source was read of what joins several of these machines: 10 Gbit/s Ethernet is assumed" })";
constexpr const char* kAssumedRest =
    R"(  "fabric": { "kind": "switch", "latency": "0us", "oversubscription": 1, "label": "assumed", "source": "assumption: one switch; no source was read" },
  "provisioning": {
    "boot": { "median": "5min", "spread": 0.5 }, "image_pull": { "median": "60s", "spread": 0.3 },
    "framework_start": { "median": "15s", "spread": 0.2 }, "communicator_start": { "median": "5s", "spread": 0.2 },
    "source": "assumption: no measured time was read", "unconfirmed": "boot, image pull, framework and communicator start are assumptions"
  },
  "billing": { "granularity": "1h", "minimum": "0s", "source": "assumption: by the started hour, the coarsest step in use", "unconfirmed": "no source was read of this cloud's steps" }
})";

std::string quoted(const std::string& text) { return OrderedJson(text).dump(); }

class SkyText {
 public:
  SkyText(const SkyMachines& made, const SkyListOptions& options) : made_(made), options_(options) {
    if (made.base.is_null()) return;
    instances_ = &made.base["instances"];
    for (const auto& [name, node] : instances_->items()) stand_alone_ = stand_alone_ && !node.contains("nic");
  }
  std::string text() const;

 private:
  /// The instance of the cloud's catalog, nullptr if it has none of that name.
  const OrderedJson* known(const std::string& instance) const {
    return instances_ != nullptr && instances_->contains(instance) ? &(*instances_)[instance] : nullptr;
  }
  /// One of the cloud's catalog with the same GPUs, nullptr if there is none.
  const OrderedJson* like(const SkyMachine& machine) const {
    if (instances_ != nullptr)
      for (const auto& [name, node] : instances_->items())
        if (node["gpu"] == machine.gpu && node["gpus"] == machine.gpus) return &node;
    return nullptr;
  }
  std::string gpus_text() const;
  std::string instance_text(const std::string& name, const SkyMachine& machine) const;
  std::string prices_text(const SkyMachine& machine) const;

  const SkyMachines& made_;
  const SkyListOptions& options_;
  const OrderedJson* instances_ = nullptr;  ///< of the cloud's catalog
  bool stand_alone_ = true;                 ///< nothing joins them, as that catalog has it
};

std::string SkyText::prices_text(const SkyMachine& machine) const {
  std::string out = "\"prices\": [";
  const char* comma = "\n        ";
  for (const auto& [where, zones] : machine.prices) {
    const auto& [region, market] = where;
    const auto by_price = [](const auto& one, const auto& other) { return one.second.usd < other.second.usd; };
    const auto [cheapest, dearest] = std::minmax_element(zones.begin(), zones.end(), by_price);
    const auto line = [&, region = region, market = market](const std::string& zone, double usd) {
      out += fmt::format(
          "{}{{ \"region\": {}, {}\"market\": \"{}\", \"per_hour\": \"{}USD/h\", \"as_of\": \"{}\", \"source\": "
          "\"SKYPILOT\" }}",
          comma, quoted(region), zone.empty() ? "" : fmt::format("\"zone\": {}, ", quoted(zone)),
          to_string(kSkyMarkets[market]), decimal(MicroUsdPerHour{std::llround(usd * 1e6)}), options_.as_of);
      comma = ",\n        ";
    };
    line("", cheapest->second.usd);
    if (cheapest->second.usd < dearest->second.usd)
      for (const auto& [zone, price] : zones)
        if (!zone.empty() && zone != region) line(zone, price.usd);
  }
  return out + "\n      ]\n    }";
}

std::string SkyText::instance_text(const std::string& name, const SkyMachine& machine) const {
  std::string out = fmt::format("    {}: {{\n      ", quoted(name));
  if (const OrderedJson* same = known(name)) {
    for (const auto& [key, member] : same->items())
      if (key != "prices" && key != "retired" && key != "available")
        out += fmt::format("{}: {},\n      ", quoted(key), member.dump());
    return out + prices_text(machine);
  }
  out += fmt::format("\"gpu\": {}, \"gpus\": {},", quoted(machine.gpu), machine.gpus);
  if (machine.vcpus >= 1) out += fmt::format(" \"vcpus\": {:.0f},", machine.vcpus);
  if (machine.memory_gib > 0) out += fmt::format(" \"memory\": \"{:g}GiB\",", machine.memory_gib);
  out += '\n';
  if (const OrderedJson* other = like(machine)) {
    for (const char* key : {"gpu_links", "host_link", "nic", "boot"})
      if (other->contains(key)) out += fmt::format("      \"{}\": {},\n", key, (*other)[key].dump());
  } else {
    out += links_text(*made_.gpus.at(machine.gpu).sheet, machine.gpus);
    if (instances_ == nullptr || !stand_alone_) out += fmt::format("      {},\n", kAssumedNic);
  }
  out += "      \"source\": \"SKYPILOT\",";
  if (!machine.notes.empty()) out += fmt::format(" \"notes\": {},", quoted(machine.notes));
  return out + "\n      " + prices_text(machine);
}

std::string SkyText::gpus_text() const {
  std::set<std::string> used;
  for (const auto& [name, machine] : made_.machines) {
    const OrderedJson* same = known(name);
    if (!machine.prices.empty()) used.insert(same != nullptr ? (*same)["gpu"].get<std::string>() : machine.gpu);
  }
  std::string out;
  for (const std::string& gpu : used) {
    const bool in_catalog = instances_ != nullptr && made_.base["gpus"].contains(gpu);
    out += fmt::format("{}    {}: {}", out.empty() ? "" : ",\n", quoted(gpu),
                       in_catalog ? made_.base["gpus"][gpu].dump() : gpu_text(made_.gpus.at(gpu)));
  }
  return out;
}

std::string SkyText::text() const {
  const std::string name(provider_of_sky(options_.cloud));
  OrderedJson sources = instances_ == nullptr ? OrderedJson::object() : made_.base["sources"];
  for (const auto& [id, what] : sky_sources())
    if (!sources.contains(id)) sources[std::string(id)] = what;
  sources["SKYPILOT"] =
      fmt::format("SkyPilot's catalog of prices, {}/vms.csv, read on {}", options_.cloud, options_.as_of);
  std::string out = fmt::format(
      "{{\n  \"schema\": \"ganymede.platform/1\",\n  \"provider\": {0},\n  \"name\": {0},\n  \"sources\": {1},\n"
      "  \"gpus\": {{\n{2}\n  }},\n  \"instances\": {{\n",
      quoted(name), sources.dump(), gpus_text());
  const char* comma = "";
  for (const auto& [instance, machine] : made_.machines) {
    if (machine.prices.empty()) continue;
    out += comma + instance_text(instance, machine);
    comma = ",\n";
  }
  out += "\n  },\n";
  if (instances_ == nullptr) return out + kAssumedRest + "\n";
  comma = "  ";
  for (const char* key : {"regions", "fabric", "storage", "provisioning", "billing", "transfer", "services"})
    if (made_.base.contains(key)) {
      out += fmt::format("{}\"{}\": {}", comma, key, made_.base[key].dump());
      comma = ",\n  ";
    }
  return out + "\n}\n";
}

}  // namespace

std::string platform_text(const SkyMachines& made, const SkyListOptions& options) {
  return SkyText(made, options).text();
}

}  // namespace ganymede::platforms
