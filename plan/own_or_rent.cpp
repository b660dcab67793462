#include "plan/own_or_rent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/process.hpp"
#include "common/usd.hpp"
#include "plan/break_even.hpp"
#include "plan/candidate_scenarios.hpp"
#include "platforms/catalog.hpp"
#include "sim/run/simulate.hpp"

namespace ganymede::plan {
namespace {

Json one_name(std::string_view name) { return Json::array({name}); }

const platforms::Price* owned_price(const platforms::Instance& instance) {
  for (const platforms::Price& price : instance.prices)
    if (price.ownership && price.market == platforms::Market::on_demand) return &price;
  return nullptr;
}

/// The instance types that may be bought.
std::vector<std::string> instances_to_buy(const OwnQuestion& question) {
  const platforms::Platform platform = platforms::load_catalog(question.platform, ".");
  if (!question.instance.empty()) {
    const platforms::Instance& instance = platform.instance(question.instance);
    if (!owned_price(instance))
      throw ConfigError(fmt::format(
          "{}: /instances/{}/prices: no on-demand price has \"ownership\" in place of \"per_hour\", which says what "
          "owning it costs: \"capital\" and \"life_years\"",
          question.platform, question.instance));
    return {question.instance};
  }
  std::vector<std::string> names;
  for (const platforms::Instance& instance : platform.instances)
    if (owned_price(instance)) names.push_back(instance.name);
  if (names.empty())
    throw ConfigError(fmt::format(
        "{}: /instances: no on-demand price has \"ownership\" in place of \"per_hour\", which says what owning costs: "
        "\"capital\" and \"life_years\"; `ganymede example platform` shows one",
        question.platform));
  return names;
}

/// The request with other members of "search"; null removes one.
Request request_with(const OwnQuestion& question, const std::vector<std::pair<const char*, Json>>& search,
                     bool with_budget) {
  const JsonNode asked = question.request({});
  std::vector<JsonOverride> overrides;
  const auto has = [&](const std::string& pointer) { return asked.value().contains(JsonPointer(pointer)); };
  for (const auto& [key, value] : search)
    if (const std::string pointer = std::string("/search/") + key; !value.is_null() || has(pointer))
      overrides.push_back({pointer, value.dump()});
  if (!with_budget && has("/budget")) overrides.push_back({"/budget", "null"});
  return read_request(question.request(overrides), question.now);
}

/// Machines to buy, with what they cost if a training is as short, as long as expected, or as long as stated error
/// allows.
struct Owned {
  documents::OwnMachines machines;
  OwnedCost low, middle, high;
  std::vector<std::string> warnings;
};

/// Dollars of a result's bill: of its electricity, and of everything but the hours of instances.
struct Charged {
  double electricity = 0, besides_hours = 0;
};

Charged charged(const documents::Result& result) {
  Charged sum;
  for (const documents::BillItem& item : result.bill.items) {
    if (item.item == "electricity") sum.electricity += usd_of(item.usd);
    if (!item.item.starts_with("instance-hours")) sum.besides_hours += usd_of(item.usd);
  }
  return sum;
}

/// Power in kW that idle machines draw at the building's meter; nothing if it is not stated.
std::optional<double> idle_kw(const platforms::Platform& platform, const platforms::Instance& instance,
                              const platforms::Region* region) {
  const platforms::Gpu& gpu = platform.gpu_of(instance);
  if (!gpu.idle) return std::nullopt;
  const double watts = gpu.idle->si * instance.gpus + (instance.idle ? instance.idle->si : 0);
  return watts * (region ? region->pue.value_or(1) : 1) / 1000;
}

OwnedCost with_hours(OwnedCost cost, double hours) {
  cost.training_usd *= hours / cost.training_h;
  cost.training_h = hours;
  return cost;
}

/// What the simulated training and its machines cost.
struct OwnedParts {
  double space = 0, people = 0, idle = 0;  ///< dollars a year
  double electricity = 0, staff = 0;       ///< dollars for a training
};

/// Fills in the costs of the machines that `chosen` names, of which `run` is the result of one training.
OwnedParts add_costs(Owned& owned, const platforms::Platform& platform, const PlanCandidate& chosen,
                     const platforms::Ownership& ownership, const documents::Result& run) {
  const platforms::Region* region = platform.region(chosen.region);
  const double share = chosen.nodes / ownership.overcommit;  // several instances may share hardware
  double node_h = 0;
  for (const documents::PoolUse& pool : run.pools) node_h += pool.node_hours;
  const Charged bill = charged(run);
  OwnedParts parts{usd_of(ownership.space_per_year) * share, usd_of(ownership.people_per_year) * share, 0,
                   bill.electricity, usd_of(ownership.staff) * node_h / ownership.overcommit};
  OwnedCost& cost = owned.middle;
  cost.capital_usd = usd_of(ownership.capital) * share;
  cost.life_years = ownership.life_years;
  cost.training_h = run.total.si / 3600;
  cost.training_usd = bill.besides_hours + parts.staff;
  if (ownership.always_on) {
    const std::optional<double> kw = idle_kw(platform, *chosen.instance, region);
    if (!kw) owned.warnings.emplace_back("power of idle GPUs is not stated: idle machines are taken to draw none");
    const double usd_an_hour = region && region->per_kwh ? kw.value_or(0) * chosen.nodes * usd_of(*region->per_kwh) : 0;
    parts.idle = usd_an_hour * kHoursPerYear;
    // What idle machines draw is paid for in the hours of a training too.
    cost.training_usd -= std::min(parts.electricity, usd_an_hour * cost.training_h);
  }
  cost.yearly_usd = parts.space + parts.people + parts.idle;
  owned.low = with_hours(cost, run.interval_s.low / 3600);
  owned.high = with_hours(cost, run.interval_s.high / 3600);
  if (!region || !region->per_kwh)
    owned.warnings.push_back(fmt::format("region {} states no \"per_kwh\": electricity costs nothing", chosen.region));
  else if (!run.energy)
    owned.warnings.emplace_back("power of the GPUs is not stated: electricity is left out");
  return parts;
}

/// The machines that `plan`, which has chosen a candidate, would buy.
Owned owned_machines(const Request& request, const Plan& plan) {
  const PlanCandidate& chosen = plan.candidates.all[*plan.best];
  const platforms::Platform& platform = *request.catalogs[chosen.catalog].platform;
  const platforms::Region* region = platform.region(chosen.region);
  const platforms::Price& price = *platforms::find_price(*chosen.instance, chosen.region, chosen.market);
  if (!price.ownership)
    throw ConfigError(fmt::format("{}: /instances/{}/prices: the price in {} has no \"ownership\"", platform.file,
                                  chosen.instance->name, chosen.region));
  const documents::Result run = documents::result_in(Json::parse(
      run_child([&] { return documents::result_text(sim::simulate(CandidateScenarios(request).scenario(chosen))); })));
  Owned owned;
  const OwnedParts parts = add_costs(owned, platform, chosen, *price.ownership, run);
  const OwnedCost& cost = owned.middle;
  documents::OwnMachines& own = owned.machines;
  own.machines = label_of(request, chosen);
  own.instance = chosen.instance->name;
  own.gpu = chosen.instance->gpu;
  own.region = chosen.region;
  own.nodes = chosen.nodes;
  own.gpus = chosen.nodes * chosen.instance->gpus;
  own.capital_usd = cost.capital_usd;
  own.life_years = cost.life_years;
  own.usd_a_year = {cost.capital_usd / cost.life_years, parts.space, parts.people, parts.idle, cost.fixed_usd_a_year()};
  own.training.hours = {cost.training_h, {owned.low.training_h, owned.high.training_h}};
  own.training.usd = cost.training_usd;
  own.training.electricity_usd = parts.electricity;
  own.training.staff_usd = parts.staff;
  if (run.energy) own.training.kwh = run.energy->kwh;
  own.training.inputs = run.inputs;
  if (region) {
    own.pue = region->pue.value_or(1);
    own.usd_per_kwh = region->per_kwh;
  }
  return owned;
}

bool is_commitment(platforms::Market market) {
  return market == platforms::Market::reserved_1y || market == platforms::Market::reserved_3y;
}

/// What an offer costs if a training costs `usd` dollars and takes `hours`.
RentedCost rented_cost(const PlanCandidate& offer, double usd, double hours) {
  RentedCost cost{usd, 0, hours};
  if (!is_commitment(offer.market)) return cost;
  const double usd_an_hour = usd_of(price_of(offer));
  cost.committed_usd_a_year = usd_an_hour * kHoursPerYear;
  cost.training_usd = std::max(0.0, usd - usd_an_hour * hours);  // storage and the like
  return cost;
}

documents::OwnBreakEven break_even_of(const Owned& own, const RentedCost& low, const RentedCost& middle,
                                      const RentedCost& high) {
  const BreakEven at = break_even(own.middle, middle);
  // The ends combine every error in one direction: a short own training against an expensive rented one, and the
  // other way round.
  const BreakEven early = break_even(own.low, high), late = break_even(own.high, low);
  documents::OwnBreakEven out;
  out.owning_is_cheaper = !at.trainings_a_year ? "never" : *at.trainings_a_year == 0 ? "always" : "from";
  out.trainings_a_year = at.trainings_a_year;
  out.hours_a_year = at.hours_a_year(own.middle);
  out.hours_interval = {early.hours_a_year(own.low).value_or(INFINITY), late.hours_a_year(own.high).value_or(INFINITY)};
  out.utilization = at.utilization(own.middle);
  out.months_of_use = at.months;
  return out;
}

/// The best offer of one market with its break-even, or why there is none.
documents::RentOffer offer_of(const OwnQuestion& question, platforms::Market market, const Owned& own,
                              const PlanOptions& options) {
  const Request request = request_with(question, {{"markets", one_name(platforms::to_string(market))}}, true);
  const Plan plan = make_plan(request, options);
  documents::RentOffer out;
  out.market = platforms::to_string(market);
  if (!plan.best) {
    out.reason = plan.near_misses.empty()
                     ? "the catalogs have no such offer"
                     : fmt::format("nothing meets the goals; the nearest, {}, {}",
                                   label_of(request, plan.candidates.all[plan.near_misses.front()]),
                                   plan.runs[plan.near_misses.front()].reason);
    return out;
  }
  const PlanCandidate& offer = plan.candidates.all[*plan.best];
  const PlannedRun& run = plan.runs[*plan.best];
  const platforms::Price& price = *platforms::find_price(*offer.instance, offer.region, offer.market);
  const auto at = [&](double usd, double seconds) { return rented_cost(offer, usd, seconds / 3600); };
  const RentedCost middle = at(run.usd.median, run.time_s.median);
  out.offer = label_of(request, offer);
  out.gpus = offer.gpus();
  out.gpu = offer.instance->gpu;
  out.hours = {run.time_s.median / 3600, {run.time_s.low / 3600, run.time_s.high / 3600}};
  out.usd = {run.usd.median, {run.usd.low, run.usd.high}};
  out.committed_usd_a_year = middle.committed_usd_a_year;
  if (middle.committed_usd_a_year > 0) out.usd_besides = middle.training_usd;
  out.price = {price_of(offer), price.as_of, price.origin.source, {}};
  if (const std::string doubt = doubt_of(request, offer).why; !doubt.empty()) out.price.doubt = doubt;
  out.break_even = break_even_of(own, at(run.usd.low, run.time_s.low), middle, at(run.usd.high, run.time_s.high));
  return out;
}

/// The markets that the request allows; all of them if it does not say.
std::vector<platforms::Market> markets_of(const OwnQuestion& question) {
  const JsonNode asked = question.request({});
  std::vector<platforms::Market> markets;
  if (!asked.value().contains(JsonPointer("/search/markets"))) {
    for (const std::string& name : platforms::market_names()) markets.push_back(*platforms::parse_market(name));
    return markets;
  }
  for (const JsonNode& name : asked.child("search").child("markets").as_array())
    markets.push_back(platforms::read_market(name));
  return markets;
}

}  // namespace

documents::OwnOrRent own_or_rent(const OwnQuestion& question, const PlanOptions& options) {
  const Request request = request_with(question,
                                       {{"catalogs", one_name(question.platform)},
                                        {"instances", instances_to_buy(question)},
                                        {"markets", one_name(platforms::to_string(platforms::Market::on_demand))},
                                        {"regions", nullptr},
                                        {"gpus", nullptr}},
                                       false);
  const Plan plan = make_plan(request, options);
  if (!plan.best)
    throw Infeasible(fmt::format(
        "no machine of {} meets the request; {}", question.platform,
        plan.near_misses.empty() ? "none can run it" : "the nearest " + plan.runs[plan.near_misses.front()].reason));
  const Owned own = owned_machines(request, plan);
  documents::OwnOrRent out;
  out.model = request.trace.model;
  if (!request.quality) out.images = request.images;
  out.hours_of_a_year = kHoursPerYear;
  out.prices_aged_to = request.price_age.today;
  out.own = own.machines;
  for (const platforms::Market market : markets_of(question))
    out.offers.push_back(offer_of(question, market, own, options));
  out.warnings = own.warnings;
  out.tool = "ganymede " GANYMEDE_VERSION;
  out.platform = question.platform;
  out.request.text = request.content.dump();
  return out;
}

}  // namespace ganymede::plan
