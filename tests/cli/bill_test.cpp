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
using testing::Not;

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
  // A date that no calendar has is refused before anything is written.
  EXPECT_EQ(run_program("export focus " + result + " --start 9999-12-31T23:59:59Z").code, 2);
  EXPECT_EQ(run_program("export focus " + result + " --account ''").code, 2);
}

// So is that of plans of every market, and of dedicated parameter servers, which are rented beside the nodes.
TEST(BillOfAPlan, IsAsPlannedForEveryMarket) {
  const TemporaryFolder folder;
  const std::string dedicated = folder
                                    .add("request.json", R"({"schema": "ganymede.request/1",
      "workload": {"model": "dcgan-64", "images": 20000000}, "search": {"schemes": ["parameter-server:dedicated/2"], "catalogs": ["aws"],
      "instances": ["p3.2xlarge"], "markets": ["on-demand"], "min_gpus": 2, "max_gpus": 2},
      "synchronization": {"mode": "async-parameter-server"}})")
                                    .string();
  const std::string shared = "--model dcgan-64 --images 20M --catalog aws --gpu V100 --max-gpus 8 --market ";
  const std::string plan = (folder.path() / "p.json").string(), result = (folder.path() / "r.json").string(),
                    bill = (folder.path() / "b.csv").string();
  for (const std::string& of : {shared + "on-demand", shared + "spot", shared + "spot --policy spot-first",
                                shared + "reserved-1y", dedicated}) {
    SCOPED_TRACE(of);
    const Outcome planned = run_program("plan " + of + " --seeds 1 --effort quick --quiet --save " + plan);
    ASSERT_EQ(planned.code, 0) << planned.err;
    ASSERT_EQ(run_program("simulate " + plan + " --format json --quiet -o " + result).code, 0);
    ASSERT_EQ(run_program("export focus " + result + " --start 2026-12-01T09:00:00Z -o " + bill).code, 0);
    const Outcome text = run_program("watch --plan " + plan + " --bill " + bill);
    EXPECT_THAT(text.out, AllOf(HasSubstr("as planned"), Not(HasSubstr("Most of it")), Not(HasSubstr("-0.00"))));
    const Json paid = Json::parse(run_program("watch --plan " + plan + " --bill " + bill + " --format json").out);
    EXPECT_EQ(paid["notes"], Json::array());
    EXPECT_EQ(paid["paid_usd"], paid["planned_usd"]);
    for (const Json& item : paid["items"]) {
      EXPECT_NEAR(item["difference_usd"].get<double>(), 0, 1e-6) << item;
      EXPECT_EQ(item["why"], "") << item;
      EXPECT_NEAR(item["paid"].get<double>(), item["planned"].get<double>(),
                  1e-6 * item["planned"].get<double>() + 1e-8);
    }
  }
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
  // The share is of the steps that are shown, also of a log that begins late.
  const std::string late = folder_.add("late.csv", "step,images,seconds\n50000,6400000,0\n50100,6412800,10\n").string();
  const Json now = Json::parse(watch("--format json --log " + late).out);
  EXPECT_NEAR(now["done_share"].get<double>(), now["steps_done"].get<double>() / now["steps"].get<double>(), 1e-9);
  // Charts of several runs: the first is taken, and that is said.
  const std::string several =
      folder_.add("several.csv", "images,a - _runtime,b - _runtime\n0,0,0\n12800,10,\n25600,20,\n38400,,30\n").string();
  EXPECT_THAT(watch("--log " + several).out,
              testing::AllOf(HasSubstr("several runs: the first is taken, a"), Not(HasSubstr("cut short"))));
}

// A window of days holds the last of them; taxes are spoken of only where a tag or a resource leaves them out.
TEST_F(Bill, CountsAWindowOfDays) {
  const std::string row = charged("Usage", "BoxUsage:p3.2xlarge", "1", "3.06");
  const std::string bill =
      folder_.add("cur.csv", kColumnsOfAws + row + "2026-11-04T00:00:00Z,2026-11-04" + row.substr(row.find("T01")))
          .string();
  const Outcome day = watch("--bill " + bill + " --bill-from 2026-11-03 --bill-to 2026-11-03");
  EXPECT_THAT(day.out, testing::AllOf(HasSubstr("1 of 2 rows is of something else and left out"),
                                      Not(HasSubstr("taxes and credits"))))
      << day.err;
  EXPECT_THAT(watch("--bill " + bill + " --bill-from 2026-11-03T00:30:00Z --bill-to 2026-11-04").out,
              HasSubstr("1 row is charged for times beyond the window too and counts whole"));
  const Outcome empty = watch("--bill " + bill + " --bill-from 2026-11-05 --bill-to 2026-11-03");
  EXPECT_EQ(empty.code, 2);
  EXPECT_THAT(empty.err, HasSubstr("--bill-to 2026-11-03: expected a time after --bill-from 2026-11-05"));
}

// The plan's own figure is the median of its runs; the items are those of one. The bill's words steer no terminal.
TEST_F(Bill, SaysBothPlannedFiguresWhereTheyDiffer) {
  const std::string bill = folder_
                               .add("cur.csv", kColumnsOfAws + charged("Usage", "BoxUsage:p3.2xlarge", "1", "3.06") +
                                                   charged("Usage", "BoxUsage:\x1b[31mred", "1", "9"))
                               .string();
  const std::string same = watch("--bill " + bill).out;
  EXPECT_THAT(same, AllOf(Not(HasSubstr("in one run with the plan's seed")), Not(HasSubstr("\x1b")),
                          HasSubstr("\\u001b[31mred")));
  Json plan = Json::parse(content_of(plan_));
  plan["chosen"]["usd"]["median"] = plan["chosen"]["usd"]["interval"][1];
  folder_.add("plan.json", plan.dump());
  const Json paid = Json::parse(watch("--bill " + bill + " --format json").out);
  EXPECT_EQ(paid["plan_usd"], plan["chosen"]["usd"]["interval"][1]);
  EXPECT_THAT(watch("--bill " + bill).out,
              AllOf(HasSubstr("in one run with the plan's seed"), HasSubstr("The plan itself says ")));
}

// A plan that rents without a commitment pays for none, and hours that one covers have their part of it.
TEST_F(Bill, CountsACommitmentOnce) {
  const std::string columns = kColumnsOfAws.substr(0, kColumnsOfAws.size() - 1) + ",reservation/EffectiveCost\n";
  const auto row = [](const std::string& type, const std::string& usd, const std::string& effective) {
    const std::string text = charged(type, "BoxUsage:p3.2xlarge", "1", usd);
    return text.substr(0, text.size() - 1) + "," + effective + "\n";
  };
  const std::string reserved =
      folder_.add("cur.csv", columns + row("DiscountedUsage", "0", "2") + row("RIFee", "2.5", "")).string();
  EXPECT_THAT(watch("--bill " + reserved).out,
              AllOf(HasSubstr("its part of commitments the use costs 2.00 USD"), HasSubstr("makes no commitment")));
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
  const std::string spelt =
      folder_.add("spelt.csv", kColumnsOfAws + charged("Usage", "BoxUsage:P3 2xlarge", "1", "1")).string();
  EXPECT_THAT(watch("--bill " + spelt).out, AllOf(Not(HasSubstr("no row names")), HasSubstr("1 h in place of ")));
  const std::string absurd =
      folder_.add("absurd.csv", kColumnsOfAws + charged("Usage", "BoxUsage:p3.2xlarge", "1e300", "1")).string();
  EXPECT_EQ(watch("--bill " + absurd).code, 2);
  EXPECT_THAT(watch("--bill " + absurd).err, HasSubstr("absurd.csv: line 2: lineItem/UsageAmount: found 1e+300"));
}

}  // namespace
}  // namespace ganymede::cli
