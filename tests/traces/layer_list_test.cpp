#include "traces/layer_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
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

// As StyleGAN's: the weights are trained once, and every image is convolved with filters that are made of them.
TEST(LayerList, FiltersOfEachImageGrowByGroups) {
  const LayerNetwork network =
      generator(R"({ "kind": "convolution", "out": 16, "kernel": 3, "bias": false, "each_image": true })");
  EXPECT_EQ(network.total().parameters, 9 * 3 * 16);
  EXPECT_EQ(network.total().flops, 2.0 * 9 * 3 * 16 * 64);
  const Layer& layer = network.layers.front();
  EXPECT_EQ(layer.read, 4.0 * (3 * 64 + 9 * 3 * 16));  // an image's filters are read, and kept for the backward pass
  EXPECT_EQ(layer.kept, 4.0 * (16 * 64 + 9 * 3 * 16));
  ASSERT_EQ(layer.forward.size(), 1U);  // no copy of the weights, of which each image has its own
  for (const TraceKernel& kernel : {layer.forward[0], layer.to_inputs[0], layer.to_parameters[0]})
    EXPECT_EQ(kernel.grows, TraceKernel::Growth::groups);
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

// 80 channels of 100 samples to 64 of 50, with a kernel of 7: each of 7 x 80 x 64 weights is used at 50 places.
TEST(LayerList, AConvolutionOfOneDimensionByHand) {
  const LayerNetwork network = generator(
      R"({ "kind": "convolution", "out": 64, "kernel": 7, "stride": 2, "bias": false }, { "kind": "upsample", "factor": 2 },
         { "kind": "transposed-convolution", "out": 1, "kernel": 4, "stride": 2, "padding": 1, "bias": false })",
      "[80, 100]");
  EXPECT_EQ(network.output, (std::vector<int>{1, 1, 200}));
  EXPECT_EQ(network.layers[0].parameters, 7 * 80 * 64);
  EXPECT_EQ(network.layers[0].flops, 2.0 * 7 * 80 * 64 * 50);
  EXPECT_EQ(network.layers[2].flops, 2.0 * 4 * 64 * 100);
}

// Clips: 3 channels of 16 images of 8 x 8 to 16 of 8 times 4 x 4. Each of 2 x 4 x 4 x 3 x 16 weights is used at 128
// places.
TEST(LayerList, AConvolutionOfThreeDimensionsByHand) {
  const LayerNetwork network = generator(
      R"({ "kind": "convolution", "out": 16, "kernel": [2, 4, 4], "stride": 2, "padding": [0, 1, 1], "bias": false },
         { "kind": "norm" }, { "kind": "upsample", "factor": [1, 2, 2] }, { "kind": "downsample", "factor": 2 },
         { "kind": "transposed-convolution", "out": 3, "kernel": 4, "stride": [1, 2, 2], "padding": [2, 1, 1], "bias": false })",
      "[3, 16, 8, 8]");
  EXPECT_EQ(network.output, (std::vector<int>{3, 3, 8, 8}));
  EXPECT_EQ(network.layers[0].parameters, 2 * 4 * 4 * 3 * 16);
  EXPECT_EQ(network.layers[0].flops, 2.0 * 2 * 4 * 4 * 3 * 16 * 8 * 4 * 4);
  EXPECT_EQ(network.layers[1].written, 4.0 * 16 * 8 * 4 * 4);
  EXPECT_EQ(network.layers[4].flops, 2.0 * 4 * 4 * 4 * 3 * 16 * 4 * 4 * 4);
  const TraceKernel& first = network.layers[0].forward[1];
  EXPECT_EQ(first.in, (std::array<std::int64_t, 3>{16, 8, 8}));
  EXPECT_EQ(first.window, (std::array<std::int64_t, 3>{2, 4, 4}));
  EXPECT_EQ(first.flops(), network.layers[0].flops);
  const TraceKernel& last = network.layers[4].forward[1];  // the gradient of the convolution that it mirrors
  EXPECT_EQ(last.out(0), 4);
  EXPECT_EQ(last.out(1), 4);
}

// A product with a number of each channel: such a kernel forward, and for the input's gradient; the rest is its own.
TEST(LayerList, ABroadcastIsOneInBothDirections) {
  const LayerNetwork network =
      generator(R"({ "kind": "elementwise", "backward": [4, 2], "broadcast": true }, { "kind": "linear", "out": 1 })");
  const Layer& layer = network.layers[0];
  ASSERT_EQ(layer.forward.size(), 1U);
  EXPECT_EQ(layer.forward[0].op, "broadcast");
  ASSERT_EQ(layer.to_inputs.size(), 2U);
  EXPECT_EQ(layer.to_inputs[0].op, "broadcast");
  EXPECT_EQ(layer.to_inputs[1].op, "elementwise_backward");
  EXPECT_EQ(layer.to_inputs[1].reads, 3);
  EXPECT_EQ(layer.to_inputs[1].writes, 1);
}

// Words of shared memory belong to the kernel of their direction.
TEST(LayerList, SharedMemoryIsOfBothDirections) {
  const LayerNetwork network =
      generator(R"({ "kind": "elementwise", "backward": [1, 1], "shared": [33, 20] }, { "kind": "linear", "out": 1 })");
  EXPECT_EQ(network.layers[0].forward[0].shared, 33);
  EXPECT_EQ(network.layers[0].to_inputs[0].shared, 20);
  EXPECT_THROW(generator(R"({ "kind": "elementwise", "shared": [33] })"), ConfigError);
}

// A list with a number for each side, in two dimensions.
TEST(LayerList, AConvolutionThatIsNotSquareByHand) {
  const LayerNetwork network = generator(
      R"({ "kind": "convolution", "out": 2, "kernel": [1, 7], "stride": [2, 1], "bias": false })", "[3, 8, 8]");
  EXPECT_EQ(network.output, (std::vector<int>{2, 4, 8}));
  EXPECT_EQ(network.total().flops, 2.0 * 7 * 3 * 2 * 4 * 8);
}

// A convolution with a norm keeps its result for the norm and the norm's, which the activation overwrites; a sum keeps
// none of the results that it adds.
TEST(LayerList, KeepsWhatPyTorchKeepsForTheBackwardPass) {
  const double numbers = 4.0 * 3 * 64;  // bytes of 3 channels of 8 x 8
  const std::string convolution = R"({ "kind": "convolution", "out": 3, "kernel": 3 })";
  EXPECT_EQ(generator(convolution + R"(, { "kind": "activation" })").total().kept, numbers);
  EXPECT_EQ(generator(convolution + R"(, { "kind": "norm" }, { "kind": "activation" })").total().kept, 2 * numbers);
  EXPECT_EQ(generator(R"({ "kind": "residual", "layers": [ )" + convolution +
                      R"(, { "kind": "norm" }, { "kind": "activation" }, )" + convolution +
                      R"(, { "kind": "norm" } ] }, { "kind": "activation" })")
                .total()
                .kept,
            (2 + 1 + 1) * numbers);  // convolution and norm; convolution; the sum
  // The shortcut reads what the first activation would overwrite.
  EXPECT_EQ(
      generator(R"({ "kind": "residual", "layers": [ { "kind": "activation" }, )" + convolution + " ] }").total().kept,
      2 * numbers);
}

double gigamacs(const char* list, const char* network) {
  return committed(list).networks.at(network).total().flops / 2e9;
}

// StyleGAN2's up-sampling convolutions are transposed ones, whose work is that of their input's size: at 1024 x 1024
// the generator takes 74.3 billion multiply-adds (Liu et al., "Content-Aware GAN Compression", CVPR 2021), not
// 142. ResNet-50: 4.09 (torchvision).
TEST(LayerList, CommittedListsHaveThePublishedWork) {
  EXPECT_NEAR(gigamacs("stylegan2", "generator"), 74.3, 0.4);
  EXPECT_NEAR(gigamacs("resnet50", "classifier"), 4.09, 0.01);
}

// People train ResNet-50 with 224 images of 224 x 224 in fp32 on 24 GB. Each image keeps some 22 million numbers.
TEST(LayerTrace, ResNet50NeedsTheMemoryThatItNeeds) {
  const auto memory_gb = [](const char* precision) {
    LayerList list = committed("resnet50");
    list.precision = precision;
    const StepTrace trace = trace_of(list, {224}, kDevice);
    double bytes = 0;
    for (const auto& [kind, size] : trace.batches[0].memory_bytes) bytes += size;
    return bytes / 1e9;
  };
  EXPECT_GT(memory_gb("fp32"), 18);
  EXPECT_LT(memory_gb("fp32"), 22);
  EXPECT_NEAR(memory_gb("fp16"), memory_gb("fp32") / 2, 0.5);
}

TEST(LayerTrace, HalfPrecisionMovesHalfTheBytes) {
  LayerList list = committed("stylegan2");
  const TraceBatch full = trace_of(list, {4}, kDevice).batches[0];
  list.precision = "fp16";
  const StepTrace trace = trace_of(list, {4}, kDevice);
  const TraceBatch& half = trace.batches[0];
  EXPECT_EQ(trace.precision, "fp16");
  EXPECT_NEAR(half.phases[1].bytes_read, full.phases[1].bytes_read / 2, 1);
  EXPECT_EQ(half.memory_bytes.at("optimizer"), full.memory_bytes.at("optimizer"));
  EXPECT_EQ(half.buckets[0].bytes, full.buckets[0].bytes);  // gradients are reduced in fp32
}

// A backward pass takes 2.6 times the time of a forward pass where arithmetic decides.
TEST(LayerTrace, ABackwardPassTakesLongerThanItsWork) {
  RooflineDevice device = kDevice;
  device.launch = Seconds{0};
  device.bandwidth = BytesPerSecond{1e30};
  const TraceBatch batch = trace_of(committed("resnet50"), {8}, device).batches[0];
  EXPECT_NEAR(batch.phases[2].seconds[0] / batch.phases[1].seconds[0], 2.6, 1e-6);
  EXPECT_NEAR(batch.phases[2].flops / batch.phases[1].flops, 2, 1e-9);
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
                                 {"resnet50", "classifier", 25'557'032, 0},
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
  // Eager: lerp, mul, addcmul, sqrt, div, add and addcdiv.
  EXPECT_EQ(phase("discriminator.update").bytes_read, 11 * 4 * 193);
  EXPECT_EQ(phase("discriminator.update").bytes_written, 7 * 4 * 193);
  // The longest of work, traffic and launches: two launches of 4 us.
  EXPECT_EQ(phase("discriminator.forward_real").seconds[0], 8e-6);
  EXPECT_EQ(trace.software.backend, "roofline");
  EXPECT_EQ(batch.memory_bytes.at("optimizer"), 2 * batch.memory_bytes.at("parameters"));
  EXPECT_EQ(batch.buckets.front().after_phase, "discriminator.backward_fake");
}

// SGD keeps one number for each parameter where Adam keeps two, and moves 11 where that moves 18.
TEST(LayerTrace, UpdatesBySgdIfTheListSaysSo) {
  LayerList list = committed("resnet50");
  EXPECT_EQ(list.optimizer, "sgd");
  const TraceBatch batch = trace_of(list, {8}, kDevice).batches.front();
  EXPECT_EQ(batch.phases.back().bytes_read, 7 * 4 * 25'557'032.0);
  EXPECT_EQ(batch.phases.back().bytes_written, 4 * 4 * 25'557'032.0);
  EXPECT_EQ(batch.memory_bytes.at("optimizer"), batch.memory_bytes.at("parameters"));
  list.optimizer = "adam";
  EXPECT_EQ(trace_of(list, {8}, kDevice).batches.front().phases.back().launches, 7);
  EXPECT_THAT(message_of<ConfigError>([] {
                read_list(R"({ "schema": "ganymede.layers/1", "name": "m", "optimizer": "lion", "networks": {} })");
              }),
              HasSubstr("/optimizer: found \"lion\""));
}

TEST(LayerList, NamesThePlaceOfWhatCannotBe) {
  const auto error = [](const std::string& text) { return message_of<ConfigError>([&] { read_list(text); }); };
  EXPECT_THAT(error(gan(R"({ "kind": "convolutoin", "out": 3, "kernel": 1 })")),
              AllOf(HasSubstr("model.json: /networks/generator/layers/0/kind: found \"convolutoin\""),
                    HasSubstr("did you mean")));
  EXPECT_THAT(error(gan(R"({ "kind": "convolution", "out": 3, "kernel": 11, "padding": 0 })")),
              HasSubstr("/layers/0/kernel: a kernel of 11 with a padding of 0 leaves nothing of an input of 8 x 8"));
  EXPECT_THAT(error(gan(R"({ "kind": "convolution", "out": 3, "kernel": [3, 3, 3] })")),
              HasSubstr("/layers/0/kernel: found an array of 3, expected one number, or a list of 2"));
  EXPECT_THAT(error(gan(R"({ "kind": "convolution", "out": 3, "kernel": [3, 3, 0] })", "[3, 4, 8, 8]")),
              HasSubstr("/layers/0/kernel/2: found 0, expected an integer from 1 to 1024"));
  EXPECT_THAT(error(gan(R"({ "kind": "convolution", "out": 3, "kernel": 9, "padding": [1, 4, 4] })", "[3, 4, 8, 8]")),
              HasSubstr("a kernel of 9 with a padding of 1 leaves nothing of an input of 4 x 8 x 8"));
  EXPECT_THAT(error(gan(R"({ "kind": "convolution", "out": 1048576, "kernel": 1000 })", "[1048576, 1000, 1000, 1000]")),
              HasSubstr("/layers/0: 1.09951e+21 weights, expected at most"));
  EXPECT_THAT(error(gan(R"({ "kind": "linear", "out": 3 })", "[3, 4, 4, 8, 8]")),
              HasSubstr("/networks/generator/input"));
  EXPECT_THAT(error(gan(R"({ "kind": "convolution", "out": 4, "kernel": 1, "groups": 3 })")),
              HasSubstr("3 groups must divide both"));
  EXPECT_THAT(error(gan(R"({ "kind": "convolution", "out": 4, "kernel": 1, "stirde": 3 })")),
              HasSubstr("did you mean \"stride\"?"));
  EXPECT_THAT(error(gan(R"({ "kind": "residual", "layers": [ { "kind": "convolution", "out": 4, "kernel": 1 } ] })")),
              HasSubstr("which cannot be added"));
  EXPECT_THAT(
      error(gan(R"({ "kind": "transposed-convolution", "out": 4, "kernel": 4, "stride": 2, "output_padding": 2 })")),
      HasSubstr("/layers/0/output_padding: found 2, expected an integer from 0 to 1"));
  const std::string up = R"({ "kind": "upsample", "factor": 1000 })";
  EXPECT_THAT(error(gan(up + ", " + up)), HasSubstr("/layers/1: its result has a side of 8000000, expected at most"));
  EXPECT_THAT(error(gan(R"({ "kind": "constant", "to": [1048576, 2048, 2048] })")),
              HasSubstr("/layers/0: its result has 1048576 x 2048 x 2048 numbers for each image"));
  const std::string activation = R"({ "kind": "repeat", "times": 3000, "layers": [ { "kind": "activation" } ] })";
  EXPECT_THAT(error(gan(R"({ "kind": "repeat", "times": 3000, "layers": [ )" + activation + " ] }")),
              HasSubstr("more than 100000 layers"));
  EXPECT_THAT(error(gan(R"({ "kind": "linear", "out": 16777216 })", "[1048576, 65536, 65536]")),
              HasSubstr("/layers/0: 4.5036e+15 inputs by 16777216 outputs"));
  EXPECT_THAT(error(gan(R"({ "kind": "attention", "key": 1, "value": 2, "pool": 9 })")),
              HasSubstr("/layers/0/pool: found 9, expected an integer from 1 to 8"));
  EXPECT_THAT(error(gan(R"({ "kind": "concat", "channels": 1048576 })")), HasSubstr("/layers/0/channels: 1048579"));
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
