// Rehearsals, started as users start them: under mpirun, and with processes of their own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "lab.hpp"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

class Rehearse : public testing::Test {
 protected:
  /// A scenario of `nodes` hosts on a network of 1 Gbit/s, with the recorded steps of a CPU.
  std::string scenario(int nodes) {
    return write_lab(scratch, Json::object(),
                     {{"workload", {{"trace", "recorded:mlp-gan-cpu"}}}, {"platform", {{"nodes", nodes}}}});
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
  const double phases = result["predicted"]["compute_s"];
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
}

TEST_F(Rehearse, UnderMpiSumsEveryBucket) {
  if (!std::filesystem::exists(GANYMEDE_MPI_MODULE) || std::system("command -v mpirun >/dev/null") != 0)
    GTEST_SKIP() << "no MPI here, or the sanitizers' build, which cannot load its module";
  const std::string launcher =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 mpirun --oversubscribe -n 2";
  const Outcome outcome = run_program("rehearse " + scenario(2) + " --for 1s", launcher);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("exposed communication"));
  EXPECT_THAT(outcome.out, HasSubstr("The scenario states links of"));
  const Outcome ranks = run_program("rehearse " + scenario(3), launcher);
  EXPECT_EQ(ranks.code, 2);
  EXPECT_THAT(ranks.err, HasSubstr("found 3 GPUs, expected 2, as many as there are processes"));
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
}

}  // namespace
}  // namespace ganymede::cli
