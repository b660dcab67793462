#include "report/differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "report/different_inputs.hpp"
#include "report/plans.hpp"

namespace ganymede::report {
namespace {

constexpr double kAnyValue = std::numeric_limits<double>::infinity();
/// The quantities that a limit may name.
const std::vector<std::string> kLimited = {"time", "cost", "carbon"};

using Ends = std::pair<double, double>;

/// A quantity of one document. What it does not know has no value.
struct Known {
  std::optional<double> value;
  std::optional<Ends> interval;
  std::string pointer;  ///< of the value
};

/// A quantity of both documents.
struct Compared {
  const char* what;
  const char* unit;
  Known before, after;
};

/// One document, whose members are read with located errors.
class Side {
 public:
  explicit Side(const Document& document) : document_(document) {}

  bool is_plan() const { return document_.kind == DocumentKind::plan; }
  /// False for a plan that has chosen nothing.
  bool has_answer() const { return !is_plan() || !member("/chosen").value().is_null(); }

  /// The member at a JSON pointer. Throws ConfigError at the object that lacks it.
  JsonNode member(const std::string& pointer) const {
    JsonNode at = document_.node;
    for (std::size_t begin = 1; begin <= pointer.size();) {
      const std::size_t end = std::min(pointer.find('/', begin), pointer.size());
      at = JsonObject(at).required(pointer.substr(begin, end - begin));
      begin = end + 1;
    }
    return at;
  }
  bool has(const std::string& pointer) const {
    const JsonPointer at(pointer);
    return document_.json().contains(at) && !document_.json().at(at).is_null();
  }

  /// The number at `pointer` with the two numbers at `interval`, if that is given.
  Known number(const std::string& pointer, const std::string& interval = "") const {
    Known out{as_number(member(pointer)), std::nullopt, pointer};
    if (!interval.empty()) out.interval = ends(interval);
    return out;
  }
  /// The same, or nothing if the document does not know it.
  Known number_if_known(const std::string& pointer, const std::string& interval = "") const {
    if (!has(pointer)) return {std::nullopt, std::nullopt, pointer};
    return number(pointer, interval.empty() || !has(interval) ? "" : interval);
  }
  /// A quantity of a plan's chosen row, { "median", "interval" }.
  Known chosen(const std::string& key) const {
    const std::string at = "/chosen/" + key;
    if (!has_answer() || member(at).value().is_null()) return {std::nullopt, std::nullopt, at};
    return number(at + "/median", at + "/interval");
  }
  const JsonNode& node() const { return document_.node; }

 private:
  /// A number, or an amount of money, which is a string.
  static double as_number(const JsonNode& node) {
    if (!node.is_string()) return node.as_number(0, kAnyValue);
    const std::string text = node.as_string();
    char* end = nullptr;
    const double amount = std::strtod(text.c_str(), &end);
    if (*end != '\0' || !(amount >= 0)) node.expected("an amount such as \"12.34\"");
    return amount;
  }
  Ends ends(const std::string& pointer) const {
    const std::vector<JsonNode> both = member(pointer).as_array();
    if (both.size() != 2) member(pointer).expected("the two ends of an interval");
    return {as_number(both[0]), as_number(both[1])};
  }

  const Document& document_;
};

std::vector<Compared> compare_results(const Side& a, const Side& b) {
  // One seed differs from another by chance, so that several seeds are compared by their medians.
  const bool seeds = a.has("/seeds") && b.has("/seeds");
  const auto time = [&](const Side& side) {
    return seeds ? side.number("/seeds/time_s/median", "/seeds/time_s/interval")
                 : side.number("/time/total_s", "/time/interval_s");
  };
  const auto cost = [&](const Side& side) {
    return seeds ? side.number("/seeds/usd/median", "/seeds/usd/interval")
                 : side.number("/cost/total_usd", "/cost/interval_usd");
  };
  const auto both = [&](const char* what, const char* unit, const char* pointer, const char* interval = "") {
    return Compared{what, unit, a.number_if_known(pointer, interval), b.number_if_known(pointer, interval)};
  };
  return {{"time", "s", time(a), time(b)},
          {"cost", "USD", cost(a), cost(b)},
          both("carbon", "kg CO2e", "/energy/kg_co2e", "/energy/kg_co2e_interval"),
          both("energy", "kWh", "/energy/kwh", "/energy/kwh_interval"),
          {"GPU busy", "share", a.number("/utilization/gpu_busy"), b.number("/utilization/gpu_busy")},
          both("GPU FLOPs", "share", "/utilization/gpu_flops"),
          both("GPU-hours", "h", "/gpu_hours"),
          both("step", "s", "/time/step_mean_s")};
}

std::vector<Compared> compare_plans(const Side& a, const Side& b) {
  const auto share = [](const Side& side, const char* pointer) {
    return side.has_answer() ? side.number_if_known(pointer) : Known{{}, {}, pointer};
  };
  return {{"time", "s", a.chosen("time_s"), b.chosen("time_s")},
          {"cost", "USD", a.chosen("usd"), b.chosen("usd")},
          {"carbon", "kg CO2e", a.chosen("kg_co2e"), b.chosen("kg_co2e")},
          {"GPU busy", "share", share(a, "/chosen/gpu_busy"), share(b, "/chosen/gpu_busy")},
          {"goals met", "share", share(a, "/chosen/met_share"), share(b, "/chosen/met_share")}};
}

using DifferenceJson = OrderedJson;

DifferenceJson known_json(const Known& known) {
  DifferenceJson out = {{"value", nullptr}, {"interval", nullptr}};
  if (known.value && std::isfinite(*known.value)) out["value"] = *known.value;
  if (known.interval) out["interval"] = {known.interval->first, known.interval->second};
  return out;
}

DifferenceJson compared_json(const Compared& compared) {
  DifferenceJson out = {{"what", compared.what}, {"unit", compared.unit}};
  out["before"] = known_json(compared.before);
  out["after"] = known_json(compared.after);
  for (const char* key : {"change", "relative", "within_error"}) out[key] = nullptr;
  if (out["before"]["value"].is_null() || out["after"]["value"].is_null()) return out;
  const double before = *compared.before.value, after = *compared.after.value;
  out["change"] = after - before;
  if (before != 0) out["relative"] = after / before - 1;
  if (compared.before.interval && compared.after.interval)
    out["within_error"] = compared.before.interval->first <= compared.after.interval->second &&
                          compared.after.interval->first <= compared.before.interval->second;
  return out;
}

/// The subject of a document: "2 x p3.8xlarge, aws us-east-1 spot, ring, fixed".
std::string subject_of(const Side& side) {
  const auto text = [&](const char* pointer) { return side.has(pointer) ? side.member(pointer).as_string() : ""; };
  if (!side.is_plan()) {
    const std::string market = text("/run/market");
    return fmt::format("{}, {}{}{}, {}", text("/run/allocation"), text("/run/platform"), market.empty() ? "" : " ",
                       market, text("/run/scheme"));
  }
  if (!side.has_answer()) return "nothing is chosen";
  const documents::Plan plan = documents::read_plan(side.node());
  const documents::PlanRow& row = *plan.chosen;
  return fmt::format("{}, {} {} {}, {}", plan_rented(row, plan.request), row.provider, row.region, row.market,
                     row.scheme);
}

/// Whether a quantity stays within its limit. A plan that no longer chooses anything does not.
DifferenceJson check_limit(const GrowthLimit& limit, const std::vector<Compared>& all, const Side& a, const Side& b) {
  DifferenceJson out = {{"what", limit.what}, {"most", limit.most}, {"held", true}};
  if (!a.has_answer() || !b.has_answer()) {
    out["held"] = !a.has_answer();
    return out;
  }
  for (const Compared& compared : all) {
    if (compared.what != limit.what) continue;
    for (const auto& [side, known] : {std::pair{&a, &compared.before}, {&b, &compared.after}})
      if (!known->value || !std::isfinite(*known->value))
        throw ConfigError(fmt::format("{}: {}: is not known, but --fail-on limits {}", side->node().file(),
                                      known->pointer, limit.what));
    constexpr double kRounding = 1e-12;  // so that 110 is 10 % above 100
    out["held"] = *compared.after.value <= *compared.before.value * (1 + limit.most) * (1 + kRounding);
  }
  return out;
}

GrowthLimit read_growth_limit(const std::string& text, const std::string& what, const std::string& share) {
  char* end = nullptr;
  const double percent = std::strtod(share.c_str(), &end);
  const bool is_percent = end != share.c_str() && std::string(end) == "%" && share.find_first_of("xXnN ") == share.npos;
  if (!is_percent || !(percent >= 0 && percent <= 1e6))
    throw ConfigError(
        fmt::format("--fail-on: found \"{}\", expected a growth in percent such as \"+10%\" or \"cost=+10%\"", text));
  return {what, percent / 100};
}

}  // namespace

std::vector<GrowthLimit> read_growth_limits(const std::vector<std::string>& texts) {
  std::vector<GrowthLimit> limits;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      for (const char* what : {"time", "cost"}) limits.push_back(read_growth_limit(text, what, text));
      continue;
    }
    const std::string what = text.substr(0, equals);
    if (std::find(kLimited.begin(), kLimited.end(), what) == kLimited.end()) {
      const auto guess = nearest(what, kLimited);
      throw ConfigError(fmt::format("--fail-on: found \"{}\", expected {}{}", what, list_of(kLimited),
                                    guess ? fmt::format("; did you mean \"{}\"?", *guess) : ""));
    }
    limits.push_back(read_growth_limit(text, what, text.substr(equals + 1)));
  }
  return limits;
}

OrderedJson differences_of(const Document& before, const Document& after, const std::vector<GrowthLimit>& limits) {
  const Side a(before), b(after);
  if (before.kind != after.kind)
    b.member("/schema").expected(fmt::format("{} as in {}", a.member("/schema").value().dump(), before.node.file()));
  const std::vector<Compared> all = a.is_plan() ? compare_plans(a, b) : compare_results(a, b);
  DifferenceJson out = {{"schema", "ganymede.diff/1"}, {"of", a.is_plan() ? "plans" : "results"}};
  out["before"] = {{"file", before.node.file()}, {"subject", subject_of(a)}};
  out["after"] = {{"file", after.node.file()}, {"subject", subject_of(b)}};
  out["over_seeds"] = a.is_plan() || (a.has("/seeds") && b.has("/seeds"));
  out["quantities"] = DifferenceJson::array();
  for (const Compared& compared : all) out["quantities"].push_back(compared_json(compared));
  out["inputs_recorded"] = records_inputs(before) && records_inputs(after);
  out["inputs"] = different_inputs(before, after);
  out["limits"] = DifferenceJson::array();
  out["held"] = true;
  for (const GrowthLimit& limit : limits) {
    out["limits"].push_back(check_limit(limit, all, a, b));
    if (!out["limits"].back()["held"].get<bool>()) out["held"] = false;
  }
  return out;
}

}  // namespace ganymede::report
