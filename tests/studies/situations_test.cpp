// Threads in which people asked why, and got an answer: how often the verdicts are that answer.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "plan/fits.hpp"
#include "studies/link_check.hpp"
#include "studies/why_slow.hpp"
#include "support/temporary_folder.hpp"
#include "support/when.hpp"

namespace ganymede::studies {
namespace {

std::string text_of(const Json& of, const char* member) { return of.value(member, std::string()); }

/// What nccl-tests print on this machine: a latency, and a bandwidth that large sizes reach.
std::string log_of(const Json& of) {
  const int gpus = of.at("gpus").get<int>(), ranks = gpus * of.at("nodes").get<int>();
  const double factor = 2.0 * (ranks - 1) / ranks;
  std::string text = text_of(of, "words") + "\n# Collective test starting: all_reduce_perf\n# Using devices\n";
  for (int rank = 0; rank < ranks; ++rank)
    text += fmt::format("#  Rank {:2} Group  0 Pid {} on node-{} device {:2} [0x{:02x}] {}\n", rank, 100 + rank,
                        rank / gpus, rank % gpus, rank, text_of(of, "gpu"));
  for (std::int64_t bytes = 1 << 20; bytes <= std::int64_t{4} << 30; bytes *= 4) {
    const double time = 60 + static_cast<double>(bytes) * factor / of.at("bus_GBps").get<double>() * 1e-3;
    const double rate = static_cast<double>(bytes) / time * 1e-3;
    text += fmt::format("{} {} float sum -1 {:.2f} {:.2f} {:.2f} 0\n", bytes, bytes / 4, time, rate, rate * factor);
  }
  return text;
}

/// What `check nccl-log` prints first.
std::string answer_on_links(const Json& of) {
  const TemporaryFolder folder;
  LinkCheckOptions options;
  options.log = folder.add("run.log", log_of(of)).string();
  options.nic = text_of(of, "nic"), options.instance = text_of(of, "instance");
  const documents::LinkCheck check = check_link_log(options);
  return check.causes.front().cause;
}

/// What `why-slow` prints first.
std::string answer_on_training(const Json& of) {
  WhySlowOptions options;
  options.gpus = of.at("gpus").get<int>(), options.nodes = of.at("nodes").get<int>(), options.gpu = text_of(of, "gpu");
  options.one = fmt::format("{}", of.at("one").get<double>());
  options.all = fmt::format("{}", of.at("all").get<double>());
  options.nic = text_of(of, "nic"), options.batch = of.value("batch", 0);
  options.parameters = of.value("parameters", std::int64_t{0});
  options.launcher = text_of(of, "launcher");
  const documents::WhySlow answer = why_slow(options);
  return answer.verdict == "slow" ? answer.causes.front().cause : "normal";
}

/// True if `fits` has the memory that was measured in its interval, or says of the GPU what was found.
bool fits_as_found(const Json& of) {
  plan::FitsOptions options;
  options.model = text_of(of, "model"), options.batch = of.at("batch").get<int>(), options.gpus = {text_of(of, "gpu")};
  const documents::Fits answer = plan::fits(options);
  const documents::FitsGpu& gpu = answer.gpus.front();
  if (of.contains("fits")) return gpu.at_verdict == of.at("fits").get<std::string>();
  if (of.contains("allocated_GiB")) {  // PyTorch's torch.cuda.max_memory_allocated(), which NVIDIA's logs print
    constexpr double kNear = 0.1;
    return std::abs(answer.allocated / (of.at("allocated_GiB").get<double>() * 1073741824) - 1) < kNear;
  }
  const double bytes = of.at("gigabytes").get<double>() * 1e9;
  return gpu.at_batch->interval.low <= bytes && bytes <= gpu.at_batch->interval.high;
}

struct Count {
  int right = 0, all = 0;
  std::string missed = {};
};

TEST(Situations, AreAnsweredAsTheirThreadsWere) {
  NOT_SANITIZED("looks at shares of right answers; LinkCheck and WhySlow take the same paths");
  Count counts[4];
  const JsonNode all = JsonNode::load(GANYMEDE_SOURCE_DIR "/tests/studies/situations.json");
  for (const Json& of : all.value()) {
    Count& count = counts[of.contains("trial") ? of.at("trial").get<int>() : of.at("held").get<bool>() ? 1 : 0];
    ++count.all;
    const std::string kind = text_of(of, "kind");
    std::string answer;
    bool right = false;
    try {
      answer = kind == "links" ? answer_on_links(of) : kind == "training" ? answer_on_training(of) : "";
      right = kind == "memory" ? fits_as_found(of) : of.at("causes").dump().find('"' + answer + '"') != answer.npos;
    } catch (const ConfigError& error) {
      answer = error.what();
    }
    count.right += right ? 1 : 0;
    if (!right) count.missed += fmt::format("{}: {}\n", text_of(of, "source"), answer);
  }
  EXPECT_EQ(counts[0].all, 22);
  EXPECT_EQ(counts[1].all, 22);
  // As docs/commands.md says, with three memories each in the first two groups, eleven in the third and five in the
  // fourth. A change that answers more of them is welcome to raise these.
  EXPECT_GE(counts[0].right, 17) << counts[0].missed;
  EXPECT_GE(counts[1].right, 19) << counts[1].missed;
  EXPECT_EQ(counts[2].all, 43);
  EXPECT_GE(counts[2].right, 37) << counts[2].missed;
  EXPECT_EQ(counts[3].all, 24);
  EXPECT_GE(counts[3].right, 20) << counts[3].missed;
  for (const Count& count : counts) RecordProperty("missed", count.missed);
}

}  // namespace
}  // namespace ganymede::studies
