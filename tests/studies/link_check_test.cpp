// Verdicts on logs of nccl-tests whose bandwidth follows from line rates: what the links of a machine carry when all is
// well, and what is left of them when something is wrong.

#include "studies/link_check.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::studies {
namespace {

using testing::HasSubstr;

constexpr const char* kA100 = "NVIDIA A100-SXM4-40GB";

struct Measured {
  int nodes = 1, gpus = 8;
  std::string gpu = kA100;
  double bus = 0;       ///< GB/s of bus bandwidth of large sizes
  double latency = 60;  ///< us
  std::string before = {};
  std::string collective = "all_reduce";
  double collapsed = 0;  ///< GB/s from 256 MiB on, if it is not 0
};

/// A log as nccl-tests 2.13 prints it: each size takes a latency and its share of the bandwidth.
std::string log_of(const Measured& run) {
  const int ranks = run.nodes * run.gpus;
  const double factor = (run.collective == "all_reduce" ? 2.0 : 1.0) * (ranks - 1) / ranks;
  std::string text = run.before + fmt::format("# Collective test starting: {}_perf\n# Using devices\n", run.collective);
  for (int rank = 0; rank < ranks; ++rank)
    text += fmt::format("#  Rank {:2} Group  0 Pid {} on node-{} device {:2} [0x{:02x}] {}\n", rank, 100 + rank,
                        rank / run.gpus, rank % run.gpus, rank, run.gpu);
  for (std::int64_t bytes = 1024; bytes <= std::int64_t{4} << 30; bytes *= 4) {
    const double bus = run.collapsed > 0 && bytes >= 256 << 20 ? run.collapsed : run.bus;
    const double time = run.latency + static_cast<double>(bytes) * factor / bus * 1e-3;
    const double algbw = static_cast<double>(bytes) / time * 1e-3;
    const std::string cells = fmt::format("{:.2f} {:.2f} {:.2f} 0", time, algbw, algbw * factor);
    text += fmt::format("{:12} {:12} float sum -1 {} {}\n", bytes, bytes / 4, cells, cells);
  }
  return text;
}

documents::LinkCheck check(const Measured& run, LinkCheckOptions options = {}) {
  const TemporaryFolder folder;
  options.log = folder / "run.log";
  write_file(options.log, log_of(run));
  return check_link_log(options);
}

std::string refusal(const Measured& run, const LinkCheckOptions& options = {}) {
  try {
    (void)check(run, options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

const documents::LikelyCause& likeliest_fault(const documents::LinkCheck& check) {
  return check.causes[check.causes.front().cause == "normal" ? 1 : 0];
}

LinkCheckOptions with_nic(const std::string& nic) {
  LinkCheckOptions options;
  options.nic = nic;
  return options;
}
LinkCheckOptions on(const std::string& catalog, const std::string& instance) {
  LinkCheckOptions options;
  options.catalog = catalog, options.instance = instance;
  return options;
}

// NVSwitch of A100: 12 links of 25 GB/s, of which about 80 % are bus bandwidth. Two nodes of EFA: 4 x 12.5 GB/s, of
// which a tree makes up to twice that. PCIe 3: 16 GB/s less headers.
TEST(LinkCheck, FindsNormalWhatIsNormal) {
  struct Case {
    Measured run;
    LinkCheckOptions options;
    std::string instance;
  };
  const std::vector<Case> cases = {
      {{1, 8, kA100, 232, 30}, {}, "p4d.24xlarge"},
      {{1, 8, "NVIDIA H100 80GB HBM3", 470, 25}, {}, "p5.48xlarge"},
      {{2, 8, kA100, 75, 100, "n:1:1 [0] NCCL INFO NET/OFI Selected Provider is efa\n"}, {}, "p4d.24xlarge"},
      {{2, 8, kA100, 185, 60}, with_nic("8x200Gbit/s"), "p4d.24xlarge"},
      {{1, 4, "Tesla V100-PCIE-16GB", 10.5, 30}, {}, "Standard_NC24rs_v3"},
      {{1, 8, kA100, 230, 30, "", "all_gather"}, {}, "p4d.24xlarge"},
  };
  for (const auto& [run, options, instance] : cases) {
    const documents::LinkCheck found = check(run, options);
    EXPECT_EQ(found.verdict, "normal") << run.gpu << " " << run.bus << " " << found.ratio;
    EXPECT_EQ(found.instance, instance);
    EXPECT_NEAR(found.ratio, 1, 0.4);
    EXPECT_EQ(found.causes.front().cause, "normal") << run.gpu << " " << run.bus;
  }
}

// More than the links carry: the machine may be another one, but nothing makes it slow.
TEST(LinkCheck, LooksForNothingWhereALogIsFaster) {
  const documents::LinkCheck found = check({1, 8, kA100, 600, 30}, {});
  EXPECT_EQ(found.verdict, "faster") << found.ratio;
  ASSERT_EQ(found.causes.size(), 1U);
  EXPECT_EQ(found.causes.front().cause, "normal");
}

// Each bandwidth is that of the part that is left: one PCIe slot, one socket, one NIC (12.5 or 25 GB/s), LL's lines, of
// which half are flags that it waits for.
TEST(LinkCheck, NamesWhatIsWrong) {
  const std::string shm = "n:1:1 [0] NCCL INFO Channel 00 : 0[7000] -> 1[8000] via SHM/direct/direct\n";
  struct Case {
    Measured run;
    LinkCheckOptions options;
    std::string verdict, cause;
  };
  const std::vector<Case> cases = {
      {{1, 8, kA100, 12, 40, shm}, {}, "broken", "no-p2p"},
      {{1, 8, kA100, 12, 40}, {}, "broken", "no-p2p"},
      {{2, 8, kA100, 3.3, 120, "n:1:1 [0] NCCL INFO Using network Socket\n"},
       on("aws", "p4d.24xlarge"),
       "broken",
       "tcp-fallback"},
      {{2, 8, kA100, 3.3, 120}, on("aws", "p4d.24xlarge"), "broken", "tcp-fallback"},
      {{2, 8, kA100, 23, 80, "mpirun -x NCCL_IB_HCA=mlx5_0 all_reduce_perf\n"},
       with_nic("8x200Gbit/s"),
       "broken",
       "one-nic"},
      {{2, 8, kA100, 24, 80, "n:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.4<0>\n"},
       with_nic("8x200Gbit/s"),
       "broken",
       "one-nic"},
      {{1, 8, kA100, 60, 20, "NCCL_PROTO=LL\n"}, {}, "low", "forced-protocol"},
      {{1, 4, "Tesla V100-PCIE-16GB", 5.5, 30}, {}, "low", "socket-crossing"},
      {{2, 8, kA100, 60, 80, "n:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n"},
       with_nic("8x200Gbit/s"),
       "low",
       "no-gpu-direct"},
  };
  for (const auto& [run, options, verdict, cause] : cases) {
    const documents::LinkCheck found = check(run, options);
    EXPECT_EQ(found.verdict, verdict) << cause << " " << run.bus << " " << found.ratio;
    EXPECT_EQ(likeliest_fault(found).cause, cause) << run.bus;
    EXPECT_GT(likeliest_fault(found).against_normal, 1) << cause;
    EXPECT_FALSE(likeliest_fault(found).shows.empty());
  }
}

// The version that --scheme states is that of forced protocols too.
TEST(LinkCheck, TakesTheVersionOfTheScheme) {
  const Measured run{.nodes = 2, .bus = 20, .before = "NCCL_PROTO=LL\n"};
  Measured named = run;
  named.before += "NCCL version 2.9.9+cuda11.0\n";
  LinkCheckOptions stated = with_nic("8x200Gbit/s");
  stated.scheme = "nccl:2.9.9";
  EXPECT_EQ(likeliest_fault(check(run, stated)).bus, likeliest_fault(check(named, with_nic("8x200Gbit/s"))).bus);
}

// As three nodes in two racks did (NVIDIA/nccl, issue 1453): six times less from some size on.
TEST(LinkCheck, NamesANetworkThatLosesPackets) {
  const Measured run{.nodes = 3, .gpu = "NVIDIA H100 80GB HBM3", .bus = 60, .latency = 300, .collapsed = 5.3};
  const documents::LinkCheck lossy = check(run, with_nic("8x400Gbit/s"));
  EXPECT_EQ(lossy.verdict, "broken");
  EXPECT_EQ(lossy.causes.front().cause, "lossy-network");
  // EFA repairs what is lost itself, and without a collapse nothing is lost.
  const Measured efa{.nodes = 2, .bus = 75, .collapsed = 12}, slow{.nodes = 3, .gpu = run.gpu, .bus = 40};
  EXPECT_NE(likeliest_fault(check(efa, on("aws", "p4d.24xlarge"))).cause, "lossy-network");
  EXPECT_NE(likeliest_fault(check(slow, with_nic("8x400Gbit/s"))).cause, "lossy-network");
}

TEST(LinkCheck, GivesProbabilitiesAndTheLogsOwnWords) {
  const documents::LinkCheck found =
      check({2, 8, kA100, 3.3, 120, "n:1:1 [0] NCCL INFO Using network Socket\n"}, on("aws", "p4d.24xlarge"));
  double all = 0;
  for (const documents::LikelyCause& cause : found.causes) all += cause.share;
  EXPECT_NEAR(all, 1, 1e-9);
  EXPECT_EQ(found.causes.front().sign, "n:1:1 [0] NCCL INFO Using network Socket");
  const Json json = Json::parse(documents::link_check_text(found));
  EXPECT_EQ(json["schema"], "ganymede.link-check/1");
  EXPECT_EQ(json["sizes"].size(), found.sizes.size());
}

TEST(LinkCheck, OnlyValuesThatNcclKnowsAreSigns) {
  const auto sign_of = [](const std::string& line, const std::string& cause) {
    for (const documents::LikelyCause& found : check({1, 8, kA100, 60, 20, line + "\n"}).causes)
      if (found.cause == cause) return found.sign;
    return std::string("absent");
  };
  for (const char* line :
       {"NCCL_ALGO=Tree", "NCCL_ALGO=^ring", "n:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Tree.",
        "mpirun -x NCCL_ALGO=allgather:ring;allreduce:TREE all_reduce_perf"})
    EXPECT_EQ(sign_of(line, "forced-algorithm"), line);
  EXPECT_EQ(sign_of("NCCL_PROTO=LL", "forced-protocol"), "NCCL_PROTO=LL");
  EXPECT_EQ(sign_of("NCCL_ALGO=Foo", "forced-algorithm"), "");
  EXPECT_EQ(sign_of("unset NCCL_ALGO Ring", "forced-algorithm"), "");
  EXPECT_EQ(sign_of("NCCL_PROTO=Bar", "forced-protocol"), "");
}

// Eight A100 take the ring with Simple and have no NVLS: who names these, or only switches others off, slows nothing.
TEST(LinkCheck, NamingWhatNcclTakesAnywayIsNoCause) {
  for (const char* line : {"NCCL_ALGO=Ring", "NCCL_ALGO=^tree", "NCCL_ALGO=Ring,Tree", "NCCL_NVLS_ENABLE=0",
                           "NCCL_TREE_THRESHOLD=0", "NCCL_PROTO=Simple", "NCCL_PROTO=LL128,Simple"})
    for (const documents::LikelyCause& found : check({1, 8, kA100, 150, 20, line + std::string("\n")}).causes)
      EXPECT_NE(found.cause,
                std::string_view(line).find("PROTO") == std::string_view::npos ? "forced-algorithm" : "forced-protocol")
          << line;
  EXPECT_THAT(likeliest_fault(check({1, 8, kA100, 60, 20, "NCCL_PROTO=LL\n"})).says,
              HasSubstr("NCCL may use only ll here"));
}

// From what the links carry down to little of it: the first row is that of the verdict.
TEST(LinkCheck, TheVerdictIsThatOfTheFirstRow) {
  for (double share = 1; share > 0.2; share *= 0.95)
    for (const Measured& run :
         {Measured{1, 8, kA100, 235 * share, 30}, {1, 4, "Tesla V100-PCIE-16GB", 12 * share, 30}}) {
      const documents::LinkCheck found = check(run);
      EXPECT_EQ(found.verdict == "normal", found.causes.front().cause == "normal")
          << run.gpu << " " << run.bus << " " << found.causes.front().cause;
    }
}

TEST(LinkCheck, RefusesWhatContradictsItself) {
  LinkCheckOptions both = on("aws", "p4d.24xlarge");
  const Measured run{1, 8, kA100, 232, 30};
  for (const char* gpu : {"V100", "A100-80GB"}) {
    both.gpu = gpu;
    for (const char* catalog : {"aws", ""}) {
      both.catalog = catalog;
      EXPECT_THAT(refusal(run, both),
                  HasSubstr(std::string("--gpu ") + gpu + ": --instance p4d.24xlarge has A100-40GB"));
    }
  }
  for (const char* gpu : {"A100", "A100-40GB", "a100"}) {
    both.gpu = gpu;
    EXPECT_EQ(refusal(run, both), "") << gpu;
  }
  for (const char* nic : {"8x1e30Gbit/s", "1x1bit/s"})
    EXPECT_THAT(refusal({2, 8, kA100, 100, 60}, with_nic(nic)), HasSubstr("expected NICs of 100Mbit/s to 10Tbit/s"));
}

// Two times for the same work that are far apart: the row says nothing, as `import nccl-tests` has it.
TEST(LinkCheck, DisturbedRowsAreLeftOut) {
  const TemporaryFolder folder;
  LinkCheckOptions options;
  options.log = folder / "run.log";
  std::string text = log_of({1, 8, kA100, 220, 60});
  text += "1048576 262144 float sum -1 10485.76 0.10 0.18 0 100.00 10.49 18.35 0\n";
  const auto rows = log_of({1, 8, kA100, 220, 60}).find("     1048576 ");
  text.erase(rows, text.find('\n', rows) + 1 - rows);
  write_file(options.log, text);
  const documents::LinkCheck out = check_link_log(options);
  EXPECT_THAT(out.notes, testing::Contains(HasSubstr("in place: disturbed, left out")));
  EXPECT_EQ(out.verdict, "normal");
}

// The headline's interval is that of the table, of which no size tells much of bandwidth.
TEST(LinkCheck, SmallSizesHaveOneInterval) {
  const TemporaryFolder folder;
  LinkCheckOptions options;
  options.log = folder / "run.log";
  std::string text = log_of({1, 8, kA100, 220, 60});
  text.erase(text.find("    16777216 "));
  write_file(options.log, text);
  const documents::LinkCheck out = check_link_log(options);
  const documents::CheckedSize& last = out.sizes.back();
  EXPECT_NEAR(last.expected / last.interval.high, out.interval.low, 1e-9);
  EXPECT_NEAR(last.expected / last.interval.low, out.interval.high, 1e-9);
  EXPECT_NEAR(last.interval.high / last.expected, out.sizes.front().interval.high / out.sizes.front().expected, 1e-9);
}

TEST(LinkCheck, AnotherGpuThanTheLogNamesIsSaid) {
  LinkCheckOptions options;
  options.gpu = "H100";
  EXPECT_THAT(check({.gpu = "AMD Instinct MI300X", .bus = 310}, options).recognised,
              HasSubstr("though the log names \"AMD Instinct MI300X\""));
  EXPECT_THAT(check({.gpu = "NVIDIA H100 80GB HBM3", .bus = 450}, options).recognised, Not(HasSubstr("though")));
}

TEST(LinkCheck, KnowsGpusByShortNames) {
  LinkCheckOptions options;
  options.gpu = "4090";
  EXPECT_EQ(check({1, 8, "", 20, 60}, options).instance, check({1, 8, "NVIDIA GeForce RTX 4090", 20, 60}).instance);
}

TEST(LinkCheck, SaysWhatItNeeds) {
  EXPECT_THAT(refusal({2, 8, kA100, 100, 60}),
              HasSubstr("2 nodes of NVIDIA A100-SXM4-40GB may be aws p4d.24xlarge (4 x "
                        "100 Gbit/s efa) or azure Standard_ND96asr_v4 (8 x 200"));
  EXPECT_THAT(refusal({2, 8, kA100, 100, 60}), HasSubstr("--nic 8x200Gbit/s"));
  EXPECT_THAT(refusal({1, 8, "Unheard-of 9000", 100, 60}), HasSubstr("no catalog has a machine with 8 of Unheard-of"));
  for (const char* device : {"TPU-v3", "CPU"}) EXPECT_THAT(refusal({1, 4, device, 100, 60}), HasSubstr("is no GPU"));
  EXPECT_THAT(refusal({1, 4, "", 100, 60}, on("gcp", "tpu-v3-8")), HasSubstr("tpu-v3-8: TPU-v3 is no GPU"));
  EXPECT_THAT(refusal({2, 8, kA100, 100, 60}, with_nic("many")), HasSubstr("--nic many"));
  EXPECT_THAT(refusal({2, 8, kA100, 100, 60}, with_nic("0x200Gbit/s")), HasSubstr("expected NICs of a node"));
  EXPECT_THAT(refusal({2, 8, kA100, 100, 60}, on("aws", "p3.2xlarge")), HasSubstr("p3.2xlarge has 1"));
}

}  // namespace
}  // namespace ganymede::studies
