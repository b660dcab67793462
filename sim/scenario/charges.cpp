// "billing" of a scenario: what a run is charged for in addition to the hours of its nodes.

#include <fmt/format.h>

#include "common/json.hpp"
#include "common/units.hpp"
#include "sim/scenario/sections.hpp"

namespace ganymede::sim {
namespace {

void read_boot_disk(const JsonNode& node, const platforms::Platform& platform, Charges& charges) {
  JsonObject in(node);
  const JsonNode name = in.required("class");
  charges.boot_disk = platform.storage_class(name.as_string(), &name);
  if (charges.boot_disk->object_store) name.fail(fmt::format("{} is no volume", charges.boot_disk->name));
  const JsonNode size = in.required("size");
  charges.boot_disk_size = charges.boot_disk->sold(size.as_positive<Bytes>());
  if (charges.boot_disk->maximum && charges.boot_disk_size > *charges.boot_disk->maximum)
    size.expected(fmt::format("at most {:g} GiB, up to which {} is sold",
                              charges.boot_disk->maximum->si / platforms::bytes_of(platforms::VolumeUnit::gib),
                              charges.boot_disk->name));
  if (auto then = in.optional("when_interrupted"))
    charges.boot_disk_kept = then->as_choice({"deleted", "kept"}) == "kept";
  in.finish();
}

}  // namespace

void read_charges(const JsonNode& node, Scenario& scenario) {
  JsonObject in(node);
  const platforms::Platform& platform = *scenario.pools.front().platform;
  Charges& charges = scenario.charges;
  const auto flag = [&](const char* key) {
    const auto value = in.optional(key);
    return value && value->as_bool();
  };
  charges.free_tiers = flag("free_tiers");
  charges.kubernetes = flag("kubernetes");
  if (charges.kubernetes && !platform.services.control_plane)
    in.required("kubernetes")
        .fail(fmt::format("no price is known of a managed cluster in the catalog {}", platform.name));
  charges.load_balancer = flag("load_balancer");
  if (charges.load_balancer && !platform.services.load_balancer)
    in.required("load_balancer")
        .fail(fmt::format("no price is known of a load balancer in the catalog {}", platform.name));
  if (auto tail = in.optional("idle_tail")) charges.idle_tail = tail->as_quantity<Seconds>();
  if (auto download = in.optional("download")) {
    charges.download = download->as_quantity<Bytes>();
    if (charges.download.si > 0 && platform.transfer.internet.empty())
      download->fail(fmt::format("no price is known of data to the internet in the catalog {}", platform.name));
  }
  if (auto disk = in.optional("boot_disk")) read_boot_disk(*disk, platform, charges);
  if (auto term = in.optional("commitment")) {
    charges.whole_term = term->as_choice({"amortized", "whole-term"}) == "whole-term";
    bool reserved = false;
    for (const ScenarioPool& pool : scenario.pools)
      reserved = reserved || pool.pool.market == platforms::Market::reserved_1y ||
                 pool.pool.market == platforms::Market::reserved_3y;
    if (charges.whole_term && !reserved) term->fail("nothing is reserved: the market is \"on-demand\" or \"spot\"");
  }
  in.finish();
}

}  // namespace ganymede::sim
