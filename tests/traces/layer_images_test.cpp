#include "traces/layer_images.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "support/errors.hpp"
#include "traces/layer_list.hpp"
#include "traces/recorded.hpp"

namespace ganymede::traces {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::int64_t parameters(const LayerList& list, const std::string& network) {
  return list.networks.at(network).total().parameters;
}

TEST(ImageSizes, TheNativeOneIsTheListItself) {
  for (const auto& [name, side] : {std::pair{"biggan", 128},
                                   {"cyclegan", 256},
                                   {"dcgan", 64},
                                   {"pix2pix", 256},
                                   {"resnet50", 224},
                                   {"stylegan2", 1024},
                                   {"vae", 64}}) {
    const std::string plain = name, sized = plain + "?image=" + std::to_string(side);
    const auto text = [](const std::string& list) {
      return trace_text(JsonNode::parse("\"layers:" + list + "\"", "test"));
    };
    EXPECT_EQ(text(plain), text(sized)) << name;
  }
}

// A generator ends with an image of that size, whatever the size.
TEST(ImageSizes, GeneratorsDrawImagesOfThatSize) {
  for (const auto& [name, network, sides] : {std::tuple{"biggan", "generator", std::vector{128, 256}},
                                             {"cyclegan", "generator", {128, 256, 512}},
                                             {"dcgan", "generator", {32, 64, 128, 256}},
                                             {"pix2pix", "generator", {256, 512, 1024}},
                                             {"stylegan2", "generator", {32, 64, 128, 256, 512, 1024}},
                                             {"vae", "decoder", {32, 64, 128, 256}}})
    for (const int side : sides) {
      const LayerList list = built_in_list(std::string(name) + "?image=" + std::to_string(side));
      // StyleGAN2's path to RGB lies beside the main one, which ends with more channels.
      const std::vector<int>& output = list.networks.at(network).output;
      EXPECT_THAT(output, ElementsAre(std::string(name) == "stylegan2" ? output[0] : 3, side, side)) << name;
      for (const char* judge : {"discriminator", "encoder"})
        if (list.networks.contains(judge) && std::string(name) != "cyclegan" && std::string(name) != "pix2pix") {
          EXPECT_THAT(list.networks.at(judge).output, ElementsAre(name == std::string("vae") ? 256 : 1, 1, 1)) << name;
        }
    }
}

// Each doubling adds a block. A block of StyleGAN2's generator from c to d channels has two convolutions of 3 x 3, a
// convolution to RGB, and a linear layer of 512 inputs for each of their styles.
TEST(ImageSizes, StyleGan2LeavesOutItsUpperBlocks) {
  const auto block = [](std::int64_t c, std::int64_t d) {
    return 9 * c * d + d + 9 * d * d + d + 3 * d + 3 + (512 + 1) * (c + d + d);
  };
  const LayerList full = built_in_list("stylegan2"), half = built_in_list("stylegan2?image=512"),
                  quarter = built_in_list("stylegan2?image=256");
  EXPECT_EQ(parameters(full, "generator") - parameters(half, "generator"), block(64, 32));
  EXPECT_EQ(parameters(half, "generator") - parameters(quarter, "generator"), block(128, 64));
  // A block of the discriminator: two convolutions of 3 x 3, and the shortcut's without a bias. The convolution from
  // RGB has as many channels as the first block.
  const auto judged = [](std::int64_t c, std::int64_t d) { return 9 * c * c + c + 9 * c * d + d + c * d; };
  EXPECT_EQ(parameters(full, "discriminator") - parameters(half, "discriminator"), judged(32, 64) + 4 * 32 - 4 * 64);
  EXPECT_EQ(half.name, "stylegan2-512");
  EXPECT_DOUBLE_EQ(half.bytes_per_image, 512 * 512 * 3);
}

// The examples of PyTorch have these numbers of parameters.
TEST(ImageSizes, TheDcganHasThePublishedParameters) {
  const LayerList list = built_in_list("dcgan");
  EXPECT_EQ(parameters(list, "generator"), 3'576'704);
  EXPECT_EQ(parameters(list, "discriminator"), 2'765'568);
}

// The convolutions have no bias and fewer pixels: their work grows with the area, their weights do not.
TEST(ImageSizes, ConvolutionsWorkByTheArea) {
  const LayerList small = built_in_list("pix2pix"), large = built_in_list("pix2pix?image=512");
  EXPECT_EQ(parameters(small, "generator"), parameters(large, "generator"));
  EXPECT_NEAR(large.networks.at("generator").total().flops / small.networks.at("generator").total().flops, 4, 1e-9);
}

TEST(ImageSizes, ComeWithAPrecision) {
  EXPECT_EQ(built_in_list("stylegan2:fp16?image=256").precision, "fp16");
  const LayerList list = built_in_list("stylegan2?image=256&precision=bf16");
  EXPECT_EQ(list.precision, "bf16");
  EXPECT_EQ(list.name, "stylegan2-256");
  EXPECT_EQ(list_name("stylegan2:fp16?image=256"), "stylegan2");
}

TEST(ImageSizes, SayWhatIsWrong) {
  const auto message = [](const std::string& name) { return message_of<ConfigError>([&] { built_in_list(name); }); };
  EXPECT_THAT(message("stylegan2?image=300"),
              HasSubstr("an image of 300 was asked for, expected one of 32, 64, 128, 256, 512, 1024"));
  EXPECT_THAT(message("stylegan2?image=big"), HasSubstr("found the image \"big\", expected its side, such as 256"));
  EXPECT_THAT(message("stylegan2?imgae=256"), HasSubstr("found \"imgae=256\", expected image=256"));
  EXPECT_THAT(message("stylegan2:fp15"), HasSubstr("found the precision \"fp15\""));
  EXPECT_THAT(message("stylgan2?image=256"), HasSubstr("did you mean \"stylegan2\"?"));
}

LayerList read_sized(const std::string& image, const std::string& layer, std::optional<int> side) {
  return read_layer_list(
      JsonNode::parse(R"({ "schema": "ganymede.layers/1", "name": "m", )" + image +
                          R"( "networks": { "net": { "input": [3, "image", "image"], "layers": [ )" + layer +
                          R"( { "kind": "linear", "out": 1 } ] } },
      "step": [ { "network": "net", "pass": "backward" }, { "network": "net", "pass": "update" } ] })",
                      "model.json"),
      side);
}

TEST(ImageSizes, AListOfOnesOwnMayHaveSeveral) {
  const std::string image = R"("image": { "native": 8, "sizes": [8, 16] },)";
  const std::string layer = R"({ "kind": "downsample", "factor": "image/4", "image": { "from": 16 } },)";
  EXPECT_EQ(parameters(read_sized(image, layer, std::nullopt), "net"), 3 * 8 * 8 + 1);
  EXPECT_EQ(parameters(read_sized(image, layer, 16), "net"), 3 * 4 * 4 + 1);
}

TEST(ImageSizes, ErrorsOfAListPointToTheirPlace) {
  const std::string image = R"("image": { "native": 8, "sizes": [8, 16] },)";
  const auto message = [](const std::string& sizes, const std::string& layer) {
    return message_of<ConfigError>([&] { read_sized(sizes, layer, std::nullopt); });
  };
  EXPECT_THAT(message(image, R"({ "kind": "norm", "image": { "above": 8 } },)"),
              HasSubstr("model.json: /networks/net/layers/0/image: expected \"from\", \"to\" or both"));
  EXPECT_THAT(message(image, R"({ "kind": "downsample", "factor": "image/3" },)"),
              HasSubstr("/networks/net/layers/0/factor: found \"image/3\", expected a divisor of 8"));
  // The layer before it is left out, and still counts.
  EXPECT_THAT(message(image, R"({ "kind": "norm", "image": { "from": 16 } }, { "kind": "nrm" },)"),
              HasSubstr("/networks/net/layers/1/kind: found \"nrm\""));
  EXPECT_THAT(message(R"("image": { "native": 32, "sizes": [8, 16] },)", ""), HasSubstr("the native size among them"));
  EXPECT_THAT(message_of<ConfigError>([&] { read_layer_list(JsonNode::parse("{}", "m.json"), 64); }),
              HasSubstr("is for images of one size"));
}

LayerList read_blocks(const std::string& blocks, const std::string& layer) {
  return read_sized(R"("image": { "native": 8, "sizes": [8, 16] }, "blocks": )" + blocks + ",", layer + ",", 16);
}

TEST(LayerBlocks, StandForTheirLayersWithTheirNumbers) {
  const LayerList list = read_blocks(
      R"({ "pair": [ { "kind": "block", "name": "one", "out": "wide*2" }, { "kind": "block", "name": "one", "out": "wide" } ],
           "one": [ { "kind": "convolution", "out": "out", "kernel": 1 } ] })",
      R"({ "kind": "block", "name": "pair", "wide": "image/4" }, { "kind": "block", "name": "one", "out": 2, "image": { "to": 8 } })");
  EXPECT_EQ(parameters(list, "net"), (3 * 8 + 8) + (8 * 4 + 4) + 4 * 16 * 16 + 1);
}

TEST(LayerBlocks, SayWhatIsWrong) {
  const auto message = [](const std::string& blocks, const std::string& layer) {
    return message_of<ConfigError>([&] { read_blocks(blocks, layer); });
  };
  const std::string one = R"({ "one": [ { "kind": "convolution", "out": "out", "kernel": 1 } ] })";
  EXPECT_THAT(message(one, R"({ "kind": "block", "name": "won" })"),
              HasSubstr("/networks/net/layers/0/name: found \"won\""));
  EXPECT_THAT(message(one, R"({ "kind": "block", "name": "one", "out": "wide" })"),
              HasSubstr("/networks/net/layers/0/out: found \"wide\", expected a number, or the name of one"));
  EXPECT_THAT(message(one, R"({ "kind": "block", "name": "one" })"), HasSubstr("found \"out\""));
  EXPECT_THAT(message(R"({ "one": [ { "kind": "block", "name": "one" } ] })", R"({ "kind": "block", "name": "one" })"),
              HasSubstr("/blocks/one/0: blocks lie more than 16 deep in each other"));
  const std::string twice = R"([ { "kind": "block", "name": "a" }, { "kind": "block", "name": "a" } ])";
  EXPECT_THAT(message(R"({ "a": )" + twice + "}", R"({ "kind": "block", "name": "a" })"), HasSubstr("deep"));
}

}  // namespace
}  // namespace ganymede::traces
