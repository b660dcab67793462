// Runs ganymede allreduce as a user does, and compares with the closed forms of a star.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/json_value.hpp"
#include "run_program.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// One-GPU nodes on links of 12.5 GB/s. A NIC has a latency of 5 us and the switch none; nothing else takes time.
constexpr const char* kStar = R"({ "schema": "ganymede.platform/1",
  "gpus": { "X": { "memory": "16GiB", "fp32": "10Tflop/s", "memory_bandwidth": "1000000GB/s" } },
  "instances": { "one": { "gpu": "X", "gpus": 1, "nic": { "bandwidth": "12.5GB/s", "latency": "5us" } },
                 "four": { "gpu": "X", "gpus": 4, "nic": { "bandwidth": "12.5GB/s", "latency": "5us" },
                           "gpu_links": { "kind": "nvlink", "bandwidth": "100GB/s", "latency": "1us" } } } })";

Json rows_of(const std::string& arguments) {
  const Outcome outcome = run_program("allreduce " + arguments + " --format json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return Json::parse_or_null(outcome.out);
}

TEST(AllReduce, RingOnTheStarTakesItsClosedForm) {
  const Scratch scratch;
  const std::string star = scratch.write("star.json", kStar);
  for (const int n : {2, 3, 64, 1000, 4096}) {
    const Json rows =
        rows_of("--catalog " + star + " --instance one --scheme ring --bytes 64MiB --nodes " + std::to_string(n));
    ASSERT_EQ(rows.size(), 1U);
    const double bytes = 64 << 20;
    const double expected = 2.0 * (n - 1) * (bytes / n / 12.5e9 + 10e-6);
    EXPECT_NEAR(rows[0]["time_s"].get<double>() / expected, 1, 1e-3) << n;
    EXPECT_EQ(rows[0]["ranks"], n);
    EXPECT_EQ(rows[0]["messages"].get<std::int64_t>(), 2LL * (n - 1) * n);
    EXPECT_NEAR(rows[0]["algbw_GBps"].get<double>(), bytes / expected / 1e9, 1e-3 * bytes / expected / 1e9);
    EXPECT_NEAR(rows[0]["busbw_GBps"].get<double>() / rows[0]["algbw_GBps"].get<double>(), 2.0 * (n - 1) / n, 1e-9);
    EXPECT_EQ(rows[0]["fidelity"], "folded");
  }
}

TEST(AllReduce, FoldedEqualsMessageForEveryScheme) {
  NOT_SANITIZED("starts dozens of programs, and one starts slowly there");
  const Scratch scratch;
  const std::string star = scratch.write("star.json", kStar);
  const Json schemes = Json::parse(run_program("list schemes --format json").out);
  for (const auto& scheme : schemes) {
    const std::string name = scheme["name"].get<std::string>();
    std::string common = "--catalog " + star;
    common += " --instance four --nodes 3 --bytes 4MiB --scheme " + name;
    const Outcome probe = run_program("allreduce " + common + " --format json");
    if (probe.code == 2) {  // this fabric has no torus and no switch that reduces; the message must say so
      EXPECT_THAT(probe.err, HasSubstr(name));
      EXPECT_TRUE(name == "torus" || name == "in-network") << probe.err;
      continue;
    }
    ASSERT_EQ(probe.code, 0) << name << probe.err;
    const Json folded = Json::parse(probe.out), message = rows_of(common + " --fidelity message");
    EXPECT_EQ(message[0]["fidelity"], "message");
    EXPECT_NEAR(folded[0]["time_s"].get<double>() / message[0]["time_s"].get<double>(), 1, 1e-6) << name;
    EXPECT_EQ(folded[0]["messages"], message[0]["messages"]) << name;
  }
}

TEST(AllReduce, TheTableRanksTheSchemesOfEachSize) {
  const Outcome table = run_program(
      "allreduce --catalog aws --instance p4d.24xlarge --nodes 2 --scheme ring,tree,nccl "
      "--bytes 8,64KiB,1MiB,64MiB,1GiB");
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("p4d.24xlarge"), HasSubstr("busbw"), HasSubstr("limited by"),
                               HasSubstr("Ranking"), HasSubstr("64 MiB:")));
  const Json rows = rows_of("--catalog aws --instance p4d.24xlarge --nodes 2 --scheme ring,tree --bytes 8,64MiB");
  for (const auto& a : rows) {
    for (const auto& b : rows) {
      const bool faster = a["bytes"] == b["bytes"] && a["time_s"] < b["time_s"];
      EXPECT_TRUE(!faster || a["place"] < b["place"]) << a << b;
    }
  }
  EXPECT_EQ(rows[0]["limit"], "latency");  // 8 bytes
}

// Over TCP a message crosses the hosts' memory, and a connection has at most 10 Gbit/s.
TEST(AllReduce, TcpInPlaceOfEfaIsSlower) {
  const std::string command = "--catalog aws --instance p4d.24xlarge --nodes 2 --scheme nccl --bytes 64MiB";
  EXPECT_GT(rows_of(command + " --transport tcp")[0]["time_s"], rows_of(command)[0]["time_s"]);
  EXPECT_EQ(rows_of(command + " --transport efa"), rows_of(command));
  EXPECT_THAT(run_program("allreduce " + command).out, HasSubstr("; 4 x 100 Gbit/s efa a node"));
  EXPECT_THAT(run_program("allreduce " + command + " --transport tcp").out, HasSubstr("; 4 x 100 Gbit/s tcp a node"));
}

// A NIC whose catalog says nothing of TCP has one socket, not the whole wire.
TEST(AllReduce, TcpInPlaceOfRdmaHasALimit) {
  const Scratch scratch;
  const std::string star = scratch.write("star.json", kStar);
  const std::string command = "--catalog " + star + " --instance one --nodes 2 --scheme nccl --bytes 1GiB";
  const auto rdma = rows_of(command)[0]["time_s"].get<double>(),
             tcp = rows_of(command + " --transport tcp")[0]["time_s"].get<double>();
  EXPECT_GT(tcp, 2 * rdma);
}

TEST(AllReduce, ATimelineHoldsEveryMessage) {
  const Scratch scratch;
  const std::string star = scratch.write("star.json", kStar);
  const std::string file = (scratch / "rounds.json").string();
  const Json rows =
      rows_of("--catalog " + star + " --instance one --nodes 4 --scheme ring --bytes 1MiB --timeline " + file);
  const Json trace = Json::parse(content_of(file));
  int messages = 0;
  double end = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++messages;
    end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_EQ(messages, 24);
  EXPECT_NEAR(end, rows[0]["time_s"].get<double>() * 1e6, 1e-6 * end);
}

// Two rings, each over every other rank, cross the same NICs, so each gets half of the bandwidth.
TEST(AllReduce, CommunicatorsAtOnceShareTheLinks) {
  const Scratch scratch;
  const std::string star = scratch.write("star.json", kStar);
  const std::string common =
      "--catalog " + star + " --instance four --nodes 2 --gpus-per-node 2 --scheme ring --bytes 64MiB";
  const Json alone = rows_of("--catalog " + star + " --instance one --nodes 2 --scheme ring --bytes 64MiB");
  const Json shared = rows_of(common + " --groups 2");
  EXPECT_EQ(shared[0]["ranks"], 2);
  EXPECT_NEAR(shared[0]["time_s"].get<double>() / alone[0]["time_s"].get<double>(), 2, 0.02);
}

// Derived by hand: 1 MB at 12.5 GB/s takes 80 us. The other two messages arrive within 2 x 80 us + 10 us, so the late
// rank has rank 0's downlink to itself; then three copies share rank 0's uplink.
TEST(AllReduce, ALateRankDelaysReduceToOneByLessThanAWholeCollective) {
  const Scratch scratch;
  const std::string star = scratch.write("star.json", kStar);
  const Json rows =
      rows_of("--catalog " + star + " --instance one --nodes 4 --scheme reduce-to-one --bytes 1000000 --late 3=1ms");
  EXPECT_NEAR(rows[0]["time_s"].get<double>(), 1e-3 + (10e-6 + 80e-6) + (10e-6 + 240e-6), 1e-7);
}

TEST(AllReduce, OneRankOrNoBytesTakeNoMessages) {
  const Scratch scratch;
  const std::string star = scratch.write("star.json", kStar);
  const Json one = rows_of("--catalog " + star + " --instance one --scheme ring,nccl --bytes 1MiB");
  const Json none = rows_of("--catalog " + star + " --instance one --nodes 4 --scheme ring,nccl --bytes 0");
  for (const Json& rows : {one, none}) {
    for (const auto& row : rows) {
      EXPECT_EQ(row["messages"], 0);
      EXPECT_EQ(row["busbw_GBps"], 0);
    }
  }
}

TEST(AllReduce, BadInputIsLocated) {
  const Scratch scratch;
  const std::string star = scratch.write("star.json", kStar);
  const std::string base = "allreduce --catalog " + star + " --instance one --nodes 4 ";
  const struct {
    std::string arguments;
    const char* expected;
  } cases[] = {
      {base + "--scheme rign --bytes 1MiB", "did you mean \"ring\""},
      {base + "--scheme ring --bytes 1MB/s", "--bytes"},
      {base + "--scheme ring --bytes -5", "--bytes -5: expected a whole number of bytes"},
      {base + "--scheme ring --bytes 2TiB", "1TiB"},
      {base + "--scheme ring --bytes 1.5", "--bytes"},
      {base + "--scheme ring, --bytes 1", "--scheme"},
      {base + "--scheme torus --bytes 1", "torus"},
      {base + "--scheme in-network --bytes 1", "in-network"},
      {base + "--scheme ring --bytes 1 --late 9=1us", "--late"},
      {base + "--scheme ring --bytes 1 --late 1=-1us", "--late"},
      {base + "--scheme ring --bytes 1 --groups 3", "--groups"},
      {base + "--scheme ring --bytes 1 --gpus-per-node 2", "--gpus-per-node"},
      {"allreduce --catalog aws --instance p3.3xlarge --scheme ring --bytes 1", "p3.2xlarge"},
      {"allreduce --catalog " + star + " --instance one --nodes 0 --scheme ring --bytes 1", "--nodes"},
      {"allreduce --catalog " + star + " --instance one --nodes 70000 --scheme ring --bytes 1", "65536"},
      {"allreduce --catalog " + star + " --instance one,four --nodes 1 --scheme ring --bytes 1", "--nodes"},
      {base + "--scheme ring --bytes 1 --overlay " + star, "schema"},
      {base + "--scheme ring --bytes 1 --transport efa", "--transport efa: the NICs of one have rdma"},
  };
  for (const auto& item : cases) {
    const Outcome outcome = run_program(item.arguments);
    EXPECT_EQ(outcome.code, 2) << item.arguments;
    EXPECT_THAT(outcome.err, HasSubstr(item.expected)) << item.arguments;
    EXPECT_EQ(outcome.out, "") << item.arguments;
  }
}

TEST(AllReduce, AStreamMayBeNamedTwice) {
  const Scratch scratch;
  const std::string command = "allreduce --catalog " + scratch.write("star.json", kStar) +
                              " --instance one --scheme ring --nodes 4 --bytes 1MiB ";
  EXPECT_EQ(run_program(command + "-o /dev/null --timeline /dev/null").code, 0);
  const std::string file = (scratch / "both").string();
  EXPECT_EQ(run_program(command + "-o " + file + " --timeline " + file).code, 2);
}

// Four ranks send 24 messages around a ring. More than --max-work allows are refused before one of them is simulated.
TEST(AllReduce, MessagesAreWork) {
  const Scratch scratch;
  const std::string star =
      "allreduce --catalog " + scratch.write("star.json", kStar) + " --instance one --scheme ring ";
  EXPECT_EQ(run_program(star + "--nodes 4 --bytes 1MiB --fidelity message --max-work 24").code, 0);
  EXPECT_EQ(run_program(star + "--nodes 4 --bytes 1MiB --max-work 1").code, 0) << "folded simulates none";
  EXPECT_EQ(run_program(star + "--nodes 1k --bytes 1MiB").out, run_program(star + "--nodes 1000 --bytes 1MiB").out);
  for (const auto& [arguments, expected] :
       {std::pair("--nodes 4 --bytes 1MiB --max-work 23",
                  "of 1 MiB: of 24 messages, counted by what they take beside others: more than 23 messages would be "
                  "simulated, 24; folded gives the same time, or --max-work"),
        {"--nodes 9999 --bytes 1",
         "of 199,940,004 messages, counted by what they take beside others: more than "
         "50,000,000 messages would be simulated, "}}) {
    const Outcome outcome = run_program(star + "--fidelity message " + arguments);
    EXPECT_EQ(outcome.code, 3) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(expected));
  }
  // Seventeen million, which no bound on their number would refuse, but each beside a million others.
  const Outcome crowded = run_program(
      "allreduce --catalog aws --instance p3.16xlarge --nodes 8192 --scheme double-binary-tree --bytes 64MiB "
      "--fidelity message");
  EXPECT_EQ(crowded.code, 3);
  EXPECT_THAT(crowded.err, HasSubstr("of 16,776,960 messages, counted by what they take beside others"));
}

}  // namespace
}  // namespace ganymede::cli
