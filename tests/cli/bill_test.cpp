// `watch --bill`: what was paid beside a plan.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "run_program.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Bill : public testing::Test {
 protected:
  Bill() {
    const Outcome planned = run_program(
        "plan --model dcgan-64 --images 20M --catalog aws --instance p3.2xlarge --region us-east-1 --market on-demand "
        "--max-gpus 1 --seeds 1 --quiet --save " +
        plan_);
    EXPECT_EQ(planned.code, 0) << planned.err;
  }
  Outcome watch(const std::string& more) { return run_program("watch --plan " + plan_ + " " + more); }
  TemporaryFolder folder_;
  std::string plan_ = (folder_.path() / "plan.json").string();
};

const std::string kColumnsOfAws =
    "lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/ProductCode,lineItem/LineItemType,lineItem/UsageType,"
    "lineItem/UsageAmount,lineItem/CurrencyCode,lineItem/UnblendedCost,pricing/unit\n";

std::string charged(const std::string& type, const std::string& usage, const std::string& quantity,
                    const std::string& usd) {
  return "2026-11-03T00:00:00Z,2026-11-03T01:00:00Z,AmazonEC2," + type + "," + usage + "," + quantity + ",USD," + usd +
         ",Hrs\n";
}

// The bill that the program itself exports is the plan's.
TEST_F(Bill, OfTheSimulatedRunIsAsPlanned) {
  const std::string result = (folder_.path() / "result.json").string(), bill = (folder_.path() / "bill.csv").string();
  ASSERT_EQ(run_program("simulate " + plan_ + " --format json --quiet -o " + result).code, 0);
  ASSERT_EQ(run_program("export focus " + result + " --start 2026-12-01T09:00:00Z -o " + bill).code, 0);
  const Json paid = Json::parse(watch("--bill " + bill + " --format json").out);
  EXPECT_EQ(paid["schema"], "ganymede.paid-bill/1");
  EXPECT_EQ(paid["paid_usd"], paid["planned_usd"]);
  EXPECT_NEAR(paid["items"][0]["difference_usd"].get<double>(), 0, 1e-6);
  EXPECT_THAT(watch("--bill " + bill).out, HasSubstr("as planned"));
}

// Twice the hours at half the price, another machine and a tax.
TEST_F(Bill, SaysWhichItemDiffersAndWhy) {
  const std::string bill =
      folder_
          .add("cur.csv", kColumnsOfAws + charged("Usage", "USE1-BoxUsage:p3.2xlarge", "20", "30.60") +
                              charged("Usage", "BoxUsage:g5.xlarge", "2", "2.012") + charged("Tax", "", "0", "6.52"))
          .string();
  const Outcome text = watch("--bill " + bill);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("Paid 39.13 USD"), HasSubstr("20 h in place of "),
                              HasSubstr("1.53 USD/h in place of 3.06"), HasSubstr("g5.xlarge, which the plan does not"),
                              HasSubstr("prices of plans are without taxes")));
  const Json paid = Json::parse(watch("--bill " + bill + " --format json").out);
  EXPECT_EQ(paid["items"][0]["item"], "instance-hours");
  double sum = 0;
  for (const Json& item : paid["items"]) sum += item["difference_usd"].get<double>();
  EXPECT_NEAR(sum, 39.132 - std::stod(paid["planned_usd"].get<std::string>()), 1e-3);
}

TEST_F(Bill, StandsBesideALog) {
  const std::string log = (folder_.path() / "run.csv").string();
  folder_.add("run.csv", "step,images,seconds\n0,0,0\n100,12800,10\n200,25600,20\n");
  const std::string bill =
      folder_.add("cur.csv", kColumnsOfAws + charged("Usage", "BoxUsage:p3.2xlarge", "1", "3.06")).string();
  const Outcome both = watch("--log " + log + " --bill " + bill + " --format json");
  ASSERT_THAT(both.code, testing::AnyOf(0, 4)) << both.err;
  EXPECT_EQ(Json::parse(both.out)["bill"]["paid_usd"], "3.06");
}

TEST_F(Bill, RefusesWhatIsNone) {
  EXPECT_THAT(watch("").err, HasSubstr("expected --log, which the run writes, or --bill"));
  EXPECT_EQ(watch("--bill " + plan_).code, 2);
  EXPECT_EQ(watch("--bill nowhere.csv").code, 2);
  const std::string bill =
      folder_.add("cur.csv", kColumnsOfAws + charged("Usage", "BoxUsage:p3.2xlarge", "1", "3.06")).string();
  EXPECT_THAT(watch("--follow --bill " + bill).err, HasSubstr("--follow: expected --log beside it"));
  const std::string other =
      folder_.add("other.csv", kColumnsOfAws + charged("Usage", "BoxUsage:g5.xlarge", "1", "1")).string();
  EXPECT_THAT(watch("--bill " + other).out, HasSubstr("no row names p3.2xlarge"));
}

}  // namespace
}  // namespace ganymede::cli
