#include "traces/layer_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "support/errors.hpp"

namespace ganymede::traces {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const RooflineDevice kDevice{"G", FlopsPerSecond{1e12}, BytesPerSecond{1e11}, Seconds{4e-6}, Bytes{16e9}};

LayerList read_list(const std::string& text) { return read_layer_list(JsonNode::parse(text, "model.json")); }

LayerList committed(std::string_view name) {
  for (const EmbeddedText& list : embedded_layers())
    if (list.name == name) return read_layer_list(JsonNode::parse(list.text, std::string(name)));
  ADD_FAILURE() << name;
  return {};
}

/// Two networks of one layer each, of which the test replaces the generator's.
std::string gan(const std::string& layers, const std::string& input = "[3, 8, 8]") {
  return R"({ "schema": "ganymede.layers/1", "name": "m", "networks": {
    "generator": { "input": )" +
         input + R"(, "layers": [)" + layers + R"(] },
    "discriminator": { "input": [3, 8, 8], "layers": [ { "kind": "linear", "out": 1 } ] } } })";
}

LayerNetwork generator(const std::string& layers, const std::string& input = "[3, 8, 8]") {
  return read_list(gan(layers, input)).networks.at("generator");
}

// 3 channels of 8 x 8 to 16 of 4 x 4: 4 x 4 x 3 x 16 weights, each used at 16 places.
TEST(LayerList, AConvolutionByHand) {
  const LayerNetwork network =
      generator(R"({ "kind": "convolution", "out": 16, "kernel": 4, "stride": 2, "padding": 1 })");
  const LayerCost cost = network.total();
  EXPECT_EQ(network.output, (std::vector<int>{16, 4, 4}));
  EXPECT_EQ(cost.parameters, 4 * 4 * 3 * 16 + 16);
  EXPECT_EQ(cost.flops, 2.0 * 4 * 4 * 3 * 16 * 16);
  EXPECT_EQ(cost.read, 4.0 * 3 * 64);
  EXPECT_EQ(cost.written, 4.0 * 16 * 16);
  EXPECT_EQ(cost.launches, 2);
}

// The other way round: as many products as the convolution that it transposes.
TEST(LayerList, ATransposedConvolutionByHand) {
  const LayerNetwork network = generator(
      R"({ "kind": "transposed-convolution", "out": 3, "kernel": 4, "stride": 2, "padding": 1, "bias": false })",
      "[16, 4, 4]");
  EXPECT_EQ(network.output, (std::vector<int>{3, 8, 8}));
  EXPECT_EQ(network.total().flops, 2.0 * 4 * 4 * 3 * 16 * 16);
  EXPECT_EQ(network.total().parameters, 4 * 4 * 3 * 16);
}

TEST(LayerList, TheOtherKindsByHand) {
  EXPECT_EQ(generator(R"({ "kind": "linear", "out": 10 })").total().parameters, 3 * 64 * 10 + 10);
  EXPECT_EQ(
      generator(R"({ "kind": "convolution", "out": 6, "kernel": 3, "groups": 3, "bias": false })").total().parameters,
      3 * 3 * 1 * 6);
  const LayerNetwork block = generator(
      R"({ "kind": "repeat", "times": 3, "layers": [ { "kind": "residual", "layers": [ { "kind": "convolution", "out": 3, "kernel": 3, "bias": false } ] } ] })");
  EXPECT_EQ(block.total().parameters, 3 * 81);
  EXPECT_EQ(block.output, (std::vector<int>{3, 8, 8}));
  // 64 tokens, 16 of them after pooling: projections 3 x (1 + 1 + 2 + 2), scores 64 x 16 with keys and values.
  const LayerCost attention = generator(R"({ "kind": "attention", "key": 1, "value": 2, "pool": 2 })").total();
  EXPECT_EQ(attention.parameters, 18);
  EXPECT_EQ(attention.flops, 2.0 * 64 * 18 + 2.0 * 64 * 16 * 3);
  const LayerNetwork shapes = generator(
      R"({ "kind": "side", "input": [5, 1, 1], "layers": [ { "kind": "linear", "out": 7 } ] }, { "kind": "upsample", "factor": 2 },
         { "kind": "concat", "channels": 1 }, { "kind": "branch", "layers": [ { "kind": "convolution", "out": 1, "kernel": 1 } ] },
         { "kind": "downsample", "factor": 4 }, { "kind": "norm" })");
  EXPECT_EQ(shapes.output, (std::vector<int>{4, 4, 4}));
  EXPECT_EQ(shapes.total().parameters, 5 * 7 + 7 + 4 + 1 + 8);
}

struct Published {
  const char *list, *network;
  std::int64_t parameters;  ///< of one copy
  double tolerance;
};

// Parameters as the models' own programs print them, or the papers and their code give them; StyleGAN2's noise
// strengths, one a convolution, are left out.
TEST(LayerList, CommittedListsHaveThePublishedParameters) {
  for (const Published& model : {Published{"pix2pix", "generator", 54'414'000, 1e-3},
                                 {"pix2pix", "discriminator", 2'768'705, 0},
                                 {"cyclegan", "generator", 11'378'179, 0},
                                 {"cyclegan", "discriminator", 2'764'737, 0},
                                 {"stylegan2", "generator", 30'370'060 - 17, 0},
                                 {"stylegan2", "discriminator", 29'012'513, 0},
                                 {"biggan", "generator", 70'430'000, 5e-3},
                                 {"biggan", "discriminator", 87'980'000, 5e-3}})
    EXPECT_NEAR(static_cast<double>(committed(model.list).networks.at(model.network).total().parameters),
                static_cast<double>(model.parameters), model.tolerance * static_cast<double>(model.parameters))
        << model.list << " " << model.network;
  EXPECT_EQ(committed("pix2pix").networks.at("generator").output, (std::vector<int>{3, 256, 256}));
  EXPECT_EQ(committed("stylegan2").networks.at("generator").output[1], 1024);
  EXPECT_EQ(committed("biggan").networks.at("generator").output, (std::vector<int>{3, 128, 128}));
  EXPECT_EQ(committed("vae").networks.at("decoder").output, (std::vector<int>{3, 64, 64}));
}

TEST(LayerList, EveryCommittedListIsAValidTrace) {
  for (const EmbeddedText& text : embedded_layers()) {
    const LayerList list = committed(text.name);
    EXPECT_FALSE(list.source.empty()) << text.name;
    const StepTrace trace = trace_of(list, {2, 8}, kDevice);
    const StepTrace again = read_step_trace(JsonNode::parse(write_step_trace(trace), std::string(text.name)));
    ASSERT_EQ(again.batches.size(), 2U) << text.name;
    for (const auto& [name, network] : again.networks) {
      std::int64_t bytes = 0;
      for (const TraceBucket& bucket : again.batches[0].buckets)
        if (bucket.network == name) {
          bytes += bucket.bytes;
          EXPECT_LE(bucket.bytes, 120'000'000) << text.name << " " << name;
        }
      EXPECT_EQ(bytes, network.gradient_bytes) << text.name << " " << name;
      EXPECT_EQ(network.gradient_bytes, 4 * network.parameters) << text.name << " " << name;
    }
  }
}

// One weight matrix of 192 x 1 in the discriminator: forward 384 FLOP an image, backward twice that.
TEST(LayerTrace, PhasesByHand) {
  const LayerList list = read_list(gan(R"({ "kind": "convolution", "out": 3, "kernel": 1, "bias": false })"));
  const StepTrace trace = trace_of(list, {10}, kDevice);
  const TraceBatch& batch = trace.batches.front();
  const auto phase = [&](const char* name) {
    for (const TracePhase& one : batch.phases)
      if (one.name == name) return one;
    ADD_FAILURE() << name;
    return TracePhase{};
  };
  EXPECT_EQ(phase("discriminator.forward_real").flops, 10 * 384);
  EXPECT_EQ(phase("discriminator.backward_real").flops, 2 * 10 * 384);
  EXPECT_EQ(phase("generator.backward_through_discriminator").flops, 10 * 384);
  EXPECT_EQ(phase("discriminator.update").bytes_read, 4 * 4 * 193);
  EXPECT_EQ(phase("discriminator.update").bytes_written, 3 * 4 * 193);
  // The longest of work, traffic and launches: two launches of 4 us.
  EXPECT_EQ(phase("discriminator.forward_real").seconds[0], 8e-6);
  EXPECT_EQ(trace.software.backend, "roofline");
  EXPECT_EQ(batch.memory_bytes.at("optimizer"), 2 * batch.memory_bytes.at("parameters"));
  EXPECT_EQ(batch.buckets.front().after_phase, "discriminator.backward_fake");
}

TEST(LayerList, NamesThePlaceOfWhatCannotBe) {
  const auto error = [](const std::string& text) { return message_of<ConfigError>([&] { read_list(text); }); };
  EXPECT_THAT(error(gan(R"({ "kind": "convolutoin", "out": 3, "kernel": 1 })")),
              AllOf(HasSubstr("model.json: /networks/generator/layers/0/kind: found \"convolutoin\""),
                    HasSubstr("did you mean")));
  EXPECT_THAT(error(gan(R"({ "kind": "convolution", "out": 3, "kernel": 11, "padding": 0 })")),
              HasSubstr("/layers/0/kernel: a kernel of 11 does not fit an input of 8 x 8"));
  EXPECT_THAT(error(gan(R"({ "kind": "convolution", "out": 4, "kernel": 1, "groups": 3 })")),
              HasSubstr("3 groups divide neither"));
  EXPECT_THAT(error(gan(R"({ "kind": "convolution", "out": 4, "kernel": 1, "stirde": 3 })")),
              HasSubstr("did you mean \"stride\"?"));
  EXPECT_THAT(error(gan(R"({ "kind": "residual", "layers": [ { "kind": "convolution", "out": 4, "kernel": 1 } ] })")),
              HasSubstr("which cannot be added"));
  EXPECT_THAT(error(gan(R"({ "kind": "downsample", "factor": 9 })")), HasSubstr("cannot be made smaller 9 times"));
  EXPECT_THAT(error(gan(R"({ "kind": "activation" })")),
              HasSubstr("/networks/generator/layers: nothing in it is trained"));
  EXPECT_THAT(error(R"({ "schema": "ganymede.layers/1", "name": "m", "networks": { "encoder": { "input": [1, 1, 1],
                       "layers": [ { "kind": "linear", "out": 1 } ] } } })"),
              HasSubstr("without a \"step\" they must be called"));
  EXPECT_THAT(error(R"({ "schema": "ganymede.layers/1", "name": "m", "networks": { "e": { "input": [1, 1, 1],
                       "layers": [ { "kind": "linear", "out": 1 } ] } }, "step": [ { "network": "e", "pass": "update" } ] })"),
              HasSubstr("/step: e is updated before any backward pass"));
  EXPECT_THAT(error(R"({ "schema": "ganymede.layers/1", "name": "m", "networks": { "e": { "input": [1, 1, 1],
                       "layers": [ { "kind": "linear", "out": 1 } ] } }, "step": [ { "network": "e", "pass": "backward" } ] })"),
              HasSubstr("/step: e is never updated"));
}

}  // namespace
}  // namespace ganymede::traces
