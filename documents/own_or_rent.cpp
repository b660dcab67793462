#include "documents/own_or_rent.hpp"

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/usd.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {

void describe(Walk& walk, OwnMachines::Year& year) {
  walk.member("write_off", year.write_off, kCount);
  walk.member("space", year.space, kCount);
  walk.member("people", year.people, kCount);
  walk.member("idle_electricity", year.idle_electricity, kCount);
  walk.member("total", year.total, kAmount);
}

void describe(Walk& walk, OwnMachines::Training& training) {
  walk.member("hours", training.hours, kRequired);
  walk.member("usd", training.usd, {.says = "what it adds"});
  walk.member("electricity_usd", training.electricity_usd, {.says = "of it"});
  walk.member("staff_usd", training.staff_usd, {.says = "of it"});
  walk.member("kwh", training.kwh, {.says = "at the meter"});
  walk.member("inputs", training.inputs, {.says = "as a result's"});
}

void describe(Walk& walk, OwnMachines& own) {
  walk.member("machines", own.machines, kRequired);
  walk.member("instance", own.instance);
  walk.member("nodes", own.nodes, {.low = 1});
  walk.member("gpu", own.gpu);
  walk.member("gpus", own.gpus, {.low = 1});
  walk.member("region", own.region);
  walk.member("capital_usd", own.capital_usd, kAmount);
  walk.member("life_years", own.life_years, kAmount);
  walk.member("usd_a_year", own.usd_a_year, {.says = "whether used or not", .required = true});
  walk.member("training", own.training, kRequired);
  walk.member("pue", own.pue);
  walk.member("usd_per_kwh", own.usd_per_kwh);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  walk.derived("usd_per_kwh_number", own.usd_per_kwh ? usd_of(*own.usd_per_kwh) : kNone, {.unknown_is_null = true});
}

void describe(Walk& walk, OwnBreakEven& at) {
  walk.member("owning_is_cheaper", at.owning_is_cheaper, {.required = true, .choices = {"from", "always", "never"}});
  walk.member("trainings_a_year", at.trainings_a_year, {.says = "null, here and below: never"});
  walk.member("hours_a_year", at.hours_a_year, {.says = "of use, from which on owning costs no more"});
  walk.member("hours_interval", at.hours_interval, {.unknown_is_null = true});
  walk.member("utilization", at.utilization, {.says = "the share of the year"});
  walk.member("months_of_use", at.months_of_use, {.says = "without a pause, after which the price is earned back"});
}

void describe(Walk& walk, RentOffer::Price& price) {
  walk.member("usd_per_hour", price.usd_per_hour, kRequired);
  walk.number_of("usd_per_hour_number", price.usd_per_hour);
  walk.member("as_of", price.as_of);
  walk.member("source", price.source);
  walk.member("doubt", price.doubt, {.says = "why it is doubtful"});
}

void describe(Walk& walk, RentOffer& offer) {
  walk.member("market", offer.market, kRequired);
  walk.member("offer", offer.offer, {.says = "null: there is none"});
  walk.member_unless("reason", offer.reason, {}, {.says = "why there is none"});
  if (!walk.takes(offer.offer.has_value())) return;
  walk.member("gpus", offer.gpus, {.low = 1});
  walk.member("gpu", offer.gpu);
  walk.member("hours", offer.hours, {.says = "of a training"});
  walk.member("usd", offer.usd, {.says = "of a training"});
  walk.member("committed_usd_a_year", offer.committed_usd_a_year, {.says = "of reserved machines", .low = 0});
  walk.member("usd_besides", offer.usd_besides, {.says = "of a training on reserved machines"});
  walk.member("price", offer.price, {.says = "of an hour"});
  walk.member("break_even", offer.break_even);
}

void describe(Walk& walk, OwnOrRent& answer) {
  walk.constant("schema", kOwnOrRentSchema, kRequired);
  walk.member("model", answer.model, kRequired);
  walk.member("images", answer.images, {.says = "null where an FID is the goal"});
  walk.member("hours_of_a_year", answer.hours_of_a_year, kAmount);
  walk.member("prices_aged_to", answer.prices_aged_to, {.says = "the day to which the age of prices counts"});
  walk.member("own", answer.own, kRequired);
  walk.member("offers", answer.offers, {.says = "the best of each market", .required = true});
  walk.member("warnings", answer.warnings);
  walk.object("provenance", [&] {
    walk.member("tool", answer.tool);
    walk.member("platform", answer.platform);
    walk.member_unless("request", answer.request, {});
  });
}

OrderedJson own_or_rent_json(const OwnOrRent& answer) { return written(described(answer)); }

OwnOrRent own_or_rent_in(const Json& value) {
  OwnOrRent answer;
  read(JsonNode::wrap(value, "own-or-rent", {}), described(answer));
  return answer;
}

}  // namespace ganymede::documents
