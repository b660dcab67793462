// Sweeps in shards as a user starts them: any number of shards, lost, repeated, killed and stopped, merge to the bytes
// of one process; what does not belong together is refused.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "run_program.hpp"
#include "support/errors.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
class Shards : public testing::Test {
 protected:
  static Json study(int seeds) {
    Json content = Json::parse(content_of(GANYMEDE_SOURCE_DIR "/studies/spot-deadline.json"), /*comments=*/true);
    content["workload"]["trace"] = std::string(GANYMEDE_SOURCE_DIR) + "/traces/recorded/progressive-gan-cpu.json";
    content["policies"] = {"fixed", "spot-first"};
    content["seeds"] = {{"first", 1}, {"count", seeds}};
    return content;
  }
  /// The sweep of one process. Also writes the study.
  std::string whole(const Json& content) {
    study_ = scratch_.write("study.json", content.dump());
    const Outcome outcome = run_program("sweep " + study_ + " --format json --jobs 2");
    whole_code_ = outcome.code;
    return outcome.out;
  }
  Outcome shard(const std::string& which, const std::string& more = "") const {
    return run_program(fmt::format("sweep {} --shard {} -o {} {}", study_, which, (scratch_ / "out").string(), more));
  }
  Outcome merge(const std::string& more = "") const {
    return run_program("merge " + (scratch_ / "out").string() + " " + more);
  }
  std::filesystem::path rows(const std::string& name) const { return scratch_ / "out" / (name + ".rows"); }
  /// Does all of the study in one shard. The text of the last row, behind its checksum and a tab.
  std::string last_row(const Json& content) {
    (void)whole(content);
    EXPECT_EQ(shard("0/1").code, 0);
    const std::string good = content_of(rows("shard-0-of-1"));
    const std::size_t last = good.rfind('\n', good.size() - 2) + 1;
    before_last_ = good.substr(0, last);
    return good.substr(last + 17, good.size() - last - 18);
  }
  /// Merges with this text in place of the last row's, as whoever writes a row can make its checksum, too.
  Outcome merge_with(const std::string& row, const std::string& more = "") const {
    std::ofstream(rows("shard-0-of-1"), std::ios::binary)
        << before_last_ << fmt::format("{:016x}\t{}\n", fnv1a(row), row);
    return merge(more);
  }

  Scratch scratch_;
  std::string study_;
  std::string before_last_;
  int whole_code_ = 0;
};

TEST_F(Shards, OfAnyNumberMergeToTheBytesOfOneProcess) {
  const std::string all = whole(study(10));
  ASSERT_EQ(whole_code_, 0);
  // From 0, from 1, and one shard alone.
  for (const auto& shards : {std::vector<const char*>{"0/3", "1/3", "2/3"}, {"1/2", "2/2"}, {"0/1"}}) {
    std::filesystem::remove_all(scratch_ / "out");
    for (const char* which : shards) EXPECT_EQ(shard(which).code, 0) << which;
    const Outcome merged = merge();
    EXPECT_EQ(merged.code, 0) << merged.err;
    EXPECT_EQ(merged.out, all);
  }
  EXPECT_EQ(merge("-o " + (scratch_ / "merged.json").string()).code, 0);
  EXPECT_EQ(content_of(scratch_ / "merged.json"), all);
}

TEST_F(Shards, WhatAnyShardHasDoneIsNotDoneAgain) {
  NOT_SANITIZED("starts dozens of programs, and one starts slowly there");
  const std::string all = whole(study(10));
  EXPECT_THAT(shard("0/2").err, HasSubstr("0 were there already"));
  const std::string first = content_of(rows("shard-0-of-2"));
  EXPECT_THAT(shard("0/2").err, HasSubstr("0 were done now"));
  EXPECT_EQ(content_of(rows("shard-0-of-2")), first);
  // Shards of another count: those of 4 that hold the same runs have nothing left to do, and so has 1 of 3.
  for (const char* which : {"0/4", "2/4"}) EXPECT_THAT(shard(which).err, HasSubstr("0 were done now")) << which;
  for (const char* which : {"0/3", "1/3", "2/3"}) EXPECT_EQ(shard(which).code, 0);
  EXPECT_EQ(merge().out, all);
}

TEST_F(Shards, MissingRunsAreNamed) {
  const std::string all = whole(study(10));
  ASSERT_EQ(shard("1/4").code, 0);
  const Outcome missing = merge();
  EXPECT_EQ(missing.code, 3);
  EXPECT_EQ(missing.out, "");
  EXPECT_THAT(missing.err, AllOf(HasSubstr("of 20 runs are missing: aws us-east-1, 4 x GPU, ring, fixed, seed"),
                                 HasSubstr("--shard 0/4, 2/4, 3/4")));
  const Outcome status = merge("--status");
  EXPECT_EQ(status.code, 0);
  EXPECT_THAT(status.out, AllOf(HasSubstr("spot-deadline (sweep, version"), HasSubstr("1 of 4 shards are complete")));
  const Outcome partial = merge("--partial");
  EXPECT_EQ(partial.code, 0);
  const Json some = Json::parse(partial.out), every = Json::parse(all);
  EXPECT_GT(some["runs"].size(), 0U);
  EXPECT_LT(some["runs"].size(), 20U);
  for (const Json& run : some["runs"]) EXPECT_THAT(every["runs"], testing::Contains(run));
  EXPECT_EQ(run_program("merge " + scratch_.write("file", "")).code, 2);
  EXPECT_THAT(run_program("merge " + (scratch_ / "nowhere").string()).err, HasSubstr("has no shards.json"));
}

// Runs that fail or never finish are listed as one process lists them, with its exit code.
TEST_F(Shards, FailuresAreThoseOfOneProcess) {
  Json content = study(6);
  content["policies"] = {"fixed", {{"name", "external"}, {"command", {"false"}}}};
  const std::string all = whole(content);
  EXPECT_EQ(whole_code_, 1);
  for (const char* which : {"0/2", "1/2"}) EXPECT_EQ(shard(which).code, 1) << which;
  const Outcome merged = merge();
  EXPECT_EQ(merged.code, 1);
  EXPECT_EQ(merged.out, all);
  // They are tried again, and are still there once.
  EXPECT_THAT(shard("0/2").err, HasSubstr("failed"));
  EXPECT_EQ(merge().out, all);
}

TEST_F(Shards, OfOtherWorkAreRefused) {
  (void)whole(study(4));
  ASSERT_EQ(shard("0/2").code, 0);
  ASSERT_EQ(shard("1/2").code, 0);
  const auto refuses = [&](const Outcome& outcome, const char* what) {
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(what));
  };
  refuses(shard("0/2", "--seed 9"), "with other seeds: {\"first\":1,\"count\":4}, expected {\"first\":9,\"count\":1}");
  refuses(shard("0/2", "--set /name=other"), "the study \"spot-deadline\", expected \"other\"");
  refuses(shard("0/2", "--set /deadline=10h"), "another version of the study");
  refuses(shard("0/2", "--set '/policies=[\"fixed\"]'"), "ganymede");
  // A file of another folder.
  const Outcome other =
      run_program("sweep " + study_ + " --set /deadline=10h --shard 0/3 -o " + (scratch_ / "other").string());
  ASSERT_EQ(other.code, 0);
  std::filesystem::copy(scratch_ / "other" / "shard-0-of-3.rows", rows("shard-0-of-3"));
  refuses(merge(), "shard-0-of-3.rows: holds");
  std::filesystem::remove(rows("shard-0-of-3"));
  // Another version of the program.
  std::string work = content_of(scratch_ / "out" / "shards.json");
  const std::size_t at = work.find("\"program\": \"") + std::string("\"program\": \"").size();
  work.insert(at, "9");
  std::ofstream(scratch_ / "out" / "shards.json") << work;
  refuses(shard("0/2"), "holds shards of version 9");
  refuses(merge(), "shard-0-of-2.rows: holds shards of version");
}

TEST_F(Shards, HostileFilesOfAFolderAreRefused) {
  (void)whole(study(2));
  ASSERT_EQ(shard("0/1").code, 0);
  // Few files may be open.
  const std::string folder = (scratch_ / "out").string();
  EXPECT_EQ(std::system(("ulimit -n 16; " GANYMEDE_BINARY " merge --quiet " + folder + " > /dev/null 2>&1").c_str()),
            0);
  std::filesystem::rename(rows("shard-0-of-1"), scratch_ / "whole");
  // None of these ever ends, or their end is never reached.
  ASSERT_EQ(::mkfifo(rows("shard-0-of-1").c_str(), 0600), 0);
  EXPECT_THAT(merge("--status").err, HasSubstr("shard-0-of-1.rows: is no regular file"));
  std::filesystem::remove(rows("shard-0-of-1"));
  std::filesystem::create_symlink("/dev/zero", rows("shard-0-of-1"));
  EXPECT_THAT(merge("--status").err, HasSubstr("shard-0-of-1.rows: is no regular file"));
  std::filesystem::remove(rows("shard-0-of-1"));
  std::filesystem::rename(scratch_ / "whole", rows("shard-0-of-1"));
  // Eleven parts of a million seeds are more runs than any study may have.
  Json work = Json::parse(content_of(scratch_ / "out" / "shards.json"));
  while (work["parts"].size() < 11) work["parts"].push_back(work["parts"][0]);
  work["seeds"] = {{"first", 1}, {"count", 1'000'000}};
  std::ofstream(scratch_ / "out" / "shards.json") << work.dump();
  const Outcome refused = merge("--status");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("found 11000000 runs (11 parts of 1000000 seeds), expected at most 10000000"));
}

TEST_F(Shards, RowsThatFitTheirChecksumsAndAreNoResultsAreRefusedWithTheirPlace) {
  const std::string text = last_row(study(2));
  const std::size_t kind = text.find("\tr\t") + 1, result = text.find("{\"schema\"");
  std::string failed = text.substr(0, kind + 2);
  failed[kind] = 'f';
  for (const std::string& bad : {text.substr(0, result) + "{\"run\": 0", text.substr(0, result) + "{}",
                                 text.substr(0, kind + 2), failed + "{}", failed + "{", failed + "{\"run\":7}"}) {
    const Outcome refused = merge_with(bad, "--partial");
    EXPECT_EQ(refused.code, 2) << bad << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("shard-0-of-1.rows: the row of "));
    EXPECT_EQ(refused.out, "");
  }
}

TEST_F(Shards, ARowWithTheResultOfAnotherRunIsRefused) {
  (void)whole(study(2));
  ASSERT_EQ(shard("0/1").code, 0);
  give_rows_the_first_text(rows("shard-0-of-1"));
  const Outcome refused = merge();
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("the row of aws"), HasSubstr("found the result of another run")));
  EXPECT_EQ(refused.out, "");
}

// The summary is made of the facts, which stand before the result in each row.
TEST_F(Shards, ARowWithFactsThatAreNotThoseOfItsResultIsRefused) {
  const std::string text = last_row(study(1));
  const std::size_t policy = text.find("\t", text.find("\tr\t") + 3) + 1, seed = text.find('\t', policy) + 1;
  const std::size_t time = text.find('\t', seed) + 1, end = text.find('\t', time), result = text.find("{\"schema\"");
  for (const auto& [bad, expected] :
       {std::pair(text.substr(0, policy) + "another" + text.substr(seed - 1), "facts that are not those of its result"),
        {text.substr(0, time) + "1" + text.substr(end), "facts that are not those of its result"},
        {text.substr(0, time) + "nan" + text.substr(end), "found \"nan\", expected a number"},
        {text.substr(0, time) + "inf" + text.substr(end), "found \"inf\", expected a number"}}) {
    const Outcome refused = merge_with(bad);
    EXPECT_EQ(refused.code, 2) << bad;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("the row of aws"), HasSubstr(expected)));
    EXPECT_EQ(refused.out, "");
  }
  // The run's own result, written with a blank.
  EXPECT_EQ(merge_with(text.substr(0, result) + "{ " + text.substr(result + 1)).code, 0);
}

TEST_F(Shards, DamagedRowsAreSaidAndDoneAgain) {
  NOT_SANITIZED("starts dozens of programs, and one starts slowly there");
  const std::string all = whole(study(10));
  ASSERT_EQ(shard("0/1").code, 0);
  const std::string good = content_of(rows("shard-0-of-1"));
  std::string bad = good.substr(0, good.size() - 100);  // the last row was cut short
  bad[bad.size() / 2] ^= 1;
  const auto put = [&](const std::string& bytes) {
    std::ofstream(rows("shard-0-of-1"), std::ios::binary | std::ios::trunc) << bytes;
  };
  put(bad);
  const Outcome missing = merge();
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("shard-0-of-1.rows: line"), HasSubstr("2 of 20 runs are missing")));
  EXPECT_THAT(shard("0/1").err, AllOf(HasSubstr("is damaged"), HasSubstr("2 were done now")));
  const Outcome mended = merge();
  EXPECT_EQ(mended.out, all);
  EXPECT_EQ(mended.err, "") << "the damaged row's run was done again";
  EXPECT_THAT(shard("0/1").err, testing::Not(HasSubstr("is damaged")));
  // Nothing of the file is left but noise.
  put(std::string(5000, '\0') + "\nnoise\n");
  EXPECT_THAT(shard("0/1").err, HasSubstr("20 were done now"));
  EXPECT_EQ(merge("--quiet").out, all);
}

/// A shell that starts a shard, waits until its file has so many rows, sends it a signal and returns its exit code.
std::string interrupted(const std::string& command, const std::filesystem::path& rows, int lines, const char* signal) {
  return fmt::format(
      "sh -c '{} & pid=$!; tries=0; while [ $tries -lt 6000 ] && [ $(cat {} 2>/dev/null | wc -l) -lt {} ]; do "
      "tries=$((tries + 1)); sleep 0.01; done; kill -{} $pid; wait $pid' >/dev/null 2>&1",
      command, rows.string(), lines, signal);
}

TEST_F(Shards, EndEarlyOnSigtermWithWhatIsDone) {
  NOT_SANITIZED("starts dozens of programs, and one starts slowly there");
  const std::string all = whole(study(400));
  const std::string command =
      fmt::format("{} sweep {} --shard 0/1 --jobs 1 -o {}", GANYMEDE_BINARY, study_, (scratch_ / "out").string());
  const int status = std::system(interrupted(command, rows("shard-0-of-1"), 20, "TERM").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 130);
  const std::string kept = content_of(rows("shard-0-of-1"));
  EXPECT_EQ(kept.back(), '\n');
  EXPECT_EQ(merge().code, 3);
  EXPECT_EQ(shard("0/1").code, 0);
  EXPECT_TRUE(content_of(rows("shard-0-of-1")).starts_with(kept));
  EXPECT_EQ(merge().out, all);
}

TEST_F(Shards, KilledAtRandomMomentsLoseOnlyWhatWasNotWritten) {
  NOT_SANITIZED("starts dozens of programs, and one starts slowly there");
  const std::string all = whole(study(100));
  std::mt19937 random(7);
  for (int index = 0; index < 4; ++index) {
    const std::string name = fmt::format("shard-{}-of-4", index);
    const std::string command = fmt::format("{} sweep {} --shard {}/4 --jobs 2 -o {}", GANYMEDE_BINARY, study_, index,
                                            (scratch_ / "out").string());
    (void)std::system(interrupted(command, rows(name), 1 + static_cast<int>(random() % 25), "KILL").c_str());
    // As a system that loses power leaves it: a part of what was written last is gone.
    if (std::filesystem::exists(rows(name))) {
      const std::uintmax_t size = std::filesystem::file_size(rows(name));
      std::filesystem::resize_file(rows(name), size - std::min<std::uintmax_t>(size, random() % 20000));
    }
  }
  EXPECT_NE(merge().code, 2);
  for (int index = 0; index < 4; ++index) EXPECT_EQ(shard(fmt::format("{}/4", index)).code, 0);
  const Outcome merged = merge();
  EXPECT_EQ(merged.code, 0) << merged.err;
  EXPECT_EQ(merged.out, all);
}

TEST_F(Shards, HaveOneWriterEach) {
  (void)whole(study(4));
  ASSERT_EQ(shard("0/2").code, 0);
  const Outcome second = run_program(fmt::format("sweep {} --shard 0/2 -o {}", study_, (scratch_ / "out").string()),
                                     "flock " + rows("shard-0-of-2").string());
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.err, HasSubstr("another process writes to it"));
}

TEST_F(Shards, NeedAFolder) {
  (void)whole(study(1));
  EXPECT_THAT(run_program("sweep " + study_ + " --shard 0/2").err, HasSubstr("--shard needs -o"));
  const Outcome file = run_program("sweep " + study_ + " --shard 0/2 -o " + study_);
  EXPECT_EQ(file.code, 2);
  EXPECT_THAT(file.err, HasSubstr("study.json: cannot be made"));
}

TEST_F(Shards, OfAValidationMergeToItsBytes) {
  const std::string validate = "validate vtrain_v100 vidur_a100 ", out = (scratch_ / "out").string();
  const Outcome all = run_program(validate + "--format json");
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_EQ(run_program(validate + "--shard 0/2 -o " + out).code, 0);
  EXPECT_EQ(run_program(validate + "--shard 1/2 -o " + out).code, 0);
  EXPECT_EQ(merge().out, all.out);
  std::ofstream(rows("shard-0-of-2"), std::ios::app) << content_of(rows("shard-1-of-2"));
  std::filesystem::remove(rows("shard-1-of-2"));
  give_rows_the_first_text(rows("shard-0-of-2"));
  EXPECT_THAT(merge().err, HasSubstr("found the row of another run, v"));
  const Outcome other = run_program("validate vtrain_v100 --shard 0/1 -o " + out);
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("holds shards of more: vidur_a100"));
}

}  // namespace
}  // namespace ganymede::cli
