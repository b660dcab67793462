#include "report/own_or_rent.hpp"

#include <fmt/format.h>

#include <utility>

#include "common/json_value.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {

using AnswerJson = OrderedJson;

std::string rounded_usd(double usd) { return usd < 100 ? report::usd(usd) : fmt::format("{:.0f}", usd); }

std::string hours_shown(const AnswerJson& hours) {
  return hours.is_null() ? "never" : fmt::format("{:.0f}", hours.get<double>());
}

/// "about 52000 USD a year whether used or not, and 3.40 USD for each training of 4:10:00".
std::string own_sentence(const AnswerJson& own) {
  const AnswerJson &year = own.at("usd_a_year"), &training = own.at("training");
  const double total = year.at("total").get<double>();
  std::string parts;
  const std::pair<const char*, const char*> items[] = {
      {"write_off", "write-off"}, {"space", "space"}, {"people", "people"}, {"idle_electricity", "idle electricity"}};
  for (const auto& [key, name] : items)
    if (const double usd = year.at(key).get<double>(); usd > 0)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, rounded_usd(usd));
  const std::string kwh = training.at("kwh").is_null()
                              ? "energy not known"
                              : fmt::format("{:.4g} kWh at the meter, PUE {:g}", training.at("kwh").get<double>(),
                                            own.at("pue").get<double>());
  return fmt::format(
      "own: {}; {} USD over {:g} years. A year costs {} USD whether used or not ({}); a training of {} adds {} USD "
      "({}).\n",
      own.at("machines").get<std::string>(), rounded_usd(own.at("capital_usd").get<double>()),
      own.at("life_years").get<double>(), rounded_usd(total), parts,
      clock(3600 * training.at("hours").at("median").get<double>()), rounded_usd(training.at("usd").get<double>()),
      kwh);
}

std::string offer_line(const AnswerJson& offer) {
  const auto market = offer.at("market").get<std::string>();
  const AnswerJson& at = offer.at("break_even");
  const auto answer = at.at("owning_is_cheaper").get<std::string>();
  if (answer == "never") return fmt::format("{}: rent; even machines that train all year cost more to own.\n", market);
  if (answer == "always") return fmt::format("{}: own; renting costs more at any use.\n", market);
  return fmt::format("{}: own from {} hours of use a year on, {} of the year ({} trainings); rent below.\n", market,
                     hours_shown(at.at("hours_a_year")), percent(at.at("utilization").get<double>()),
                     fmt::format("{:.0f}", at.at("trainings_a_year").get<double>()));
}

}  // namespace

std::string own_or_rent_text(const OrderedJson& answer, std::size_t width) {
  const AnswerJson& own = answer.at("own");
  std::string out = wrap_prose(own_sentence(own), width) + "\n";
  Table table({"market", "best offer", ">time", ">USD a training", ">USD/h", "price of", ">own from h/year", "interval",
               ">use", ">months"});
  std::string missing, doubts, lines;
  for (const AnswerJson& offer : answer.at("offers")) {
    const auto market = offer.at("market").get<std::string>();
    if (offer.at("offer").is_null()) {
      missing += fmt::format("{}: {}\n", market, offer.at("reason").get<std::string>());
      continue;
    }
    const AnswerJson &at = offer.at("break_even"), &ends = at.at("hours_interval"), &price = offer.at("price");
    const bool committed = offer.at("committed_usd_a_year").get<double>() > 0;
    table.add({market, offer.at("offer").get<std::string>(), clock(3600 * offer.at("hours").at("median").get<double>()),
               committed ? rounded_usd(offer.at("committed_usd_a_year").get<double>()) + " a year"
                         : rounded_usd(offer.at("usd").at("median").get<double>()),
               price_cell(price.at("usd_per_hour")),
               price.at("as_of").get<std::string>() + (price.at("doubt").is_null() ? "" : " (?)"),
               hours_shown(at.at("hours_a_year")), hours_shown(ends.at(0)) + " .. " + hours_shown(ends.at(1)),
               at.at("utilization").is_null() ? "" : percent(at.at("utilization").get<double>()),
               at.at("months_of_use").is_null() ? "not in its life"
                                                : fmt::format("{:.1f}", at.at("months_of_use").get<double>())});
    if (!price.at("doubt").is_null())
      doubts += fmt::format("(?) {}: {}\n", market, price.at("doubt").get<std::string>());
    lines += offer_line(offer);
  }
  if (table.size() > 0)
    out += table.text(width) +
           "\nown from: hours a year in which the machines train, from which owning costs no more; use: their share of "
           "the year; months: of use without a pause, after which the price is earned back. Reserved machines are paid "
           "for all year.\n\n";
  out += lines;
  for (const AnswerJson& warning : answer.at("warnings")) missing += "note: " + warning.get<std::string>() + "\n";
  return wrap_prose(out + missing + doubts, width);
}

}  // namespace ganymede::report
