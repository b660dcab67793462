#include "report/offers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"

namespace ganymede::report {
namespace {

using testing::HasSubstr;
using testing::Not;

OrderedJson offer(const char* instance, const char* market, const char* usd, int age_days, const char* zone = nullptr) {
  return {{"provider", "lab"},
          {"instance", instance},
          {"gpu", "X"},
          {"gpus", 2},
          {"vcpus", nullptr},
          {"memory_bytes", 8e9},
          {"retired", nullptr},
          {"region", "here"},
          {"zone", zone == nullptr ? OrderedJson(nullptr) : OrderedJson(zone)},
          {"market", market},
          {"usd_per_hour", usd},
          {"usd_per_hour_number", std::stod(usd)},
          {"usd_per_gpu_hour", std::stod(usd) / 2},
          {"as_of", "2026-11-01"},
          {"age_days", age_days},
          {"source", "quote: of a friend"},
          {"unconfirmed", nullptr},
          {"owned", false}};
}

// The markets of a place are side by side; a zone has a row only if that is asked for.
TEST(Offers, AreOneRowForEachPlace) {
  const OrderedJson rows = {offer("dear", "on-demand", "4", 20), offer("dear", "spot", "3", 90),
                            offer("dear", "spot", "1", 90, "here-a"), offer("cheap", "on-demand", "2", 20)};
  const std::string table = offers_table(rows, {});
  EXPECT_LT(table.find("dear"), table.find("cheap"));
  EXPECT_EQ(table.find("dear"), table.rfind("dear"));
  EXPECT_THAT(table, HasSubstr("3 mo"));
  EXPECT_THAT(table, HasSubstr("quote"));
  EXPECT_THAT(table, Not(HasSubstr("here-a")));
  EXPECT_THAT(offers_table(rows, {.with_zones = true}), HasSubstr("here-a"));
  const std::string sorted = offers_table(rows, {.sorted = true, .per_gpu = true});
  EXPECT_LT(sorted.find("cheap"), sorted.find("dear"));
  EXPECT_THAT(sorted, HasSubstr("least USD/GPU-h"));
}

TEST(Offers, AsCsvHaveAllRows) {
  EXPECT_THAT(offers_csv(OrderedJson::array({offer("dear", "spot", "3", 90, "here-a")})),
              HasSubstr("lab,dear,X,2,0,8000000000,here,here-a,spot,3,2026-11-01,quote: of a friend,,1.5"));
}

TEST(Findings, AreCountedByProvider) {
  const OrderedJson found = {
      {"findings", OrderedJson::array({{{"provider", "lab"}, {"kind", "undated"}, {"where", "dear"}, {"what", "?"}}})},
      {"platforms", OrderedJson::array({{{"provider", "lab"}, {"instances", 2}, {"prices", 4}}})}};
  EXPECT_THAT(findings_text(found), HasSubstr("undated"));
  EXPECT_EQ(findings_csv(found), "provider,kind,where,what\r\nlab,undated,dear,?\r\n");
}

}  // namespace
}  // namespace ganymede::report
