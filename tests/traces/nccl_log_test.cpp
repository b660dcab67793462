// Logs of nccl-tests as people keep them: sound ones are read, others are refused with the place of the error.

#include "traces/nccl_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::traces {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
/// Two ranks on two hosts: busbw is algbw.
constexpr const char* kHead =
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 67108864 step: 8(factor) warmup iters: 5 iters: 20 validate: 1 graph: 0\n"
    "#\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid   4711 on     node-a device  0 [0x07] NVIDIA A100-SXM4-40GB\n"
    "#  Rank  1 Group  0 Pid   4712 on     node-b device  0 [0x07] NVIDIA A100-SXM4-40GB\n"
    "NCCL version 2.18.3+cuda12.1\n"
    "#                                                              out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";
constexpr const char* kRows =
    "           8             2     float     sum      -1    25.10    0.00    0.00      0    24.90    0.00    0.00    "
    "0\n"
    "     1048576        262144     float     sum      -1   150.00    6.99    6.99      0   151.00    6.94    6.94    "
    "0\n"
    "    67108864      16777216     float     sum      -1   6000.0   11.18   11.18      0   6010.0   11.17   11.17    "
    "0\n";
constexpr const char* kTail = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 6.05\n";

NcclLog read_log(const std::string& text) {
  const TemporaryFolder folder;
  return read_nccl_log(folder.add("nccl.log", text));
}

std::string error(const std::string& text) {
  return message_of<ConfigError>([&] { read_log(text); });
}

/// One row in the columns of today.
std::string row(const std::string& rest) { return "  8  2  float  sum  -1  " + rest + "\n"; }

std::vector<std::int64_t> sizes(const NcclLog& log) {
  std::vector<std::int64_t> out;
  for (const auto& row : log.rows) out.push_back(row.bytes);
  return out;
}

TEST(NcclLog, ReadsTheTableAndWhatStandsAboveIt) {
  const NcclLog log = read_log(std::string(kHead) + kRows + kTail);
  EXPECT_EQ(log.ranks, 2);
  EXPECT_EQ(log.nodes, 2);
  EXPECT_EQ(log.gpu, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(log.version, "2.18.3");
  EXPECT_EQ(log.collective, "");
  EXPECT_THAT(sizes(log), ElementsAre(8, 1048576, 67108864));
  EXPECT_NEAR(log.rows[0].out_of_place.si, 25.10e-6, 1e-12);
  EXPECT_NEAR(log.rows[2].in_place->si, 6010e-6, 1e-12);
  EXPECT_EQ(log.rows[1].where, "line 11");
  EXPECT_NEAR(*log.bus_factor, 1, 0.01);
  EXPECT_THAT(log.notes, IsEmpty());
}

TEST(NcclLog, ReadsTheColumnsFromBefore2021) {
  const NcclLog log = read_log(
      "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
      "           8             2   float     sum    11.20    0.00    0.00  1e-07    11.30    0.00    0.00  1e-07\n"
      "     1048576        262144   float     sum   150.00    6.99   10.49  1e-07   151.00    6.94   10.42  1e-07\n");
  EXPECT_THAT(sizes(log), ElementsAre(8, 1048576));
  EXPECT_NEAR(log.rows[0].out_of_place.si, 11.2e-6, 1e-12);
  EXPECT_NEAR(*log.bus_factor, 1.5, 0.01);
}

TEST(NcclLog, TakesARootForARootAndATimeForATime) {
  // Broadcast names its root, with no reduction; a time may be an integer too.
  const NcclLog with_root = read_log("  1048576  262144  float  none  0  150  6.99  6.99  0\n");
  EXPECT_NEAR(with_root.rows[0].out_of_place.si, 150e-6, 1e-12);
  EXPECT_FALSE(with_root.rows[0].in_place);
  const NcclLog without = read_log("  1048576  262144  float  sum  150  6.99  6.99  0\n");
  EXPECT_NEAR(without.rows[0].out_of_place.si, 150e-6, 1e-12);
}

TEST(NcclLog, LooksThroughLaunchersPrefixesAndOtherPrograms) {
  for (const std::string prefix :
       {"[1,0]<stdout>:", "0: ", "Thu Jul  9 16:03:21 2026[1,0]<stdout>:", "(head, rank=0, pid=4321, ip=10.0.0.7) ",
        "\x1b[36m(worker1, rank=1, pid=9)\x1b[0m ", "  [1,12]<stderr>:", "node-a: ", "[0] ",
        "2026-05-01T12:00:00.000Z ", "[pod/a/worker] 2026-05-01 12:00:00 "}) {
    std::string text = "Warning: Permanently added 'node-a' to the list of known hosts.\r\n";
    std::istringstream lines(std::string(kHead) + kRows + kTail);
    for (std::string line; std::getline(lines, line);) text += prefix + line + "\r\n";
    const NcclLog log = read_log(text);
    EXPECT_EQ(log.ranks, 2) << prefix;
    EXPECT_EQ(sizes(log).size(), 3U) << prefix;
  }
}

TEST(NcclLog, LooksThroughTagsBeforeEachPieceOfARow) {
  for (const std::string tag : {"[0]", "[1,0]<stdout>:"}) {
    const NcclLog log = read_log(tag + "  1048576  262144  float  sum  -1" + tag + "150.0  6.99  6.99  0" + tag +
                                 "151.0  6.94  6.94  0\n");
    EXPECT_NEAR(log.rows.at(0).out_of_place.si, 150e-6, 1e-12) << tag;
    EXPECT_NEAR(log.rows.at(0).in_place->si, 151e-6, 1e-12) << tag;
  }
}

TEST(NcclLog, ReadsColoursUtf16MarkdownCsvAndJsonAroundIt) {
  const std::string plain = std::string(kHead) + kRows + kTail;
  std::string coloured, wide = "\xff\xfe", big = "\xfe\xff", markdown = kHead, csv = kHead, notebook, container;
  std::istringstream lines(plain);
  for (std::string line; std::getline(lines, line);) {
    coloured += "\x1b[32m" + line + "\x1b[0m\n";
    notebook += (notebook.empty() ? R"({"cells": [{"outputs": [{"text": [")" : R"(",")") + line + "\\n";
    container += R"({"log":")" + line + R"(\n","stream":"stdout","time":"2026-11-03T08:15:20.123456789Z"})" + "\n";
  }
  notebook += R"("]}]}]})";
  for (const char c : plain) wide += std::string{c, '\0'}, big += std::string{'\0', c};
  std::istringstream rows(kRows);
  for (std::string line; std::getline(rows, line);) {
    std::istringstream words(line);
    std::string cells;
    for (std::string word; words >> word; cells += (cells.empty() ? "" : ",") + word) markdown += "| " + word + " ";
    markdown += "|\n";
    csv += cells + "\n";
  }
  std::string semicolons = csv;
  std::replace(semicolons.begin(), semicolons.end(), ',', ';');
  std::string commas = semicolons;  // decimal ones
  std::replace(commas.begin() + static_cast<std::ptrdiff_t>(std::string_view(kHead).size()), commas.end(), '.', ',');
  for (const std::string& text : {coloured, wide, big, markdown, csv, semicolons, commas, notebook, container}) {
    const NcclLog log = read_log(text);
    EXPECT_EQ(log.ranks, 2);
    EXPECT_EQ(log.gpu, "NVIDIA A100-SXM4-40GB");
    EXPECT_EQ(log.version, "2.18.3");
    EXPECT_THAT(sizes(log), ElementsAre(8, 1048576, 67108864));
    EXPECT_NEAR(log.rows[1].in_place->si, 151e-6, 1e-12);
  }
}

// -I adds four columns to each side, -S the time of day.
TEST(NcclLog, ReadsThePerIterationReportAndTimesOfDay) {
  const NcclLog log = read_log(
      "# Per-Iteration Report: CUDA event timing; i_* uses max over process rows\n"
      "  1048576  262144  float  sum  -1  150.00  6.99  6.99  0  149.0 151.0 150.1 0.55  151.00  6.94  6.94  0  150.0 "
      "152.0 151.1 0.55\n");
  ASSERT_THAT(sizes(log), ElementsAre(1048576));
  EXPECT_NEAR(log.rows[0].in_place->si, 151e-6, 1e-12);
  const NcclLog stamped = read_log(
      "  2097152  524288  float  sum  -1  300.00  6.99  6.99  0  302.00  6.94  6.94  0  2026-07-09 16:03:21\n");
  EXPECT_NEAR(stamped.rows[0].in_place->si, 302e-6, 1e-12);
}

TEST(NcclLog, MeansSizesThatWereMeasuredSeveralTimes) {
  const std::string again = "  1048576  262144  float  sum  -1  180.00  5.83  5.83  0  181.00  5.79  5.79  0\n";
  for (const std::string between : {"", kHead}) {
    const NcclLog log = read_log(std::string(kHead) + kRows + between + again + between + again);
    EXPECT_THAT(sizes(log), ElementsAre(8, 1048576, 67108864));
    EXPECT_EQ(log.ranks, 2);
    EXPECT_NEAR(log.rows[1].out_of_place.si, 170e-6, 1e-12);
    EXPECT_NEAR(log.rows[1].in_place->si, 171e-6, 1e-12);
    EXPECT_THAT(log.notes, testing::Contains(HasSubstr("1048576 bytes 3 times, have their mean")));
  }
}

TEST(NcclLog, LeavesOutFurtherTablesOfAnotherCollective) {
  const NcclLog log = read_log("# Collective test starting: all_reduce_perf\n" + std::string(kHead) + kRows +
                               "# Collective test starting: all_gather_perf\n" + kHead +
                               "  2097152  262144  float  none  -1  300.00  6.99  3.50  0\n");
  EXPECT_EQ(log.collective, "all-reduce");
  EXPECT_THAT(sizes(log), ElementsAre(8, 1048576, 67108864));
  EXPECT_THAT(log.notes, testing::Contains(HasSubstr("further tables are left out: all-gather over 2 ranks")));
}

// The tests of before 2.17 did not name themselves.
TEST(NcclLog, InfersACollectiveThatIsNotNamed) {
  const auto inferred = [](const std::string& columns, const char* busbw) {
    std::string head = "# nThread 1 nGpus 4 minBytes 8 maxBytes 67108864 step: 8(factor) warmup iters: 5 iters: 20\n";
    return read_log(head + "  67108864  16777216  float  " + columns + "  6000.0  11.18  " + busbw + "  0\n");
  };
  EXPECT_EQ(inferred("sum", "16.77").collective, "");  // what is not named is taken for an all-reduce
  EXPECT_EQ(inferred("sum", "8.39").collective, "reduce-scatter");
  EXPECT_EQ(inferred("", "8.39").collective, "all-gather");
  EXPECT_EQ(inferred("none  -1", "8.39").collective, "all-gather");
  EXPECT_EQ(inferred("0", "11.18").collective, "broadcast");
  EXPECT_EQ(inferred("none  0", "11.18").collective, "broadcast");
  EXPECT_EQ(inferred("sum", "11.18").collective, "");  // a reduction to one rank, perhaps
  EXPECT_EQ(inferred("sum", "16.77").ranks, 0);        // of how many processes, no line says
}

// rocm's tests do not always know what the GPU is called.
TEST(NcclLog, AGpuNeedNoName) {
  const NcclLog log = read_log(
      "#   Rank  0 Pid 1234 on  node-a device  0 [0000:2f:00.0]\n"
      "#   Rank  1 Pid 1234 on  node-a device  1 [0000:30:00.0] \n" +
      std::string(kRows));
  EXPECT_EQ(log.ranks, 2);
  EXPECT_EQ(log.gpu, "");
}

TEST(NcclLog, KeepsTheFirstColumnsWhereTheOthersWereCutOff) {
  const NcclLog log = read_log("  1048576  262144  float  sum  -1  150.00  6.99  6.99\n");
  EXPECT_FALSE(log.rows[0].in_place);
  EXPECT_NEAR(log.rows[0].out_of_place.si, 150e-6, 1e-12);
}

TEST(NcclLog, ReadsTablesWithoutTheColumnOfErrors) {
  const NcclLog log = read_log(
      "1048576 262144 float sum -1 150.00 6.99 6.99 151.00 6.94 6.94\n8 2 float sum -1 25.1 0.00 0.00 24.9 0.00 "
      "0.00\n");
  ASSERT_EQ(log.rows.size(), 2U);
  EXPECT_NEAR(log.rows[1].in_place->si, 151e-6, 1e-12);
  EXPECT_THAT(error("1048576 262144 float sum -1 150.00 6.99 6.99 3 151.00 6.94\n"), HasSubstr("\"3\" wrong results"));
}

TEST(NcclLog, NotesWhatItLeavesOutOrCannotKnow) {
  const NcclLog log = read_log("  0  0  float  sum  -1  12.0  0.00  0.00  0  12.1  0.00  0.00  0\n" +
                               row("12.0  0.00  0.00  N/A  12.1  0.00  0.00  N/A"));
  EXPECT_THAT(sizes(log), ElementsAre(8));
  EXPECT_THAT(log.notes, ElementsAre("line 1: 0 bytes, left out", "the results were not validated (-c 0)"));
}

TEST(NcclLog, RefusesRowsThatAreCutOrNoNumbers) {
  EXPECT_THAT(error(row("25.10  0.00")), HasSubstr("nccl.log: line 1: found no busbw out of place"));
  EXPECT_THAT(error(row("25.10  0.00  0.00  0  24.90")), HasSubstr("line 1: found no algbw in place"));
  EXPECT_THAT(error(row("N/A  0.00  0.00  0")), HasSubstr("found \"N/A\" for the time out of place"));
  EXPECT_THAT(error(row("nan  0.00  0.00  0")), HasSubstr("found \"nan\" for the time out of place"));
  EXPECT_THAT(error(row("inf  0.00  0.00  0")), HasSubstr("found \"inf\""));
  EXPECT_THAT(error(row("0.00  0.00  0.00  0")), HasSubstr("found a time of 0 us, expected above zero"));
  EXPECT_THAT(error(row("-3  0.00  0.00  0")), HasSubstr("expected above zero"));
  // The time is missing: what follows is taken for it, and contradicts the size or the results.
  EXPECT_THAT(error("  1048576  262144  float  sum  -1  6.99  6.99  0\n"), HasSubstr("are columns missing?"));
  EXPECT_THAT(error("  1048576  262144  float  sum  -1  6.99  6.99  0  151.00  6.94  6.94  0\n"),
              HasSubstr("found \"151.00\" wrong results"));
}

// A line may have any length: some 26,000 blanks or digits once exhausted the stack of a regular expression.
TEST(NcclLog, ReadsLinesOfAnyLength) {
  constexpr std::size_t kLong = 4'000'000;
  const std::string blanks(kLong, ' '), digits(kLong, '7');
  for (const std::string& line :
       {blanks, digits, "[" + digits, "# Rank" + blanks, "#" + blanks + "Rank 0 Pid 1 on a device 0 [", digits + ":",
        "NCCL version " + digits + "." + digits, "# Collective test starting: " + blanks, std::string(kLong, '#'),
        "# Rank 0 Pid 1 on h device 0 [" + digits})
    EXPECT_THAT(sizes(read_log(std::string(kHead) + line + "\n" + kRows)), ElementsAre(8, 1048576, 67108864))
        << line.substr(0, 40);
}

TEST(NcclLog, RefusesNumbersThatFitNoIntegerWithThePlace) {
  const std::string large = "99999999999999999999";
  EXPECT_THAT(error("#  Rank  0 Group  " + large + " Pid 1 on a device 0 [0x07] A100\n" + kRows),
              AllOf(HasSubstr("line 1"), HasSubstr("second group")));
  EXPECT_THAT(error("# nccl-library=" + large + "\n" + kRows), AllOf(HasSubstr("line 1"), HasSubstr("nccl-library")));
  EXPECT_THAT(error("# nccl-library=10000001\n" + std::string(kRows)), HasSubstr("nccl-library=10000001"));
  EXPECT_EQ(read_log("# nccl-headers=21803 nccl-library=21803\n" + std::string(kRows)).version, "2.18.3");
}

TEST(NcclLog, RefusesWrongResults) {
  EXPECT_THAT(error(row("25.10  0.00  0.00  7  24.90  0.00  0.00  0")), HasSubstr("found \"7\" wrong results"));
  EXPECT_THAT(error(row("25.10  0.00  0.00  0  24.90  0.00  0.00  nan")), HasSubstr("found \"nan\" wrong results"));
}

TEST(NcclLog, RefusesWhatIsNotOneTableOfOneCollective) {
  EXPECT_THAT(error("# Collective test starting: all_reduce_perf\n# Collective test starting: all_gather_perf\n"),
              HasSubstr("line 2: found all-gather after all-reduce"));
  EXPECT_THAT(error("# Collective test starting: octahedron_perf\n"),
              HasSubstr("line 1: found the test \"octahedron_perf\""));
  EXPECT_THAT(error("# Rank  0 Group  1 Pid   1 on a device  0 [0x07] V100\n"), HasSubstr("second group of ranks"));
  // busbw / algbw says of which collective and of how many ranks.
  EXPECT_THAT(error("  1048576  262144  float  sum  -1  150  6.99  6.99  0\n"
                    "  2097152  524288  float  sum  -1  300  6.99  13.1  0\n"),
              HasSubstr("line 2: found busbw / algbw = 1.87, 1.00 before"));
  EXPECT_THAT(error(""), HasSubstr("found no row with a size and a time"));
  EXPECT_THAT(error("nothing of the kind\n"), HasSubstr("found no row with a size and a time"));
  EXPECT_THROW(read_nccl_log("/nowhere/nccl.log"), ConfigError);
}

// ---- JSON of -J ----

Json json_log() {
  Json log = {{"version", "2.17.1"},
              {"args", {"./build/all_reduce_perf", "-J", "x.json"}},
              {"env", {"HOME=/root", "TOKEN=secret"}},
              {"nccl_version", 22703},
              {"config",
               {{"devices",
                 {{{"group", 0}, {"rank", 0}, {"hostname", "a"}, {"device_info", "NVIDIA H100"}},
                  {{"group", 0}, {"rank", 1}, {"hostname", "a"}, {"device_info", "NVIDIA H100"}}}}}}};
  const auto timing = [](double us, double bytes) {
    return Json{{"time", us}, {"alg_bw", bytes / us / 1e3}, {"bus_bw", bytes / us / 1e3}, {"nwrong", 0}};
  };
  for (const auto& [bytes, us] : std::vector<std::pair<double, double>>{{8, 20}, {1048576, 60}, {67108864, 900}})
    log["results"].push_back(
        {{"size", bytes}, {"out_of_place", timing(us, bytes)}, {"in_place", timing(us * 1.01, bytes)}});
  for (auto& result : log["results"]) result["size"] = static_cast<std::int64_t>(result["size"].get<double>());
  return log;
}

std::string log_with(const char* pointer, const Json& value) {
  Json log = json_log();
  log[JsonPointer(pointer)] = value;
  return error(log.dump());
}

TEST(NcclLogJson, ReadsResultsAndSetting) {
  const NcclLog log = read_log(json_log().dump(2));
  EXPECT_EQ(log.collective, "all-reduce");
  EXPECT_EQ(log.ranks, 2);
  EXPECT_EQ(log.nodes, 1);
  EXPECT_EQ(log.gpu, "NVIDIA H100");
  EXPECT_EQ(log.version, "2.27.3");
  EXPECT_THAT(sizes(log), ElementsAre(8, 1048576, 67108864));
  EXPECT_NEAR(log.rows[1].out_of_place.si, 60e-6, 1e-12);
  EXPECT_NEAR(log.rows[1].in_place->si, 60.6e-6, 1e-12);
}

// Without MPI only the first thread's first device is listed.
TEST(NcclLogJson, KnowsItsRanksWithoutMpi) {
  Json log = json_log();
  log["config"]["devices"] = Json::array({log["config"]["devices"][0]});
  log["config"]["nthreads"] = 1;
  log["config"]["ngpus"] = 8;
  EXPECT_EQ(read_log(log.dump()).ranks, 8);
}

TEST(NcclLogJson, DoesNotRepeatTheEnvironment) {
  const NcclLog log = read_log(json_log().dump());
  for (const auto& note : log.notes) EXPECT_THAT(note, testing::Not(HasSubstr("secret")));
  Json broken = json_log();
  broken["results"][0]["out_of_place"]["time"] = "secret";
  broken["env"] = {{"TOKEN", "hidden"}};
  EXPECT_THAT(error(broken.dump()), testing::Not(HasSubstr("hidden")));
}

TEST(NcclLogJson, ReadsVersionsOfThreeAndFiveDigits) {
  Json log = json_log();
  log["nccl_version"] = 2804;
  EXPECT_EQ(read_log(log.dump()).version, "2.8.4");
}

TEST(NcclLogJson, TakesAReplayedTracesInPlaceTimes) {
  Json log = json_log();
  for (auto& result : log["results"]) result["out_of_place"] = nullptr;
  EXPECT_NEAR(read_log(log.dump()).rows[1].out_of_place.si, 60.6e-6, 1e-12);
}

TEST(NcclLogJson, LeavesOutRowsOfNothing) {
  Json log = json_log();
  log["results"][0]["size"] = 0;
  log["results"][0]["out_of_place"] = {{"time", 5.0}, {"alg_bw", "nan"}, {"bus_bw", "nan"}, {"nwrong", 0}};
  EXPECT_THAT(read_log(log.dump()).notes, ElementsAre("/results/0: 0 bytes, left out"));
}

TEST(NcclLogJson, RefusesWithThePlace) {
  EXPECT_THAT(log_with("/results/1/out_of_place/time", "nan"), HasSubstr("nccl.log: /results/1/out_of_place/time"));
  EXPECT_THAT(log_with("/results/1/out_of_place/nwrong", 3),
              HasSubstr("/results/1/out_of_place: found 3 wrong results"));
  EXPECT_THAT(log_with("/results/1/size", "many"), HasSubstr("/results/1/size"));
  EXPECT_THAT(log_with("/results/1/out_of_place", 5), HasSubstr("/results/1/out_of_place"));
  EXPECT_THAT(log_with("/results", 5), HasSubstr("/results"));
  EXPECT_THAT(log_with("/args/0", "./octahedron_perf"), HasSubstr("found the test \"./octahedron_perf\""));
  EXPECT_THAT(log_with("/config/devices/1/group", 1), HasSubstr("/config/devices/1: found a second group of ranks"));
  Json log = json_log();
  log.erase("results");
  EXPECT_THAT(error(log.dump()), HasSubstr("\"results\" is missing"));
  log = json_log();
  log["results"][2]["out_of_place"].erase("alg_bw");
  EXPECT_THAT(error(log.dump()), HasSubstr("/results/2/out_of_place: \"alg_bw\" is missing"));
  EXPECT_THAT(error("{ \"results\": ["), HasSubstr("line 1, column"));
}

}  // namespace
}  // namespace ganymede::traces
