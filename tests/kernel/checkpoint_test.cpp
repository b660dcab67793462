// A training that was stopped after any step continues as if it had not been stopped, and a damaged checkpoint is never
// taken for a whole one.

#include "kernel/checkpoint.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>

#include "common/errors.hpp"
#include "kernel/weights.hpp"
#include "scratch.hpp"

namespace ganymede::kernel {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::ThrowsMessage;

class CheckpointTest : public testing::Test {
 protected:
  std::string weights(Trainer& trainer) { return write_weights(trainer.gan(), trainer.ops()); }
  std::filesystem::path step(int number) { return folder_.path() / fmt::format("step-{:012}.ckpt", number); }
  /// Reads the last whole checkpoint, and expects remarks on `damaged` others.
  Checkpoint last(std::size_t damaged) {
    std::vector<std::string> remarks;
    auto found = last_checkpoint(folder_.path(), remarks);
    EXPECT_THAT(remarks, SizeIs(damaged));
    return found.value();
  }
  void flip(const std::filesystem::path& file, std::size_t byte) {
    std::string bytes = read_file(file);
    bytes[byte] ^= 0x10;
    write_file(file, bytes);
  }

  Scratch data_, folder_;
  TrainOptions options_ = small_training(data_, 100);  // three batches an epoch
};

TEST_F(CheckpointTest, ResumedEqualsUninterruptedBitForBit) {
  Trainer whole(options_);
  const Losses losses = whole.run(11).losses;
  for (const int stop : {1, 3, 7}) {  // within an epoch, at its end, beyond
    {
      Trainer first(options_);
      first.run(stop);
      save_checkpoint(folder_.path(), stop, first.checkpoint());
    }
    Trainer second(options_);
    second.run(2);  // these steps must leave no trace after the checkpoint is read
    second.restore(last(0).content, "x");
    EXPECT_EQ(second.steps_done(), stop);
    const RunResult rest = second.run(11 - stop);
    EXPECT_TRUE(weights(second) == weights(whole)) << stop;
    EXPECT_EQ(rest.losses.generator, losses.generator);
    EXPECT_EQ(rest.losses.discriminator, losses.discriminator);
    EXPECT_EQ(second.epoch(), whole.epoch());
  }
}

TEST_F(CheckpointTest, HoldsTheAverage) {
  options_.average_decay = 0.9F;
  Trainer whole(options_), second(options_);
  whole.run(4);
  const SafeTensors at_4 = whole.checkpoint();
  EXPECT_TRUE(holds_average(at_4));
  second.restore(at_4, "x");
  whole.run(3);
  second.run(3);
  EXPECT_TRUE(second.checkpoint().tensors.at("generator.average") ==
              whole.checkpoint().tensors.at("generator.average"));
  options_.average_decay = 0;
  Trainer without(options_);
  EXPECT_FALSE(holds_average(without.checkpoint()));
  EXPECT_THAT([&] { without.restore(at_4, "x"); }, ThrowsMessage<ConfigError>(HasSubstr("of ema 0.9, expected 0")));
}

TEST_F(CheckpointTest, TakingOneChangesNothing) {
  Trainer with(options_), without(options_);
  for (int i = 0; i < 4; ++i) {
    with.step();
    without.step();
    with.checkpoint();
  }
  EXPECT_EQ(weights(with), weights(without));
}

TEST_F(CheckpointTest, TheTwoNewestAreKeptAndTheLastWholeOneIsFound) {
  Trainer trainer(options_);
  for (int i = 1; i <= 3; ++i) {
    trainer.step();
    save_checkpoint(folder_.path(), trainer.steps_done(), trainer.checkpoint());
  }
  EXPECT_FALSE(std::filesystem::exists(step(1)));
  EXPECT_EQ(last(0).file, step(3));
  // Checkpoints with any byte flipped, and a file that a full disk has cut short.
  for (const std::size_t byte : {0U, 9U, 20U, 5000U}) {
    flip(step(3), byte);
    EXPECT_EQ(last(1).file, step(2)) << byte;
    flip(step(3), byte);
  }
  std::filesystem::resize_file(step(3), 1000);
  EXPECT_EQ(last(1).file, step(2));
  flip(step(2), 77);
  std::vector<std::string> remarks;
  EXPECT_THAT([&] { last_checkpoint(folder_.path(), remarks); }, ThrowsMessage<ConfigError>(HasSubstr("damaged")));
}

// A user keeps copies beside the program's files, under names that sort before or after them.
TEST_F(CheckpointTest, FilesOfTheUserAreNeitherReadNorRemovedAndNothingNewIsEither) {
  Trainer trainer(options_);
  trainer.step();
  const std::vector<std::string> own = {"step-best.ckpt", "step-keep.ckpt", "step-000000000001-mine.ckpt",
                                        "step-1.ckpt",    "step-.ckpt",     "step--00000000001.ckpt"};
  for (const std::string& name : own) folder_.write(name, "of the user");
  save_checkpoint(folder_.path(), 9, trainer.checkpoint());  // damaged below, so that the training resumes before it
  flip(step(9), 77);
  for (int i = 2; i <= 5; ++i) {
    trainer.step();
    save_checkpoint(folder_.path(), i, trainer.checkpoint());
    EXPECT_EQ(last(1).file, step(i));
  }
  EXPECT_FALSE(std::filesystem::exists(step(3)));
  EXPECT_TRUE(std::filesystem::exists(step(4)));
  for (const std::string& name : own) EXPECT_TRUE(std::filesystem::exists(folder_.path() / name)) << name;
}

TEST_F(CheckpointTest, AnEmptyOrMissingDirectoryHasNone) {
  std::vector<std::string> remarks;
  EXPECT_FALSE(last_checkpoint(folder_.path(), remarks));
  EXPECT_FALSE(last_checkpoint(folder_.file("absent"), remarks));
  EXPECT_THAT(remarks, IsEmpty());
  EXPECT_FALSE(has_checkpoints(folder_.path()));
  folder_.write("step-000000000001.ckpt", "");
  EXPECT_TRUE(has_checkpoints(folder_.path()));
}

TEST_F(CheckpointTest, RefusesThatOfAnotherTrainingAndChangesNothing) {
  Trainer trainer(options_);
  trainer.run(2);
  const SafeTensors good = trainer.checkpoint();
  const std::string before = weights(trainer);
  const auto refused = [&](const std::string& key, const std::string& value, const std::string& words) {
    SafeTensors changed = good;
    changed.metadata[key] = value;
    EXPECT_THAT([&] { trainer.restore(changed, "c.ckpt"); },
                ThrowsMessage<ConfigError>(testing::AllOf(HasSubstr("c.ckpt"), HasSubstr(words))));
    EXPECT_EQ(weights(trainer), before);
  };
  refused("model", "dcgan-32", "found a checkpoint of model dcgan-32, expected mlp-gan");
  refused("batch", "64", "of batch 64, expected 32");
  refused("seed", "2", "of seed 2, expected 1");
  refused("data", "0", "of data 0, expected");
  refused("steps", "many", "\"steps\" of its metadata is \"many\"");
  refused("steps", "-1", "\"steps\"");
  refused("position", "101", "found position 101 in 100 images");
  refused("latent", "12 34", "\"latent\"");
  SafeTensors without = good;
  without.metadata.erase("epoch");
  EXPECT_THAT([&] { trainer.restore(without, "c.ckpt"); },
              ThrowsMessage<ConfigError>(HasSubstr("\"epoch\" is missing")));
  without = good;
  without.tensors.erase("generator.adam.second");
  EXPECT_THAT([&] { trainer.restore(without, "c.ckpt"); },
              ThrowsMessage<ConfigError>(HasSubstr("no tensor \"generator.adam.second\"")));
}

TEST_F(CheckpointTest, AUsersOwnLockIsRefusedAndStays) {
  const std::filesystem::path lock = folder_.path() / "lock";
  const auto refusal = ThrowsMessage<ConfigError>(
      testing::AllOf(HasSubstr(lock.string()), HasSubstr("found a file that no training has written")));
  for (const std::string mine :
       {"important\n", "process", "process 12 on\n", "process 1 on a\nmy notes\n", "x on y\n"}) {
    write_file(lock, mine);
    EXPECT_THAT([&] { CheckpointLock(folder_.path()); }, refusal);
    EXPECT_EQ(read_file(lock), mine);
  }
  std::filesystem::remove(lock);
  ASSERT_EQ(::mkfifo(lock.c_str(), 0600), 0);
  EXPECT_THAT([&] { CheckpointLock(folder_.path()); }, refusal);
  EXPECT_TRUE(std::filesystem::is_fifo(lock));
}

// A crash leaves the lock; the next training takes it over.
TEST_F(CheckpointTest, ALockThatACrashLeftIsTakenOver) {
  const std::filesystem::path lock = folder_.path() / "lock";
  for (const std::string& left : {std::string("process 4711 on host-a\n"), std::string(), std::string(22, '\0')}) {
    write_file(lock, left);
    {
      const CheckpointLock held(folder_.path());
      EXPECT_THAT([&] { CheckpointLock(folder_.path()); },
                  ThrowsMessage<ConfigError>(HasSubstr("still runs (process")));
    }
    EXPECT_FALSE(std::filesystem::exists(lock));
  }
}

TEST_F(CheckpointTest, TheEndOfATrainingLeavesTheLockOfAnother) {
  const std::filesystem::path lock = folder_.path() / "lock";
  auto first = std::make_unique<CheckpointLock>(folder_.path());
  std::filesystem::remove(lock);
  const CheckpointLock second(folder_.path());
  first.reset();
  EXPECT_TRUE(std::filesystem::exists(lock));
  EXPECT_THAT([&] { CheckpointLock(folder_.path()); }, ThrowsMessage<ConfigError>(HasSubstr("still runs")));
}

}  // namespace
}  // namespace ganymede::kernel
