// Own or rent for people: the sentences, the table and the picture say what the answer says.

#include "report/own_or_rent.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "common/json_value.hpp"

namespace ganymede::report {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Owning costs 12,000 USD a year and 1 USD for a training of 10 h. On demand is 41 USD a training: 300 trainings,
/// 3,000 of 8,766 h. A reservation costs 20,000 USD a year, and spot has no offer.
documents::OwnOrRent an_answer() {
  return documents::own_or_rent_in(
      Json::parse(R"({ "schema": "ganymede.own-or-rent/1", "model": "dcgan<64>", "images": 1000,
    "hours_of_a_year": 8766,
    "own": { "machines": "lab room-1 on-demand, 1 x node", "capital_usd": 30000, "life_years": 3, "pue": 1.5,
      "usd_a_year": { "write_off": 10000, "space": 500, "people": 1500, "idle_electricity": 0, "total": 12000 },
      "training": { "hours": { "median": 10, "interval": [9, 11] }, "usd": 1, "kwh": 5 } },
    "offers": [
      { "market": "on-demand", "offer": "aws us-east-1 on-demand, 1 x p3.2xlarge", "committed_usd_a_year": 0,
        "usd_besides": null, "hours": { "median": 8, "interval": [7, 9] },
        "usd": { "median": 41, "interval": [40, 42] },
        "price": { "usd_per_hour": "5.10", "as_of": "2024-01-01", "doubt": "old" },
        "break_even": { "owning_is_cheaper": "from", "trainings_a_year": 300, "hours_a_year": 3000,
                        "hours_interval": [2500, null], "utilization": 0.3422, "months_of_use": 10.888 } },
      { "market": "spot", "offer": null, "reason": "the catalogs have no such offer" },
      { "market": "reserved-1y", "offer": "aws us-east-1 reserved-1y, 1 x p3.2xlarge", "committed_usd_a_year": 20000,
        "usd_besides": 0, "hours": { "median": 8, "interval": [7, 9] }, "usd": { "median": 20, "interval": [19, 21] },
        "price": { "usd_per_hour": "2.28", "as_of": "2026-01-01", "doubt": null },
        "break_even": { "owning_is_cheaper": "always", "trainings_a_year": 0, "hours_a_year": 0,
                        "hours_interval": [0, 0], "utilization": 0, "months_of_use": null } } ],
    "warnings": ["region room-1 is cold"] })"));
}

TEST(OwnOrRent, SaysFromWhenOwningIsCheaper) {
  EXPECT_THAT(own_or_rent_text(an_answer()),
              AllOf(HasSubstr("A year costs 12000 USD whether used or not (write-off 10000, space 500, people 1500)"),
                    HasSubstr("on-demand: own from 3000 hours of use a year on, 34.2 % of the year (300 trainings)"),
                    HasSubstr("reserved-1y: own; renting costs more at any use."), HasSubstr("2500 .. never"),
                    HasSubstr("20000 a year"), HasSubstr("not in its life"), HasSubstr("(?) on-demand: old"),
                    HasSubstr("spot: the catalogs have no such offer"), HasSubstr("note: region room-1 is cold")));
}

TEST(OwnOrRent, TheTextFitsATerminal) {
  std::istringstream lines(own_or_rent_text(an_answer(), 80));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), 80U) << line;
}

// The axes begin at x = 80 and y = 370 and are 470 and 330 pixels long. Owning all year costs 12,000 + 876.6 USD; twice
// that is shown.
TEST(OwnOrRent, ThePictureMarksTheBreakEven) {
  const std::string svg = own_or_rent_svg(an_answer());
  EXPECT_THAT(svg, AllOf(HasSubstr("<svg xmlns"), HasSubstr("dcgan&lt;64&gt;"), Not(HasSubstr("dcgan<64>")),
                         HasSubstr(">own</text>"), HasSubstr(">on-demand</text>"), HasSubstr(">reserved-1y</text>"),
                         Not(HasSubstr(">spot</text>")), Not(HasSubstr("nan"))));
  const double x = 80 + 470 * 3000 / 8766.0, y = 370 - 330 * 12'300 / (2 * 12'876.6);
  EXPECT_THAT(svg, HasSubstr(fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\"", x, y)));
}

}  // namespace
}  // namespace ganymede::report
