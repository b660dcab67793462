// A whole training by its options: what it tells, writes and reports, and what it refuses.

#include "kernel/session/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>
#include <string>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "kernel/checkpoint.hpp"
#include "kernel/session/draw_images.hpp"
#include "scratch.hpp"

namespace ganymede::kernel {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

SessionOptions small_session(const Scratch& scratch, std::int64_t steps) {
  SessionOptions options;
  options.train = small_training(scratch);
  options.train.batch = 16;
  options.steps = steps;
  return options;
}

TEST(Session, TellsWritesAndReportsWhatItDoes) {
  const Scratch scratch;
  SessionOptions options = small_session(scratch, 6);
  options.checkpoint = scratch.file("run").string();
  options.checkpoint_every = 4;
  options.samples = scratch.file("s.png").string();
  options.samples_every = 3;
  options.metrics = scratch.file("log").string();
  check(options);
  std::vector<std::string> said;
  std::vector<std::int64_t> shown;
  const SessionView view{.remark = [&](const std::string& sentence) { said.push_back(sentence); },
                         .waiting = {},
                         .steps =
                             [&](std::int64_t first, std::int64_t last, int batch, bool grows, LossNames) {
                               EXPECT_EQ(first, 0);
                               EXPECT_EQ(last, 6);
                               EXPECT_EQ(batch, 16);
                               EXPECT_FALSE(grows);
                               return [&](const Progress& progress) { shown.push_back(progress.step); };
                             }};
  const SessionReport report = run_session(options, view);
  EXPECT_THAT(said, testing::ElementsAre(StartsWith("training mlp-gan with eigen on ")));
  EXPECT_THAT(shown, testing::ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_FALSE(report.stopped);
  EXPECT_EQ(report.images, 200);
  EXPECT_EQ(report.result.steps, 6);
  EXPECT_EQ(report.history.back().step, 6);
  EXPECT_GT(report.allocated_peak_bytes, 0);
  EXPECT_TRUE(std::filesystem::exists(scratch.file("s-000003.png")));

  std::istringstream log(read_file(options.metrics));
  std::vector<Json> lines;
  for (std::string line; std::getline(log, line);) lines.push_back(Json::parse(line));
  EXPECT_EQ(lines.front().at("schema"), "ganymede.run-log/1");
  EXPECT_EQ(lines.front().at("batch"), 16);
  EXPECT_EQ(lines.front().at("steps"), 6);
  EXPECT_EQ(lines.back().at("end"), "finished");
  std::vector<std::string> pauses;
  for (const Json& line : lines)
    if (line.contains("pause")) pauses.push_back(line.at("pause").get<std::string>());
  EXPECT_THAT(pauses, testing::ElementsAre("samples", "checkpoint"));

  EXPECT_EQ(Json::parse(to_json(report, options)).at("files").at("samples"), options.samples);
  EXPECT_THAT(to_table(report, options), AllOf(HasSubstr("200 images, epoch 1 reached"), HasSubstr("for 6 steps")));

  std::vector<std::string> remarks;
  const auto kept = last_checkpoint(options.checkpoint, remarks);
  ASSERT_TRUE(kept.has_value());
  const DrawnImages drawn = draw_images(*kept, options.train, 3, 1);
  EXPECT_EQ(drawn.model, "mlp-gan");
  EXPECT_EQ(drawn.batch, 3);
  EXPECT_THAT(drawn.png, StartsWith("\x89PNG"));

  // An image is that of its seed whatever is in the batch, and one seed gives one image.
  ImageMaker maker(*kept, options.train, 6);
  EXPECT_EQ(maker.steps(), 6);
  const std::vector<std::uint64_t> seeds = {1, 2, 1, 3, 4};
  const std::vector<std::string> images = maker.draw(seeds);
  ASSERT_EQ(images.size(), seeds.size());
  EXPECT_THAT(images[0], StartsWith("\x89PNG"));
  EXPECT_EQ(images[0], images[2]);
  EXPECT_NE(images[0], images[1]);
  for (std::size_t i = 0; i < seeds.size(); ++i) EXPECT_EQ(maker.draw({&seeds[i], 1})[0], images[i]) << i;
}

TEST(Session, GoesOnFromItsCheckpointWithTheSameLosses) {
  const Scratch scratch;
  SessionOptions options = small_session(scratch, 6);
  const SessionReport whole = run_session(options);
  options.checkpoint = scratch.file("run").string();
  options.steps = 3;
  check(options);
  run_session(options);
  EXPECT_THAT([&] { check(options); }, ThrowsMessage<ConfigError>(HasSubstr("checkpoints of an earlier training")));
  options.resume = true;
  options.steps = 2;
  EXPECT_THAT([&] { run_session(options); }, ThrowsMessage<ConfigError>(HasSubstr("expected at least the 3")));
  options.steps = 6;
  const SessionReport rest = run_session(options);
  EXPECT_EQ(rest.result.steps, 3);
  EXPECT_EQ(rest.result.losses.discriminator, whole.result.losses.discriminator);
  EXPECT_EQ(rest.result.losses.generator, whole.result.losses.generator);
}

// A program that is killed between its last checkpoint and its outputs writes them when it is started again.
TEST(Session, WritesItsOutputsFromACheckpointThatHasAllTheSteps) {
  const Scratch scratch;
  SessionOptions options = small_session(scratch, 3);
  options.checkpoint = scratch.file("run").string();
  options.weights = scratch.file("w.safetensors").string();
  options.samples = scratch.file("s.png").string();
  check(options);
  run_session(options);
  const std::string weights = read_file(options.weights), samples = read_file(options.samples);
  for (const auto& file : {options.weights, options.samples}) std::filesystem::remove(file);
  options.resume = true;
  EXPECT_EQ(run_session(options).result.steps, 0);
  EXPECT_TRUE(read_file(options.weights) == weights);
  EXPECT_TRUE(read_file(options.samples) == samples);
  options.trace = scratch.file("t.json").string();
  EXPECT_THAT([&] { run_session(options); }, ThrowsMessage<ConfigError>(HasSubstr("--trace: found all 3 steps done")));
}

TEST(Session, GoesOnWithoutItsLogOnAFullDisk) {
  const Scratch scratch;
  SessionOptions options = small_session(scratch, 3);
  options.metrics = "/dev/full";
  options.weights = scratch.file("w.safetensors").string();
  std::vector<std::string> remarks;
  SessionView view;
  view.remark = [&](const std::string& sentence) { remarks.push_back(sentence); };
  run_session(options, view);
  EXPECT_TRUE(std::filesystem::exists(options.weights));
  EXPECT_THAT(remarks, testing::Contains(testing::ContainsRegex("/dev/full: .*No space left.*without its log")));
  EXPECT_EQ(
      std::count_if(remarks.begin(), remarks.end(),
                    [](const std::string& sentence) { return sentence.find("without its log") != sentence.npos; }),
      1);
}

// As `--metrics /dev/stdout | jq` and `--trace >(gzip)` do: the file has no path of its own.
TEST(Session, WritesIntoPipes) {
  const Scratch scratch;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  SessionOptions options = small_session(scratch, 6);
  options.metrics = options.trace = "/dev/fd/" + std::to_string(ends[1]);
  EXPECT_NO_THROW(check(options));
  for (const int end : ends) ::close(end);
}

TEST(Session, RefusesOptionsThatContradictEachOther) {
  const Scratch scratch;
  const auto expect_refused = [&](const auto& change, const std::string& words) {
    SessionOptions options = small_session(scratch, 6);
    change(options);
    EXPECT_THAT([&] { check(options, scratch.file("report").string()); }, ThrowsMessage<ConfigError>(HasSubstr(words)));
  };
  expect_refused([](auto& o) { o.steps = 0; }, "--steps: found 0, expected 1 to 1000000000");
  expect_refused([](auto& o) { o.train.batch = 1; }, "--batch: found 1");
  expect_refused([](auto& o) { o.resume = true; }, "--resume: expected --checkpoint");
  expect_refused([](auto& o) { o.samples_every = 2; }, "--samples-every: found 2");
  expect_refused([](auto& o) { o.quality_every = 2; }, "--quality-every: found 2");
  expect_refused([](auto& o) { o.quality_curve = "q.json"; }, "--quality-curve: expected --quality");
  expect_refused([](auto& o) { o.features = "f"; }, "--features: found f");
  expect_refused([](auto& o) { o.checkpoint_every = 0; }, "--checkpoint-every: found 0");
  expect_refused([&](auto& o) { o.samples = o.weights = scratch.file("x").string(); }, "found twice as an output");
  expect_refused([&](auto& o) { o.samples = scratch.file("report").string(); }, "found twice as an output");
  expect_refused([&](auto& o) { o.samples = scratch.file("./report").string(); }, "found twice as an output");
  std::filesystem::create_symlink("nowhere", scratch.file("link"));
  expect_refused([&](auto& o) { o.samples = scratch.file("nowhere"), o.weights = scratch.file("link"); },
                 "link: found twice as an output");
  const auto every_two = [&](auto& o, const char* weights) {
    o.samples = scratch.file("s.png"), o.samples_every = 2, o.weights = scratch.file(weights);
  };
  expect_refused([&](auto& o) { every_two(o, "s-000004.png"); }, "s-000004.png: found a name that --samples-every");
  std::filesystem::create_symlink("w", scratch.file("s-000002.png"));
  expect_refused([&](auto& o) { every_two(o, "w"); }, "w: found a name that --samples-every gives to a picture");
  SessionOptions apart = small_session(scratch, 6);
  for (const char* weights : {"s-000003.png", "s-000006.png", "s-4.png", "t-000004.png"}) {
    every_two(apart, weights);
    EXPECT_NO_THROW(check(apart)) << weights;
  }
  for (const char* name : {"lock", "step-000000000009.ckpt"})
    expect_refused(
        [&](auto& o) { o.metrics = (std::filesystem::path(o.checkpoint = scratch.file("c").string()) / name); },
        "found a name that --checkpoint gives to its own files");
  expect_refused([&](auto& o) { o.metrics = scratch.file("none/log").string(); }, "none/log");
  SessionOptions several = small_session(scratch, 6);
  several.train.synchronized_norm = true;
  EXPECT_THAT([&] { run_session(several); }, ThrowsMessage<ConfigError>(HasSubstr("found one process")));
  several = small_session(scratch, 6);
  several.gpus = 2;
  EXPECT_THAT([&] { run_session(several); }, ThrowsMessage<ConfigError>(HasSubstr("--gpus: found 2, expected 1")));
}

}  // namespace
}  // namespace ganymede::kernel
