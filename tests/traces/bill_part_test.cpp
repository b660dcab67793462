// One training's rows of an account's bill: by tag, resource and time, in the dialects of FOCUS and AWS.

#include "traces/bill_part.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/dates.hpp"
#include "common/errors.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"
#include "traces/bill_file.hpp"

namespace ganymede::traces {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kAccount =
    "BilledCost,BillingCurrency,ChargeCategory,ChargeDescription,ChargePeriodStart,ChargePeriodEnd,PricingQuantity,"
    "PricingUnit,ServiceCategory,ServiceName,ResourceId,Tags\n"
    "3.06,USD,Usage,p3.2xlarge,2026-11-03T09:00:00Z,2026-11-03T10:00:00Z,1,Hours,Compute,VM,"
    "arn:aws:ec2:us-east-1:1:instance/i-0abc,\"{\"\"Project\"\": \"\"gan\"\", \"\"team\"\": \"\"vision\"\"}\"\n"
    "6.12,USD,Usage,p3.2xlarge,2026-11-03T10:00:00Z,2026-11-03T12:00:00Z,2,Hours,Compute,VM,i-0abc2,"
    "\"{\"\"Project\"\": \"\"other\"\"}\"\n"
    "0.50,USD,Usage,gp3,2026-11-03T00:00:00Z,2026-12-01T00:00:00Z,5,GB-Months,Storage,Disks,vol-1,"
    "\"{\"\"Project\"\": \"\"gan\"\"}\"\n"
    "1.00,USD,Tax,VAT,2026-11-01T00:00:00Z,2026-12-01T00:00:00Z,,,Other,Tax,,\n";

const std::string kAwsAccount =
    "lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/ProductCode,lineItem/LineItemType,lineItem/UsageType,"
    "lineItem/UsageAmount,lineItem/CurrencyCode,lineItem/UnblendedCost,pricing/unit,lineItem/ResourceId,"
    "resourceTags/user:Project\n"
    "2026-11-03T00:00:00Z,2026-11-03T01:00:00Z,AmazonEC2,Usage,BoxUsage:p3.2xlarge,1,USD,3.06,Hrs,i-0abc,gan\n"
    "2026-11-03T01:00:00Z,2026-11-03T02:00:00Z,AmazonEC2,Usage,BoxUsage:p3.2xlarge,1,USD,3.06,Hrs,i-0def,\n";

const std::string kAws2Account =
    "line_item_usage_start_date,line_item_usage_end_date,line_item_product_code,line_item_line_item_type,"
    "line_item_usage_type,line_item_usage_amount,line_item_currency_code,line_item_unblended_cost,pricing_unit,"
    "line_item_resource_id,resource_tags\n"
    "2026-11-03 00:00:00,2026-11-03 01:00:00,AmazonEC2,Usage,BoxUsage:p3.2xlarge,1,USD,3.06,Hrs,i-0abc,"
    "\"{\"\"user_project\"\":\"\"gan\"\"}\"\n"
    "2026-11-03 00:00:00,2026-11-03 01:00:00,AmazonEC2,Usage,BoxUsage:p3.2xlarge,1,USD,3.06,Hrs,i-0def,{}\n";

BillFile read_part(const std::string& text, const BillPart& part) {
  const TemporaryFolder folder;
  return read_bill_file(folder.add("bill.csv", text), {"p3.2xlarge"}, part);
}

double usd_in(const BillFile& bill) {
  double sum = 0;
  for (const ChargedItem& item : bill.items) sum += item.usd;
  return sum;
}

TEST(BillPart, RowsOfATagAreOneTrainings) {
  const BillFile focus = read_part(kAccount, {.tag = "project=gan"});
  EXPECT_NEAR(usd_in(focus), 3.56, 1e-9);
  EXPECT_EQ(focus.outside, 2);
  EXPECT_NEAR(usd_in(read_part(kAccount, {.tag = "project"})), 9.68, 1e-9);
  EXPECT_NEAR(usd_in(read_part(kAwsAccount, {.tag = "Project=gan"})), 3.06, 1e-9);
  EXPECT_NEAR(usd_in(read_part(kAws2Account, {.tag = "project=gan"})), 3.06, 1e-9);
}

// What others' rows say cannot stand in the way, in whichever currency they are.
TEST(BillPart, RowsOutsideRefuseNothing) {
  const std::string row = ",Usage,p3.2xlarge,2026-11-03T09:00:00Z,2026-11-03T10:00:00Z,1,Hours,Compute,VM,i-0,{}\n";
  const std::string text = kAccount + "1.00,EUR" + row + "much,USD" + row;
  const BillFile bill = read_part(text, {.tag = "project=gan"});
  EXPECT_NEAR(usd_in(bill), 3.56, 1e-9);
  EXPECT_EQ(bill.outside, 4);
  EXPECT_EQ(bill.skipped_rows, 0);
  EXPECT_TRUE(bill.by_name);
  EXPECT_THAT(message_of<ConfigError>([&] { read_part(text, {}); }), HasSubstr("found EUR, expected USD"));
}

// Athena writes the names of columns in small letters.
TEST(BillPart, NamesOfColumnsMayBeInSmallLetters) {
  std::string small = kAccount;
  for (std::size_t i = 0; i < small.find('\n'); ++i)
    small[i] = small[i] >= 'A' && small[i] <= 'Z' ? static_cast<char>(small[i] - 'A' + 'a') : small[i];
  EXPECT_NEAR(usd_in(read_part(small, {})), 10.68, 1e-9);
  EXPECT_NEAR(usd_in(read_part(small, {.tag = "project=gan", .resource = "i-0abc"})), 3.06, 1e-9);
}

TEST(BillPart, AResourceIsNamedWholeOrByItsLastPart) {
  EXPECT_NEAR(usd_in(read_part(kAccount, {.resource = "i-0abc"})), 3.06, 1e-9);
  EXPECT_NEAR(usd_in(read_part(kAwsAccount, {.resource = "i-0def"})), 3.06, 1e-9);
}

TEST(BillPart, AWindowTakesWhatIsChargedWithinAndCountsWhatReachesBeyond) {
  const auto at = [](const char* time) { return parse_time(time); };
  const BillFile day = read_part(kAccount, {.from = at("2026-11-03T10:00:00Z"), .to = at("2026-11-03T12:00:00Z")});
  EXPECT_NEAR(usd_in(day), 6.12 + 0.50 + 1.00, 1e-9);
  EXPECT_EQ(day.straddling, 2);
  EXPECT_EQ(day.outside, 1);
}

TEST(BillPart, WhatNoRowHasIsRefusedWithWhatThereIs) {
  const auto why = [](const std::string& text, const BillPart& part) {
    return message_of<ConfigError>([&] { (void)read_part(text, part); });
  };
  EXPECT_THAT(why(kAccount, {.tag = "project=gun"}),
              AllOf(HasSubstr("none of its 4 rows"), HasSubstr("the tag's values are gan, other")));
  EXPECT_THAT(why(kAwsAccount, {.tag = "owner=me"}), HasSubstr("has no column of the tag \"owner\""));
  std::string nameless = kAccount;
  nameless.replace(nameless.find("ResourceId"), 10, "Resource");
  EXPECT_THAT(why(nameless, {.resource = "i-0abc"}), HasSubstr("has no column of resources"));
}

}  // namespace
}  // namespace ganymede::traces
