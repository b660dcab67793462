// Plans and trainings of tables in shards: they merge to the bytes of one process, and what cannot be split says why.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "common/json_value.hpp"
#include "common/random.hpp"
#include "learn_scenario.hpp"
#include "run_program.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
class SearchShards : public testing::Test {
 protected:
  /// One process's output in the folder of the test, where shards are merged too, because a plan names files from
  /// there.
  Outcome alone(const std::string& command) const {
    Outcome outcome = run_program(fmt::format("{} -o {}", command, (scratch_ / "alone.json").string()));
    outcome.out = content_of(scratch_ / "alone.json");
    return outcome;
  }
  Outcome shard(const std::string& command, const std::string& which) const {
    return run_program(fmt::format("{} --shard {} -o {}", command, which, out()));
  }
  Outcome merge(const std::string& more = "") const {
    std::filesystem::remove(scratch_ / "merged.json");
    Outcome outcome = run_program(fmt::format("merge {} -o {} {}", out(), (scratch_ / "merged.json").string(), more));
    if (std::filesystem::exists(scratch_ / "merged.json")) outcome.out = content_of(scratch_ / "merged.json");
    return outcome;
  }
  std::string out() const { return (scratch_ / "out").string(); }

  Scratch scratch_;
};

// Several schemes, spot markets at risk, and goals: all that decides what is simulated.
constexpr const char* kPlanToSplit =
    "plan --model dcgan-64 --images 20M --catalog aws --region us-east-1,us-west-2 --gpu V100,T4 --max-gpus 4 "
    "--seeds 2 ";
// For what is the same of any plan.
constexpr const char* kSmallPlan =
    "plan --model dcgan-64 --images 20M --catalog aws --region us-east-1,us-west-2 --gpu V100,T4 --max-gpus 1 "
    "--seeds 2 ";

TEST_F(SearchShards, OfAPlanMergeToItsBytes) {
  NOT_SANITIZED("repeats whole plans, which other tests make once");
  for (const char* goals : {"--deadline 20h --budget 60USD", "--objective risk-averse --deadline 9h"}) {
    const std::string command = std::string(kPlanToSplit) + goals;
    const Outcome one = alone(command + " --format json");
    ASSERT_EQ(one.code, 0) << one.err;
    for (const auto& shards : {std::vector<const char*>{"2/3", "0/3", "1/3"}, {"0/1"}}) {
      std::filesystem::remove_all(out());
      for (const char* which : shards) EXPECT_EQ(shard(command, which).code, 0) << which;
      const Outcome merged = merge();
      EXPECT_EQ(merged.code, 0) << merged.err;
      EXPECT_EQ(merged.out, one.out) << goals << " in " << shards.size();
    }
  }
}

TEST_F(SearchShards, OfAPlanLeaveOutWhatOthersBeat) {
  NOT_SANITIZED("repeats whole plans, which other tests make once");
  const auto rows = [&](const std::string& name) { return content_of(scratch_ / "out" / name); };
  const auto beaten = [&](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = text.find("\"beaten\""); at != std::string::npos; at = text.find("\"beaten\"", at + 1))
      ++count;
    return count;
  };
  std::size_t ignorant = 0, knowing = 0;
  for (const char* which : {"0/3", "1/3", "2/3"}) {
    std::filesystem::remove_all(out());
    ASSERT_EQ(shard(kPlanToSplit, which).code, 0);
    ignorant += beaten(rows(fmt::format("shard-{}-of-3.rows", which[0])));
  }
  std::filesystem::remove_all(out());
  for (const char* which : {"0/3", "1/3", "2/3"}) {
    ASSERT_EQ(shard(kPlanToSplit, which).code, 0);
    knowing += beaten(rows(fmt::format("shard-{}-of-3.rows", which[0])));
  }
  EXPECT_GT(knowing, ignorant);
}

TEST_F(SearchShards, OfAPlanSayWhatIsMissingAndMergeCanDoIt) {
  const std::string command = std::string(kSmallPlan) + "--deadline 20h";
  const Outcome one = alone(command + " --format json");
  ASSERT_EQ(shard(command, "0/2").code, 0);
  const Outcome missing = merge();
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, HasSubstr("--shard 1/2"));
  EXPECT_THAT(missing.err, HasSubstr("--partial does them here"));
  EXPECT_THAT(run_program("merge " + out() + " --status").out, HasSubstr("1 of 2 shards are complete"));
  EXPECT_EQ(merge("--partial --jobs 2").out, one.out);
}

TEST_F(SearchShards, OfAPlanThatNothingMeetsEndAsThePlanDoes) {
  const std::string command = std::string(kSmallPlan) + "--budget 0.01USD";
  EXPECT_EQ(alone(command + " --format json").code, 3);
  ASSERT_EQ(shard(command, "0/1").code, 0);
  const Outcome merged = merge();
  EXPECT_EQ(merged.code, 3);
  EXPECT_THAT(merged.err, HasSubstr("nothing meets the goals; the nearest is"));
}

TEST_F(SearchShards, OfAnotherQuestionAreRefused) {
  NOT_SANITIZED("repeats whole plans, which other tests make once");
  ASSERT_EQ(shard(kPlanToSplit, "0/2").code, 0);
  const Outcome other = shard(std::string(kPlanToSplit) + "--deadline 9h", "1/2");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("holds shards of another question: "));
  const Outcome time = shard(std::string(kPlanToSplit) + "--deadline 2027-01-01T00:00Z", "1/2");
  EXPECT_EQ(time.code, 2);
  EXPECT_THAT(time.err, HasSubstr("say with --start from when it counts"));
  const Outcome day = shard(std::string(kPlanToSplit) + "--today 2026-11-21", "1/2");
  EXPECT_EQ(day.code, 2);
  EXPECT_THAT(day.err, HasSubstr("/search/today differs"));
  const Outcome saved = shard(std::string(kPlanToSplit) + "--save " + (scratch_ / "p.json").string(), "1/2");
  EXPECT_EQ(saved.code, 2);
  EXPECT_THAT(saved.err, HasSubstr("--save: found with --shard"));
}

TEST_F(SearchShards, OfAFileThatHasChangedAreRefused) {
  NOT_SANITIZED("repeats whole plans, which other tests make once");
  const std::string source = GANYMEDE_SOURCE_DIR;
  Json trace = Json::parse(content_of(source + "/traces/recorded/dcgan-64-cpu.json"));
  const std::string file = scratch_.write("trace.json", trace.dump());
  const std::string command = "plan --trace " + file + " --images 1M --catalog aws --max-gpus 2 --seeds 1";
  ASSERT_EQ(shard(command, "0/1").code, 0) << shard(command, "0/1").err;
  EXPECT_EQ(merge().code, 0);
  trace["device"]["name"] = "another";
  scratch_.write("trace.json", trace.dump());
  const Outcome merged = merge();
  EXPECT_EQ(merged.code, 2);
  EXPECT_THAT(merged.err, HasSubstr("/files/~1workload~1trace differs"));
}

// Rows whose checksums fit, though no shard has written them.
TEST_F(SearchShards, OfAPlanWithForeignRowsAreRefused) {
  NOT_SANITIZED("repeats whole plans, which other tests make once");
  ASSERT_EQ(shard(kPlanToSplit, "0/1").code, 0);
  const std::filesystem::path file = scratch_ / "out" / "shard-0-of-1.rows";
  const std::string rows = content_of(file);
  const auto merge_with = [&](const std::string& text) {
    std::string changed;
    std::istringstream lines(rows);
    for (std::string line; std::getline(lines, line);) {
      const std::string row = line.substr(17);
      const std::size_t at = row.find("\tr\t");
      const std::string now = at == std::string::npos ? row : row.substr(0, at + 3) + text;
      changed += fmt::format("{:016x}\t{}\n", fnv1a(now), now);
    }
    std::ofstream(file, std::ios::binary) << changed;
    const Outcome merged = merge();
    EXPECT_EQ(merged.code, 2) << text;
    return merged.err;
  };
  EXPECT_THAT(merge_with("garbage"), HasSubstr("the row of aws "));
  EXPECT_THAT(merge_with("{}"), HasSubstr("as rows of earlier builds; remove the folder"));
  // A shard reads what is there before it goes on.
  const std::string changed = content_of(file);
  std::ofstream(file, std::ios::binary) << changed.substr(0, changed.find('\n', changed.find('\n') + 1) + 1);
  const Outcome stuck = shard(kPlanToSplit, "0/1");
  EXPECT_EQ(stuck.code, 2);
  EXPECT_THAT(stuck.err, AllOf(HasSubstr("shard-0-of-1.rows: the row of "), HasSubstr("rows of earlier builds")));
  std::ofstream(file, std::ios::binary) << rows;
  give_rows_the_first_text(file);
  EXPECT_THAT(merge().err, HasSubstr("found the row of another run, aws "));
}

class LearnShards : public SearchShards {
 protected:
  std::string learn(const std::string& more) const {
    return "learn " + scenario_ + " --episodes 12 --held-out 2 " + more;
  }
  std::string scenario_ = scratch_.write("scenario.json", kLearnScenario);
};

TEST_F(LearnShards, MergeToTheBytesOfOneProcess) {
  const std::string command = learn("--learners 4");
  const Outcome one = alone(command + " --jobs 2");
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(Json::parse(one.out)["learners"], 4);
  for (const char* which : {"0/2", "1/2"}) EXPECT_EQ(shard(command, which).code, 0) << which;
  const Outcome merged = merge();
  EXPECT_EQ(merged.code, 0) << merged.err;
  EXPECT_EQ(merged.out, one.out);
  EXPECT_THAT(merged.err, HasSubstr("On 2 seeds from 1000012 on"));
  give_rows_the_first_text(scratch_ / "out/shard-0-of-2.rows");
  EXPECT_THAT(merge().err, HasSubstr("found the row of another run, learner "));
}

TEST_F(LearnShards, NeedLearnersAndAllOfThem) {
  const Outcome few = shard(learn(""), "0/2");
  EXPECT_EQ(few.code, 2);
  EXPECT_THAT(few.err, HasSubstr("--shard needs --learners"));
  const Outcome many = run_program(learn("--learners 13"));
  EXPECT_EQ(many.code, 2);
  EXPECT_THAT(many.err, HasSubstr("--learners: found 13, expected at most the 12 of --episodes"));
  ASSERT_EQ(shard(learn("--learners 12"), "0/2").code, 0);
  EXPECT_EQ(merge().code, 3);
  const Outcome part = merge("--partial");
  EXPECT_EQ(part.code, 2);
  EXPECT_THAT(part.err, HasSubstr("a table is made by all its learners"));
}

}  // namespace
}  // namespace ganymede::cli
