#include "exports/focus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/csv.hpp"
#include "common/dates.hpp"
#include "common/json_value.hpp"
#include "report/results.hpp"

namespace ganymede::exports {
namespace {
Json item(const char* name, const char* pool, double quantity, const char* unit, const char* unit_price,
          const char* list_price, const char* usd, const char* provider, const char* market) {
  return {{"item", name},
          {"pool", pool},
          {"quantity", quantity},
          {"unit", unit},
          {"unit_price_usd", unit_price},
          {"list_price_usd", list_price},
          {"usd", usd},
          {"provider", provider},
          {"region", "here"},
          {"market", market}};
}

Json result() {
  Json run = report::a_result();
  run["run"].update({{"policy", "fixed"}, {"scheme", "ring"}});
  run["time"]["total_s"] = 3599.5;
  run["cost"]["items"] = {
      item("instance-hours", "p", 2, "h", "3.06", "3.06", "6.12", "aws", "on-demand"),
      item("instance-hours at 80 % (sustained use)", "p", 2, "h", "2.448", "3.06", "4.896", "gcp", "on-demand"),
      item("instance-hours", "s", 1, "h", "1.00", "1.00", "1.00", "azure", "spot"),
      item("unused commitment", "r", 10, "h", "1.00", "1.00", "10.00", "ibm", "reserved-1y"),
      item("storage", "gp3", 0.5, "GB-month", "0.08", "0.08", "0.04", "aws", ""),
      item("read requests", "s3", 3, "1000 requests", "0.0004", "0.0004", "0.0012", "aws", ""),
      item("data transfer", "to the internet", 5, "GB", "0.09", "0.09", "0.45", "aws", ""),
      item("electricity", "lab", 2, "kWh", "0.15", "0.15", "0.30", "private", "")};
  return run;
}

const FocusOptions kOptions{.start = 1798707600, .account = "mine"};  // 2026-12-31T09:00:00Z

TEST(Focus, HasTheMandatoryColumnsOfVersion12) {
  const CsvTable table = CsvTable::parse(focus_csv(result(), kOptions), "focus.csv");
  for (const char* column :
       {"BilledCost",         "BillingAccountId", "BillingAccountName", "BillingCurrency",   "BillingPeriodEnd",
        "BillingPeriodStart", "ChargeCategory",   "ChargeClass",        "ChargeDescription", "ChargePeriodEnd",
        "ChargePeriodStart",  "ContractedCost",   "EffectiveCost",      "InvoiceIssuerName", "ListCost",
        "PricingQuantity",    "PricingUnit",      "ProviderName",       "PublisherName",     "ServiceCategory",
        "ServiceName"})
    EXPECT_TRUE(table.has(column)) << column;
  // Columns that depend on what a provider supports: here are commitments, regions, list prices and units of use.
  for (const char* column : {"BillingAccountType",
                             "ChargeFrequency",
                             "CommitmentDiscountCategory",
                             "CommitmentDiscountId",
                             "CommitmentDiscountName",
                             "CommitmentDiscountQuantity",
                             "CommitmentDiscountStatus",
                             "CommitmentDiscountType",
                             "CommitmentDiscountUnit",
                             "ConsumedQuantity",
                             "ConsumedUnit",
                             "ContractedUnitPrice",
                             "InvoiceId",
                             "ListUnitPrice",
                             "PricingCategory",
                             "PricingCurrency",
                             "RegionId",
                             "RegionName",
                             "ResourceId",
                             "ResourceName",
                             "ResourceType",
                             "ServiceSubcategory",
                             "SkuId",
                             "SkuMeter",
                             "SkuPriceId",
                             "SubAccountId",
                             "SubAccountName",
                             "Tags"})
    EXPECT_TRUE(table.has(column)) << column;
  EXPECT_EQ(table.rows().size(), 8U);
}

TEST(Focus, RowsByHand) {
  const CsvTable table = CsvTable::parse(focus_csv(result(), kOptions), "focus.csv");
  const auto cell = [&](std::size_t row, const char* column) { return table.at(table.rows()[row], column); };
  EXPECT_EQ(cell(0, "BilledCost"), "6.12");
  EXPECT_EQ(cell(0, "ChargePeriodStart"), "2026-12-31T09:00:00Z");
  EXPECT_EQ(cell(0, "ChargePeriodEnd"), "2026-12-31T10:00:00Z");
  EXPECT_EQ(cell(0, "BillingPeriodStart"), "2026-12-01T00:00:00Z");
  EXPECT_EQ(cell(0, "BillingPeriodEnd"), "2027-01-01T00:00:00Z");
  EXPECT_EQ(cell(0, "PricingCategory"), "Standard");
  EXPECT_EQ(cell(0, "PricingUnit"), "Hours");
  EXPECT_EQ(cell(0, "ProviderName"), "AWS");
  EXPECT_EQ(cell(0, "ServiceCategory"), "Compute");
  EXPECT_EQ(cell(1, "ListCost"), "6.12");  // 2 h at the list price, of which 4.896 are billed
  EXPECT_EQ(cell(1, "EffectiveCost"), "4.896");
  EXPECT_EQ(cell(2, "PricingCategory"), "Dynamic");
  EXPECT_EQ(cell(3, "PricingCategory"), "Standard");  // committed are the hours, not their purchase
  EXPECT_EQ(cell(3, "ChargeCategory"), "Purchase");
  EXPECT_EQ(cell(3, "BilledCost"), "10.00");
  EXPECT_EQ(cell(3, "EffectiveCost"), "0.00");
  EXPECT_EQ(cell(4, "PricingUnit"), "GB-Months");
  EXPECT_EQ(cell(5, "ServiceName"), "Object Storage");
  EXPECT_EQ(cell(6, "ServiceCategory"), "Networking");
  EXPECT_EQ(cell(7, "ServiceCategory"), "Other");
  EXPECT_EQ(cell(0, "ServiceSubcategory"), "Virtual Machines");
  EXPECT_EQ(cell(0, "ResourceType"), "Instance");
  EXPECT_EQ(cell(5, "ServiceSubcategory"), "Object Storage");
  for (std::size_t row = 0; row < 8; ++row) {
    EXPECT_EQ(cell(row, "x_IsEstimate"), "true");
    EXPECT_EQ(cell(row, "ContractedCost"), cell(row, "ListCost")) << "nothing is negotiated";
    EXPECT_EQ(cell(row, "ContractedUnitPrice"), cell(row, "ListUnitPrice"));
    EXPECT_EQ(cell(row, "ConsumedQuantity"), row == 3 ? "" : cell(row, "PricingQuantity")) << "a purchase uses nothing";
    EXPECT_EQ(cell(row, "ConsumedUnit").empty(), row == 3);
    EXPECT_EQ(cell(row, "RegionName"), "here");
    EXPECT_EQ(cell(row, "ResourceId").empty(), row == 3);
    EXPECT_NE(cell(row, "SkuPriceId").find(cell(row, "SkuId")), std::string::npos);
    EXPECT_EQ(cell(row, "InvoiceId"), "");
    EXPECT_EQ(cell(row, "CommitmentDiscountStatus"), "");
    EXPECT_EQ(cell(row, "CommitmentDiscountId"), row == 3 ? "0123456789abcdef/reserved-1y/r" : "");
    EXPECT_EQ(cell(row, "ChargeFrequency"), row == 3 ? "One-Time" : "Usage-Based");
    EXPECT_EQ(cell(row, "BillingCurrency"), "USD");
    EXPECT_EQ(Json::parse(cell(row, "Tags"))["scheme"], "ring");
  }
}

/// The values of an item's rows in one column, in millionths.
std::vector<std::int64_t> millionths(const CsvTable& table, const char* sku, const char* column) {
  std::vector<std::int64_t> values;
  for (const auto& row : table.rows())
    if (table.at(row, "SkuId") == sku) values.push_back(std::llround(std::stod(table.at(row, column)) * 1e6));
  return values;
}

// From 23:30 on the last of December to 02:30: a sixth of the run lies in the old year. 6.12 USD become 1.02 and 5.10,
// and 0.0012 USD become 0.0002 and 0.001. An amount that is not divisible by six is still the sum of its parts.
TEST(Focus, AChargeThatSpansMonthsHasARowInEach) {
  Json run = result();
  run["time"]["total_s"] = 3 * 3600.0;
  run["cost"]["items"][2]["usd"] = "1.000001";
  const FocusOptions late{.start = 1798759800, .account = "mine"};  // 2026-12-31T23:30:00Z
  const CsvTable table = CsvTable::parse(focus_csv(run, late), "focus.csv");
  EXPECT_EQ(table.rows().size(), 7U * 2 + 1);  // a commitment is bought once
  const auto& rows = table.rows();
  EXPECT_EQ(table.at(rows[0], "BillingPeriodStart"), "2026-12-01T00:00:00Z");
  EXPECT_EQ(table.at(rows[0], "BillingPeriodEnd"), "2027-01-01T00:00:00Z");
  EXPECT_EQ(table.at(rows[0], "ChargePeriodEnd"), "2027-01-01T00:00:00Z");
  EXPECT_EQ(table.at(rows[1], "BillingPeriodStart"), "2027-01-01T00:00:00Z");
  EXPECT_EQ(table.at(rows[1], "BillingPeriodEnd"), "2027-02-01T00:00:00Z");
  EXPECT_EQ(table.at(rows[1], "ChargePeriodStart"), "2027-01-01T00:00:00Z");
  EXPECT_EQ(table.at(rows[1], "ChargePeriodEnd"), "2027-01-01T02:30:00Z");
  using Parts = std::vector<std::int64_t>;
  for (const char* column : {"BilledCost", "ContractedCost", "EffectiveCost", "ListCost"})
    EXPECT_EQ(millionths(table, "instance-hours/p", column), (Parts{1'020'000, 5'100'000})) << column;
  EXPECT_EQ(millionths(table, "instance-hours/p", "PricingQuantity"), (Parts{333'333, 1'666'667}));
  EXPECT_EQ(millionths(table, "read requests/s3", "BilledCost"), (Parts{200, 1'000}));
  EXPECT_EQ(millionths(table, "instance-hours/s", "BilledCost"), (Parts{166'667, 833'334}));
  std::int64_t sum = 0;
  for (const auto& row : rows) sum += std::llround(std::stod(table.at(row, "BilledCost")) * 1e6);
  EXPECT_EQ(sum, 6'120'000 + 4'896'000 + 1'000'001 + 10'000'000 + 40'000 + 1'200 + 450'000 + 300'000);
}

/// The value of a column in the rows of an item, as text.
std::vector<std::string> texts(const CsvTable& table, const char* sku, const char* column) {
  std::vector<std::string> values;
  for (const auto& row : table.rows())
    if (table.at(row, "SkuId") == sku) values.push_back(table.at(row, column));
  return values;
}

using Amounts = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

/// BilledCost of all rows, in micro-dollars.
std::int64_t billed(const CsvTable& table) {
  std::int64_t sum = 0;
  for (const auto& row : table.rows()) sum += std::llround(std::stod(table.at(row, "BilledCost")) * 1e6);
  return sum;
}

// An hour of a reserved node costs 1 USD instead of 3 on demand. It is paid for by its purchase, without an effective
// cost, and used without being billed again: the savings of the use are 2 USD.
TEST(Focus, ReservedHoursAreBoughtAndUsed) {
  Json run = result();
  run["cost"]["items"] = {item("instance-hours", "r", 1, "h", "1.00", "3.00", "1.00", "aws", "reserved-1y")};
  const CsvTable table = CsvTable::parse(focus_csv(run, kOptions), "focus.csv");
  const char* sku = "instance-hours/r";
  EXPECT_EQ(texts(table, sku, "ChargeCategory"), (Texts{"Purchase", "Usage"}));
  EXPECT_EQ(texts(table, sku, "ChargeFrequency"), (Texts{"Recurring", "Usage-Based"}));
  EXPECT_EQ(texts(table, sku, "PricingCategory"), (Texts{"Standard", "Committed"}));
  EXPECT_EQ(texts(table, sku, "CommitmentDiscountStatus"), (Texts{"", "Used"}));
  EXPECT_EQ(texts(table, sku, "CommitmentDiscountCategory"), (Texts{"Usage", "Usage"}));
  EXPECT_EQ(texts(table, sku, "CommitmentDiscountUnit"), (Texts{"Hours", "Hours"}));
  const std::string id = "0123456789abcdef/reserved-1y/r";
  EXPECT_EQ(texts(table, sku, "CommitmentDiscountId"), (Texts{id, id}));
  EXPECT_EQ(millionths(table, sku, "CommitmentDiscountQuantity"), (Amounts{1'000'000, 1'000'000}));
  EXPECT_EQ(millionths(table, sku, "BilledCost"), (Amounts{1'000'000, 0}));
  EXPECT_EQ(millionths(table, sku, "EffectiveCost"), (Amounts{0, 1'000'000}));
  EXPECT_EQ(millionths(table, sku, "ListCost"), (Amounts{1'000'000, 3'000'000}));
  EXPECT_EQ(millionths(table, sku, "ListUnitPrice"), (Amounts{1'000'000, 3'000'000}));
}

// One node for a year, of which a run of ten hours used ten: the rest covers later hours and has no effective cost yet.
// If the run had used only four of the ten hours, six would have passed unused: that is what they cost, and they would
// be no savings.
TEST(Focus, ACommitmentCostsWhereItsHoursPass) {
  Json run = result();
  run["time"]["total_s"] = 36'000.0;
  run["cost"]["items"] = {item("instance-hours", "r", 10, "h", "1.00", "3.00", "10.00", "aws", "reserved-1y"),
                          item("unused commitment", "r", 8750, "h", "1.00", "3.00", "8750.00", "aws", "reserved-1y")};
  const char *used_sku = "instance-hours/r", *rest_sku = "unused commitment/r";
  const CsvTable used = CsvTable::parse(focus_csv(run, kOptions), "focus.csv");
  ASSERT_EQ(used.rows().size(), 2U);
  EXPECT_EQ(texts(used, used_sku, "ChargeCategory"), Texts{"Usage"});
  EXPECT_EQ(millionths(used, used_sku, "BilledCost"), Amounts{0});
  EXPECT_EQ(millionths(used, used_sku, "EffectiveCost"), Amounts{10'000'000});
  EXPECT_EQ(texts(used, rest_sku, "ChargeCategory"), Texts{"Purchase"});
  EXPECT_EQ(texts(used, rest_sku, "ChargeFrequency"), Texts{"One-Time"});
  EXPECT_EQ(millionths(used, rest_sku, "BilledCost"), Amounts{8'760'000'000});
  EXPECT_EQ(millionths(used, rest_sku, "CommitmentDiscountQuantity"), Amounts{8'760'000'000});
  EXPECT_EQ(millionths(used, rest_sku, "EffectiveCost"), Amounts{0});
  EXPECT_THAT(texts(used, rest_sku, "ChargeDescription")[0], testing::HasSubstr("covers hours after the run"));
  EXPECT_EQ(billed(used), 8'760'000'000);

  run["cost"]["items"][0]["quantity"] = 4;
  run["cost"]["items"][0]["usd"] = "4.00";
  run["cost"]["items"][1]["quantity"] = 8756;
  run["cost"]["items"][1]["usd"] = "8756.00";
  const CsvTable wasted = CsvTable::parse(focus_csv(run, kOptions), "focus.csv");
  ASSERT_EQ(wasted.rows().size(), 3U);
  EXPECT_EQ(texts(wasted, rest_sku, "ChargeCategory"), (Texts{"Purchase", "Usage"}));
  EXPECT_EQ(texts(wasted, rest_sku, "CommitmentDiscountStatus"), (Texts{"", "Unused"}));
  EXPECT_EQ(millionths(wasted, rest_sku, "BilledCost"), (Amounts{8'760'000'000, 0}));
  EXPECT_EQ(millionths(wasted, rest_sku, "EffectiveCost"), (Amounts{0, 6'000'000}));
  EXPECT_EQ(millionths(wasted, rest_sku, "ListCost"), (Amounts{8'760'000'000, 6'000'000}));
  EXPECT_EQ(millionths(wasted, rest_sku, "PricingQuantity"), (Amounts{8'760'000'000, 6'000'000}));
  EXPECT_EQ(billed(wasted), 8'760'000'000);
}

TEST(Focus, OfASweepHasAllItsRuns) {
  const Json sweep = {{"schema", "ganymede.sweep/1"}, {"runs", {result(), result()}}};
  EXPECT_EQ(CsvTable::parse(focus_csv(sweep, kOptions), "focus.csv").rows().size(), 16U);
}

}  // namespace
}  // namespace ganymede::exports
