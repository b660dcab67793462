#include "report/differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "common/usd.hpp"
#include "documents/plan.hpp"
#include "documents/result.hpp"
#include "report/plans.hpp"

namespace ganymede::report {
namespace {

/// The quantities that a limit may name.
const std::vector<std::string> kLimited = {"time", "cost", "carbon"};

using documents::Difference;
using documents::Interval;

/// A quantity of one document, and where it stands there.
struct Known : Difference::Known {
  explicit Known(const char* at, std::optional<double> known = {}, std::optional<Interval> ends = {})
      : Difference::Known{known, ends}, pointer(at) {}
  const char* pointer;
};

/// A quantity of both documents.
struct Compared {
  const char* what;
  const char* unit;
  Known before, after;
};

/// One document.
struct Side {
  explicit Side(const Document& read) : document(read) {
    if (read.kind == DocumentKind::plan)
      plan = documents::read_plan(read.node);
    else
      run = documents::read_result(read.node);
  }
  /// False for a plan that has chosen nothing.
  bool has_answer() const { return run || plan->chosen; }

  const Document& document;
  std::optional<documents::Result> run;
  std::optional<documents::Plan> plan;
};

/// A value with its interval. A result that does not state the interval of its energy has none.
Known known(const char* pointer, double value, const Interval& interval) {
  return Known(pointer, value, interval == Interval() ? std::nullopt : std::optional(interval));
}

std::vector<Compared> compare_results(const documents::Result& a, const documents::Result& b) {
  using documents::Result;
  // One seed differs from another by chance, so that several seeds are compared by their medians.
  const bool seeds = a.seeds && b.seeds;
  const auto both = [&](const char* what, const char* unit, auto&& known_in) {
    return Compared{what, unit, known_in(a), known_in(b)};
  };
  const auto spread = [](const char* pointer, const SeedQuantiles& quantiles) {
    return known(pointer, quantiles.median, {quantiles.low, quantiles.high});
  };
  return {both("time", "s",
               [&](const Result& run) {
                 return seeds ? spread("/seeds/time_s/median", run.seeds->time_s)
                              : known("/time/total_s", run.total.si, run.interval_s);
               }),
          both("cost", "USD",
               [&](const Result& run) {
                 return seeds ? spread("/seeds/usd/median", run.seeds->usd)
                              : known("/cost/total_usd", usd_of(run.usd), {run.cost_usd.low, run.cost_usd.high});
               }),
          both("carbon", "kg CO2e",
               [](const Result& run) {
                 const char* at = "/energy/kg_co2e";
                 return run.energy ? known(at, run.energy->kg_co2e, run.energy->kg_co2e_interval) : Known(at);
               }),
          both("energy", "kWh",
               [](const Result& run) {
                 const char* at = "/energy/kwh";
                 return run.energy ? known(at, run.energy->kwh, run.energy->kwh_interval) : Known(at);
               }),
          both("GPU busy", "share", [](const Result& run) { return Known("/utilization/gpu_busy", run.gpu_busy); }),
          both("GPU FLOPs", "share", [](const Result& run) { return Known("/utilization/gpu_flops", run.gpu_flops); }),
          both("GPU-hours", "h", [](const Result& run) { return Known("/gpu_hours", run.gpu_seconds.hours()); }),
          both("step", "s", [](const Result& run) { return Known("/time/step_mean_s", run.step_mean.si); })};
}

std::vector<Compared> compare_plans(const documents::Plan& a, const documents::Plan& b) {
  using documents::PlanRow;
  const auto both = [&](const char* what, const char* unit, const char* pointer, auto&& known_in) {
    const auto side = [&](const documents::Plan& plan) {
      return plan.chosen ? known_in(pointer, *plan.chosen) : Known(pointer);
    };
    return Compared{what, unit, side(a), side(b)};
  };
  return {both("time", "s", "/chosen/time_s",
               [](const char* at, const PlanRow& row) { return known(at, row.time_s.median, row.time_s.interval); }),
          both("cost", "USD", "/chosen/usd",
               [](const char* at, const PlanRow& row) { return known(at, row.usd.median, row.usd.interval); }),
          both("carbon", "kg CO2e", "/chosen/kg_co2e",
               [](const char* at, const PlanRow& row) {
                 return row.kg_co2e ? known(at, row.kg_co2e->median, row.kg_co2e->interval) : Known(at);
               }),
          both("GPU busy", "share", "/chosen/gpu_busy",
               [](const char* at, const PlanRow& row) { return Known(at, row.gpu_busy); }),
          both("goals met", "share", "/chosen/met_share",
               [](const char* at, const PlanRow& row) { return Known(at, row.met_share); })};
}

Difference::Quantity quantity_of(const Compared& compared) {
  Difference::Quantity out{compared.what, compared.unit, compared.before, compared.after, {}, {}, {}};
  for (Difference::Known* side : {&out.before, &out.after})
    if (side->value && !std::isfinite(*side->value)) side->value.reset();
  if (!out.before.value || !out.after.value) return out;
  const double before = *out.before.value, after = *out.after.value;
  out.change = after - before;
  if (before != 0) out.relative = after / before - 1;
  if (const auto& was = out.before.interval, &is = out.after.interval; was && is)
    out.within_error = was->low <= is->high && is->low <= was->high;
  return out;
}

/// The subject of a document: "2 x p3.8xlarge, aws us-east-1 spot, ring, fixed".
std::string subject_of(const Side& side) {
  if (side.run)
    return fmt::format("{}, {}{}{}, {}", side.run->allocation, side.run->platform, side.run->market.empty() ? "" : " ",
                       side.run->market, side.run->scheme);
  if (!side.has_answer()) return "nothing is chosen";
  const documents::PlanRow& row = *side.plan->chosen;
  return fmt::format("{}, {} {} {}, {}", plan_rented(row, side.plan->request), row.provider, row.region, row.market,
                     row.scheme);
}

/// Whether a quantity stays within its limit. A plan that no longer chooses anything does not.
bool is_held(const GrowthLimit& limit, const std::vector<Compared>& all, const Side& a, const Side& b) {
  if (!a.has_answer() || !b.has_answer()) return !a.has_answer();
  for (const Compared& compared : all) {
    if (compared.what != limit.what) continue;
    for (const auto& [side, known] : {std::pair{&a, &compared.before}, {&b, &compared.after}})
      if (!known->value || !std::isfinite(*known->value))
        throw ConfigError(fmt::format("{}: {}: is not known, but --fail-on limits {}", side->document.node.file(),
                                      known->pointer, limit.what));
    constexpr double kRounding = 1e-12;  // so that 110 is 10 % above 100
    return *compared.after.value <= *compared.before.value * (1 + limit.most) * (1 + kRounding);
  }
  return true;
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

/// Values by their JSON pointers.
using Leaves = std::map<std::string, Json>;

/// Adds the values below `value`. An array without objects is one value: a longer list of regions is one difference.
void add_leaves(const Json& value, const std::string& pointer, Leaves& leaves) {
  const bool list_of_objects = value.is_array() && std::any_of(value.begin(), value.end(),
                                                               [](const Json& entry) { return entry.is_structured(); });
  if ((!value.is_object() && !list_of_objects) || value.empty()) {
    leaves[pointer] = value;
    return;
  }
  if (value.is_array())
    for (std::size_t i = 0; i < value.size(); ++i) add_leaves(value[i], fmt::format("{}/{}", pointer, i), leaves);
  else
    for (const auto& [key, member] : value.items())
      add_leaves(member, (JsonPointer(pointer) / key).to_string(), leaves);
}

/// The value at `pointer`; null if there is none.
const Json& value_at(const Json& document, const std::string& pointer) {
  static const Json kNone;
  const JsonPointer at(pointer);
  return document.contains(at) ? document.at(at) : kNone;
}

const char* recorded_at(const Document& document) {
  return document.kind == DocumentKind::plan ? "/provenance/request" : "/provenance/scenario";
}

/// The fields of the scenario or request. If it is not recorded in both documents, what they say of it, with pointers
/// from the document's root.
Leaves fields_of(const Document& document, bool recorded) {
  Leaves fields;
  if (recorded) {
    add_leaves(value_at(document.json(), recorded_at(document)), "", fields);
    return fields;
  }
  const auto members = document.kind == DocumentKind::plan ? std::vector{"/request"}
                                                           : std::vector{"/run", "/launch", "/goals/deadline_s",
                                                                         "/goals/budget_usd", "/provenance/seed"};
  for (const char* member : members)
    if (const Json& value = value_at(document.json(), member); !value.is_null()) add_leaves(value, member, fields);
  return fields;
}

/// Prices in dollars, by names of what they are for, with their pointers.
struct NamedPrice {
  std::string pointer, usd;
};

std::map<std::string, NamedPrice> prices_of(const Side& side) {
  std::map<std::string, NamedPrice> prices;
  std::set<std::string> several;  // a run that pays recorded prices has many for one pool: its result, not its input
  const auto add = [&](const std::string& name, const std::string& pointer, const std::string& usd) {
    const auto [price, is_new] = prices.try_emplace(name, NamedPrice{pointer, usd});
    if (!is_new && price->second.usd != usd) several.insert(name);
  };
  for (std::size_t i = 0; side.plan && i < side.plan->simulated.size(); ++i)
    if (const documents::PlanRow& row = side.plan->simulated[i]; row.price)
      add(fmt::format("{} {} {} {}, USD/h", row.provider, row.region, row.market, row.instance),
          fmt::format("/simulated/{}/price/usd_per_hour", i), decimal(row.price->usd_per_hour));
  for (std::size_t i = 0; side.run && i < side.run->bill.items.size(); ++i) {
    const documents::BillItem& item = side.run->bill.items[i];
    add(fmt::format("{} {}, USD/{}", item.item, item.pool, item.unit), fmt::format("/cost/items/{}/unit_price_usd", i),
        decimal(item.unit_price));
  }
  for (const std::string& name : several) prices.erase(name);
  return prices;
}

/// Collects differences in the form of different_inputs().
class InputDifferences {
 public:
  InputDifferences(const Document& before, const Document& after) : before_(before.json()), after_(after.json()) {}

  void add(const char* kind, const std::string& pointer, const std::string& name, const Json& before,
           const Json& after) {
    if (before == after) return;
    found_.push_back({kind, pointer, name, {before.dump()}, {after.dump()}});
  }
  void add_value(const char* kind, const std::string& pointer, const char* name) {
    add(kind, pointer, name, value_at(before_, pointer), value_at(after_, pointer));
  }
  std::vector<Difference::Input> take() { return std::move(found_); }

 private:
  const Json& before_;
  const Json& after_;
  std::vector<Difference::Input> found_;
};

/// True if the document holds its scenario or request in full. Earlier programs did not write it; then "field" compares
/// what the document says of them.
bool records_inputs(const Document& document) { return value_at(document.json(), recorded_at(document)).is_object(); }

/// The inputs that differ, in the order of kinds and pointers: "field" of the scenario or request, "file" (the content
/// of a file that both name, as a hash), "option" of the command, "price" in dollars, and "program". A value that one
/// side does not have is null.
std::vector<Difference::Input> different_inputs(const Side& a, const Side& b) {
  const Document &before = a.document, &after = b.document;
  InputDifferences found(before, after);
  const bool plan = before.kind == DocumentKind::plan;
  const bool recorded = records_inputs(before) && records_inputs(after);
  const Leaves was = fields_of(before, recorded), is = fields_of(after, recorded);
  const auto hash = [](const Document& document, const std::string& pointer) {
    const Json& files = value_at(document.json(), "/provenance/files");
    return files.is_object() && files.contains(pointer) ? files.at(pointer) : Json();
  };
  std::set<std::string> pointers;
  for (const Leaves* side : {&was, &is})
    for (const auto& [pointer, value] : *side) pointers.insert(pointer);
  const auto field = [](const Leaves& leaves, const std::string& pointer) {
    const auto value = leaves.find(pointer);
    return value == leaves.end() ? Json() : value->second;
  };
  for (const std::string& pointer : pointers) {
    // A file that moved is the same input.
    if (const Json same = hash(before, pointer); !same.is_null() && same == hash(after, pointer)) continue;
    found.add("field", pointer, plan ? "request" : "scenario", field(was, pointer), field(is, pointer));
  }
  if (const Json& files = value_at(before.json(), "/provenance/files"); files.is_object())
    for (const auto& [pointer, value] : files.items())
      if (const Json other = hash(after, pointer); !other.is_null() && field(was, pointer) == field(is, pointer)) {
        const Json named = field(is, pointer);
        found.add("file", pointer, named.is_string() ? named.get<std::string>() : "content", value, other);
      }
  found.add_value("option", plan ? "/request/start" : "/seeds/count", plan ? "start" : "seeds");
  const auto prices = prices_of(a);
  for (const auto& [name, price] : prices_of(b))
    if (const auto known = prices.find(name); known != prices.end())
      found.add("price", price.pointer, name, known->second.usd, price.usd);
  found.add_value("program", "/provenance/tool", "program");
  return found.take();
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
      throw ConfigError(
          fmt::format("--fail-on: found \"{}\", expected {}{}", what, list_of(kLimited), did_you_mean(what, kLimited)));
    }
    limits.push_back(read_growth_limit(text, what, text.substr(equals + 1)));
  }
  return limits;
}

Difference differences_of(const Document& before, const Document& after, const std::vector<GrowthLimit>& limits) {
  if (before.kind != after.kind)
    after.node.child("schema").expected(
        fmt::format("\"{}\" as in {}", facts_of(before.kind).schema, before.node.file()));
  const Side a(before), b(after);
  const bool plans = a.plan.has_value();
  const std::vector<Compared> all = plans ? compare_plans(*a.plan, *b.plan) : compare_results(*a.run, *b.run);
  Difference out;
  out.compares = plans ? "plans" : "results";
  out.before = {before.node.file(), subject_of(a)};
  out.after = {after.node.file(), subject_of(b)};
  out.over_seeds = plans || (a.run->seeds && b.run->seeds);
  for (const Compared& compared : all) out.quantities.push_back(quantity_of(compared));
  out.inputs_recorded = records_inputs(before) && records_inputs(after);
  out.inputs = different_inputs(a, b);
  for (const GrowthLimit& limit : limits) {
    out.limits.push_back({limit.what, limit.most, is_held(limit, all, a, b)});
    out.held = out.held && out.limits.back().held;
  }
  return out;
}

}  // namespace ganymede::report
