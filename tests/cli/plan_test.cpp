// Catalog, plan and bill as a user asks for them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "common/json_value.hpp"
#include "report/results.hpp"
#include "run_program.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
TEST(CatalogCommand, ListsPricesWithTheirAge) {
  const Outcome outcome = run_program("catalog --gpu A100 --provider aws,azure --today 2026-11-20");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("p4d.24xlarge"), HasSubstr("A100-80GB-PCIE"), HasSubstr("4 mo"),
                                 HasSubstr("KARP-AWS"), Not(HasSubstr("V100"))));
  const Json rows = Json::parse(run_program("catalog --instance p4d.24xlarge --today 2026-11-20 --format json").out);
  ASSERT_FALSE(rows.empty());
  for (const Json& row : rows) {
    EXPECT_EQ(row["gpu"], "A100-40GB");
    EXPECT_EQ(row["usd_per_hour_number"], std::stod(row["usd_per_hour"].get<std::string>()));
    if (row["as_of"] == "2026-07-20") {
      EXPECT_EQ(row["age_days"], 123);
    }
  }
}

TEST(CatalogCommand, SaysNoPriceAndNeverZero) {
  const Outcome genesis = run_program("catalog --provider genesis");
  EXPECT_THAT(genesis.out, AllOf(HasSubstr("no price"), HasSubstr("retired"), Not(HasSubstr(" 0.00"))));
  const Json rows = Json::parse(run_program("catalog --provider genesis --format json").out);
  EXPECT_EQ(rows.size(), 11U);
  for (const Json& row : rows) EXPECT_TRUE(row["usd_per_hour"].is_null() && row["usd_per_hour_number"].is_null());
}

TEST(CatalogCommand, ChecksAndCountsWhatToLookAt) {
  const Outcome outcome = run_program("catalog --check --today 2026-11-20");
  EXPECT_EQ(outcome.code, 0);
  for (const char* provider : {"aws", "azure", "gcp", "ibm", "genesis", "private"})
    EXPECT_THAT(outcome.out, HasSubstr(provider));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("unconfirmed"), HasSubstr("dates differ"), HasSubstr("old price"),
                                 HasSubstr("deep discount")));
}

// The catalog's CSV can be edited and merged back; the copy is a platform file that scenarios can name.
TEST(CatalogCommand, MergesPricesIntoACopy) {
  const Scratch scratch;
  const std::string list = scratch.write("mine.csv",
                                         "instance,region,market,usd_per_hour,as_of\n"
                                         "p3.2xlarge,us-east-1,on-demand,2.5,2026-11-19\n"
                                         "m9.huge,us-east-1,on-demand,1,2026-11-19\n");
  const std::string copy = (scratch / "aws.json").string();
  const Outcome merged = run_program("catalog --provider aws --today 2026-11-20 --update " + list + " -o " + copy);
  EXPECT_EQ(merged.code, 0) << merged.err;
  EXPECT_THAT(merged.err,
              AllOf(HasSubstr("1 changed, 0 new"), HasSubstr("passed over: 1 instance that"), HasSubstr("m9.huge")));
  const std::string listed = run_program("catalog --provider " + copy +
                                         " --instance p3.2xlarge --market on-demand --region us-east-1 --format csv")
                                 .out;
  EXPECT_THAT(listed, AllOf(HasSubstr(",2.50,2026-11-19,"), HasSubstr("UPDATE: mine.csv")));
  EXPECT_EQ(run_program("plan --model mlp-gan --images 1000000 --catalog " + copy +
                        " --instance p3.2xlarge --region us-east-1 --market on-demand --max-gpus 1")
                .code,
            0);
}

TEST(CatalogCommand, NamesWhatIsWrong) {
  const Scratch scratch;
  const auto refused = [](const std::string& arguments, const char* why) {
    const Outcome outcome = run_program("catalog " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(why)) << arguments;
  };
  refused("--gpu A101", "did you mean");
  refused("--region us-esat-1", "did you mean \"us-east-1\"?");
  refused("--instance p3.3xlarge", "did you mean \"p3.2xlarge\"?");
  refused("--provider asw", "did you mean");
  refused("--market sport", "sport");
  refused("--today 2026-13-01", "expected YYYY-MM-DD");
  refused("--update x.csv", "name the one catalog");
  refused("--update x.csv --provider aws,gcp", "name the one catalog");
  refused("--update missing.csv --provider aws", "missing.csv");
  refused("--update x.csv --provider aws --as-of 2031-01-01 --today 2026-11-20", "in the future");
  const std::string future =
      scratch.write("f.csv", "instance,region,market,usd_per_hour,as_of\np3.2xlarge,us-east-1,spot,1,2030-01-01\n");
  refused("--provider aws --today 2026-11-20 --update " + future, "f.csv: line 2: found the date 2030-01-01");
  refused("--provider aws --exchange EUR --update " + future, "--exchange EUR: expected");
}

const std::string kSearch =
    "plan --model dcgan-64 --images 20000000 --catalog aws,gcp --gpu V100,T4 --region us-east-1,us-central1 --seeds 2 ";
const std::string kPlan = kSearch + "--max-gpus 4 ";

TEST(PlanCommand, FromATargetToABill) {
  const Scratch scratch;
  const std::string file = (scratch / "plan.json").string();
  const Outcome table = run_program(kSearch + "--max-gpus 2 --deadline 20h --budget 50USD --verbose --save " + file);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("\n->  "), HasSubstr("recorded:dcgan-64-cpu, which comes with the program"),
                               HasSubstr("Quota and availability are not known"),
                               HasSubstr("Nothing that meets the goals is both")));
  const Json plan = Json::parse(content_of(file));
  EXPECT_EQ(plan["schema"], "ganymede.plan/1");
  EXPECT_GT(plan["searched"]["candidates"], 50);

  const std::string result = (scratch / "result.json").string();
  EXPECT_EQ(run_program("simulate " + file + " --format json -o " + result).code, 0);
  const Json run = Json::parse(content_of(result));
  EXPECT_EQ(run["run"]["gpus"], plan["chosen"]["gpus"]);

  const Outcome focus = run_program("export focus " + result + " --start 2026-12-01T09:00:00Z");
  EXPECT_EQ(focus.code, 0) << focus.err;
  std::istringstream lines(focus.out);
  std::string head, row;
  std::getline(lines, head);
  EXPECT_THAT(head, AllOf(HasSubstr("BilledCost,"), HasSubstr("ServiceCategory"), HasSubstr("x_IsEstimate")));
  double sum = 0;
  std::size_t rows = 0;
  for (; std::getline(lines, row); ++rows) sum += std::stod(row);
  EXPECT_EQ(rows, run["cost"]["items"].size());
  EXPECT_NEAR(sum, std::stod(run["cost"]["total_usd"].get<std::string>()), 1e-9);
  EXPECT_THAT(run_program("export csv " + file).out, HasSubstr("meets,true"));
}

// The sentence and the cards end the plan; why reads the saved plan and fits both widths.
TEST(WhyCommand, SaysWhatWouldChangeThePlan) {
  NOT_SANITIZED("repeats whole plans, which other tests make once");
  const Scratch scratch;
  const std::string file = (scratch / "plan.json").string();
  const Outcome table = run_program(kPlan + "--market on-demand --deadline 20h --budget 50USD --save " + file);
  EXPECT_EQ(table.code, 0) << table.err;
  const std::size_t cards = table.out.find("\n  cheapest"), answer = table.out.find("\nRent ");
  ASSERT_NE(answer, std::string::npos) << table.out;
  EXPECT_LT(cards, table.out.find("The best of each provider and market"));
  EXPECT_LT(std::count(table.out.begin(), table.out.end(), '\n'), 40) << "it fits a screen";
  EXPECT_EQ(table.out.find('\n', answer + 1), table.out.size() - 1) << "the sentence is the last line";
  EXPECT_THAT(table.out.substr(answer), HasSubstr("The probability to keep to 20 h and 50 USD is "));
  EXPECT_THAT(table.out, AllOf(HasSubstr("cheapest"), HasSubstr("safest"), Not(HasSubstr("(*)"))));

  const Outcome why = run_program("why " + file);
  EXPECT_EQ(why.code, 0) << why.err;
  EXPECT_THAT(why.out, AllOf(HasSubstr("  price there    above "), HasSubstr("  all regions    "),
                             HasSubstr("  step time      "), HasSubstr("interruptions  nobody takes these nodes back"),
                             HasSubstr("  boot           ")));
  const std::string text = run_program("why " + file + " --format json --jobs 1").out;
  EXPECT_EQ(run_program("why " + file + " --format json --jobs 2").out, text);
  const Json document = Json::parse(text);
  EXPECT_EQ(document["schema"], "ganymede.why/1");
  ASSERT_EQ(document["hangs_on"].size(), 5U);
  EXPECT_GT(document["hangs_on"][0]["threshold"], document["hangs_on"][0]["now"]);
}

TEST(WhyCommand, NamesWhatIsWrong) {
  const Scratch scratch;
  const auto refused = [](const std::string& file, const char* why) {
    const Outcome outcome = run_program("why " + file);
    EXPECT_EQ(outcome.code, 2) << file;
    EXPECT_THAT(outcome.err, HasSubstr(why)) << file;
  };
  refused("", "plan is required");
  refused("nowhere.json", "nowhere.json");
  refused(scratch.write("half.json", "{ \"schema\": "), "half.json");
  refused(scratch.write("scenario.json", run_program("example scenario").out), "/schema");
  refused(scratch.write("old.json", R"({ "schema": "ganymede.plan/1", "chosen": null })"), "\"asked\" is missing");
}

// AWS and Azure sell eight A100 at a time in most types; a plan also offers half of such an instance, and marks it.
TEST(PlanCommand, OffersAPartOfAnInstance) {
  const Outcome outcome = run_program(
      "plan --model dcgan-64 --images 2000000 --batch 128 --catalog aws --gpu A100 --min-gpus 4 --max-gpus 4 --seeds 2 "
      "--scheme ring --region us-east-1 --market on-demand --verbose");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("CHOSEN: aws us-east-1, 1 x p4d.24xlarge, 4 GPUs of each"),
                                 HasSubstr("price 21.9576 USD/h a node, of 2026-07-20, "),
                                 HasSubstr(" days old, source KARP-AWS"), Not(HasSubstr("price is doubtful"))));
  const Outcome old = run_program(
      "plan --model dcgan-64 --images 2000000 --batch 128 --catalog aws --gpu A100 --min-gpus 4 --max-gpus 4 --seeds 2 "
      "--scheme ring --region us-east-1 --market on-demand --today 2026-09-01 --max-price-age 30d --verbose");
  EXPECT_THAT(old.out, HasSubstr("this price is doubtful (of 2026-07-20, 43 days old)"));
}

TEST(PlanCommand, FlagsAndAFileSayTheSame) {
  NOT_SANITIZED("repeats whole plans, which other tests make once");
  const Scratch scratch;
  const std::string file = scratch.write("request.json", R"({ "schema": "ganymede.request/1",
    "workload": { "model": "dcgan-64", "images": 20000000 }, "deadline": "20h", "budget": "500USD",
    "search": { "catalogs": ["aws", "gcp"], "gpus": ["V100", "T4"], "regions": ["us-east-1", "us-central1"],
                "max_gpus": 4, "seeds": 2 } })");
  EXPECT_EQ(run_program("plan " + file + " --budget 50USD --format json --jobs 1").out,
            run_program(kPlan + "--deadline 20h --budget 50USD --format json").out);
}

TEST(PlanCommand, NothingThatFitsIsExitCode3AndNamesTheNearest) {
  const Outcome outcome = run_program(kPlan + "--deadline 2min --format json");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("nothing meets the goals; the nearest is"), HasSubstr("needs at least")));
  const Json plan = Json::parse(outcome.out);
  EXPECT_TRUE(plan["chosen"].is_null());
  EXPECT_FALSE(plan["near_misses"].empty());
  // A budget below the price of one hour is valid here, because runs may be shorter.
  EXPECT_EQ(run_program(kPlan + "--budget 0.01USD").code, 3);
}

TEST(PlanCommand, SaysItsEffort) {
  const std::string request =
      "plan --model dcgan-64 --images 5M --gpu V100 --max-gpus 1 --region us-east-1 --market on-demand --format json ";
  const auto effort_of = [&](const char* flags) { return Json::parse(run_program(request + flags).out)["effort"]; };
  EXPECT_EQ(effort_of(""), "normal");
  EXPECT_EQ(effort_of("--effort quick"), "quick");
  EXPECT_EQ(effort_of("--exhaustive"), "exhaustive");
  EXPECT_EQ(run_program(request + "--effort exhaustive").out, run_program(request + "--exhaustive").out);
}

TEST(PlanCommand, TheExampleIsARequest) {
  const Scratch scratch;
  const std::string file = scratch.write("request.json", run_program("example request").out);
  const Outcome outcome = run_program("plan " + file + " --catalog gcp --gpu T4 --max-gpus 2 --format csv");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("n1-standard-8+1xT4"));
}

TEST(PlanCommand, NamesWhatIsWrong) {
  const auto refused = [](const std::string& arguments, const char* why) {
    const Outcome outcome = run_program("plan " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(why)) << arguments;
  };
  refused("", "plan needs a request file, or --model");
  refused("--model dcgan-64", "expected exactly one of \"images\", \"epochs\" and \"quality\"");
  refused("--model dcgan-64 --images 0", "--images");
  refused("--model dcgan-64 --images 5 --deadline yesterday", "--deadline");
  refused("--model dcgan-64 --images 5 --deadline 2026-01-01T00:00:00Z --start 2026-02-01T00:00:00Z", "is not after");
  refused("--model dcgan-64 --images 5 --gpu H1000", "did you mean \"H100\"?");
  refused("--model dcgan-64 --images 5 --scheme rng", "--scheme");
  refused("--model dcgan-64 --images 5 --effort fast", "--effort");
  refused("--model dcgan-64 --images 5 --effort quick --shard 0/2 -o shards", "--effort quick: found with --shard");
  refused("--model dcgan-64 --images 5 --saves hourly", "--saves: found hourly, expected on-notice, never, or every:");
  refused("--model dcgan-64 --images 5 --saves every:", "--saves");
  refused("--model dcgan-64 --images 5 --saves every:soon", "/checkpoint/every");
  refused("--model dcgan-64 --images 5 --saves never --checkpoint 1h", "--saves never: found with --checkpoint");
  const Scratch own;
  refused(own.write("own.json", R"({ "schema": "ganymede.request/1", "checkpoint": { "every": "1h" },
                                     "workload": { "model": "dcgan-64", "images": 5 } })") +
              " --checkpoint 10min",
          "own.json: /checkpoint/every says already");
  refused("--trace recorded:dcgan --images 5", "no trace \"dcgan\" comes with the program");
  refused("--model dcgan-64 --images 5 --set /serch/gpus=[]", "serch");
}

TEST(ExportCommand, NamesWhatIsWrong) {
  const Scratch scratch;
  const auto refused = [](const std::string& arguments, const char* why) {
    const Outcome outcome = run_program("export " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(why)) << arguments;
  };
  refused("focus missing.json", "missing.json");
  refused("fokus x.json", "fokus");
  refused("focus " + scratch.write("a.json", R"({ "schema": "ganymede.scenario/1" })"), "/schema");
  refused("focus " + scratch.write("b.json", R"({ "schema": "ganymede.result/1" })"), "is not whole");
  refused("focus " + scratch.write("c.json", report::a_plan().dump()), "a plan has no bill");
  refused("focus " + scratch.write("d.json", R"({ "schema": "ganymede.result/1" })") + " --start now",
          "--start now: expected a time");
}

}  // namespace
}  // namespace ganymede::cli
