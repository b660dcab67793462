// Jobs from files: this program's columns, Gavel's, Slurm's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "sim/cluster/cluster.hpp"
#include "sim/cluster/import_jobs.hpp"
#include "support/errors.hpp"
#include "support/made_up.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::sim {
namespace {

using testing::HasSubstr;

Cluster with_trace(const std::string& csv, const std::string& virtual_cluster = "") {
  const TemporaryFolder folder;
  folder.add("jobs.csv", csv);
  Json platform = Json::parse(made_up_platform());
  platform["gpus"]["GPU-X"]["family"] = "V100";
  Json jobs = {{"trace", "jobs.csv"}};
  if (!virtual_cluster.empty()) jobs["virtual_cluster"] = virtual_cluster;
  return read_cluster(JsonNode::wrap({{"schema", "ganymede.cluster/1"},
                                      {"platform", {{"catalog", platform}, {"instance", "four"}, {"nodes", 2}}},
                                      {"jobs", jobs},
                                      {"seed", 1U}},
                                     "cluster.json", folder.path()));
}

constexpr const char* kGavel =
    "virtual_cluster,arrival_s,gpus,model,batch_per_gpu,total_steps\n"
    "0e4a51,0,1,Transformer,128,95121\n"
    "other,1,1,A3C,,5\n"
    "0e4a51,6,1,Recommendation,8192,10000\n";

constexpr const char* kSlurm =
    "JobID|User|Submit|Elapsed|AllocTRES|Priority|State\n"
    "7|ann|2026-11-03T08:15:10|1-00:00:01|billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4|120|COMPLETED\n"
    "7.batch||2026-11-03T08:15:10|1-00:00:01|cpu=8|| COMPLETED\n"
    "6|bob|2026-11-03T08:15:00|00:10:00|gres/gpu:v100=2,gres/gpu:a100=1|100|TIMEOUT\n"
    "8|bob|2026-11-03T09:00:00|00:00:00||90|CANCELLED\n";

TEST(JobTrace, ReadsGavelsColumnsAsTheyAre) {
  const Cluster all = with_trace(kGavel);
  EXPECT_EQ(all.jobs.size(), 3U);
  const Cluster one = with_trace(kGavel, "0e4a51");
  ASSERT_EQ(one.jobs.size(), 2U);
  EXPECT_EQ(one.workloads[one.jobs[1].workload].model, "Recommendation");
  EXPECT_EQ(one.jobs[1].steps, 10000);
  EXPECT_EQ(one.owners[one.jobs[0].owner].name, "0e4a51");
}

TEST(JobTrace, IsPartOfTheHash) {
  const std::string head = "arrival_s,gpus,model,batch_per_gpu,total_steps,owner,priority\n";
  const std::string hash = with_trace(head + "0,1,LM,10,9,ann,0\n").hash;
  EXPECT_EQ(with_trace(head + "0,1,LM,10,9,ann,0\n").hash, hash);
  for (const char* row : {"0,1,LM,20,9,ann,0\n", "0,1,LM,10,9,bob,0\n", "0,1,LM,10,9,ann,1\n"})
    EXPECT_NE(with_trace(head + row).hash, hash) << row;
}

TEST(JobTrace, SaysInWhichLineAJobIsWrong) {
  const std::string head = "arrival_s,gpus,duration_s\n";
  EXPECT_THAT(message_of<ConfigError>([&] { with_trace(head + "5,1,10\n4,1,10\n"); }),
              HasSubstr("line 3: arrival_s: found 4 after 5"));
  EXPECT_THAT(message_of<ConfigError>([&] { with_trace(head + "5,0,10\n"); }), HasSubstr("line 2: gpus: found \"0\""));
  EXPECT_THAT(message_of<ConfigError>([&] { with_trace(head + "5,1.5,10\n"); }), HasSubstr("expected a whole number"));
  EXPECT_THAT(message_of<ConfigError>([&] { with_trace(head + "5,1,\n"); }), HasSubstr("states no \"workload\""));
  EXPECT_THAT(message_of<ConfigError>([&] { with_trace(head); }), HasSubstr("has no jobs"));
  EXPECT_THAT(message_of<ConfigError>([&] { with_trace(kGavel, "nowhere"); }),
              HasSubstr("no jobs of the virtual cluster nowhere"));
  EXPECT_THAT(message_of<ConfigError>([&] { with_trace("arrival_s,gpus,model,batch_per_gpu,steps\n0,1,GPT,1,5\n"); }),
              HasSubstr("line 2: model: found \"GPT\""));
}

TEST(JobTrace, NamesColumnsThatItDoesNotRead) {
  const Cluster cluster = with_trace("arrival_s,gpus,duration_s,state,partition\n5,1,10,done,a\n");
  ASSERT_EQ(cluster.warnings.size(), 1U);
  EXPECT_THAT(cluster.warnings[0], HasSubstr("columns that are not read: state, partition"));
  EXPECT_THAT(message_of<ConfigError>([&] { with_trace("arrival_s,gpus,duration_s,prioritty\n5,1,10,1\n"); }),
              HasSubstr("has a column \"prioritty\"; did you mean \"priority\"?"));
  EXPECT_THAT(message_of<ConfigError>([&] { with_trace("job,arrival_s,gpus,duration_s\na,5,1,10\na,6,1,9\n"); }),
              HasSubstr("line 3: job: found \"a\", which is the name of the job in line 2 too"));
}

TEST(ImportJobs, TakesSlurmsAccounting) {
  const ImportedJobs jobs = import_jobs(kSlurm, "sacct.txt", "");
  EXPECT_EQ(jobs.csv,
            "job,arrival_s,gpus,duration_s,owner,priority\n"
            "6,0,3,600,bob,100\n"
            "7,10,4,86401,ann,120\n");
  EXPECT_THAT(jobs.remarks.at(0), HasSubstr("2 jobs; left out: 1 without GPUs, 0 that never ran"));
  EXPECT_EQ(with_trace(jobs.csv).jobs[1].duration_s, 86401);
}

TEST(ImportJobs, TakesGavelsTraces) {
  const ImportedJobs jobs = import_jobs(kGavel, "gavel.csv", "0e4a51");
  const Cluster cluster = with_trace(jobs.csv);
  ASSERT_EQ(cluster.jobs.size(), 2U);
  EXPECT_EQ(cluster.jobs[1].arrival_s, 6);
  EXPECT_EQ(cluster.jobs[1].name, "0e4a51-2");
}

TEST(ImportJobs, QuotesCellsWithCommas) {
  const ImportedJobs jobs = import_jobs(
      "virtual_cluster,arrival_s,gpus,model,batch_per_gpu,total_steps\n\"a,b\",0,1,A3C,,5\n", "gavel.csv", "");
  const Cluster cluster = with_trace(jobs.csv);
  EXPECT_EQ(cluster.jobs[0].name, "a,b-1");
  EXPECT_EQ(cluster.owners[0].name, "a,b");
}

TEST(ImportJobs, RefusesCenturiesAndOverflow) {
  const std::string head = "JobID|Submit|Elapsed|AllocTRES\n";
  for (const char* time : {"99999999-00:00:01", "9223372036854775807-00:00:01", "9223372036854775807:00:01"})
    EXPECT_THAT(message_of<ConfigError>(
                    [&] { import_jobs(head + "1|2026-11-03T08:15:10|" + time + "|gres/gpu=1\n", "s.txt", ""); }),
                HasSubstr("s.txt: line 2: Elapsed: found \"" + std::string(time) + "\", expected a time of 31 years"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                import_jobs(head +
                                "1|1970-01-01T00:00:00|00:10:00|gres/gpu=1\n"
                                "2|2026-11-03T08:15:10|00:10:00|gres/gpu=1\n",
                            "s.txt", "");
              }),
              HasSubstr("s.txt: the job 2 was submitted more than 31 years after the job 1"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                import_jobs(head +
                                "1|2026-11-03T08:15:10|00:10:00|gres/gpu:a=9000000000000000000,"
                                "gres/gpu:b=9000000000000000000\n",
                            "s.txt", "");
              }),
              HasSubstr("AllocTRES: found"));
}

TEST(ImportJobs, SaysWhatItCannotRead) {
  EXPECT_THAT(message_of<ConfigError>([] { import_jobs("a,b\n1,2\n", "x.csv", ""); }),
              HasSubstr("x.csv: line 1: neither"));
  EXPECT_THAT(message_of<ConfigError>([] { import_jobs("JobID|Submit|Elapsed|AllocTRES\n1|today|1|\n", "s.txt", ""); }),
              HasSubstr("s.txt: line 2: Submit: found \"today\""));
  EXPECT_THAT(message_of<ConfigError>([] { import_jobs("JobID|Submit\n1|today\n", "s.txt", ""); }),
              HasSubstr("found no column \"ElapsedRaw\" or \"Elapsed\""));
}

}  // namespace
}  // namespace ganymede::sim
