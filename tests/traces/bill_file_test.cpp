// Bills in the dialects of FOCUS and of AWS's Cost and Usage Report, written here.

#include "traces/bill_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "common/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::traces {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kFocus =
    "BilledCost,EffectiveCost,BillingCurrency,ChargeCategory,ChargeDescription,ChargePeriodStart,ChargePeriodEnd,"
    "PricingQuantity,PricingUnit,ServiceCategory,ServiceName\n"
    "12.24,12.24,USD,Usage,\"p3.2xlarge, Linux\",2026-11-03T00:00:00Z,2026-11-03T04:00:00Z,4,Hours,Compute,Virtual "
    "Machines\n"
    "3.06,3.06,USD,Usage,p3.2xlarge,2026-11-03T04:00:00Z,2026-11-03T05:00:00Z,1,Hours,Compute,Virtual Machines\n"
    "0,2.00,USD,Usage,p3.2xlarge reserved,2026-11-03T05:00:00Z,2026-11-03T06:00:00Z,1,Hours,Compute,Virtual Machines\n"
    "5.00,0,USD,Purchase,reservation of p3.2xlarge,2026-11-03T00:00:00Z,2026-11-04T00:00:00Z,1,Hours,Compute,Virtual "
    "Machines\n"
    "24.48,24.48,USD,Usage,p3.2xlarge2,2026-11-03T00:00:00Z,2026-11-03T01:00:00Z,1,Hours,Compute,Virtual Machines\n"
    "0.80,0.80,USD,Usage,gp3,2026-11-03T00:00:00Z,2026-12-01T00:00:00Z,10,GB-Months,Storage,Block Storage\n"
    "0.45,0.45,USD,Usage,egress,2026-11-03T00:00:00Z,2026-12-01T00:00:00Z,5,GB,Networking,Data Transfer\n"
    "-1.50,-1.50,USD,Credit,promotion,2026-11-03T00:00:00Z,2026-12-01T00:00:00Z,,,Other,Credits\n"
    "2.60,2.60,USD,Tax,VAT,2026-11-03T00:00:00Z,2026-12-01T00:00:00Z,,,Other,Tax\n";

const ChargedItem& item_of(const BillFile& bill, const std::string& item, const std::string& what = "") {
  for (const ChargedItem& one : bill.items)
    if (one.item == item && (what.empty() || one.what == what)) return one;
  throw std::runtime_error("no " + item);
}

BillFile read(const std::string& text) {
  const TemporaryFolder folder;
  return read_bill_file(folder.add("bill.csv", text), {"p3.2xlarge"});
}

std::string why_unread(const std::string& text) {
  try {
    (void)read(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// Hours of the instance: 4 + 1 + 1, of which the last are covered by what was bought; p3.2xlarge2 is another type.
TEST(BillFile, ReadsFocus) {
  const BillFile bill = read(kFocus);
  EXPECT_EQ(bill.dialect, "FOCUS");
  EXPECT_EQ(bill.rows, 9);
  EXPECT_EQ(bill.to - bill.from, 28 * 86400);
  const ChargedItem& hours = item_of(bill, "instance-hours", "p3.2xlarge");
  EXPECT_DOUBLE_EQ(hours.quantity, 6);
  EXPECT_DOUBLE_EQ(hours.usd, 15.30);
  EXPECT_DOUBLE_EQ(hours.effective_usd, 17.30);
  EXPECT_EQ(hours.unit, "h");
  EXPECT_DOUBLE_EQ(item_of(bill, "instance-hours", "p3.2xlarge2").usd, 24.48);
  EXPECT_DOUBLE_EQ(item_of(bill, "commitment").usd, 5);
  EXPECT_DOUBLE_EQ(item_of(bill, "storage").quantity, 10);
  EXPECT_DOUBLE_EQ(item_of(bill, "data transfer").usd, 0.45);
  EXPECT_DOUBLE_EQ(item_of(bill, "credit").usd, -1.5);
  EXPECT_DOUBLE_EQ(item_of(bill, "tax").usd, 2.6);
}

TEST(BillFile, ReadsBothReportsOfAws) {
  const std::string rows =
      "2026-11-03T00:00:00Z,2026-11-03T01:00:00Z,AmazonEC2,Usage,USE1-SpotUsage:p3.2xlarge,2,USD,1.836,spot,Hrs\n"
      "2026-11-03T00:00:00Z,2026-11-03T01:00:00Z,AmazonEC2,Usage,BoxUsage:g5.xlarge,1,USD,1.006,other,Hrs\n"
      "2026-11-03T00:00:00Z,2026-11-03T01:00:00Z,AmazonEC2,Usage,EBS:VolumeUsage.gp3,3,USD,0.24,volume,GB-Mo\n"
      "2026-11-03T00:00:00Z,2026-11-03T01:00:00Z,AmazonS3,Usage,Requests-Tier1,9,USD,0.01,put,Requests\n"
      "2026-11-03T00:00:00Z,2026-11-03T01:00:00Z,AmazonS3,Usage,TimedStorage-ByteHrs,9,USD,0.02,kept,GB-Mo\n"
      "2026-11-03T00:00:00Z,2026-11-03T01:00:00Z,AmazonEC2,Usage,USE1-DataTransfer-Out-Bytes,7,USD,0.63,out,GB\n"
      "2026-11-03T00:00:00Z,2026-11-03T01:00:00Z,AmazonEC2,SavingsPlanNegation,BoxUsage:p3.2xlarge,0,USD,-3,minus,\n";
  const std::string old =
      "lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/ProductCode,lineItem/LineItemType,lineItem/UsageType,"
      "lineItem/UsageAmount,lineItem/CurrencyCode,lineItem/UnblendedCost,lineItem/LineItemDescription,pricing/unit\n";
  const std::string cur2 =
      "line_item_usage_start_date,line_item_usage_end_date,line_item_product_code,line_item_line_item_type,"
      "line_item_usage_type,line_item_usage_amount,line_item_currency_code,line_item_unblended_cost,"
      "line_item_line_item_description,pricing_unit\n";
  for (const auto& [names, dialect] : {std::pair{old, "AWS CUR"}, {cur2, "AWS CUR 2.0"}}) {
    const BillFile bill = read(names + rows);
    EXPECT_EQ(bill.dialect, dialect);
    EXPECT_DOUBLE_EQ(item_of(bill, "instance-hours", "p3.2xlarge").usd, 1.836);
    EXPECT_DOUBLE_EQ(item_of(bill, "instance-hours", "g5.xlarge").quantity, 1);
    EXPECT_DOUBLE_EQ(item_of(bill, "storage", "AmazonEC2").usd, 0.24);
    EXPECT_DOUBLE_EQ(item_of(bill, "requests").usd, 0.01);
    EXPECT_DOUBLE_EQ(item_of(bill, "storage", "AmazonS3").usd, 0.02);
    EXPECT_DOUBLE_EQ(item_of(bill, "data transfer").quantity, 7);
    EXPECT_DOUBLE_EQ(item_of(bill, "commitment").usd, -3);
  }
}

TEST(BillFile, ReadsGzippedFilesInPieces) {
  std::string text = kFocus.substr(0, kFocus.find('\n') + 1);
  const std::string row = kFocus.substr(text.size(), kFocus.find('\n', text.size()) - text.size()) + ",\n";
  text.insert(text.size() - 1, ",\"a name\nof two lines\"");
  constexpr int kMany = 40000;  // several pieces
  for (int i = 0; i < kMany; ++i) text += row;
  const TemporaryFolder folder;
  const std::string file = (folder / "bill.csv.gz").string();
  const gzFile out = ::gzopen(file.c_str(), "wb");
  ::gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  ::gzclose(out);
  const BillFile bill = read_bill_file(file, {"p3.2xlarge"});
  EXPECT_EQ(bill.rows, kMany);
  EXPECT_NEAR(item_of(bill, "instance-hours").usd, 12.24 * kMany, 1e-3);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  EXPECT_THROW((void)read_bill_file(file, {"p3.2xlarge"}), ConfigError);
}

TEST(BillFile, SkipsAndCountsStrangeRows) {
  const BillFile bill = read(kFocus + "much,1,USD,Usage,x,,,1,Hours,Compute,VM\n1,2\n");
  EXPECT_EQ(bill.rows, 11);
  EXPECT_EQ(bill.skipped_rows, 2);
  EXPECT_THAT(bill.skipped, testing::Contains(HasSubstr("line 11: BilledCost: found \"much\", expected an amount")));
  EXPECT_THAT(bill.skipped, testing::Contains(HasSubstr("found 2 cells, expected 11")));
}

/// One FOCUS row of a machine: of that unit, with that description.
ChargedItem row_of(const std::string& unit, const std::string& words = "p3.2xlarge") {
  return read(kFocus.substr(0, kFocus.find('\n') + 1) + "3,3,USD,Usage," + words +
              ",2026-11-03T00:00:00Z,2026-11-03T01:00:00Z,90," + unit + ",Compute,Virtual Machines\n")
      .items.at(0);
}

TEST(BillFile, CountsHoursOfMachinesOnly) {
  for (const auto& [unit, hours] : {std::pair{"Hours", 90.},
                                    {"Hrs", 90.},
                                    {"1 Hour", 90.},
                                    {"10 Hours", 900.},
                                    {"100 Hours", 9000.},
                                    {"Minutes", 1.5},
                                    {"Seconds", 0.025},
                                    {"Instance-Hours", 90.},
                                    {"gibibyte hour", 0.},
                                    {"vCPU-Hours", 0.},
                                    {"Core Hours", 0.},
                                    {"GPU hour", 0.},
                                    {"Months", 0.},
                                    {"", 0.}}) {
    EXPECT_DOUBLE_EQ(row_of(unit).quantity, hours) << unit;
    EXPECT_EQ(row_of(unit).unit, "h");
  }
  // Clouds that charge the parts of a machine apart.
  EXPECT_EQ(row_of("hour", "N1 Predefined Instance Core running in Americas").quantity, 0);
  EXPECT_EQ(row_of("hour", "Nvidia Tesla V100 GPU running in Americas").quantity, 0);
}

// Words of Google's and Azure's bills for types that catalogs write otherwise; another version is another type.
TEST(BillFile, KnowsTypesThatAreSpeltOtherwise) {
  const TemporaryFolder folder;
  std::string text = kFocus.substr(0, kFocus.find('\n') + 1);
  for (const char* words :
       {"Spot Preemptible A2 highgpu 4g running in Americas", "a2-highgpu-4g", "A2 highgpu 4gb", "ND96asr v4",
        "Virtual Machines ND96asr v4", "Standard_ND96asr_v4 Spot", "NC6 v3", "ml.a2-highgpu-4g"})
    text += "5,5,USD,Usage," + std::string(words) + ",,,2,Hours,Compute,Virtual Machines\n";
  const auto read_for = [&](const char* instance) { return read_bill_file(folder.add("bill.csv", text), {instance}); };
  EXPECT_DOUBLE_EQ(item_of(read_for("a2-highgpu-4g"), "instance-hours", "a2-highgpu-4g").quantity, 4);
  EXPECT_DOUBLE_EQ(item_of(read_for("Standard_ND96asr_v4"), "instance-hours", "standard_nd96asr_v4").quantity, 6);
  EXPECT_THROW((void)item_of(read_for("Standard_NC6"), "instance-hours", "standard_nc6"), std::runtime_error);
}

TEST(BillFile, ReadsZonesAndSkipsRowsThatEndBeforeTheyStart) {
  std::string text = kFocus.substr(0, kFocus.find('\n') + 1);
  const std::string names = text;
  text += "1,1,USD,Usage,p3.2xlarge,2026-11-03T05:00:00+05:00,2026-11-03 01:00:00.000,1,Hours,Compute,VM\n";
  const BillFile bill = read(text + "1,1,USD,Usage,x,2026-11-03T05:00:00Z,2026-11-03T04:00:00Z,1,Hours,Compute,VM\n");
  EXPECT_EQ(bill.to - bill.from, 3600);
  EXPECT_THAT(bill.skipped, testing::ElementsAre(HasSubstr("line 3: ChargePeriodEnd: found 2026-11-03T04:00:00Z")));
  EXPECT_THAT(why_unread(names + "1,1,USD,Usage,x,,,2e12,Hours,Compute,VM\n"),
              HasSubstr("line 2: PricingQuantity: found 2e+12, expected at most 1e+12"));
  const std::string much = "9e11,1,USD,Usage,x,,,1,Hours,Compute,VM\n";
  EXPECT_THAT(why_unread(names + much + much), HasSubstr("line 3: BilledCost: found 1.8e+12, expected at most"));
}

// Formulas of AWS's guides: covered hours have their part of a fee, and a fee what no hours have.
TEST(BillFile, CountsCommitmentsOfAwsOnce) {
  const std::string names =
      "lineItem/LineItemType,lineItem/UsageType,lineItem/UsageAmount,lineItem/UnblendedCost,pricing/unit,"
      "reservation/EffectiveCost,reservation/UnusedRecurringFee,savingsPlan/SavingsPlanEffectiveCost,"
      "savingsPlan/TotalCommitmentToDate,savingsPlan/UsedCommitment,reservation/ReservationARN\n";
  const BillFile bill = read(names + "DiscountedUsage,BoxUsage:p3.2xlarge,2,0,Hrs,4,,,,,arn\n" +
                             "RIFee,HeavyUsage:p3.2xlarge,3,6,Hrs,6,2,,,,arn\n" +
                             "SavingsPlanCoveredUsage,BoxUsage:p3.2xlarge,1,3,,,,1.5,,,\n" +
                             "SavingsPlanNegation,BoxUsage:p3.2xlarge,1,-3,,,,,,,\n" +
                             "SavingsPlanRecurringFee,ComputeSP:1yrNoUpfront,1,2,,,,,2,1.5,\n" +
                             "Fee,,1,100,,,,,,,arn\nFee,,1,10,,,,,,,\n");
  double effective = 0;
  for (const ChargedItem& item : bill.items) effective += item.effective_usd;
  EXPECT_DOUBLE_EQ(effective, 4 + 2 + 1.5 + 0.5 + 10);
  EXPECT_TRUE(bill.has_commitment);
  EXPECT_DOUBLE_EQ(item_of(bill, "commitment", kSavingsPlan).usd, 2);
  EXPECT_DOUBLE_EQ(item_of(bill, "fee").usd, 10);
  EXPECT_DOUBLE_EQ(item_of(bill, "instance-hours", "p3.2xlarge").quantity, 3);
}

TEST(BillFile, SaysWhatItNeeds) {
  EXPECT_THAT(why_unread("a,b\n1,2\n"), AllOf(HasSubstr("bill.csv: expected a bill as CSV"), HasSubstr("BilledCost"),
                                              HasSubstr("lineItem/UnblendedCost")));
  EXPECT_THAT(why_unread(kFocus.substr(0, kFocus.find('\n') + 1)), HasSubstr("at least one row"));
  EXPECT_THAT(why_unread(""), HasSubstr("at least one row"));
  std::string euros = kFocus;
  euros.replace(euros.find("USD"), 3, "EUR");
  EXPECT_THAT(why_unread(euros), HasSubstr("line 2: BillingCurrency: found EUR, expected USD"));
}

TEST(BillFile, AFolderInItsPlaceIsCalledOne) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { (void)read_bill_file(folder.path(), {}); },
              testing::ThrowsMessage<ConfigError>(HasSubstr("is a directory")));
  EXPECT_THAT([&] { (void)read_bill_file(folder.path() / "none", {}); },
              testing::ThrowsMessage<ConfigError>(HasSubstr("none: cannot be read: No such file")));
}

}  // namespace
}  // namespace ganymede::traces
