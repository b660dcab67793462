// "faults" of a scenario: what may go wrong in a run, at random or at given times.

#include "sim/scenario/faults.hpp"

#include "common/json.hpp"
#include "common/units.hpp"
#include "common/written.hpp"
#include "sim/scenario/sections.hpp"

namespace ganymede::sim {
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
