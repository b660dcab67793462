#include "report/focus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/csv.hpp"
#include "common/dates.hpp"

namespace ganymede {
namespace {

using Json = nlohmann::json;

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
  return {{"schema", "ganymede.result/1"},
          {"run", {{"policy", "fixed"}, {"scheme", "ring"}}},
          {"time", {{"total_s", 3599.5}}},
          {"provenance", {{"scenario_hash", "0123456789abcdef"}}},
          {"cost",
           {{"items",
             {item("instance-hours", "p", 2, "h", "3.06", "3.06", "6.12", "aws", "on-demand"),
              item("instance-hours at 80 % (sustained use)", "p", 2, "h", "2.448", "3.06", "4.896", "gcp", "on-demand"),
              item("instance-hours", "s", 1, "h", "1.00", "1.00", "1.00", "azure", "spot"),
              item("unused commitment", "r", 10, "h", "1.00", "1.00", "10.00", "ibm", "reserved-1y"),
              item("storage", "gp3", 0.5, "GB-month", "0.08", "0.08", "0.04", "aws", ""),
              item("read requests", "s3", 3, "1000 requests", "0.0004", "0.0004", "0.0012", "aws", ""),
              item("data transfer", "to the internet", 5, "GB", "0.09", "0.09", "0.45", "aws", ""),
              item("electricity", "lab", 2, "kWh", "0.15", "0.15", "0.30", "private", "")}}}}};
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
  EXPECT_EQ(cell(3, "PricingCategory"), "Committed");
  EXPECT_EQ(cell(3, "ChargeCategory"), "Purchase");
  EXPECT_EQ(cell(4, "PricingUnit"), "GB-Months");
  EXPECT_EQ(cell(5, "ServiceName"), "Object Storage");
  EXPECT_EQ(cell(6, "ServiceCategory"), "Networking");
  EXPECT_EQ(cell(7, "ServiceCategory"), "Other");
  for (std::size_t row = 0; row < 8; ++row) {
    EXPECT_EQ(cell(row, "x_IsEstimate"), "true");
    EXPECT_EQ(cell(row, "BillingCurrency"), "USD");
    EXPECT_EQ(Json::parse(cell(row, "Tags"))["scheme"], "ring");
  }
}

TEST(Focus, OfASweepHasAllItsRuns) {
  const Json sweep = {{"schema", "ganymede.sweep/1"}, {"runs", {result(), result()}}};
  EXPECT_EQ(CsvTable::parse(focus_csv(sweep, kOptions), "focus.csv").rows().size(), 16U);
}

}  // namespace
}  // namespace ganymede
