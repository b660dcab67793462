// Sections of a scenario that few lines read: "evaluation"; "billing", what a run is charged for in addition to the
// hours of its nodes; "faults", what may go wrong, at random or at given times.

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "common/json.hpp"
#include "common/plain_text.hpp"
#include "common/units.hpp"
#include "common/written.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/sections.hpp"

namespace ganymede::sim {

double count_of(std::string_view text, std::string_view unit) {
  if (!text.ends_with(unit)) return 0;
  text.remove_suffix(unit.size());
  while (text.ends_with(' ')) text.remove_suffix(1);
  constexpr double kMaxCount = 1e15;
  const auto count = static_cast<double>(parse_number<std::int64_t>(text).value_or(0));
  return count >= 1 && count <= kMaxCount ? count : 0;
}

namespace {

void read_every(const JsonNode& node, bool has_dataset, Evaluation& evaluation) {
  const std::string text = node.as_string();
  struct Unit {
    std::string_view name;
    Evaluation::Every every;
  };
  for (const Unit& unit : {Unit{"steps", Evaluation::Every::steps}, Unit{"step", Evaluation::Every::steps},
                           Unit{"images", Evaluation::Every::images}, Unit{"epochs", Evaluation::Every::epochs},
                           Unit{"epoch", Evaluation::Every::epochs}}) {
    if (!text.ends_with(unit.name)) continue;
    evaluation.every = unit.every;
    evaluation.count = count_of(text, unit.name);
    if (evaluation.count == 0)
      node.expected("a whole number from 1 before the unit, such as \"1000 steps\", \"200000 images\" or \"1epoch\"");
    if (unit.every == Evaluation::Every::epochs && !has_dataset)
      node.fail("epochs need \"dataset\" in \"workload\", to know how long one is");
    return;
  }
  evaluation.every = Evaluation::Every::interval;
  evaluation.interval = with_unit(node, {"min", "h"}).as_positive<Seconds>();
}

}  // namespace

Evaluation read_evaluation(const JsonNode& node, bool has_dataset) {
  JsonObject in(node);
  Evaluation evaluation;
  read_every(in.required("every"), has_dataset, evaluation);
  const auto fixed = in.optional("fixed");
  const auto parallel = in.optional("parallel");
  if (fixed) evaluation.fixed = fixed->as_quantity<Seconds>();
  if (parallel) evaluation.parallel = parallel->as_quantity<Seconds>();
  in.finish();
  if (!(evaluation.pause(1).si > 0)) node.expected("a time above 0 as \"fixed\", \"parallel\" or both");
  return evaluation;
}

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

namespace {

/// With `is_share` the factor is the share of a rate that is left, at most 1; otherwise a step takes `factor` times as
/// long, at least 1.
Slowdown read_slowdown(const JsonNode& node, bool is_share) {
  JsonObject in(node);
  Slowdown slowdown;
  slowdown.every = in.required("every").as_positive<Seconds>();
  slowdown.factor = is_share ? in.required("factor").as_number(1e-6, 1) : in.required("factor").as_number(1, 1e6);
  slowdown.lasts = in.required("for").as_positive<Seconds>();
  in.finish();
  return slowdown;
}

InjectedEvent read_event(const JsonNode& node, const Scenario& scenario) {
  using Kind = InjectedEvent::Kind;
  JsonObject in(node);
  InjectedEvent event;
  event.at = in.required("at").as_quantity<Seconds>();
  const std::string kind = in.required("kind").as_choice({"interruption", "crash", "straggler", "network", "storage"});
  event.kind = kind == "interruption" ? Kind::interruption
               : kind == "crash"      ? Kind::crash
               : kind == "straggler"  ? Kind::straggler
               : kind == "network"    ? Kind::network
                                      : Kind::storage;
  if (auto pool = in.optional("pool")) event.pool = find_pool(*pool, scenario);
  if (auto nodes = in.optional("nodes")) event.nodes = static_cast<int>(nodes->as_integer(1, 65536));
  const bool slows = event.kind != Kind::interruption && event.kind != Kind::crash;
  if (slows) {
    const JsonNode factor = in.required("factor");
    event.factor = event.kind == Kind::straggler ? factor.as_number(1, 1e6) : factor.as_number(1e-6, 1);
    event.lasts = in.required("for").as_positive<Seconds>();
  }
  in.finish();
  return event;
}

}  // namespace

void read_faults(const JsonNode& node, Scenario& scenario) {
  JsonObject in(node);
  Faults& faults = scenario.faults;
  if (auto crash = in.optional("crash")) {
    JsonObject crashes(*crash);
    faults.crash = with_unit(crashes.required("every"), {"h", "d"}).as_positive<Seconds>();
    crashes.finish();
  }
  if (auto slow = in.optional("straggler")) faults.straggler = read_slowdown(*slow, false);
  if (auto slow = in.optional("network")) faults.network = read_slowdown(*slow, true);
  if (auto slow = in.optional("storage")) faults.storage = read_slowdown(*slow, true);
  if (auto events = in.optional("events"))
    for (const auto& event : events->as_array()) faults.events.push_back(read_event(event, scenario));
  in.finish();
}

}  // namespace ganymede::sim
