// allreduce --real under mpirun, as a user starts it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json_value.hpp"
#include "run_program.hpp"

namespace ganymede::cli {
namespace {

using testing::HasSubstr;
const bool kMpiIsUsable =
    std::filesystem::exists(GANYMEDE_MPI_MODULE) && std::system("command -v mpirun >/dev/null") == 0;

class RealAllReduceUnderMpi : public testing::Test {
 protected:
  void SetUp() override {
    if (!kMpiIsUsable) GTEST_SKIP() << "no MPI here, or the sanitizers' build, which cannot load its module";
  }
  static Outcome run(int processes, const std::string& arguments) {
    return run_program(
        "allreduce --real " + arguments,
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 mpirun --oversubscribe -n " +
            std::to_string(processes));
  }
};

TEST_F(RealAllReduceUnderMpi, SumsByEverySchemeThatNeedsNoSwitch) {
  const Outcome outcome = run(4,
                              "--format json --repeats 9 --gpus-per-node 2 --bytes 4KiB,100000 --scheme "
                              "ring,multi-ring,tree,double-binary-tree,recursive-doubling,halving-doubling,"
                              "hierarchical-copy,two-level,reduce-to-one,parameter-server,nccl");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json rows = Json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 22U);
  for (const Json& row : rows) {
    EXPECT_EQ(row["fidelity"], "real");
    EXPECT_EQ(row["ranks"], 4);
    EXPECT_EQ(row["repeats"], 9);
    EXPECT_GT(row["time_s"], 0);
    EXPECT_LE(row["interval_s"][0], row["time_s"]);
    EXPECT_GE(row["interval_s"][1], row["time_s"]);
    EXPECT_TRUE(row["predicted_s"].is_null());
    EXPECT_GE(row["sent_bytes"], row["bytes"]);
  }
  EXPECT_EQ(rows[0]["messages"], 4 * 6);  // a ring of 4 ranks: 2 (n - 1) rounds
}

TEST_F(RealAllReduceUnderMpi, StandsBesideThePredictionAndFitsLinks) {
  const Scratch scratch;
  const std::string catalog = scratch.write("lab.json", run_program("example platform").out);
  const std::string machine = " --catalog " + catalog + " --instance node --nodes 3 --gpus-per-node 1";
  const Outcome outcome = run(3, "--format json --scheme ring --bytes 64KiB,1MiB,4MiB" + machine + " -o " +
                                     (scratch / "overlay.json").string());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json rows = Json::parse(outcome.out);
  const Json simulated = Json::parse(run_program("allreduce --format json --scheme ring --bytes 65544" + machine).out);
  // In a ring on equal links a rank never waits for more than its predecessor, so eager sends take as long.
  EXPECT_NEAR(rows[0]["predicted_s"].get<double>(), simulated[0]["time_s"].get<double>(), 1e-12);
  EXPECT_EQ(Json::parse(content_of(scratch / "overlay.json"))["platform"]["instances"]["node"]["nic"]["label"],
            "measured");
  const Outcome with =
      run_program("allreduce --scheme ring --bytes 1MiB --overlay " + (scratch / "overlay.json").string() + machine);
  EXPECT_EQ(with.code, 0) << with.err;
}

TEST_F(RealAllReduceUnderMpi, RefusesWhatDoesNotFit) {
  const std::string lab = " --catalog aws --instance p3.2xlarge --nodes 4 --scheme ring --bytes 1KiB";
  const Outcome ranks = run(2, lab);
  EXPECT_EQ(ranks.code, 2);
  EXPECT_THAT(ranks.err, HasSubstr("started as 2 processes, expected 4"));
  EXPECT_THAT(run(2, "--scheme in-network --bytes 1KiB").err, HasSubstr("in-network"));
  EXPECT_THAT(run(2, "--scheme ring --bytes 1KiB -o /tmp/overlay.json").err, HasSubstr("--catalog and one --instance"));
  EXPECT_THAT(run(4, "--scheme ring --bytes 4KiB,4KiB -o /tmp/overlay.json" + lab.substr(0, lab.find(" --scheme"))).err,
              HasSubstr("--bytes: found one size, expected two or more"));
  EXPECT_EQ(run(2, "--scheme ring --bytes 4KiB --repeats 6").code, 2);
  EXPECT_THAT(run(2, "--scheme ring --bytes 2GiB").err, HasSubstr("expected 1B to 1GiB"));
}

/// The program beside the stand-in of CUDA's libraries (tests/kernel/cuda_stand_in), whose GPUs are of all processes.
class RealAllReduceOnGpus : public testing::Test {
 protected:
  void SetUp() override {
    if (!kMpiIsUsable || !std::filesystem::exists(kModule))
      GTEST_SKIP() << "no MPI, or no stand-in for CUDA's libraries";
    std::filesystem::create_directories(scratch_ / "bin");
    std::filesystem::create_directories(scratch_ / "lib/ganymede");
    std::filesystem::create_directories(scratch_ / "messages");
    // A copy has its own path, beside which the program looks for modules.
    std::filesystem::copy_file(GANYMEDE_BINARY, scratch_ / "bin/ganymede");
    std::filesystem::create_symlink(kModule, scratch_ / "lib/ganymede/libganymede_cuda.so");
    std::filesystem::create_symlink(GANYMEDE_MPI_MODULE, scratch_ / "lib/ganymede/libganymede_mpi.so");
  }
  Outcome run(int processes, int gpus, const std::string& arguments) const {
    const std::string driver = std::string(GANYMEDE_STAND_IN) + "/libcuda_stand_in_driver.so";
    return run_program("allreduce --real --repeats 7 --bytes 4KiB " + arguments,
                       "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 mpirun --oversubscribe "
                       "-x LD_PRELOAD=" +
                           driver + " -x GANYMEDE_STAND_IN_GPUS=" + std::to_string(gpus) +
                           " -x GANYMEDE_STAND_IN_NCCL=" + (scratch_ / "messages").string() + " -n " +
                           std::to_string(processes),
                       (scratch_ / "bin/ganymede").string());
  }
  const std::string kModule = std::string(GANYMEDE_STAND_IN) + "/libganymede_cuda.so";
  Scratch scratch_;
};

TEST_F(RealAllReduceOnGpus, SumsByNcclsSendsAndReceives) {
  const Outcome outcome = run(3, 3, "--format json --scheme ring,double-binary-tree");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json rows = Json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 2U);
  for (const Json& row : rows) EXPECT_GT(row["time_s"], 0);
  EXPECT_THAT(run(2, 2, "--scheme ring").out, HasSubstr("2 GPUs, NCCL 2.26.2, stand-in; every sum was right"));
}

TEST_F(RealAllReduceOnGpus, NeedsOneForEachRank) {
  const Outcome shared = run(2, 1, "--scheme ring --backend cuda");
  EXPECT_EQ(shared.code, 2);
  EXPECT_THAT(shared.err, HasSubstr("would share a GPU, and NCCL has one rank on each"));
  const Outcome automatic = run(2, 1, "--scheme ring");
  EXPECT_EQ(automatic.code, 0) << automatic.err;
  EXPECT_THAT(automatic.out, HasSubstr("2 processes, MPI"));
  EXPECT_THAT(automatic.out, HasSubstr("not between GPUs: rank 0"));
}

TEST_F(RealAllReduceUnderMpi, SaysWhyThereAreNoGpus) {
  const Outcome outcome = run(2, "--backend cuda --scheme ring --bytes 1KiB");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--backend: found cuda, expected a GPU for each rank: "));
  EXPECT_EQ(run_program("allreduce --backend cpu --scheme ring --bytes 1KiB").code, 2);
}

TEST(RealAllReduce, StartsHostsOfItsOwn) {
  const Scratch scratch;
  const std::string catalog = scratch.write("lab.json", run_program("example platform").out);
  const std::string lab = " --catalog " + catalog + " --instance node --gpus-per-node 1 --scheme ring --bytes 64KiB";
  const Outcome outcome = run_program("allreduce --real --hosts 3 --nodes 3 --network paced --format json" + lab);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json row = Json::parse(outcome.out)[0];
  // 3 hosts of 12.5 GB/s would send 37.5 GB/s together; 250 MB/s is what one machine may, so all takes 150 times as
  // long.
  const std::string padded = " --catalog " + catalog + " --instance node --gpus-per-node 1 --scheme ring --bytes 65544";
  const Json simulated = Json::parse(run_program("allreduce --nodes 3 --format json" + padded).out);
  constexpr double kLaunch = 3e-6;  // of a kernel on the example's GPUs; processes launch none
  EXPECT_NEAR(row["predicted_s"].get<double>(), 150 * (simulated[0]["time_s"].get<double>() - kLaunch), 1e-9);
  EXPECT_EQ(row["scale"], 150);
  EXPECT_LT(row["ping_bytes_per_s"], 12.5e9 / 100);
  EXPECT_GT(row["ping_latency_s"], 0);
  // Shaping only ever adds time.
  EXPECT_GT(row["time_s"].get<double>(), 0.99 * row["predicted_s"].get<double>());
  EXPECT_THAT(run_program("allreduce --real --hosts 3 --nodes 2 --network paced" + lab).err,
              HasSubstr("found 2 GPUs on 2 nodes, expected 3 nodes with one GPU each"));
  EXPECT_THAT(run_program("allreduce --real --hosts 3 --nodes 3 --network paced --scale 1e6" + lab).err,
              HasSubstr("--scale 1e+06: a message would be"));
  EXPECT_EQ(run_program("allreduce --hosts 3 --nodes 3" + lab).code, 2);
  EXPECT_EQ(run_program("allreduce --real --hosts 3 --scheme ring --bytes 1KiB").code, 2);
  const Outcome torus = run_program("allreduce --real --hosts 3 --nodes 3 --network paced --catalog " + catalog +
                                    " --instance node --gpus-per-node 1 --scheme torus:8x4 --bytes 1KiB");
  EXPECT_EQ(torus.code, 2);
  EXPECT_THAT(torus.err, HasSubstr("8x4"));
}

TEST(RealAllReduce, NeedsSeveralProcesses) {
  const Outcome outcome = run_program("allreduce --real --scheme ring --bytes 1KiB");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("found one process, expected several"));
  EXPECT_EQ(run_program("allreduce --real --late 1=1s --scheme ring --bytes 1KiB").code, 2);
  EXPECT_THAT(run_program("allreduce --scheme ring --bytes 1KiB").err, HasSubstr("--catalog is required"));
}

}  // namespace
}  // namespace ganymede::cli
