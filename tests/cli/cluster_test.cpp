// `ganymede simulate` of a cluster as a user runs it: table, CSV, JSON, report, timeline, and exit codes.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "common/json_value.hpp"
#include "run_program.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;
/// The example of a cluster, written to a file.
class ClusterExample : public testing::Test {
 protected:
  Scratch scratch;
  std::string file = scratch.write("cluster.json", run_program("example cluster").out);

  std::string result() const {
    const Outcome outcome = run_program("simulate " + file + " --format json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return scratch.write("result.json", outcome.out);
  }
};

TEST_F(ClusterExample, PrintsARowForEachJobAndTheBillByOwner) {
  const Outcome table = run_program("simulate " + file);
  EXPECT_EQ(table.code, 0) << table.err;
  for (const char* words : {"5 jobs on 16 GPUs", "scheduler kueue", "elastic", "(nobody)", "Jain's fairness"})
    EXPECT_THAT(table.out, HasSubstr(words));
  const Outcome csv = run_program("simulate " + file + " --format csv");
  EXPECT_THAT(csv.out, testing::StartsWith("job,owner,workload,gpus,arrival_s"));
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 6);
  EXPECT_EQ(run_program("export csv " + result()).out, csv.out);
}

TEST_F(ClusterExample, TakesEachListedSchedulerAndPlacement) {
  for (const char* topic : {"schedulers", "placements"})
    for (const Json& row : Json::parse(run_program(std::string("list ") + topic + " --format json").out)) {
      const auto name = row["name"].get<std::string>();
      if (name == "external") continue;
      const std::string member = topic == std::string("schedulers") ? "scheduler/name" : "placement";
      const Outcome outcome = run_program("simulate " + file + " --format json --set /" + member + "=" + name);
      const Json result = Json::parse(outcome.out);
      EXPECT_EQ(outcome.code, result["summary"]["missed_deadlines"] == 0 ? 0 : 4) << name << ": " << outcome.err;
      EXPECT_EQ(result["jobs"].size(), 5U) << name;
    }
}

TEST_F(ClusterExample, HasAReportAndATimeline) {
  const std::string json = result();
  const Outcome page = run_program("report " + json);
  EXPECT_EQ(page.code, 0) << page.err;
  EXPECT_THAT(page.out, HasSubstr("What ran when"));
  EXPECT_THAT(page.out, HasSubstr("<title>urgent: 8 GPUs of"));
  const Outcome trace = run_program("export perfetto " + json);
  ASSERT_EQ(trace.code, 0) << trace.err;
  std::set<std::string> names;
  const Json events = Json::parse(trace.out);
  for (const Json& event : events["traceEvents"])
    if (event["ph"] == "X") names.insert(event["name"].get<std::string>());
  for (const char* job : {"baseline", "wide", "elastic", "urgent", "evaluation"})
    EXPECT_TRUE(names.contains(job)) << job;
}

TEST_F(ClusterExample, SaysWhatCannotBe) {
  const Outcome large = run_program("simulate " + file + " --set /jobs/0/gpus=17");
  EXPECT_EQ(large.code, 3);
  EXPECT_THAT(large.err, HasSubstr("asks for 17 GPUs; the largest pool has 16"));
  const Outcome circle = run_program("simulate " + file + " --set '/jobs/3/after=[\"evaluation\"]'");
  EXPECT_EQ(circle.code, 2);
  EXPECT_THAT(circle.err, HasSubstr("in a circle"));
  const Outcome order = run_program("simulate " + file + " --set /jobs/1/arrival=2h");
  EXPECT_EQ(order.code, 2);
  EXPECT_THAT(order.err, HasSubstr("in the order of their arrival"));
  const std::string idle = scratch.write("idle.sh", "sed -u 's/.*/{\"run\": []}/'");
  const Outcome starved =
      run_program("simulate " + file + " --set /scheduler/name=external --set '/scheduler/command=sh " + idle + "'");
  EXPECT_EQ(starved.code, 3) << starved.err;
  EXPECT_THAT(starved.err, HasSubstr("starves the job baseline for ever"));
}

// Text of a file that somebody else wrote does not reach the terminal as controls, in results and in errors.
TEST_F(ClusterExample, ShowsControlsOfNamesAsText) {
  const std::string name = "\"\\u001b[2Jgone\\u009b1m\\u202e\\nline\"";
  const Outcome table = run_program("simulate " + file + " --set '/jobs/0/name=" + name + "'");
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("\\u001b[2Jgone\\u009b1m\\u202e\\u000aline"));
  const Outcome error = run_program("simulate " + file + " --set '/jobs/0/name=" + name + "' --set /jobs/0/gpus=17");
  EXPECT_EQ(error.code, 3);
  EXPECT_THAT(error.err, testing::AllOf(HasSubstr("\\u001b[2Jgone"), testing::Not(HasSubstr("\033"))));
}

TEST_F(ClusterExample, EndsWith4IfAJobMissesItsDeadline) {
  const Outcome late = run_program("simulate " + file + " --format json --set /jobs/3/deadline=1s");
  EXPECT_EQ(late.code, 4);
  const Json result = Json::parse(late.out);
  EXPECT_EQ(result["summary"]["missed_deadlines"], 1);
  EXPECT_EQ(result["jobs"][3]["in_time"], false);
}

TEST_F(ClusterExample, TakesPrioritiesOfSlurm) {
  const Outcome outcome = run_program("simulate " + file + " --format json --set /jobs/3/priority=4294967295");
  EXPECT_EQ(Json::parse(outcome.out)["jobs"][3]["priority"], 4294967295);
  EXPECT_EQ(run_program("simulate " + file + " --set /jobs/3/priority=4294967296").code, 2);
}

TEST_F(ClusterExample, RefusesTwoJobsOfOneName) {
  const Outcome outcome = run_program("simulate " + file + " --set /jobs/2/name=wide");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("/jobs/2: the job is called \"wide\", as /jobs/1 is"));
}

TEST_F(ClusterExample, MessageFidelityIsAFlag) {
  NOT_SANITIZED("simulates every message, which tests of sim/cluster do of fewer jobs");
  const std::string few = "simulate " + file + " --set /workloads/dcgan/workload/steps=50 --set /jobs/3/steps=50";
  const Outcome messages = run_program(few + " --fidelity message");
  EXPECT_EQ(messages.code, 0) << messages.err;
  EXPECT_THAT(messages.out, HasSubstr("every step and message on SimGrid: "));
  EXPECT_THAT(run_program(few + " --fidelity sampled").out, testing::Not(HasSubstr("SimGrid")));
  const Outcome many = run_program("simulate " + file + " --fidelity message");
  EXPECT_EQ(many.code, 3);
  EXPECT_THAT(many.err,
              HasSubstr("/fidelity/mode: with the 200000 steps of the job wide: more than 50,000,000 messages"));
}

// Bills count in nanoseconds, so that no job and no cluster may last for centuries.
TEST_F(ClusterExample, RefusesTracesOfCenturies) {
  const auto of = [&](const std::string& rows) {
    const std::string trace = scratch.write("long.csv", "arrival_s,gpus,duration_s\n" + rows);
    return run_program("simulate " + file + " --set '/jobs={\"trace\":\"" + trace + "\"}'");
  };
  const Outcome row = of("0,2,100\n10000000000,2,100\n");
  EXPECT_EQ(row.code, 2);
  EXPECT_THAT(row.err, HasSubstr("long.csv: line 3: arrival_s"));
  const Outcome sum = of("0,16,1e9\n1,16,1e9\n2,16,1e9\n3,16,1e9\n4,16,1e9\n");
  EXPECT_EQ(sum.code, 3);
  EXPECT_THAT(sum.err, HasSubstr("126 years"));
}

// A decision of gavel costs with each job that waits, so that 40,000 at once would take hours, which is said at once.
TEST_F(ClusterExample, JobsThatWouldTakeHoursAreRefusedBefore) {
  const auto jobs = [&](int count) {
    std::string trace = "job,arrival_s,gpus,duration_s,owner,priority\n";
    for (int i = 0; i < count; ++i) trace += "j" + std::to_string(i) + ",0,1," + std::to_string(100 + i % 97) + ",,\n";
    return "simulate " + file + " --set '/jobs={\"trace\":\"" + scratch.write("jobs.csv", trace) +
           "\"}' --set /scheduler/name=gavel";
  };
  const Outcome outcome = run_program(jobs(40'000));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("/jobs: of so many jobs at a time: more than 50,000,000 events"));
  const std::string few = jobs(100);
  EXPECT_EQ(run_program(few + " --max-work 900").code, 3) << "also where only the loop finds it";
  EXPECT_EQ(run_program(few).code, 0);
}

// One job of a year among thousands of half a minute: never more than a few are there at a time.
TEST_F(ClusterExample, ALongJobIsNotTakenForThousands) {
  std::string trace = "job,arrival_s,gpus,duration_s,owner,priority\nlong,0,1,3e7,,\n";
  for (int i = 1; i <= 8000; ++i) trace += fmt::format("j{},{},1,30,,\n", i, 60 * i);
  const Outcome outcome = run_program("simulate " + file + " --set '/jobs={\"trace\":\"" +
                                      scratch.write("jobs.csv", trace) + "\"}' --set /scheduler/name=gavel");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(ImportJobs, RefusesImpossibleCountsAndKeepsQuotes) {
  const Scratch scratch;
  const auto import = [&](const std::string& user, const std::string& gpus) {
    return run_program("import jobs " +
                       scratch.write("sacct.txt", "JobID|User|Submit|ElapsedRaw|AllocTRES\n1|" + user +
                                                      "|2026-11-03T08:00:00|600|gres/gpu=" + gpus + "\n") +
                       " -o " + (scratch / "jobs.csv").string());
  };
  const Outcome many = import("ann", "4294967298");
  EXPECT_EQ(many.code, 2);
  EXPECT_THAT(many.err, HasSubstr("line 2: AllocTRES: found 4294967298 GPUs, expected at most 65536"));
  EXPECT_EQ(import("b\"o", "4").code, 0);
  EXPECT_THAT(content_of((scratch / "jobs.csv").string()), HasSubstr("\"b\"\"o\""));
}

TEST(ImportJobs, SaysWhatItDoesNotRead) {
  const Scratch scratch;
  const std::string sacct = scratch.write("sacct.txt",
                                          "JobID|JobName|Submit|ElapsedRaw|AllocTRES|State\n"
                                          "1|a|2026-11-03T08:00:00|600|gres/gpu=4|COMPLETED\n"
                                          "1|a|2026-11-03T08:20:00|600|gres/gpu=4|COMPLETED\n");
  const Outcome import = run_program("import jobs " + sacct);
  EXPECT_EQ(import.code, 0) << import.err;
  EXPECT_THAT(import.err, testing::AllOf(HasSubstr("columns that are not read: JobName, State"),
                                         HasSubstr("1 job has the number of an earlier one")));
  EXPECT_THAT(import.out, HasSubstr("\n1.2,1200,4"));
  const Outcome part = run_program("import jobs " + sacct + " --virtual-cluster a");
  EXPECT_EQ(part.code, 2);
  EXPECT_THAT(part.err, HasSubstr("--virtual-cluster a: "));
  for (const char* empty : {"import jobs x.csv --virtual-cluster ''", "sweep x.json --shard ''",
                            "example platform --like ''", "import simgrid x.xml --zone ''"}) {
    const Outcome outcome = run_program(empty);
    EXPECT_EQ(outcome.code, 2) << empty;
    EXPECT_THAT(outcome.err, HasSubstr("found nothing, expected a value")) << empty;
  }
}

TEST(ImportJobs, MakesATraceThatAClusterTakes) {
  const Scratch scratch;
  const std::string sacct = scratch.write("sacct.txt",
                                          "JobID|User|Submit|ElapsedRaw|AllocTRES\n"
                                          "1|ann|2026-11-03T08:00:00|600|gres/gpu=4\n"
                                          "2|bob|2026-11-03T08:05:00|300|gres/gpu=16\n");
  const std::string jobs = (scratch / "jobs.csv").string();
  const Outcome import = run_program("import jobs " + sacct + " -o " + jobs);
  ASSERT_EQ(import.code, 0) << import.err;
  const std::string file = scratch.write("cluster.json", run_program("example cluster").out);
  const Outcome run = run_program("simulate " + file + " --format json --set '/jobs={\"trace\":\"" + jobs + "\"}'");
  ASSERT_EQ(run.code, 0) << run.err;
  const Json result = Json::parse(run.out);
  EXPECT_EQ(result["jobs"][1]["wait_s"], 300);
  EXPECT_EQ(result["jobs"][1]["owner"], "bob");
}

}  // namespace
}  // namespace ganymede::cli
