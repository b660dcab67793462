// Logs of every test of nccl-tests, and rows that say nothing among others.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"
#include "traces/nccl_log.hpp"

namespace ganymede::traces {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kKindRanks = 4;

struct NcclKind {
  const char *program, *collective;
  double factor;  // busbw / algbw of four ranks (nccl-tests, doc/PERFORMANCE.md)
  const char *redop, *root;
};
constexpr NcclKind kKinds[] = {{"all_reduce_perf", "all-reduce", 1.5, "sum", "-1"},
                               {"all_gather_perf", "all-gather", 0.75, "none", "-1"},
                               {"broadcast_perf", "broadcast", 1, "none", "0"},
                               {"reduce_scatter_perf", "reduce-scatter", 0.75, "sum", "-1"},
                               {"reduce_perf", "reduce", 1, "sum", "0"},
                               {"alltoall_perf", "all-to-all", 0.75, "none", "-1"},
                               {"sendrecv_perf", "send-receive", 1, "none", "-1"},
                               {"gather_perf", "gather", 0.75, "none", "0"},
                               {"scatter_perf", "scatter", 0.75, "none", "0"}};

std::string kind_row(const NcclKind& test, std::int64_t bytes, const char* type = "float",
                     const char* in_place_errors = "0") {
  const double us = 20 + static_cast<double>(bytes) * 1e-5, algbw = static_cast<double>(bytes) / us * 1e-3;
  const std::string side = fmt::format("{:.2f} {:.2f} {:.2f} ", us, algbw, test.factor * algbw);
  return fmt::format("{} {} {} {} {} {}0 {}{}\n", bytes, bytes / 4, type, test.redop, test.root, side, side,
                     in_place_errors);
}

std::string log_of_kind(const NcclKind& test, bool named = true, int ranks = kKindRanks,
                        const char* in_place_errors = "0") {
  std::string text = named ? fmt::format("# Collective test starting: {}\n", test.program) : "";
  for (int rank = 0; rank < ranks; ++rank)
    text += fmt::format("#  Rank {} Group 0 Pid 1 on node device {} [0x07] NVIDIA H100\n", rank, rank);
  for (std::int64_t bytes = 1 << 20; bytes <= 1 << 28; bytes *= 16)
    text += kind_row(test, bytes, "float", in_place_errors);
  return text;
}

NcclLog log_in(const std::string& text) {
  const TemporaryFolder folder;
  return read_nccl_log(folder.add("nccl.log", text));
}

TEST(NcclKinds, EveryTestIsReadByItsName) {
  for (const NcclKind& test : kKinds) {
    const NcclLog log = log_in(log_of_kind(test));
    EXPECT_EQ(log.collective, test.collective);
    EXPECT_EQ(log.ranks, kKindRanks);
    EXPECT_NEAR(*log.bus_factor, test.factor, 0.01) << test.program;
  }
}

TEST(NcclKinds, ReducesAndSendsAreInferred) {
  for (const NcclKind& test : {kKinds[4], kKinds[6]})
    EXPECT_EQ(log_in(log_of_kind(test, false)).collective, test.collective);
  const NcclLog either = log_in(log_of_kind(kKinds[5], false));
  EXPECT_EQ(either.collective, "all-gather");
  EXPECT_THAT(either.notes.front(), HasSubstr("it may be all-gather or all-to-all; taken as all-gather"));
}

// (n - 1) / n of 64 ranks is 0.984: it is told from 1 and from the 1.97 of an all-reduce by the digits of the columns.
TEST(NcclKinds, ShareOfManyRanksIsToldFromOne) {
  NcclKind scatter = kKinds[3], gather = kKinds[7];
  scatter.factor = gather.factor = 63.0 / 64;
  EXPECT_EQ(log_in(log_of_kind(scatter, false, 64)).collective, "reduce-scatter");
  EXPECT_EQ(log_in(log_of_kind(kKinds[6], false, 64)).collective, "send-receive");
  EXPECT_EQ(log_in(log_of_kind(kKinds[2], false, 64)).collective, "broadcast");
  const NcclLog rooted = log_in(log_of_kind(gather, false, 64));
  EXPECT_THAT(rooted.notes, ElementsAre(HasSubstr("busbw / algbw = 0.984 it may be gather or scatter; taken as")));
}

// The test of all-to-all never validates what it does in place, and says N/A there.
TEST(NcclKinds, AllToAllIsKnownByItsErrorsInPlace) {
  const NcclLog log = log_in(log_of_kind(kKinds[5], false, kKindRanks, "N/A"));
  EXPECT_EQ(log.collective, "all-to-all");
  EXPECT_THAT(log.notes, ElementsAre(HasSubstr("it is all-to-all")));
  EXPECT_THAT(log_in(log_of_kind(kKinds[5], true, kKindRanks, "N/A")).notes, testing::IsEmpty());
}

TEST(NcclKinds, ACommandNamesTheCollective) {
  const std::string table = log_of_kind(kKinds[5], false);
  for (const char* command :
       {"$ ./build/alltoall_perf -b 8 -e 1G -g 4", "+ mpirun -np 4 --bind-to none alltoall_perf -b 8",
        "srun --mpi=pmix /opt/nccl-tests/build/alltoall_perf", "$ ./all_gather_perf -h\n$ ./alltoall_perf -b 8"}) {
    const NcclLog log = log_in(fmt::format("{}\n{}", command, table));
    const bool several = fmt::format("{}", command).find("all_gather") != std::string::npos;
    EXPECT_EQ(log.collective, several ? "all-gather" : "all-to-all") << command;
    EXPECT_EQ(log.notes.empty(), !several) << command;
  }
  // One that is only spoken of names none, nor one that the columns contradict.
  EXPECT_EQ(log_in("The alltoall_perf of yesterday\n" + table).collective, "all-gather");
  EXPECT_EQ(log_in("$ ./reduce_perf -b 8\n" + table).collective, "all-gather");
  EXPECT_EQ(log_in("$ ./reduce_perf -b 8\n" + log_of_kind(kKinds[5])).collective, "all-to-all");
}

TEST(NcclKinds, SizesThatAreNoneAreCounted) {
  const std::string row = kind_row(kKinds[0], 1 << 20), rest = row.substr(row.find(' '));
  const NcclLog log = log_in(log_of_kind(kKinds[0]) + "-8" + rest + "99999999999999999999" + rest);
  EXPECT_EQ(log.rows.size(), 3U);
  EXPECT_THAT(log.notes, ElementsAre(HasSubstr("2 row(s) that cannot be read are left out; the first")));
}

// A job that was killed in a row, lines of two processes in one, a device without a clock: what is left is read.
TEST(NcclKinds, RowsThatSayNothingAreLeftOutAndCounted) {
  std::string text = log_of_kind(kKinds[0]);
  text += "536870912 134217728 float sum -1 5000.\n1048576 262144 float sum -1 nan 0.00 0.00 0\n";
  const NcclLog log = log_in(text);
  EXPECT_EQ(log.rows.size(), 3U);
  EXPECT_THAT(log.notes, ElementsAre(testing::AllOf(HasSubstr("2 row(s) that cannot be read are left out; the first"),
                                                    HasSubstr("line 9: found no algbw"))));
}

TEST(NcclKinds, TypesOfRcclAreTypes) {
  EXPECT_EQ(log_in(log_of_kind(kKinds[0], false) + kind_row(kKinds[0], 1 << 29, "fp8_e4m3")).rows.size(), 4U);
}

// hypercube_perf divides what comes from other ranks by the time, and its bus bandwidth is that (nccl-tests,
// src/hypercube.cu).
TEST(NcclKinds, HypercubeIsAnAllGather) {
  std::string text = log_of_kind({"hypercube_perf", "all-gather", 1, "none", "-1"});
  text = text.substr(0, text.find("1048576 "));
  for (const double bytes : {1048576.0, 16777216.0, 268435456.0}) {
    const double us = 20 + bytes * 1e-5, rate = bytes * (kKindRanks - 1) / kKindRanks / us * 1e-3;
    text += fmt::format("{} {} float none -1 {:.2f} {:.2f} {:.2f} 0 {:.2f} {:.2f} {:.2f} 0\n", bytes, bytes / 4, us,
                        rate, rate, us, rate, rate);
  }
  const NcclLog log = log_in(text);
  EXPECT_EQ(log.collective, "all-gather");
  EXPECT_EQ(log.rows.size(), 3U);
  EXPECT_NEAR(*log.bus_factor, 0.75, 1e-2);
  EXPECT_THAT(log.notes, ElementsAre(HasSubstr("along a hypercube")));
  // A rate that cannot be is shown as the log has it.
  text += "536870912 134217728 float none -1 26843.5 17.48 17.48 0 26843.5 17.48 17.48 0\n";
  EXPECT_THAT(log_in(text).notes, testing::Contains(HasSubstr("found algbw 17.48 GB/s, expected 15.00 of 536870912")));
}

// A suite runs one test after the other into one file.
TEST(NcclKinds, ATestOfAnotherKindStandsBesideOthers) {
  std::string other = log_of_kind(kKinds[1]);
  other.replace(other.find("all_gather"), 10, "octahedron");
  for (const std::string& text : {other + log_of_kind(kKinds[0]), log_of_kind(kKinds[0]) + other}) {
    const NcclLog log = log_in(text);
    EXPECT_EQ(log.collective, "all-reduce");
    EXPECT_THAT(log.notes, testing::Contains(HasSubstr("further tables are left out: another test")));
  }
  EXPECT_THAT(message_of<ConfigError>([&] { log_in(other); }), HasSubstr("found the test \"octahedron_perf\""));
}

}  // namespace
}  // namespace ganymede::traces
