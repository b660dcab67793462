// Jobs from files: this program's columns, Gavel's, Slurm's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

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

TEST(ImportJobs, TakesAnyDelimiterOfSlurm) {
  const ImportedJobs jobs = import_jobs(kSlurm, "sacct.txt", "");
  for (const char delimiter : {'^', '@', ':', '~', ';', '\t'}) {
    std::string text = kSlurm;
    std::replace(text.begin(), text.end(), '|', delimiter);
    EXPECT_EQ(import_jobs(text, "sacct.txt", "").csv, jobs.csv) << delimiter;
  }
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
              HasSubstr("x.csv: line 1: found no column \"gpu_num\""));
  EXPECT_THAT(message_of<ConfigError>([] { import_jobs("JobID|Submit|Elapsed|AllocTRES\n1|today|1|\n", "s.txt", ""); }),
              HasSubstr("s.txt: line 2: Submit: found \"today\""));
  EXPECT_THAT(message_of<ConfigError>([] { import_jobs("JobID|Submit\n1|today\n", "s.txt", ""); }),
              HasSubstr("found no column \"ElapsedRaw\", \"Elapsed\""));
}

/// The jobs of a trace in another dialect, without its line of names.
std::string imported(const std::string& text, const std::string& group = "") {
  const std::string csv = import_jobs(text, "trace", group).csv;
  with_trace(csv);  // a cluster reads what was written
  return csv.substr(csv.find('\n') + 1);
}

TEST(ImportJobs, TakesSlurmsOtherForms) {
  const std::string fixed =
      "JobID           Submit              Elapsed    ReqTRES                        User\n"
      "--------------- ------------------- ---------- ------------------------------ ---------\n"
      "7               2026-11-03T08:15:20 1-00:00:01 billing=8,gres/gpu=4                 ann\n"
      "7.batch         2026-11-03T08:15:20 1-00:00:01                                          \n"
      "6               2026-11-03T08:15:10   00:10:00 gres/gpu:a=2,gres/gpu:b=1            bob\n";
  EXPECT_EQ(imported(fixed), "6,0,3,600,bob,\n7,10,4,86401,ann,\n");
  EXPECT_EQ(imported(R"({"meta": {}, "jobs": [
    {"job_id": 6, "user": "bob", "priority": {"set": true, "number": 100}, "time": {"submission": 1000, "elapsed": 600},
     "tres": {"allocated": [{"type": "cpu", "name": "", "count": 8}, {"type": "gres", "name": "gpu", "count": 3}]}},
    {"job_id": 7, "user": "ann", "time": {"submission": 1010, "elapsed": 0}, "tres": {"allocated": []}}]})"),
            "6,0,3,600,bob,100\n");
  // What squeue prints: an end that is known or expected, or else the limit in minutes.
  const char* queue = R"({"jobs": [
    {"job_id": 6, "user_name": "bob", "submit_time": {"set": true, "number": 1000}, "start_time": {"set": true,
     "number": 1100}, "end_time": {"set": true, "number": 1700}, "time_limit": {"set": true, "number": 60},
     "tres_req_str": "cpu=8,gres/gpu=1", "tres_alloc_str": "cpu=8,gres/gpu:a100=3"},
    {"job_id": 7, "user_name": "ann", "submit_time": 1010, "start_time": 0, "end_time": 0, "time_limit": 60,
     "tres_req_str": "cpu=8,gres/gpu=4", "tres_alloc_str": ""}]})";
  EXPECT_EQ(imported(queue), "6,0,3,600,bob,\n7,10,4,3600,ann,\n");
  EXPECT_THAT(import_jobs(queue, "trace", "").remarks, testing::Contains(testing::HasSubstr("until their time limit")));
  // Before Slurm 20.11 GRES were counted by node.
  EXPECT_EQ(imported("JobID|Submit|Elapsed|AllocGRES|NNodes|\n6|2019-05-01T10:00:00|00:10:00|gpu:v100:4|2|\n"
                     "7|2019-05-01T10:00:05|00:00:09|gpu|1|\n8|2019-05-01T10:00:05|00:00:09||1|\n"),
            "6,0,8,600,all,\n7,5,1,9,all,\n");
  // GRES may say on which sockets its GPUs are, and --delimiter has columns parted by other signs.
  EXPECT_EQ(imported("JobID|Submit|Elapsed|AllocGRES|\n6|2019-05-01T10:00:00|00:10:00|gpu:v100:2(S:0-1)|\n"),
            "6,0,2,600,all,\n");
  EXPECT_EQ(imported("JobID;User;Submit;Elapsed;AllocTRES\n6;ann;2026-01-02T03:04:05;00:10:00;cpu=4,gres/gpu=2\n"),
            "6,0,2,600,ann,\n");
}

// A pending array has one entry; what has no limit may run for any time.
TEST(ImportJobs, TakesArraysPrioritiesAndMissingLimitsOfAQueue) {
  const auto queue = [](const std::string& tasks, const std::string& limit) {
    return R"({"jobs": [{"job_id": 5, "user_name": "bob", "submit_time": 1000, "start_time": 0, "end_time": 0,
      "time_limit": {"set": true, "infinite": false, "number": 60}, "tres_req_str": "gres/gpu=1"},
      {"job_id": 7, "array_job_id": {"set": true, "number": 7}, "array_task_string": ")" +
           tasks + R"(", "user_name": "ann", "priority": {"set": true, "infinite": false, "number": 42},
      "submit_time": 1010, "start_time": 0, "end_time": 0, "time_limit": )" +
           limit + R"(, "tres_req_str": "cpu=8,gres/gpu=4"}]})";
  };
  const std::string limit = R"({"set": true, "infinite": false, "number": 60})", bob = "5,0,1,3600,bob,\n";
  EXPECT_EQ(imported(queue("1-3", limit)), bob + "7_1,10,4,3600,ann,42\n7_2,10,4,3600,ann,42\n7_3,10,4,3600,ann,42\n");
  EXPECT_EQ(imported(queue("1,5-9:4", limit)),
            bob + "7_1,10,4,3600,ann,42\n7_5,10,4,3600,ann,42\n7_9,10,4,3600,ann,42\n");
  EXPECT_EQ(imported(queue("", limit)), bob + "7,10,4,3600,ann,42\n");
  const auto remarks = [](const std::string& text) { return import_jobs(text, "trace", "").remarks; };
  EXPECT_THAT(remarks(queue("1-10%2", limit)), testing::Contains(HasSubstr("at once (\"%2\") is not kept")));
  EXPECT_THAT(remarks(queue("1-10%2", limit)), testing::Contains(HasSubstr("11 jobs; left out: 0")));
  EXPECT_THAT(remarks(queue("1,2,...", limit)), testing::Contains(HasSubstr("SLURM_BITSTR_LEN=0")));
  for (const char* tasks : {"9-1", "1-99999999", "x", "1-5:0"})
    EXPECT_THAT(remarks(queue(tasks, limit)), testing::Contains(HasSubstr("found the array tasks"))) << tasks;
  const std::string unlimited = queue("", R"({"set": false, "infinite": true, "number": 0})");
  EXPECT_EQ(imported(unlimited), bob);
  EXPECT_THAT(remarks(unlimited), testing::Contains(HasSubstr("1 job without a time limit or an end left out")));
  EXPECT_THAT(remarks(unlimited), testing::Contains(HasSubstr("0 that never ran")));
}

TEST(ImportJobs, TakesGavelsOwnTraces) {
  EXPECT_EQ(imported("ResNet-18 (batch size 32)\tpython3 main.py --batch_size 32\t--num_steps\t1\t7000\t0.000000\t8\n"
                     "A3C\tpython3 main.py\t--max-steps\t0\t900\t11.500000\t1\n"
                     "A3C\tpython3 main.py\t--max-steps\t0\t900\t12.0\t0\n"),
            "line-1,0,8,ResNet-18,32,7000\nline-2,11.5,1,A3C,,900\n");
  EXPECT_EQ(imported("LM (batch size 5)\tpython3 main.py\t--steps\t0\t500\t2\t1.0\t-1\t30.5\n"),
            "line-1,30.5,2,LM,5,500\n");
  for (const char* mode : {"", "\taccordion"})  // which Shockwave adds
    EXPECT_EQ(imported(std::string("LM (batch size 5)\tpython3 main.py\tdir\t--steps\t0\t500\t2") + mode +
                       "\t1\t-1.0\t30.5\n"),
              "line-1,30.5,2,LM,5,500\n");
}

TEST(ImportJobs, TakesTheTracesOfOtherClusters) {
  // ACME's Seren.
  EXPECT_EQ(imported("job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue\n"
                     "41,u1,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
                     "2023-03-01 00:20:51+08:00,117,32\n"
                     "42,u2,1,0,8,Other,COMPLETED,2023-03-01 00:23:58+08:00,,,2693,13\n"),
            "41,0,8,117,u1,\n");
  // Helios, of one virtual cluster.
  EXPECT_EQ(imported("job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
                     "1,a,vcA,4,16,1,COMPLETED,2020-04-01 00:00:05,2020-04-01 00:00:06,2020-04-01 00:01:06,60,1\n"
                     "2,b,vcB,1,4,1,CANCELLED,2020-04-01 00:00:00,2020-04-01 00:00:06,2020-04-01 00:01:06,60,6\n",
                     "vcA"),
            "1,0,4,60,a,\n");
  // Alibaba's PAI of 2020 has no line of names and counts hundredths of GPUs by instance, that of 2023 has both.
  EXPECT_EQ(imported("j1,worker,4,Terminated,1000.0,1600.0,600.0,29.3,50.0,V100\n"
                     "j2,tensorflow,1,Failed,1100.0,1150.5,600.0,29.3,25.0,T4\n"
                     "j3,worker,1,Running,1200.0,,600.0,29.3,100.0,T4\n"
                     "j1,evaluator,1,Terminated,1500.0,1700.0,600.0,29.3,100.0,V100\n"),
            "j1,0,3,700,all,\nj2,100,1,50.5,all,\n");  // the tasks of a job are one
  EXPECT_EQ(imported("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
                     "scheduled_time\n"
                     "p-0,12000,16384,1,460,,LS,Running,0,12537496,0.0\n"
                     "p-1,6000,12288,2,1000,,BE,Failed,50,150,70.0\n"
                     "p-2,6000,12288,0,0,,BE,Failed,50,150,70.0\n"),
            "p-0,0,1,12537496,all,\np-1,50,2,80,all,\n");
  // Philly: the second attempt had more GPUs.
  EXPECT_EQ(
      imported(R"([{"status": "Pass", "vc": "x", "jobid": "app_1", "user": "u", "submitted_time": "2017-10-09 07:01:55",
    "attempts": [{"start_time": "2017-10-09 07:02:00", "end_time": "2017-10-09 07:03:00",
                  "detail": [{"ip": "m1", "gpus": ["gpu0"]}]},
                 {"start_time": "2017-10-09 08:00:00", "end_time": "2017-10-09 08:01:30",
                  "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu4"]}]}]},
    {"status": "Killed", "vc": "x", "jobid": "app_2", "user": "u", "submitted_time": "2017-10-09 07:02:55", "attempts": []}])"),
      "app_1,0,3,150,u,\n");
  // The standard workload format, and a workload of Batsim.
  EXPECT_EQ(imported("; Version: 2.2\n; UnixStartTime: 0\n"
                     " 1  10 5 300 4 -1 -1 4 600 -1 1 7 1 1 1 1 -1 -1\n"
                     " 2  12 5 100 -1 -1 -1 2 600 -1 1 8 1 1 1 1 -1 -1\n"),
            "1,0,4,300,user-7,\n2,2,2,100,user-8,\n");
  EXPECT_EQ(imported(R"({"nb_res": 4, "jobs": [{"id": "a", "subtime": 5, "walltime": 100, "res": 4, "profile": "d"},
    {"id": 2, "subtime": 1, "walltime": 60, "res": 1, "profile": "c"}, {"id": 3, "subtime": 6, "res": 1, "profile": "c"},
    {"id": 4, "subtime": 6, "res": 2, "profile": "s"}],
    "profiles": {"s": {"type": "composed", "repeat": 3, "seq": ["d", "d"]}, "d": {"type": "delay", "delay": 20.5}, "c": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}}})"),
            "2,0,1,60,all,\na,4,4,20.5,all,\n4,5,2,123,all,\n");
}

// Pollux says which application a job trains, and not for how long: the cluster's workloads do.
TEST(ImportJobs, TakesPolluxWorkloads) {
  const ImportedJobs pollux = import_jobs(
      "name,time,application,num_replicas,batch_size\nncf-1,110,ncf,1,32768\ncifar10-0,107,cifar10,6,2048\n"
      "ncf-1,120,ncf,2,32768\na,121,ncf,x,1\nb,122,,1,1\n",
      "p.csv", "");
  EXPECT_EQ(pollux.csv, "job,arrival_s,gpus,workload\ncifar10-0,0,6,cifar10\nncf-1,3,1,ncf\nncf-1.2,13,2,ncf\n");
  EXPECT_THAT(pollux.remarks, testing::Contains(HasSubstr("must have \"cifar10\", \"ncf\"")));
  EXPECT_THAT(pollux.remarks, testing::Contains(HasSubstr("1 job has the number of an earlier one")));
  EXPECT_THAT(pollux.remarks, testing::Contains("2 that cannot be read; the first: p.csv: line 5: num_replicas: found "
                                                "\"x\", expected a number"));
  EXPECT_THAT(import_jobs("timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n",
                          "philly.csv", "11cb48")
                  .csv,
              HasSubstr("line-2,0,1,66,11cb48,"));
}

// Milliseconds of a job's times are those of its duration, too, unless its end says otherwise; without a year the days
// before New Year are before those after it.
TEST(ImportJobs, TakesUnitsAndYearsThatAreNotSaid) {
  const auto rows = [](const std::string& text) {
    const std::string csv = import_jobs(text, "t.csv", "").csv;
    return csv.substr(csv.find('\n') + 1);
  };
  EXPECT_EQ(rows("job_id,gpus,submit_time,duration\na,1,1793693700000,3600000\nb,1,1793693760000,1:00:00\n"),
            "a,0,1,3600,all,\nb,60,1,3600,all,\n");
  EXPECT_EQ(rows("job_id,gpus,submit_time,start_time,end_time,duration\n"
                 "a,1,1793693700000,1793693700000,1793693760000,60\n"),
            "a,0,1,60,all,\n");
  EXPECT_EQ(rows("job_id,gpus,submit_time,duration_s\na,1,1793693700000,3600\n"), "a,0,1,3600,all,\n");
  EXPECT_EQ(rows("job_id,gpus,submit_time,duration\na,1,1793693700,3600\n"), "a,0,1,3600,all,\n");
  EXPECT_THAT(import_jobs("gpus,submit_time,duration\n1,1793693700000,3600000\n", "t.csv", "").remarks,
              testing::Contains("as those of submit_time, the numbers of duration are taken for milliseconds"));
  EXPECT_EQ(rows("job_id,gpus,start_time,end_time\nb,1,Jan 01 00:10:00,Jan 01 00:20:00\n"
                 "a,1,Dec 31 23:50:00,Jan 01 00:10:00\n"),
            "a,0,1,1200,all,\nb,1200,1,600,all,\n");
}

TEST(ImportJobs, PutsGavelsJobsInOrder) {
  EXPECT_THAT(import_jobs("A3C\tx\t--s\t0\t900\t20\t1\nA3C\tx\t--s\t0\t900\t10\t1\n", "g.trace", "").csv,
              HasSubstr("\nline-2,10,1,A3C,,900\nline-1,20,"));
  EXPECT_THAT(import_jobs("virtual_cluster,arrival_s,gpus,model,batch_per_gpu,total_steps\nv,20,1,A3C,,900\n"
                          "v,10,1,A3C,,900\n",
                          "g.csv", "")
                  .csv,
              HasSubstr("\nv-2,10,1,A3C,,900,v\nv-1,20,"));
}

// A row of a name that renaming has given is renamed itself.
TEST(ImportJobs, GivesNoNameTwice) {
  EXPECT_THAT(import_jobs("job_id,gpus,submit_time,duration\na,1,0,1\na,1,1,1\na.2,1,2,1\n", "t.csv", "").csv,
              testing::AllOf(HasSubstr("\na,0,"), HasSubstr("\na.2,1,"), HasSubstr("\na.2.2,2,")));
}

// Slurm 24 writes numbers that may be unset as objects, and some clusters account for types of GPUs alone.
TEST(ImportJobs, TakesNewerSlurmsJson) {
  const std::string job = R"({"job_id": 18, "user": "eve", "priority": {"set": true, "number": 77},
      "time": {"elapsed": {"set": true, "number": 600}, "submission": 1700000000},
      "tres": {"allocated": [{"type": "gres", "name": "gpu:h100", "count": 6},
                             {"type": "gres", "name": "gpu:a100", "count": 2}]}})";
  EXPECT_THAT(import_jobs("{\"jobs\": [" + job + "]}", "s.json", "").csv, HasSubstr("18,0,8,600,eve,77\n"));
}

TEST(ImportJobs, LeavesOutWhatItCannotReadAndShowsIt) {
  const ImportedJobs jobs = import_jobs(
      "job_id,user,gpu_num,submit_time,duration\n1,a,two,2023-03-01 00:18:22,5\n2,a,2,2023-03-01 00:18:22,5\n"
      "3,a,1,yesterday,5\n4,a,1\n",
      "t.csv", "");
  EXPECT_EQ(jobs.csv, "job,arrival_s,gpus,duration_s,owner,priority\n2,0,2,5,a,\n");
  EXPECT_THAT(jobs.remarks,
              testing::Contains("2 that cannot be read; the first: t.csv: line 2: gpu_num: found \"two\", "
                                "expected a number"));
  EXPECT_THAT(
      jobs.remarks,
      testing::Contains("1 rows left out; the first: t.csv: line 5: found 3 cells, expected 5 as in the first line"));
  const auto error = [](const std::string& text, const std::string& group = "") {
    return message_of<ConfigError>([&] { import_jobs(text, "t", group); });
  };
  EXPECT_THAT(error("name,time,num_replicas,gpus\na,1,1,2\n"), HasSubstr("how long jobs ran"));
  EXPECT_THAT(error("{\"a\": 1}"), HasSubstr("t: is JSON, but neither"));
  EXPECT_THAT(error("{\"a\": "), HasSubstr("not valid JSON"));
  EXPECT_THAT(error("[{\"submitted_time\": \"soon\"}]"), HasSubstr("expected \"submitted_time\" such as"));
  EXPECT_THAT(error(" 1  inf 5 300 4 -1 -1 4 600 -1 1 7 1 1 1 1 -1 -1\n"), HasSubstr("t: line 1"));
  EXPECT_THAT(error("A3C\tpython3 main.py\t--max-steps\t0\t900\t1e300\t1\n"),
              HasSubstr("t: line 1: expected a job's type"));
  EXPECT_THAT(error("a\tb\tc\n"), HasSubstr("t: line 1: expected a job's type"));
  EXPECT_THAT(error("gpus,arrival_s,duration\n1,2,3\n", "vc"), HasSubstr("has no virtual clusters"));
}

}  // namespace
}  // namespace ganymede::sim
