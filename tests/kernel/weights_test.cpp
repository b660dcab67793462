#include "kernel/weights.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "scratch.hpp"

namespace ganymede::kernel {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class WeightsTest : public testing::Test {
 protected:
  Scratch scratch_;
  TrainOptions options_ = small_training(scratch_, 40);
};

TEST_F(WeightsTest, RoundTripRestoresEverything) {
  Trainer trained(options_);
  trained.run(3);
  const auto file = scratch_.write("gan.safetensors", write_weights(trained.gan(), trained.ops()));
  options_.seed = 99;
  Trainer other(options_);
  EXPECT_NE(write_weights(other.gan(), other.ops()), write_weights(trained.gan(), trained.ops()));
  read_weights(other.gan(), other.ops(), file);
  EXPECT_EQ(write_weights(other.gan(), other.ops()), write_weights(trained.gan(), trained.ops()));
}

TEST_F(WeightsTest, NamesAndShapesArePyTorchs) {
  Trainer trainer(options_);
  const auto tensors = read_safetensors(scratch_.write("x", write_weights(trainer.gan(), trainer.ops()))).tensors;
  const auto shape = [&](const std::string& name) { return tensors.at(name).shape; };
  EXPECT_EQ(shape("generator.dense1.weight"), (std::vector<std::int64_t>{1200, 50}));  // nn.Linear(50, 1200)
  EXPECT_EQ(shape("generator.norm1.running_var"), (std::vector<std::int64_t>{1200}));
  EXPECT_EQ(shape("discriminator.dense3.bias"), (std::vector<std::int64_t>{1}));
  std::size_t floats = 0;
  for (const auto& [name, tensor] : tensors) floats += tensor.values.size();
  EXPECT_EQ(floats, 2'289'769U);  // all parameters in the paper, trainable or not
}

TEST_F(WeightsTest, RefusesAnotherModelsFileAndChangesNothing) {
  Trainer trainer(options_);
  const std::string before = write_weights(trainer.gan(), trainer.ops());
  SafeTensors content = read_safetensors(scratch_.write("good", before));
  const auto refused = [&](const SafeTensors& changed, const std::string& message) {
    const auto file = scratch_.write("bad", write_safetensors(changed));
    EXPECT_THAT([&] { read_weights(trainer.gan(), trainer.ops(), file); },
                ThrowsMessage<ConfigError>(HasSubstr(message)));
    EXPECT_EQ(write_weights(trainer.gan(), trainer.ops()), before);
  };
  auto missing = content;
  missing.tensors.erase("generator.norm2.bias");
  refused(missing, "no tensor \"generator.norm2.bias\"");
  auto reshaped = content;
  reshaped.tensors["discriminator.dense3.weight"].shape = {128, 1};
  refused(reshaped, "found shape [128, 1], expected [1, 128]");
  auto more = content;
  more.tensors["extra"] = {{1}, {0}};
  refused(more, "tensors, expected the");
}

}  // namespace
}  // namespace ganymede::kernel
