// The words of `catalog --update` on lists that do not have whole machines, all prices, or their date; and which names
// the catalog takes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/json_value.hpp"
#include "run_program.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// 4 USD for the host and 16 USD for its eight GPUs. Where the list has no price of the GPUs, the catalog keeps its own.
TEST(CatalogUpdate, APartOfAMachineIsNotTheMachine) {
  const Scratch scratch;
  const std::string list = scratch.write("vms.csv",
                                         "InstanceType,AcceleratorName,AcceleratorCount,Region,AvailabilityZone,"
                                         "Price,SpotPrice\n"
                                         "a2-highgpu-8g,,,us-central1,us-central1-a,4,2\n"
                                         "a2-highgpu-8g,,,europe-west4,europe-west4-a,4,2\n"
                                         ",A100,8.0,us-central1,us-central1-a,16,7\n");
  const std::string copy = (scratch / "gcp.json").string();
  const Outcome merged = run_program("catalog --provider gcp --update " + list + " -o " + copy);
  EXPECT_EQ(merged.code, 0) << merged.err;
  EXPECT_THAT(merged.err, AllOf(HasSubstr("passed over, because they are prices of hosts without their GPUs: 1"),
                                HasSubstr("line 3: a2-highgpu-8g in europe-west4-a, without its 8 x A100"),
                                HasSubstr("say with --as-of"), Not(HasSubstr("changed by more than half"))));
  const auto price = [&](const std::string& catalog, const std::string& region) {
    return Json::parse(run_program("catalog --provider " + catalog + " --instance a2-highgpu-8g --market on-demand " +
                                   "--region " + region + " --format json")
                           .out)[0]["usd_per_hour"];
  };
  EXPECT_EQ(price(copy, "us-central1"), "20.00");
  EXPECT_EQ(price(copy, "europe-west4"), price("gcp", "europe-west4"));
}

TEST(CatalogUpdate, SaysWhatChangedMuchAndThatAListGoesOn) {
  const Scratch scratch;
  const auto page = [&](const std::string& name, const std::string& region, const std::string& next) {
    return scratch.write(name, R"({ "Items": [ { "retailPrice": 1, "armRegionName": ")" + region +
                                   R"(", "type": "Consumption", "skuName": "ND96asr A100 v4", "unitOfMeasure": "1 Hour",
                                   "armSkuName": "Standard_ND96asr_v4", "effectiveStartDate": "2021-06-01T00:00:00Z" } ],
                                   "NextPageLink": )" +
                                   next + " }");
  };
  const std::string first = page("1.json", "eastus", R"("https://prices.example/?$skip=1000")"),
                    last = page("2.json", "westus2", "null"), copy = (scratch / "azure.json").string();
  const std::string update = "catalog --provider azure --as-of 2026-11-19 -o " + copy + " --update ";
  const Outcome one = run_program(update + first);
  EXPECT_EQ(one.code, 2);
  EXPECT_THAT(one.err, HasSubstr("the list is not whole: among its pages is not https://prices.example/?$skip=1000"));
  EXPECT_FALSE(std::filesystem::exists(copy));
  const Outcome both = run_program(update + first + "," + last);
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_THAT(both.err,
              AllOf(HasSubstr("2 prices of azure"),
                    HasSubstr("prices that changed by more than half (look at them before a plan rests on them): 2"),
                    HasSubstr("Standard_ND96asr_v4 in eastus on-demand: from 27.197 to 1.00 USD/h")));
  // The day on which it was read, and not that since which the price has held.
  EXPECT_THAT(run_program("catalog --provider " + copy + " --instance Standard_ND96asr_v4 --region eastus --market " +
                          "on-demand --format csv")
                  .out,
              HasSubstr(",1.00,2026-11-19,"));
}

TEST(CatalogNames, ListsAsAPlanTakesThem) {
  const auto rows = [](const std::string& options) {
    const Outcome outcome = run_program("catalog --format json " + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  };
  std::set<std::string> gpus, regions, markets, instances;
  for (const Json& row : rows("--gpu T4,v100 --region us-east-1,us-central1 --market spot,on-demand")) {
    gpus.insert(row["gpu"].get<std::string>());
    regions.insert(row["region"].get<std::string>());
    markets.insert(row["market"].get<std::string>());
  }
  EXPECT_THAT(gpus, testing::IsSupersetOf({"T4", "V100"}));
  EXPECT_THAT(regions, testing::ElementsAre("us-central1", "us-east-1"));
  EXPECT_THAT(markets, testing::ElementsAre("on-demand", "spot"));
  for (const Json& row : rows("--instance p3.2xlarge,g2-standard-4"))
    instances.insert(row["instance"].get<std::string>());
  EXPECT_THAT(instances, testing::ElementsAre("g2-standard-4", "p3.2xlarge"));
  const Outcome wrong = run_program("catalog --gpu A100,H1000");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("--gpu H1000: not in the catalog"), HasSubstr("did you mean \"H100\"?")));
}

// Ages count to the same day wherever they are printed, and to today unless somebody says otherwise.
TEST(PriceAges, CountToTodayEverywhere) {
  const std::string plan =
      "plan --model dcgan-28 --images 1M --catalog aws --instance p4d.24xlarge --region us-east-1 "
      "--market on-demand --seeds 1 --max-price-age 30d ";
  // 2026-07-20 to 2026-11-20.
  const Json today = Json::parse(run_program(plan + "--format json").out);
  EXPECT_EQ(today["request"]["prices_aged_to"], "2026-11-20");
  EXPECT_EQ(today["asked"]["search"]["today"], "2026-11-20");
  EXPECT_EQ(today["chosen"]["price"]["doubt"], "of 2026-07-20, 123 days old");
  const Json offer = Json::parse(run_program("catalog --provider aws --instance p4d.24xlarge --region us-east-1 "
                                             "--market on-demand --format json")
                                     .out)[0];
  EXPECT_EQ(offer["age_days"], 123);
  const Json later = Json::parse(run_program(plan + "--today 2026-11-21 --format json").out);
  EXPECT_EQ(later["chosen"]["price"]["doubt"], "of 2026-07-20, 124 days old");
  // A price that is believed may have risen all the same, by 1.21^sqrt(123 / 45) in 123 days.
  const std::string believed = plan.substr(0, plan.find("--max-price-age"));
  EXPECT_THAT(run_program(believed).out,
              HasSubstr("the price is 123 days old; if it has risen since as far as such prices have in that time, to "
                        "1.37 times as much, the training costs "));
  EXPECT_THAT(run_program(believed + "--today 2026-08-19").out, Not(HasSubstr("the price is")));  // 30 days
  const Outcome no_time = run_program(plan, "env GANYMEDE_NOW=today");
  EXPECT_EQ(no_time.code, 2);
  EXPECT_THAT(no_time.err, HasSubstr("GANYMEDE_NOW: found \"today\", expected a time with its zone"));
}

// IBM bills whole hours: less than one is a budget that nothing keeps to, and no mistake.
TEST(SmallBudgets, EndAsTheExitCodesSay) {
  const Outcome plan = run_program("plan --model dcgan-28 --images 1M --catalog ibm --budget 0.05USD --seeds 1");
  EXPECT_EQ(plan.code, 3);
  EXPECT_THAT(plan.err, HasSubstr("nothing meets the goals; the nearest is ibm"));
  EXPECT_EQ(run_program("plan --model dcgan-28 --images 1M --catalog ibm --budget 0").code, 2);
}

// The lists of all clouds become files, or none does.
TEST(CatalogFromSkypilot, WritesAFileForEachCloud) {
  const Scratch scratch;
  const std::string head =
      "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n";
  const auto list = [&](const std::string& cloud, const std::string& rows) {
    std::filesystem::create_directories(scratch / "sky/v8" / cloud);
    scratch.write("sky/v8/" + cloud + "/vms.csv", head + rows);
  };
  list("nimbus", "big,H100,8,208,1800,16,r,,\n");
  list("cirrus", "small,L4,1,8,32,0.5,r,,0.2\n");
  const std::string from = "catalog --as-of 2026-11-20 --from-skypilot " + (scratch / "sky").string(),
                    folder = (scratch / "clouds").string();
  const Outcome made = run_program(from + " -o " + folder);
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.err, HasSubstr("cirrus: 1 instance type with accelerators, 2 prices of 2026-11-20"));
  const Json offers =
      Json::parse(run_program("catalog --provider " + folder + "/nimbus.json --format json --today 2026-11-21").out);
  EXPECT_EQ(offers[0]["usd_per_hour"], "16.00");
  EXPECT_EQ(offers[0]["age_days"], 1);
  EXPECT_THAT(run_program(from).err, HasSubstr("makes 2 platforms; -o names the folder for them, or --cloud one"));
  EXPECT_THAT(run_program(from + " --cloud nimbus").out, HasSubstr("\"provider\": \"nimbus\""));

  // The file's price is meant where the program's own catalog has the instance too.
  list("lambda", "gpu_1x_a10,A10,1,30,200,9.99,us-east-1,,\n");
  ASSERT_EQ(run_program(from + " --cloud lambda -o " + (scratch / "lambda.json").string()).code, 0);
  const Outcome plan =
      run_program("plan --model dcgan-64 --images 1M --gpu A10 --seeds 1 --market on-demand --catalog lambda," +
                  (scratch / "lambda.json").string() + " --format json");
  ASSERT_EQ(plan.code, 0) << plan.err;
  EXPECT_EQ(Json::parse(plan.out)["chosen"]["usd_per_hour"], "9.99");

  list("stratus", "bad,L4,1,8,32,-1,r,,\n");
  const Outcome refused = run_program(from + " -o " + (scratch / "none").string());
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("stratus/vms.csv: line 2: Price: found \"-1\", expected a number from 0"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "none"));
}

}  // namespace
}  // namespace ganymede::cli
