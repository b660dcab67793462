// Reads a scenario's words about a pool's spot nodes: how long they stay, recordings of capacity, prices and carbon.

#include <fmt/format.h>

#include <algorithm>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "common/written.hpp"
#include "platforms/catalog.hpp"
#include "platforms/providers.hpp"
#include "sim/scenario/sections.hpp"

namespace ganymede::sim {
namespace {

constexpr double kSecondsPerMonth = 730 * 3600.0;

Lifetimes read_lifetimes(const JsonNode& node) {
  JsonObject in(node);
  Lifetimes lifetimes;
  lifetimes.source = "the scenario";
  const JsonNode what = in.one_of("mean", "bathtub");
  if (what.pointer().ends_with("/mean")) {
    lifetimes.mean = what.as_positive<Seconds>();
  } else {
    lifetimes.kind = Lifetimes::Kind::bathtub;
    lifetimes.longest = what.as_positive<Seconds>();
  }
  if (auto back = in.optional("back_after")) lifetimes.back_after = back->as_quantity<Seconds>();
  in.finish();
  return lifetimes;
}

Series read_recording(const JsonNode& node, Fingerprint& fingerprint) {
  const std::filesystem::path file = node.directory() / node.as_string();
  try {
    Series series = read_series(file);
    fingerprint.replace(node.pointer(), read_file(file));
    return series;
  } catch (const ConfigError& error) {  // says which file; which member names it is said here
    node.fail(error.what());
  }
}

/// The zone as the recording shows it, which ends with its last row.
platforms::SpotPast past_of(const JsonNode& node, const Series& series) {
  platforms::SpotPast past;
  for (std::size_t i = 1; i < series.rows.size(); ++i) {
    const auto& [at, nodes] = series.rows[i - 1];
    const bool is_up = nodes > 0, was_up = i > 1 && series.rows[i - 2].value > 0;
    (is_up ? past.up : past.down) = (is_up ? past.up : past.down) + (series.rows[i].at - at);
    if (is_up && !was_up) ++past.times_up;
  }
  if (!((past.up + past.down).si > 0)) node.fail("a past of no time, expected two rows at least");
  return past;
}

/// Reads "spot": the name of a preset, or an object with a recording of capacity to replay, or of a zone's past.
SpotChoice read_spot(const JsonNode& node, Fingerprint& fingerprint) {
  SpotChoice choice;
  if (node.is_object()) {
    JsonObject in(node);
    const JsonNode what = in.one_of("capacity", "past");
    const Series series = read_recording(what, fingerprint);
    if (what.pointer().ends_with("/past")) {
      choice.spot = Spot::past;
      choice.past = past_of(what, series);
    } else {
      choice.spot = Spot::recorded;
      choice.capacity = series;
    }
    in.finish();
    return choice;
  }
  constexpr std::pair<const char*, Spot> kChoices[] = {{"drawn", Spot::drawn},
                                                       {"calm", Spot::calm},
                                                       {"typical", Spot::typical},
                                                       {"harsh", Spot::harsh},
                                                       {"uninterrupted", Spot::uninterrupted}};
  std::vector<std::string> names;
  for (const auto& [name, spot] : kChoices) names.emplace_back(name);
  const std::string chosen = node.as_choice(names);
  for (const auto& [name, spot] : kChoices)
    if (chosen == name) choice.spot = spot;
  return choice;
}

}  // namespace

std::string_view risk_of(Spot spot) {
  switch (spot) {
    case Spot::none:
      return "none";
    case Spot::uninterrupted:
    case Spot::stated:
      return "stated";
    case Spot::recorded:
    case Spot::past:
      return "measured";
    case Spot::drawn:
      return "assumed";
    default:
      return "preset";
  }
}

std::string less_sure(std::string_view a, std::string_view b) {
  constexpr std::string_view kFromTheSurest[] = {"", "none", "measured", "stated", "preset", "assumed"};
  const auto place = [&](std::string_view risk) {
    return std::find(std::begin(kFromTheSurest), std::end(kFromTheSurest), risk);
  };
  return std::string(place(a) < place(b) ? b : a);
}

/// Uses the interruption rate that a user's own platform states. The rate in a built-in catalog is not used: its source
/// states the share of capacity that is reclaimed in a month, which tells how long a node lasts only if each node is
/// reclaimed once.
void set_default_hazards(ScenarioPool& pool) {
  if (pool.pool.market != platforms::Market::spot) return;
  pool.notice = platforms::provider_of(pool.platform->provider).spot_notice;
  pool.spot = Spot::drawn;
  if (!pool.price.interrupted_per_month || platforms::is_provider(pool.catalog)) return;
  pool.spot = *pool.price.interrupted_per_month > 0 ? Spot::stated : Spot::uninterrupted;
  if (pool.spot == Spot::uninterrupted) return;
  pool.lifetimes.emplace();
  pool.lifetimes->mean = Seconds{kSecondsPerMonth / -portable_log(1 - *pool.price.interrupted_per_month)};
  pool.lifetimes->source = "the platform's interruption rate";
}

void apply_spot_choice(ScenarioPool& pool, const SpotChoice& choice) {
  if (pool.pool.market != platforms::Market::spot) return;
  pool.spot = choice.spot;
  pool.capacity = choice.capacity;
  pool.past = choice.past;
  pool.lifetimes.reset();
}

void read_hazards(JsonObject& in, ScenarioPool& pool, Fingerprint& fingerprint) {
  set_default_hazards(pool);
  auto spot = in.optional("spot");
  auto lifetimes = in.optional("lifetimes");
  auto capacity = in.optional("capacity");
  if (spot && (lifetimes || capacity))
    spot->fail(fmt::format("\"{}\" stands there too, and only one can say when nodes are taken back",
                           lifetimes ? "lifetimes" : "capacity"));
  if (spot) pool.spot_choice = read_spot(*spot, fingerprint);
  if (pool.spot_choice) apply_spot_choice(pool, *pool.spot_choice);
  if (lifetimes) {
    pool.lifetimes = read_lifetimes(*lifetimes);
    pool.spot = Spot::stated;
  }
  if (auto notice = in.optional("notice")) pool.notice = with_unit(*notice, {"s", "min"}).as_quantity<Seconds>();
  if (capacity) {
    pool.capacity = read_recording(*capacity, fingerprint);
    pool.lifetimes.reset();  // the recording says when nodes are taken back
    pool.spot = Spot::recorded;
  }
  if (auto prices = in.optional("prices")) pool.prices = read_recording(*prices, fingerprint);
  if (auto carbon = in.optional("carbon")) pool.carbon = read_recording(*carbon, fingerprint);
}

}  // namespace ganymede::sim
