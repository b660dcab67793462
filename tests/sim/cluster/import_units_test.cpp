// Units of the times in tables of jobs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/errors.hpp"
#include "sim/cluster/import_jobs.hpp"
#include "support/errors.hpp"

namespace ganymede::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string jobs_of(const std::string& text) {
  const std::string csv = import_jobs(text, "t.csv", "").csv;
  return csv.substr(csv.find('\n') + 1);
}

// The name of a column may say its unit; small numbers without one are seconds, which a remark doubts.
TEST(ImportJobs, TakesTheUnitsOfColumnsNames) {
  EXPECT_EQ(jobs_of("job_id,gpus,submit_time_ms,start_ms,end_ms\na,1,1000,1500,61500\nb,2,5000,5500,125500\n"),
            "a,0,1,60,all,\nb,4,2,120,all,\n");
  EXPECT_EQ(jobs_of("job,num_gpus,arrival_time_sec,duration_ms\na,1,1,60000\nb,2,5,120000\n"),
            "a,0,1,60,all,\nb,4,2,120,all,\n");
  EXPECT_EQ(jobs_of("job_id,num_gpus,submit_time,runtime_hours\na,1,2026-11-03 08:00:00,1.5\n"), "a,0,1,5400,all,\n");
  EXPECT_EQ(jobs_of("job_id,num_gpus,submit_min,duration_minutes\na,1,0,90\nb,1,2,0.5\n"),
            "a,0,1,5400,all,\nb,120,1,30,all,\n");
  EXPECT_THAT(import_jobs("job_id,gpus,submit_time,start_time,end_time\na,1,1000,1500,3601500\n", "t.csv", "").remarks,
              testing::Contains(HasSubstr("the numbers of end_time are taken for seconds, by which a job runs for 42 "
                                          "days: call the columns submit_time_ms, start_time_ms, end_time_ms if they "
                                          "are milliseconds")));
  for (const char* hours : {"_h", "_hr", "_hrs", "_hours"})
    EXPECT_EQ(jobs_of(std::string("job_id,num_gpus,submit_s,duration") + hours + "\na,1,0,1.5\n"), "a,0,1,5400,all,\n");
}

// A cell that is no time leaves out its row, also where the column's name says a unit.
TEST(ImportJobs, LeavesOutAbsurdTimesOfColumnsWithUnits) {
  const ImportedJobs jobs =
      import_jobs("job_id,gpus,submit_s,duration_s\na,1,0,60\nb,1,1e300,60\nc,1,-5,60\n", "t.csv", "");
  EXPECT_THAT(jobs.csv, AllOf(HasSubstr("\na,0,1,60,"), Not(HasSubstr("\nb,")), Not(HasSubstr("\nc,"))));
  EXPECT_THAT(jobs.remarks, testing::Contains(HasSubstr("line 3: submit_s: found \"1e300\"")));
}

// Following a remark by half gave wrong jobs: from a start in seconds to an end in milliseconds.
TEST(ImportJobs, RefusesAUnitOfOneColumnOnly) {
  const auto remarks = [](const char* text) { return import_jobs(text, "t.csv", "").remarks; };
  EXPECT_THAT(message_of<ConfigError>([&] { remarks("job_id,gpus,start_time,end_time_ms\na,1,1000,7200000\n"); }),
              HasSubstr("t.csv: line 1: the name of end_time_ms says a unit, that of start_time does not: expected one "
                        "there too, as in start_time_s or start_time_ms"));
  EXPECT_THAT(remarks("job_id,gpus,start_ms,end_min\na,1,60000,61\n"),
              testing::Contains(HasSubstr("start_ms and end_min are in different units")));
  EXPECT_EQ(jobs_of("job_id,gpus,start_time,end_time_ms\na,1,2023-11-14T22:13:20,1700000060000\n"), "a,0,1,60,all,\n");
  EXPECT_THAT(message_of<ConfigError>([&] { remarks("job_id,gpus,submit_time\na,1,0\n"); }),
              HasSubstr("their names may end with a unit"));
}

// People ask sacct for other columns than the help names; a queue has limits in place of ends.
TEST(ImportJobs, ReadsOtherColumnsOfSlurm) {
  const std::string day = "2026-01-02T";
  EXPECT_EQ(jobs_of("JobID|User|Submit|Start|End|AllocTRES\n7|a|" + day + "03:00:00|" + day + "03:10:00|" + day +
                    "04:10:00|cpu=8,gres/gpu=4\n8|a|" + day + "03:00:00|" + day + "03:10:00|Unknown|gres/gpu=4\n"),
            "7,0,4,3600,a,\n");
  // A job that goes on, one that was cancelled while it waited, one that waits, and one without GPUs.
  const std::vector<std::string> remarks =
      import_jobs("JobID|User|Start|End|State|AllocTRES|ReqTRES\n7|a|" + day + "03:10:00|" + day +
                      "04:10:00|COMPLETED|gres/gpu=4|gres/gpu=4\n8|a|" + day +
                      "03:00:00|Unknown|RUNNING|gres/gpu=4|gres/gpu=4\n9|a|None|" + day +
                      "03:10:00|CANCELLED by 0||gres/gpu=4\n10|a|Unknown|Unknown|PENDING||gres/gpu=2\n11|a|" + day +
                      "03:10:00|" + day + "04:10:00|COMPLETED|cpu=4|cpu=4\n",
                  "sacct.txt", "")
          .remarks;
  EXPECT_EQ(remarks.at(0), "1 job; left out: 1 without GPUs, 2 that never ran");
  EXPECT_EQ(remarks.at(1), "1 job without a time limit or an end left out: nothing says how long it runs");
  EXPECT_THAT(remarks, Not(testing::Contains(HasSubstr("cannot be read"))));
  EXPECT_EQ(jobs_of("JobID|Start|Elapsed|AllocTRES\n7|" + day + "03:00:00|01:00:00|gres/gpu=4\n"), "7,0,4,3600,all,\n");
  EXPECT_EQ(jobs_of("JOBID|USER|SUBMIT_TIME|TIME|TIME_LIMIT|TRES_PER_NODE|NODES\n7|a|" + day +
                    "03:00:00|10:00|2:00:00|gres:gpu:4|2\n8|a|" + day + "03:00:10|0:00|2:00:00|gres/gpu:a100:2|1\n"),
            "7,0,8,7200,a,\n8,10,2,7200,a,\n");
  EXPECT_EQ(jobs_of("id_job,id_user,time_submit,time_start,time_end,gres_used\n7,3,100,160,220,gpu:volta:2\n"
                    "8,3,100,160,220,\n"),
            "7,0,2,60,3,\n");
  // A number beyond any cluster is not a name of one GPU.
  EXPECT_THAT(message_of<ConfigError>([] {
                import_jobs(
                    "id_job,id_user,time_submit,time_start,time_end,gres_used\n7,3,100,160,220,"
                    "gpu:99999999999999999999\n",
                    "s.csv", "");
              }),
              HasSubstr("gres_used: found"));
}

}  // namespace
}  // namespace ganymede::sim
