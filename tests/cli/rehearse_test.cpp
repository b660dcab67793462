// Rehearsals, started as users start them: under mpirun, and with processes of their own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/json_value.hpp"
#include "lab.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;
class Rehearse : public testing::Test {
 protected:
  void SetUp() override { NOT_SANITIZED("what is rehearsed is paced by real time"); }
  /// A scenario of `nodes` hosts on a network of 1 Gbit/s, with the recorded steps of a CPU.
  std::string scenario(int nodes) {
    return write_lab(scratch, Json::object(),
                     {{"workload", {{"trace", "recorded:mlp-gan-cpu"}}}, {"platform", {{"nodes", nodes}}}});
  }
  static bool has_mpi() {
    return std::filesystem::exists(GANYMEDE_MPI_MODULE) && std::system("command -v mpirun >/dev/null") == 0;
  }
  static bool has_name_spaces() {
    return ::geteuid() == 0 && std::system("ip netns add ganymede-test && ip netns del ganymede-test") == 0;
  }
  static void expect_parts_sum(const Json& parts) {
    EXPECT_NEAR(parts["compute_s"].get<double>() + parts["exposed_communication_s"].get<double>() +
                    parts["straggler_s"].get<double>() + parts["input_stall_s"].get<double>(),
                parts["step_s"].get<double>(), 1e-9);
    EXPECT_GT(parts["compute_s"], 0);
  }

  const Scratch scratch;
};

TEST_F(Rehearse, OnOwnHostsWritesAStudyThatValidateRuns) {
  const std::string study = (scratch / "study.json").string();
  const Outcome outcome =
      run_program("rehearse " + scenario(3) + " --hosts 3 --network paced --for 1s --format json -o " + study);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(result["ranks"], 3);
  EXPECT_GE(result["steps"], 5);
  EXPECT_EQ(result["scale"], 2);  // 3 hosts at 125 MB/s are 375 MB/s, and 250 MB/s may be sent together
  for (const char* which : {"measured", "predicted", "predicted_from_ping"}) expect_parts_sum(result[which]);
  // The recorded steps are slept through, so a step cannot be shorter than its compute.
  EXPECT_GE(result["measured"]["step_s"].get<double>(), 0.9 * result["predicted"]["compute_s"].get<double>());
  EXPECT_DOUBLE_EQ(result["network"]["stated"]["rate_bytes_per_s"].get<double>(), 125e6 / 2);
  EXPECT_DOUBLE_EQ(result["network"]["stated"]["latency_s"].get<double>(), 1e-3);

  const Outcome validated = run_program("validate " + study + " --format json");
  ASSERT_EQ(validated.code, 0) << validated.err;
  const Json cell = Json::parse(validated.out)["studies"][0]["cells"][0];
  EXPECT_EQ(cell["what"], "step");
  EXPECT_NEAR(cell["measured"].get<double>(), result["measured"]["step_s"].get<double>() / 2, 1e-12);
  EXPECT_GT(cell["predicted"], 0);
  EXPECT_EQ(cell["evidence"], "rehearsal, played network");
  EXPECT_LT(cell["interval_90"][0].get<double>(), cell["interval_90"][1].get<double>());

  // A rehearsal that was off more widens the intervals of its kind, and no other.
  Json other = Json::parse(content_of(study));
  EXPECT_EQ(other["links"], "played");
  for (Json& one : other["cells"]) one["measured"] = 2 * one["measured"].get<double>();
  const std::string wide = scratch.write("wide.json", other.dump());
  const Outcome learned = run_program("validate " + study + " --rehearsed " + wide + " --format json");
  ASSERT_EQ(learned.code, 0) << learned.err;
  const Json after = Json::parse(learned.out);
  EXPECT_GT(after["rehearsed"][0]["factor"], 1);
  EXPECT_GT(after["studies"][0]["cells"][0]["interval_90"][1], cell["interval_90"][1]);
  EXPECT_THAT(run_program("validate " + study + " --rehearsed " + wide).out,
              HasSubstr("1 rehearsal on played networks: communication took"));
  const Outcome twice = run_program("validate --rehearsed " + wide + "," + wide);
  EXPECT_EQ(twice.code, 2);
  EXPECT_THAT(twice.err, HasSubstr("are the same rehearsal, which counts once"));
  Json absurd = other;
  for (Json& one : absurd["cells"]) one["measured"] = 1e6 * one["measured"].get<double>();
  const Outcome apart = run_program("validate --rehearsed " + scratch.write("absurd.json", absurd.dump()));
  EXPECT_EQ(apart.code, 2);
  EXPECT_THAT(apart.err, HasSubstr("absurd.json: /cells: communication took"));
  const Outcome no_rehearsal = run_program("validate --rehearsed missing.json");
  EXPECT_EQ(no_rehearsal.code, 2);
  EXPECT_THAT(no_rehearsal.err, HasSubstr("missing.json"));
  other.erase("links");
  const Outcome unlike = run_program("validate --rehearsed " + scratch.write("unlike.json", other.dump()));
  EXPECT_EQ(unlike.code, 2);
  EXPECT_THAT(unlike.err, HasSubstr("unlike.json: /links: expected"));
  EXPECT_EQ(run_program("validate --rehearsed " + study + " --shard 1/2 -o " + (scratch / "shards").string()).code, 2);
}

TEST_F(Rehearse, ComputesForRealWhereEachRankHasAProcessor) {
  if (::sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "one processor";
  const std::string file = scenario(2);
  const Outcome outcome =
      run_program("rehearse " + file + " --hosts 2 --network paced --for 1s --compute real --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(result["compute"], "real");
  expect_parts_sum(result["measured"]);
  // A processor computes no faster than it was measured to, and is busy at least as long as the recorded phases.
  const auto phases = result["predicted"]["compute_s"].get<double>();
  EXPECT_GE(result["measured"]["compute_s"].get<double>(), 0.7 * phases);
  EXPECT_GE(result["noise"]["processor_s"].get<double>(), 0.5 * phases);
  const long more = ::sysconf(_SC_NPROCESSORS_ONLN) + 1;
  if (more > 64) return;
  const Outcome crowded = run_program("rehearse " + scenario(static_cast<int>(more)) + " --hosts " +
                                      std::to_string(more) + " --network paced --for 1s --compute real");
  EXPECT_EQ(crowded.code, 2);
  EXPECT_THAT(crowded.err, HasSubstr("--compute real: found " + std::to_string(more) + " ranks"));
}

TEST_F(Rehearse, SaysWhyThereAreNoNameSpaces) {
  const std::string file = scenario(2);
  const std::string arguments = "rehearse " + file + " --hosts 2 --for 1s --network namespaces";
  if (::geteuid() != 0) {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("--network namespaces: not root; expected paced here"));
    return;
  }
  const Outcome no_tools = run_program(arguments, "env PATH=" + (scratch / "").string());
  EXPECT_EQ(no_tools.code, 2);
  EXPECT_THAT(no_tools.err, HasSubstr("--network namespaces: no `ip` here"));
  if (std::system("command -v ip >/dev/null") != 0) GTEST_SKIP() << "no `ip` here";
  std::filesystem::create_directory(scratch / "bin");
  ASSERT_EQ(std::system(("ln -s \"$(command -v ip)\" " + (scratch / "bin/ip").string()).c_str()), 0);
  const Outcome no_tc = run_program(arguments, "env PATH=" + (scratch / "bin").string());
  EXPECT_EQ(no_tc.code, 2);
  EXPECT_THAT(no_tc.err, HasSubstr("no `tc` here"));
}

TEST_F(Rehearse, EndsSoonAfterARankHasDiedAndNamesIt) {
  const std::string launcher = scratch.write("kill_rank.sh", R"SH("$@" & command=$!
children() { cat /proc/$command/task/$command/children; }
for _ in $(seq 300); do [ "$(children | wc -w)" -ge 3 ] && break; sleep 0.1; done
sleep 1
all=$(echo $(children))
kill -9 ${all##* }
begin=$(date +%s)
wait $command; code=$?
[ $(($(date +%s) - begin)) -le 10 ] || exit 76
for child in $all; do kill -0 $child 2>/dev/null && exit 77; done
exit $code
)SH");
  const Outcome outcome =
      run_program("rehearse " + scenario(3) + " --hosts 3 --network paced --for 60s", "bash " + launcher);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("has died: crashed (Killed)"));
  // Another rank says where it was.
  EXPECT_THAT(outcome.err, testing::ContainsRegex("; rank [0-2] on .*in step [0-9]+"));
}

TEST_F(Rehearse, AskedToEndItEndsItsRanksFirst) {
  const std::string launcher = scratch.write("end_it.sh", R"SH("$@" & command=$!
children() { cat /proc/$command/task/$command/children; }
for _ in $(seq 300); do
  kill -0 $command || break
  [ "$(children | wc -w)" -ge 3 ] && break
  sleep 0.1
done
all=$(children)
kill -TERM $command
wait $command; code=$?
for child in $all; do kill -0 $child 2>/dev/null && exit 77; done
exit $code
)SH");
  for (const auto& command :
       {"rehearse " + scenario(3) + " --for 60s",
        std::string("allreduce --real --catalog aws --instance p3.2xlarge --nodes 3 --scheme ring --bytes 1GiB")}) {
    const Outcome outcome = run_program(command + " --hosts 3 --network paced", "bash " + launcher);
    EXPECT_EQ(outcome.code, 130) << command << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("interrupted; all hosts have ended")) << command;
  }
}

TEST_F(Rehearse, UnderMpiAllEndSoonAfterARankHasDiedAndSayWhereTheyWere) {
  if (!has_mpi()) GTEST_SKIP() << "no MPI here, or the sanitizers' build, which cannot load its module";
  const std::string launcher = scratch.write("kill_rank.sh", R"SH("$@" & command=$!
ranks() {
  for process in /proc/[0-9]*; do
    cat $process/environ 2>/dev/null | tr '\0' '\n' | grep -qx "GANYMEDE_TEST_MARK=$MARK" || continue
    [ "$(cat $process/comm 2>/dev/null)" = ganymede ] && echo ${process#/proc/}
  done
}
for _ in $(seq 300); do [ "$(ranks | wc -l)" -ge 3 ] && break; sleep 0.1; done
sleep 2
all=$(ranks)
for rank in $all; do
  tr '\0' '\n' < /proc/$rank/environ | grep -qx OMPI_COMM_WORLD_RANK=1 && kill -9 $rank
done
begin=$(date +%s)
wait $command; code=$?
alive() { for rank in $all; do grep -q '^State:.[^ZX]' /proc/$rank/status 2>/dev/null && return; done; false; }
while alive; do
  [ $(($(date +%s) - begin)) -le 10 ] || exit 77
  sleep 0.1
done
[ $(($(date +%s) - begin)) -le 10 ] || exit 76
exit $code
)SH");
  const std::string mark = (scratch / "").parent_path().string();
  const Outcome outcome =
      run_program("rehearse " + scenario(3) + " --for 60s",
                  "MARK=" + mark + " GANYMEDE_TEST_MARK=" + mark + " OMPI_ALLOW_RUN_AS_ROOT=1 " +
                      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 bash " + launcher + " mpirun --oversubscribe -n 3");
  EXPECT_EQ(outcome.code, 137) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("process rank 1"));
  EXPECT_THAT(outcome.err, testing::ContainsRegex("rank [02] on .*asked to end while it was in step [0-9]+"));
}

TEST_F(Rehearse, InNameSpacesByMpirunLeavesNothingBehind) {
  if (!has_mpi() || !has_name_spaces()) GTEST_SKIP() << "no MPI or no name spaces here";
  const Outcome outcome =
      run_program("rehearse " + scenario(2) + " --hosts 2 --network mpirun --for 1s --format json", "timeout 120");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_EQ(result["ranks"], 2);
  EXPECT_THAT(result["messenger"].get<std::string>(), HasSubstr("in network namespaces"));
  // No message is faster than the scenario's latency, which holds it back.
  EXPECT_GE(result["network"]["measured"]["latency_s"].get<double>(), 500e-6);
  EXPECT_NE(std::system("ip netns list | grep -q ganymede-rehearsal-"), 0);
  const Outcome loss = run_program("rehearse " + scenario(2) + " --hosts 2 --network mpirun --for 1s --loss 0.01");
  if (loss.code != 0) {
    EXPECT_EQ(loss.code, 2);
    EXPECT_THAT(loss.err, HasSubstr("--loss: this kernel has no netem"));
  }
  EXPECT_NE(std::system("ip netns list | grep -q ganymede-rehearsal-"), 0);
}

TEST_F(Rehearse, WhatMpirunHasStartedInNameSpacesDiesWithTheCommand) {
  if (!has_mpi() || !has_name_spaces()) GTEST_SKIP() << "no MPI or no name spaces here";
  const std::string file = scenario(2);
  // Ranks are the processes that name the scenario, beside the command and what runs this script.
  const std::string launcher = scratch.write("kill_command.sh", R"SH("$@" & command=$!
ranks() {
  for process in /proc/[0-9]*; do
    cat $process/cmdline 2>/dev/null | tr '\0' '\n' | grep -qx -e --played || continue
    cat $process/cmdline 2>/dev/null | tr '\0' '\n' | grep -qx "$SCENARIO" && echo ${process#/proc/}
  done
}
for _ in $(seq 300); do [ "$(ranks | wc -l)" -ge 2 ] && break; sleep 0.1; done
[ "$(ranks | wc -l)" -ge 2 ] || exit 75
sleep 1
kill -9 $command; wait $command
for _ in $(seq 100); do [ "$(ranks | wc -l)" -eq 0 ] && exit 0; sleep 0.1; done
exit 77
)SH");
  const Outcome outcome = run_program("rehearse " + file + " --hosts 2 --network mpirun --for 60s",
                                      "SCENARIO=" + file + " timeout 120 bash " + launcher);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(run_program("rehearse " + file + " --hosts 2 --for 1s").err,
              HasSubstr("network namespaces that a run before had left"));
}

TEST_F(Rehearse, FindsTheNameSpacesOfAKilledRun) {
  if (::geteuid() != 0 || std::system("ip netns add ganymede-rehearsal-99999998-0 2>/dev/null") != 0)
    GTEST_SKIP() << "no name spaces here";
  ASSERT_EQ(std::system("ip netns exec ganymede-rehearsal-99999998-0 sleep 60 &"), 0);
  const Outcome outcome = run_program("rehearse " + scenario(2) + " --hosts 2 --for 1s");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("network namespaces that a run before had left"));
  EXPECT_NE(std::system("ip netns list | grep -q ganymede-rehearsal-99999998"), 0);
}

TEST_F(Rehearse, WithoutRootSocketsArePaced) {
  if (::geteuid() != 0 || std::system("command -v setpriv >/dev/null") != 0) GTEST_SKIP() << "not root here";
  const std::string file = scenario(2);
  std::filesystem::permissions(scratch / "", std::filesystem::perms(0755));
  const std::string nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups";
  if (run_program("--version", nobody).code != 0) GTEST_SKIP() << "the program's folder is root's own";
  const Outcome outcome = run_program("rehearse " + file + " --hosts 2 --for 1s", nobody);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("note: not root: sockets are paced in place of network namespaces"));
  for (const char* network : {"namespaces", "mpirun"}) {
    const Outcome refused =
        run_program("rehearse " + file + " --hosts 2 --for 1s --network " + std::string(network), nobody);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("--network " + std::string(network) + ": not root; expected paced here"));
  }
}

TEST_F(Rehearse, SaysWhenNoPortIsFree) {
  if (::geteuid() != 0 || std::system("unshare -n true") != 0) GTEST_SKIP() << "no name spaces here";
  const std::string launcher = scratch.write("one_port.sh", R"SH(ip link set lo up
echo "40000 40000" > /proc/sys/net/ipv4/ip_local_port_range
exec "$@"
)SH");
  const Outcome outcome =
      run_program("rehearse " + scenario(3) + " --hosts 3 --network paced --for 1s", "unshare -n sh " + launcher);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("no port is free, and each pair of hosts needs two"));
}

TEST_F(Rehearse, LosesPacketsAndSaysSo) {
  const std::string run = "rehearse " + scenario(2) + " --hosts 2 --network paced --for 1s --format json";
  const Outcome outcome = run_program(run + " --loss 0.01");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(Json::parse(outcome.out)["messenger"].get<std::string>(), HasSubstr("1 % of packets lost"));
  for (const char* wrong : {"-0.1", "0.6", "often"}) {
    const Outcome refused = run_program(run + " --loss " + wrong);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("--loss"));
  }
}

TEST_F(Rehearse, UnderMpiSumsEveryBucket) {
  if (!has_mpi()) GTEST_SKIP() << "no MPI here, or the sanitizers' build, which cannot load its module";
  const std::string launcher =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 mpirun --oversubscribe -n 2";
  const Outcome outcome = run_program("rehearse " + scenario(2) + " --for 1s", launcher);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("exposed communication"));
  EXPECT_THAT(outcome.out, HasSubstr("The scenario states links of"));
  const Outcome ranks = run_program("rehearse " + scenario(3), launcher);
  EXPECT_EQ(ranks.code, 2);
  EXPECT_THAT(ranks.err, HasSubstr("found 3 GPUs, expected 2, as many as there are processes"));
  const Outcome study =
      run_program("rehearse " + scenario(2) + " --for 1s -o " + (scratch / "of-memory.json").string(), launcher);
  EXPECT_EQ(study.code, 2);
  EXPECT_THAT(study.err, HasSubstr("--output: all ranks are on one machine, expected them on 2"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "of-memory.json"));
}

TEST_F(Rehearse, RefusesWhatItCannotPlay) {
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const Outcome outcome = run_program("rehearse " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(why)) << arguments;
  };
  const std::string file = scenario(4);
  refused(file, "found one process, expected one for each of the 4 GPUs");
  refused(file + " --hosts 3", "found 4 GPUs, expected 3, as many as there are --hosts");
  refused(file + " --hosts 4 --for 0s", "--for 0s");
  refused(file + " --hosts 4 --for soon", "--for soon");
  refused(file + " --hosts 65536", "--hosts");
  refused(file + " --network paced", "--hosts");
  refused(file + " --hosts 4 --set /synchronization/mode=gossip", "/synchronization/mode");
  refused(file + " --hosts 4 --set /synchronization/scheme=in-network", "/synchronization/scheme");
  refused(file + " --set /platform/nodes=65536", "found one process, expected one for each of the 65536 GPUs");
  refused(scenario(1), "/platform: found one GPU, expected two or more");
}

}  // namespace
}  // namespace ganymede::cli
