// Runs and sweeps as a user starts them: goals, policies that are programs of the user's, and interrupted sweeps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "run_program.hpp"
#include "studies/run_study.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
const std::string kSource = GANYMEDE_SOURCE_DIR;

class Runs : public testing::Test {
 protected:
  std::string scenario(const Json& changes = Json::object()) const {
    Json content = Json::parse(R"({ "schema": "ganymede.scenario/1",
      "workload": { "batch_per_gpu": 64, "steps": 3000000 },
      "platform": { "catalog": "aws", "region": "us-east-1", "instance": "p3.2xlarge", "nodes": 2, "max_nodes": 4 },
      "synchronization": { "scheme": "ring" }, "seed": 1 })");
    content["workload"]["trace"] = kSource + "/traces/recorded/mlp-gan-cpu.json";
    content.merge_patch(changes);
    return scratch_.write("scenario.json", content.dump());
  }
  /// The limit is more than a busy machine makes an answer wait.
  Outcome with_policy(const std::string& program, const char* limit = "60s") const {
    const std::string file = scratch_.write("policy.py", program);
    return run_program(
        "simulate " +
        scenario({{"policy", {{"name", "external"}, {"command", {"python3", "policy.py"}}, {"limit", limit}}}}) +
        " --format json");
  }
  Scratch scratch_;
};

TEST_F(Runs, AMissedGoalIsExitCode4AfterTheResult) {
  const Outcome missed = run_program("simulate " + scenario({{"deadline", "10min"}}));
  EXPECT_EQ(missed.code, 4);
  EXPECT_THAT(missed.out, AllOf(HasSubstr("deadline 0:10:00"), HasSubstr("MISSED")));
  EXPECT_EQ(run_program("simulate " + scenario({{"deadline", "100h"}, {"budget", "900USD"}})).code, 0);
}

TEST_F(Runs, OnSpotTwentySeedsComeFirst) {
  const std::string file = scenario({{"platform", {{"market", "spot"}, {"nodes", 1}}},
                                     {"storage", {{"checkpoint", "s3"}}},
                                     {"checkpoint", {{"every", "10min"}}},
                                     {"deadline", "100h"}});
  const Outcome text = run_program("simulate " + file);
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("time, 20 seeds"), HasSubstr("time, seed 1"), HasSubstr("of 20 seeds meet the goals")));
  const Json many = Json::parse(run_program("simulate " + file + " --format json").out);
  EXPECT_EQ(many["seeds"]["count"], 20);
  const Json one = Json::parse(run_program("simulate " + file + " --seeds 1 --format json").out);
  EXPECT_FALSE(one.contains("seeds"));
  EXPECT_EQ(one["time"], many["time"]);
  EXPECT_EQ(one["cost"], many["cost"]);
  EXPECT_EQ(run_program("simulate " + file + " --seeds 0").code, 2);
  // No random event affects a run on demand, so it has no seeds.
  EXPECT_FALSE(Json::parse(run_program("simulate " + scenario() + " --format json").out).contains("seeds"));
}

TEST_F(Runs, GoalsThatCannotBeMeantAreRefused) {
  const Outcome past = run_program("simulate " + scenario({{"deadline", "0s"}}));
  EXPECT_EQ(past.code, 2);
  EXPECT_THAT(past.err, HasSubstr("/deadline: a deadline of 0 is already past"));
  const Outcome poor = run_program("simulate " + scenario({{"budget", "0.01USD"}}));
  EXPECT_EQ(poor.code, 4) << poor.err;  // a goal like others, which the run misses
  EXPECT_THAT(poor.out, HasSubstr("-> MISSED"));
  const Outcome none = run_program("simulate " + scenario({{"budget", "0USD"}}));
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("/budget: expected a budget above 0"));
}

TEST_F(Runs, ARunThatNeverFinishesIsExitCode3) {
  const Outcome outcome = run_program("simulate " + scenario({{"faults", {{"crash", {{"every", "60s"}}}}}}));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("never finishes"));
}

// With thousands of spot nodes each loss costs time, and 30 days of them took hours.
TEST_F(Runs, NodesThatAreNeverThereAtOnceEndIt) {
  const Outcome outcome = run_program(
      "simulate --seeds 1 " +
      scenario({{"platform", {{"nodes", 512}, {"max_nodes", nullptr}, {"market", "spot"}, {"spot", "harsh"}}}}));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("nodes in a row without ever having all that it needs at once"));
}

// A round of 10^6 steps for each worker would be simulated for minutes.
TEST_F(Runs, ARoundThatIsTooLongToSimulateIsRefused) {
  const auto sync = [](int steps) {
    return Json{{"synchronization", {{"mode", "local-sgd"}, {"scheme", "ring"}, {"local_steps", steps}}}};
  };
  const Outcome outcome = run_program("simulate " + scenario(sync(1'000'000)));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("/synchronization/local_steps: found 1000000, expected at most "));
  EXPECT_EQ(run_program("simulate " + scenario(sync(100))).code, 0);
}

TEST_F(Runs, ABadRecordingIsLocated) {
  const auto reject = [&](const char* rows, const char* what) {
    scratch_.write("capacity.csv", rows);
    const Outcome outcome = run_program("simulate " + scenario({{"platform", {{"capacity", "capacity.csv"}}}}));
    EXPECT_EQ(outcome.code, 2) << rows;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("/platform/capacity: "), HasSubstr("capacity.csv:"), HasSubstr(what)))
        << rows;
  };
  reject("time_s,nodes\n0,2\n100,1\n50,2\n", "capacity.csv:4: the time 50 s does not come after 100 s");
  reject("time_s,nodes\n0,2\n100,\n", "a gap in the recording");
  reject("time_s,nodes\n0,2\n,2\n", "a gap in the recording");
  reject("time_s,nodes\n0,-2\n", "found \"-2\"");
  reject("time_s,nodes\n0,two\n", "found \"two\"");
  reject("time_s,nodes\n0,2,3\n", "expected two columns");
  reject("0,2\n", "expected a header");
  reject("time_s,nodes\n", "no rows");
}

// The program that `example policy` prints decides on a run.
TEST_F(Runs, TheExamplePolicyDecides) {
  const Outcome example = run_program("example policy");
  ASSERT_EQ(example.code, 0);
  const Outcome outcome = with_policy(example.out);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json run = Json::parse(outcome.out);
  EXPECT_EQ(run["run"]["policy"], "external");
  EXPECT_EQ(with_policy(example.out).out, outcome.out);  // the same bytes again
  // The command may also be one line of text instead of a list.
  const Outcome line =
      run_program("simulate " + scenario({{"policy", {{"name", "external"}, {"command", "python3 policy.py"}}}}) +
                  " --format json");
  ASSERT_EQ(line.code, 0) << line.err;
  EXPECT_EQ(Json::parse(line.out)["time"], run["time"]);
  const Outcome lines = run_program(
      "simulate " +
      scenario(
          {{"policy", {{"name", "external"}, {"command", "for policy in policy.py; do exec python3 $policy; done"}}}}) +
      " --format json");
  ASSERT_EQ(lines.code, 0) << lines.err;
  EXPECT_EQ(Json::parse(lines.out)["time"], run["time"]);
  // The example policy rents what the scenario asks for, as `fixed` does.
  const Json fixed = Json::parse(run_program("simulate " + scenario() + " --format json").out);
  EXPECT_EQ(run["time"]["total_s"], fixed["time"]["total_s"]);
}

TEST_F(Runs, AnExternalPolicyGetsWhatItAsksFor) {
  const Outcome outcome = with_policy(R"(import sys, json
for line in sys.stdin:
    seen = json.loads(line)
    name = list(seen["pools"])[0]
    assert "rate_per_s" in seen and "usd_per_hour" in seen["pools"][name]
    print(json.dumps({"nodes": {name: 1 if seen["now_s"] < 600 else 4}}), flush=True)
)");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json run = Json::parse(outcome.out);
  EXPECT_THAT(run["events"].dump(), AllOf(HasSubstr("resized"), HasSubstr("\"at_s\":600.0,\"event\":\"requested\"")));
}

TEST_F(Runs, AnExternalPolicyThatFailsIsAFailedRun) {
  const auto fails = [&](const std::string& program, const char* why, const char* limit = "60s") {
    const Outcome outcome = with_policy(program, limit);
    EXPECT_EQ(outcome.code, 1) << program;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("the external policy python3"), HasSubstr(why))) << program;
    EXPECT_EQ(outcome.out, "") << program;
  };
  fails("import time; time.sleep(60)", "gave no answer within 2 s", "2s");
  fails("raise SystemExit(7)", "ended with exit status 7 before it had answered");
  fails("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "was ended by signal 9");
  const std::string asked = "input()\n";  // what answers before is refused for that
  fails(asked + "print('what?', flush=True)\nimport time; time.sleep(60)", "answered what?, expected one line such as");
  fails(asked + "print('{\"nodes\": {\"p9.huge\": 1}}', flush=True)\nimport time; time.sleep(60)",
        "a pool that exists instead of \"p9.huge\"");
  fails(
      asked + "print('{\"nodes\": {\"p3.2xlarge us-east-1 on-demand\": -1}}', flush=True)\nimport time; time.sleep(60)",
      "a whole number of nodes");
  fails(asked + "print('{\"nodes\": {}, \"cpus\": 2}', flush=True)\nimport time; time.sleep(60)",
        "\"cpus\" as a share above 0");
  fails(asked + "print('x' * 2000000, flush=True)\nimport time; time.sleep(60)", "more than 1 MiB");
  const Outcome many = with_policy(
      asked + "print('{\"nodes\": {\"p3.2xlarge us-east-1 on-demand\": 5}}', flush=True)\nimport time; time.sleep(60)");
  EXPECT_EQ(many.code, 1);
  EXPECT_THAT(many.err, HasSubstr("asks for 5 nodes of \"p3.2xlarge us-east-1 on-demand\", which has at most 4"));
  const Outcome absent =
      run_program("simulate " + scenario({{"policy", {{"name", "external"}, {"command", {"no-such-program"}}}}}));
  EXPECT_EQ(absent.code, 1);
  EXPECT_THAT(absent.err, HasSubstr("could not be started"));
}

TEST_F(Runs, AnExternalPolicyHasTheCommandsBoundOnMemory) {
  NOT_SANITIZED("the sanitizers reserve terabytes");
  const Outcome outcome = with_policy("try:\n  taken = b'x' * (3 << 30)\nexcept MemoryError:\n  raise SystemExit(9)\n");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("ended with exit status 9 before it had answered"));
}

TEST_F(Runs, AnInterruptedSweepGoesOnWhereItWas) {
  const std::string whole = (scratch_ / "whole.json").string();
  const std::string sweep = "sweep " + kSource + "/studies/spot-deadline.json --format json " +
                            "--set '/policies=[\"fixed\",\"spot-first\"]' --set '/seeds={\"first\":1,\"count\":6}' -o ";
  ASSERT_EQ(run_program(sweep + whole + " --jobs 2").code, 0);
  const OrderedJson all = OrderedJson::parse(content_of(whole));
  ASSERT_EQ(all["runs"].size(), 12U);
  // A journal as an interruption leaves it: some results, the last one cut short. One result is marked, so that the
  // test recognises it.
  const std::string again = (scratch_ / "again.json").string();
  OrderedJson marked = all["runs"][3];
  marked["run"]["gpu"] = "kept";
  const std::string cut = all["runs"][5].dump();
  scratch_.write("again.json.partial",
                 all["runs"][0].dump() + "\n" + marked.dump() + "\n" + cut.substr(0, cut.size() / 2));
  const Outcome resumed = run_program(sweep + again + " --jobs 2");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("going on from"));
  OrderedJson result = OrderedJson::parse(content_of(again));
  EXPECT_EQ(result["runs"][3]["run"]["gpu"], "kept");
  result["runs"][3] = all["runs"][3];
  EXPECT_EQ(result["runs"], all["runs"]);
  EXPECT_FALSE(std::filesystem::exists(again + ".partial"));
}

// Rows would be added to a user's own file of the journal's name, or to one that a link leads to; and it would be
// removed.
TEST_F(Runs, AFileThatNoSweepHasWrittenIsNoJournal) {
  const std::string sweep = "sweep " + kSource +
                            "/studies/spot-deadline.json --format json --set '/policies=[\"fixed\"]' " +
                            "--set '/seeds=[1]' -o " + (scratch_ / "out.json").string();
  for (const std::string mine :
       {"my notes\n", "a download that has not ended", "{\"schema\": 1}\n",
        "{\"schema\":\"ganymede.sweep/1\",\"runs\":[\n{\"schema\":\"ganymede.result/1\"}]}\n"}) {
    scratch_.write("out.json.partial", mine);
    const Outcome refused = run_program(sweep);
    EXPECT_EQ(refused.code, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("out.json.partial: found a file that no sweep has written"));
    EXPECT_THAT(refused.err, testing::Not(HasSubstr("going on from")));
    EXPECT_EQ(content_of(scratch_ / "out.json.partial"), mine);
  }
  std::filesystem::remove(scratch_ / "out.json.partial");
  std::filesystem::create_symlink(scratch_.write("precious", ""), scratch_ / "out.json.partial");
  const Outcome refused = run_program(sweep);
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("is no regular file, expected the journal of this sweep"));
  EXPECT_EQ(content_of(scratch_ / "precious"), "");
  std::filesystem::remove(scratch_ / "out.json.partial");
  for (const std::string& lost : {std::string(5000, '\0'), std::string("{\"schema\":\"gan")}) {
    scratch_.write("out.json.partial", lost);
    EXPECT_EQ(run_program(sweep).code, 0);
    EXPECT_FALSE(std::filesystem::exists(scratch_ / "out.json.partial"));
  }
}

TEST_F(Runs, OnlyTheJournalIsRemovedAtTheEnd) {
  const std::filesystem::path journal = scratch_ / "out.json.partial";
  for (const std::string own : {"", "{\"schema\":\"ganymede.result/1\", and so on", "{\"sch"}) {
    scratch_.write("out.json.partial", own);
    studies::remove_journal(journal);
    EXPECT_FALSE(std::filesystem::exists(journal)) << own;
  }
  // More than could be read whole.
  scratch_.write("out.json.partial", "{\"schema\":\"ganymede.result/1\"");
  std::filesystem::resize_file(journal, std::uintmax_t{3} << 30U);
  studies::remove_journal(journal);
  EXPECT_FALSE(std::filesystem::exists(journal));
  const std::string zeros(5, '\0');
  for (const std::string& mine :  // put there while the sweep ran
       {std::string("my notes"), std::string("{\"schema\": 1}"), std::string("x"), zeros + "x",
        zeros + "x\n{\"schema\":\"ganymede.result/1\"", std::string(1 << 16, '\0') + "x"}) {
    scratch_.write("out.json.partial", mine);
    studies::remove_journal(journal);
    EXPECT_EQ(content_of(journal), mine);
  }
}

// The next row would be added to it, so that no sweep could go on from the file.
TEST_F(Runs, ARowOfAJournalThatAFullDiskCutIsCutOff) {
  const std::string whole = (scratch_ / "whole.json").string(), out = (scratch_ / "out.json").string();
  const std::string sweep = "sweep " + kSource + "/studies/spot-deadline.json --format json --jobs 1 " +
                            "--set '/policies=[\"fixed\"]' --set '/seeds=[1,2,3]' -o ";
  ASSERT_EQ(run_program(sweep + whole).code, 0);
  scratch_.write("out.json.partial", "{\"schema");
  const Outcome full = run_program(sweep + out, "sh -c 'ulimit -f 1; exec \"$@\"' sh");
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, HasSubstr("out.json.partial: cannot be written"));
  const Outcome resumed = run_program(sweep + out);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(content_of(out), content_of(whole));
}

// A journal may contain anything; the result of the sweep must have the same bytes.
TEST_F(Runs, RowsOfAJournalThatAreNoWholeResultsAreDroppedAndSaid) {
  using Ordered = OrderedJson;  // as the program writes them
  const std::string whole = (scratch_ / "whole.json").string(), again = (scratch_ / "again.json").string();
  const std::string sweep = "sweep " + kSource + "/studies/spot-deadline.json --format json --jobs 2 " +
                            "--set '/policies=[\"fixed\"]' --set '/seeds=[1,2,3,4,5]' -o ";
  ASSERT_EQ(run_program(sweep + whole).code, 0);
  const Ordered all = Ordered::parse(content_of(whole));
  ASSERT_EQ(all["runs"].size(), 5U);
  Ordered without_time = all["runs"][0], wrong_type = all["runs"][1], without_detail = all["runs"][2];
  without_time.erase("time");
  wrong_type["cost"]["total_usd"] = 1;
  without_detail["time"].erase("step_mean_s");
  scratch_.write("again.json.partial", without_time.dump() + "\n" + wrong_type.dump() + "\n" + without_detail.dump() +
                                           "\n{\"provenance\":{}}\n" + all["runs"][3].dump() + "\n[1]\n" +
                                           std::string(100'000, '[') + "\n\xff\n");
  const Outcome resumed = run_program(sweep + again);
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  for (const char* line : {"line 1", "line 2", "line 3", "line 4", "line 6", "line 7", "line 8"})
    EXPECT_THAT(resumed.err, HasSubstr(line));
  EXPECT_THAT(resumed.err, testing::Not(HasSubstr("line 5")));
  EXPECT_THAT(resumed.err, testing::Not(HasSubstr(": line 1: line 1")));
  EXPECT_THAT(resumed.err, testing::Not(HasSubstr(": line 8: line 1")));
  EXPECT_EQ(content_of(again), content_of(whole));
}

TEST_F(Runs, ASweepListsRunsThatFailAndKeepsTheOthers) {
  scratch_.write("dies.py", "raise SystemExit(7)");
  const std::string policies =
      "[\"fixed\",{\"name\":\"external\",\"command\":[\"python3\",\"" + (scratch_ / "dies.py").string() + "\"]}]";
  const Outcome outcome =
      run_program("sweep " + kSource + "/studies/growing-network.json --format json --set '/policies=" + policies +
                  "' --set '/seeds=[1,2]'");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("2 of 4 runs failed"), HasSubstr("external, seed 1")));
  const Json sweep = Json::parse(outcome.out);
  EXPECT_EQ(sweep["runs"].size(), 2U);
  EXPECT_EQ(sweep["failed"].size(), 2U);
  EXPECT_EQ(sweep["failed"][0]["seed"], 1);
}

TEST_F(Runs, ALearnedTableIsTheSameAgainAndIsUsed) {
  const std::string learn = "learn " + kSource + "/studies/policies/q-scenario.json --episodes 50";
  const Outcome first = run_program(learn);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(run_program(learn).out, first.out);
  const std::string table = scratch_.write("table.json", first.out);
  const Outcome used =
      run_program("simulate " + kSource + "/studies/policies/q-scenario.json --set /policy/name=q-learning" +
                  " --set /policy/table=" + table);
  EXPECT_EQ(used.code, 0) << used.err;
  const Outcome none =
      run_program("simulate " + kSource + "/studies/policies/q-scenario.json --set /policy/name=q-learning");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("/policy: the key \"table\" is missing: a file that `ganymede learn`"));
}

}  // namespace
}  // namespace ganymede::cli
