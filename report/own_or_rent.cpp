#include "report/own_or_rent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/units.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {

std::string rounded_usd(double usd) { return usd < 100 ? report::usd(usd) : fmt::format("{:.0f}", usd); }

std::string hours_shown(std::optional<double> hours) {
  return hours && std::isfinite(*hours) ? fmt::format("{:.0f}", *hours) : "never";
}

/// "about 52000 USD a year whether used or not, and 3.40 USD for each training of 4:10:00".
std::string own_sentence(const documents::OwnMachines& own) {
  const documents::OwnMachines::Year& year = own.usd_a_year;
  const documents::OwnMachines::Training& training = own.training;
  std::string parts;
  for (const auto& [usd, name] : {std::pair(year.write_off, "write-off"),
                                  {year.space, "space"},
                                  {year.people, "people"},
                                  {year.idle_electricity, "idle electricity"}})
    if (usd > 0) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, rounded_usd(usd));
  const std::string kwh =
      training.kwh ? fmt::format("{:.4g} kWh at the meter, PUE {:g}", *training.kwh, own.pue) : "energy not known";
  return fmt::format(
      "own: {}; {} USD over {:g} years. A year costs {} USD whether used or not ({}); a training of {} adds {} USD "
      "({}).\n",
      own.machines, rounded_usd(own.capital_usd), own.life_years, rounded_usd(year.total), parts,
      clock(3600 * training.hours.median), rounded_usd(training.usd), kwh);
}

std::string offer_line(const documents::RentOffer& offer) {
  const documents::OwnBreakEven& at = offer.break_even;
  if (at.owning_is_cheaper == "never")
    return fmt::format("{}: rent; even machines that train all year cost more to own.\n", offer.market);
  if (at.owning_is_cheaper == "always") return fmt::format("{}: own; renting costs more at any use.\n", offer.market);
  return fmt::format("{}: own from {} hours of use a year on, {} of the year ({} trainings); rent below.\n",
                     offer.market, hours_shown(at.hours_a_year), percent(at.utilization.value_or(0)),
                     hours_shown(at.trainings_a_year));
}

}  // namespace

std::string own_or_rent_text(const documents::OwnOrRent& answer, std::size_t width) {
  std::string out = wrap_prose(own_sentence(answer.own), width) + "\n";
  Table table({"market", "best offer", ">time", ">USD a training", ">USD/h", "price of", ">own from h/year", "interval",
               ">use", ">months"});
  std::string missing, doubts, lines;
  for (const documents::RentOffer& offer : answer.offers) {
    if (!offer.offer) {
      missing += fmt::format("{}: {}\n", offer.market, offer.reason);
      continue;
    }
    const documents::OwnBreakEven& at = offer.break_even;
    table.add({offer.market, *offer.offer, clock(3600 * offer.hours.median),
               offer.committed_usd_a_year > 0 ? rounded_usd(offer.committed_usd_a_year) + " a year"
                                              : rounded_usd(offer.usd.median),
               price_cell(decimal(offer.price.usd_per_hour)), offer.price.as_of + (offer.price.doubt ? " (?)" : ""),
               hours_shown(at.hours_a_year),
               hours_shown(at.hours_interval.low) + " .. " + hours_shown(at.hours_interval.high),
               at.utilization ? percent(*at.utilization) : "",
               at.months_of_use ? fmt::format("{:.1f}", *at.months_of_use) : "not in its life"});
    if (offer.price.doubt) doubts += fmt::format("(?) {}: {}\n", offer.market, *offer.price.doubt);
    lines += offer_line(offer);
  }
  if (table.size() > 0)
    out += table.text(width) +
           "\nown from: hours a year in which the machines train, from which owning costs no more; use: their share of "
           "the year; months: of use without a pause, after which the price is earned back. Reserved machines are paid "
           "for all year.\n\n";
  out += lines;
  for (const std::string& warning : answer.warnings) missing += "note: " + warning + "\n";
  return wrap_prose(out + missing + doubts, width);
}

namespace {

constexpr double kWidth = 720, kHeight = 420;  // of the picture, in pixels
constexpr double kLeft = 80, kRight = 170, kTop = 40, kBottom = 50;
constexpr int kSamples = 400;  // points of a line with jumps

/// A line of the picture: dollars a year at a number of trainings.
struct YearLine {
  std::string name;
  const char* color;
  double fixed = 0, training_usd = 0;
  double committed = 0, set_trainings = 0;  ///< dollars of a reserved set, and how many trainings it does in a year
  double own_from_h = -1;                   ///< where owning becomes cheaper; below 0: nowhere

  double at(double trainings) const {
    const double sets = committed > 0 ? std::max(1.0, std::ceil(trainings / set_trainings - 1e-9)) : 0;
    return fixed + trainings * training_usd + sets * committed;
  }
};

std::vector<YearLine> lines_of(const documents::OwnOrRent& answer) {
  std::vector<YearLine> lines{{"own", "#222222", answer.own.usd_a_year.total, answer.own.training.usd}};
  constexpr std::array kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7"};  // Okabe and Ito, by market
  for (std::size_t i = 0; i < answer.offers.size(); ++i) {
    const documents::RentOffer& offer = answer.offers[i];
    if (!offer.offer) continue;
    YearLine line{offer.market, kColors[i % kColors.size()]};
    line.committed = offer.committed_usd_a_year;
    line.training_usd = line.committed > 0 ? offer.usd_besides.value_or(0) : offer.usd.median;
    line.set_trainings = answer.hours_of_a_year / offer.hours.median;
    line.own_from_h = offer.break_even.hours_a_year.value_or(-1);
    lines.push_back(std::move(line));
  }
  return lines;
}

/// The next of 1, 2, 5, 10, 20, 50, … that is not below `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

/// Pixels of hours and dollars.
struct Scale {
  double hours, usd;  ///< at the right and upper ends of the axes
  double x(double h) const { return kLeft + (kWidth - kLeft - kRight) * h / hours; }
  double y(double dollars) const { return kHeight - kBottom - (kHeight - kTop - kBottom) * dollars / usd; }
};

std::string grid_line(double x1, double y1, double x2, double y2) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>", x1, y1, x2,
                     y2);
}

/// Text whose `anchor`, "start", "middle" or "end", is at that place.
std::string label(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, text);
}

std::string axes(const Scale& scale) {
  const double bottom = kHeight - kBottom, right = kWidth - kRight;
  std::string out;
  for (double h = 0; h <= scale.hours; h += 2000)
    out += grid_line(scale.x(h), kTop, scale.x(h), bottom) +
           label(scale.x(h), bottom + 18, "middle", fmt::format("{:.0f}", h));
  const double step = round_step(scale.usd / 6);
  for (double usd = 0; usd <= scale.usd; usd += step)
    out += grid_line(kLeft, scale.y(usd), right, scale.y(usd)) +
           label(kLeft - 8, scale.y(usd) + 4, "end", fmt::format("{:.10g}", usd));
  return out + label((kLeft + right) / 2, kHeight - 10, "middle", "hours of use a year") +
         label(kLeft - 60, kTop - 12, "start", "USD a year");
}

std::string drawn(const YearLine& line, const Scale& scale, double training_h, double clip_usd) {
  std::string points;
  double last_h = 0, last_usd = 0;
  for (int i = 0; i <= kSamples; ++i) {
    const double h = scale.hours * i / kSamples, usd = line.at(h / training_h);
    if (usd > clip_usd) break;
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", scale.x(h), scale.y(usd));
    last_h = h, last_usd = usd;
  }
  std::string out =
      fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", points, line.color);
  if (line.own_from_h >= 0)
    if (const double usd = line.at(line.own_from_h / training_h); usd <= clip_usd)
      out += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\"><title>{}: own from {:.0f} h a year"
          "</title></circle>\n",
          scale.x(line.own_from_h), scale.y(usd), line.color, escaped(line.name), line.own_from_h);
  return out + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n", scale.x(last_h) + 6,
                           scale.y(last_usd) + 4, line.color, escaped(line.name));
}

}  // namespace

std::string own_or_rent_svg(const documents::OwnOrRent& answer) {
  const std::vector<YearLine> lines = lines_of(answer);
  const double hours = answer.hours_of_a_year, training_h = answer.own.training.hours.median;
  // Twice the owner's costs are shown; what costs more runs out of the picture.
  double usd = 2 * lines.front().at(hours / training_h);
  double highest = 0;
  for (const YearLine& line : lines) highest = std::max(highest, line.at(hours / training_h));
  usd = std::max(1.0, std::min(usd, highest));
  const Scale scale{hours, usd};
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" height=\"{1:g}\" "
      "font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>Own or rent: {2}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kWidth, kHeight, escaped(answer.model));
  out += axes(scale);
  for (const YearLine& line : lines) out += drawn(line, scale, training_h, usd * (1 + 1e-9));
  return out + "</svg>\n";
}

}  // namespace ganymede::report
