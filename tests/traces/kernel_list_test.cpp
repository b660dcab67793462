#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "documents/step_trace.hpp"
#include "support/errors.hpp"
#include "traces/layer_list.hpp"
#include "traces/recorded.hpp"

namespace ganymede::traces {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using Kind = TraceKernel::Kind;

std::vector<TraceKernel> read_text(const std::string& text) {
  return documents::read_kernels(JsonNode::parse(text, "k.json"));
}

LayerList list_of_layers(const std::string& layers, const std::string& more = "") {
  return read_layer_list(JsonNode::parse(R"({ "schema": "ganymede.layers/1", "name": "m", )" + more + R"("networks": {
    "net": { "input": [3, 8, 8], "layers": [)" +
                                             layers + R"(] } },
    "step": [ { "network": "net", "pass": "forward" }, { "network": "net", "pass": "backward" },
              { "network": "net", "pass": "update" } ] })",
                                         "model.json"));
}

/// "convolution 2" for two launches in a step.
std::vector<std::string> launches(const LayerList& list, const std::string& phase) {
  std::vector<std::string> found;
  for (const TraceKernel& kernel : kernels_of(list))
    if (kernel.phase == phase) found.push_back(kernel.op.empty() ? std::string(to_string(kernel.kind)) : kernel.op);
  return found;
}

TEST(KernelList, IsReadAsItIsWritten) {
  TraceKernel convolution;
  convolution.phase = "net.forward", convolution.stage = "8x8", convolution.layer = "conv1";
  convolution.kind = Kind::convolution_weight_gradient, convolution.grows = TraceKernel::Growth::batch;
  convolution.in_channels = 4, convolution.out_channels = 6, convolution.groups = 2;
  convolution.in = {3, 8, 9}, convolution.window = {3, 5, 1}, convolution.padding = {1, 2, 0};
  convolution.stride = {1, 2, 2}, convolution.channels_last = true, convolution.precision = "fp16";
  convolution.measured_s = 1e-5, convolution.batch = 2;
  TraceKernel product;
  product.phase = "net.forward", product.kind = Kind::product, product.grows = TraceKernel::Growth::k;
  product.m = 5, product.n = 6, product.k = 1, product.transposed_a = true, product.times = 0.25;
  TraceKernel moving;
  moving.phase = "net.update", moving.op = "adam", moving.grows = TraceKernel::Growth::none;
  moving.cols = 123, moving.reads = 4, moving.writes = 3, moving.shared = 33;
  const std::vector<TraceKernel> kernels = {convolution, product, moving};
  EXPECT_EQ(read_text(documents::kernels_json(kernels).dump()), kernels);
}

TEST(KernelList, GrowsByAnExtentOfItsKind) {
  const auto error = [](const std::string& kernel) {
    return message_of<ConfigError>([&] { read_text(R"([ { "phase": "a", )" + kernel + " } ]"); });
  };
  EXPECT_THAT(error(R"("kind": "product", "m": 1, "n": 2, "k": 3, "grows": "rows")"),
              HasSubstr("k.json: /0/grows: a kernel of that kind has no such extent"));
  EXPECT_THAT(error(R"("kind": "softmax", "op": "softmax", "grows": "k")"), HasSubstr("/0/grows"));
}

// 6 x 2 channels in each of two groups, windows of 15 over 3 x 4 x 5 places.
TEST(KernelList, CountsTheWorkOfOneImage) {
  const auto kernels = read_text(R"([ { "phase": "p", "kind": "convolution-dgrad", "in": [4, 3, 8, 9], "out": 6,
    "window": [3, 5, 1], "padding": [1, 2, 0], "stride": [1, 2, 2], "groups": 2 },
    { "phase": "p", "kind": "batched-product", "batch": 2, "m": 3, "n": 4, "k": 5 },
    { "phase": "p", "kind": "elementwise", "op": "add", "cols": 10, "reads": 2 },
    { "phase": "p", "kind": "convolution", "in": [4, 8, 8], "out": 6, "window": [1, 1], "batch": 3 } ])");
  EXPECT_EQ(kernels[0].flops(), 2.0 * 6 * 2 * 15 * 3 * 4 * 5);
  EXPECT_EQ(kernels[1].flops(), 2.0 * 2 * 3 * 4 * 5);
  EXPECT_EQ(kernels[2].flops(), 0);
  EXPECT_EQ(kernels[3].flops(), 3 * 2.0 * 6 * 4 * 64);
  EXPECT_EQ(kernels[1].grows, TraceKernel::Growth::batch);
}

TEST(KernelList, NamesThePlaceOfWhatNoKernelIs) {
  const auto error = [](const std::string& text) {
    return message_of<ConfigError>([&] { read_text("[ { \"phase\": \"p\", " + text + " } ]"); });
  };
  EXPECT_THAT(error(R"("kind": "convolutoin")"), StartsWith("k.json: /0/kind: found \"convolutoin\""));
  EXPECT_THAT(error(R"("kind": "product", "m": 0, "n": 1, "k": 1)"), StartsWith("k.json: /0/m: found 0"));
  EXPECT_THAT(
      error(R"("kind": "convolution", "in": [3, 4, 4], "out": 1, "window": [5, 5])"),
      HasSubstr("/0/window: a kernel of 5 over an input of 4 with padding 0 leaves an output smaller than one"));
  EXPECT_THAT(error(R"("kind": "convolution", "in": [3, 4, 4], "out": 4, "window": [1, 1], "groups": 2)"),
              HasSubstr("/0/groups: 2 groups do not divide 3 and 4 channels"));
  EXPECT_THAT(error(R"("kind": "elementwise")"), HasSubstr("op"));
  EXPECT_THAT(error(R"("kind": "softmax", "op": "softmax", "colls": 3)"), HasSubstr("did you mean \"cols\""));
}

// A convolution with a bias: the backward pass needs no gradient of the network's own input.
TEST(KernelsOfLayers, AreThoseThatPyTorchLaunches) {
  const LayerList list = list_of_layers(R"({ "kind": "convolution", "out": 4, "kernel": 3 }, { "kind": "activation" },
                                           { "kind": "linear", "out": 2, "bias": false })");
  EXPECT_THAT(launches(list, "net.forward"), ElementsAre("convolution", "bias", "activation", "product"));
  EXPECT_THAT(launches(list, "net.backward"),
              ElementsAre("product", "product", "activation_backward", "convolution-wgrad", "sum"));
  EXPECT_THAT(launches(list, "net.update"), ElementsAre("adam"));
  EXPECT_EQ(kernels_of(list).back().times, 7);  // one after the other over all tensors
}

// The second of two backward passes adds its gradients to those of the first; after an update there are none again. A
// graph replays a fused update.
TEST(KernelsOfLayers, AddTheGradientsOfFurtherPasses) {
  const auto list = [](const std::string& passes, const std::string& executor) {
    return read_layer_list(JsonNode::parse(R"({ "schema": "ganymede.layers/1", "name": "m", "executor": ")" + executor +
                                               R"(", "networks": { "net": { "copies": 2, "input": [3, 8, 8],
      "layers": [ { "kind": "linear", "out": 2 } ] } }, "step": [ )" +
                                               passes + R"( { "network": "net", "pass": "update" } ] })",
                                           "model.json"));
  };
  const auto added = [](const LayerList& layers) {
    double times = 0;
    for (const TraceKernel& kernel : kernels_of(layers))
      if (kernel.op == "accumulate") {
        times += kernel.times;
        EXPECT_EQ(kernel.cols, 3 * 8 * 8 * 2 + 2);
      }
    return times;
  };
  const std::string two = R"({ "network": "net", "pass": "backward", "times": 2 },)";
  EXPECT_EQ(added(list(two, "eager")), 0);  // one for each copy
  EXPECT_EQ(added(list(two + two, "eager")), 2);
  EXPECT_EQ(added(list(R"({ "network": "net", "pass": "backward", "times": 6 },)", "eager")), 4);
  EXPECT_EQ(added(list(two + R"({ "network": "net", "pass": "update" },)" + two, "eager")), 0);
  EXPECT_EQ(kernels_of(list(two, "graph")).back().times, 1);
  EXPECT_EQ(kernels_of(list(two, "graph")).back().reads, 4);
}

TEST(KernelsOfLayers, OfATransposedConvolutionAreThoseOfTheOneThatItMirrors) {
  const LayerList list = list_of_layers(R"({ "kind": "convolution", "out": 5, "kernel": 1, "bias": false },
    { "kind": "transposed-convolution", "out": 2, "kernel": 4, "stride": 2, "padding": 1, "bias": false })");
  const std::vector<TraceKernel> kernels = kernels_of(list);
  EXPECT_EQ(kernels[1].kind, Kind::convolution_data_gradient);
  EXPECT_EQ(kernels[1].in_channels, 2);
  EXPECT_EQ(kernels[1].out_channels, 5);
  EXPECT_EQ(kernels[1].in, (std::array<std::int64_t, 3>{1, 16, 16}));
  EXPECT_EQ(kernels[1].out(1), 8);
  EXPECT_EQ(kernels[2].kind, Kind::convolution);
  EXPECT_EQ(kernels[3].kind, Kind::convolution_weight_gradient);
}

// Half precision copies the weights first; a layer may state a precision of its own.
// The gradients of parameters need what lies behind them: all of attention but the gradients of its own input, the sums
// of a norm; and nothing before the first parameters.
TEST(KernelsOfLayers, OfAFirstLayerAreWhatItsParametersNeed) {
  const std::string attention = R"({ "kind": "attention", "key": 1, "value": 2 })";
  EXPECT_THAT(launches(list_of_layers(attention), "net.backward"),
              ElementsAre("convolution-dgrad", "batched-product", "batched-product", "softmax_backward",
                          "batched-product", "batched-product", "convolution-wgrad", "convolution-wgrad",
                          "convolution-wgrad", "convolution-wgrad"));
  EXPECT_THAT(launches(list_of_layers(R"({ "kind": "upsample", "factor": 2 }, { "kind": "norm" })"), "net.backward"),
              ElementsAre("norm_sums"));
}

TEST(KernelsOfLayers, FollowThePrecisionOfTheirLayer) {
  LayerList list = list_of_layers(
      R"({ "kind": "convolution", "out": 4, "kernel": 1, "bias": false }, { "kind": "linear", "out": 1, "bias": false, "precision": "fp32" })",
      R"("precision": "fp16", "memory_format": "channels_last", "executor": "graph", )");
  EXPECT_THAT(launches(list, "net.forward"), ElementsAre("cast", "convolution", "product"));
  const std::vector<TraceKernel> kernels = kernels_of(list);
  EXPECT_EQ(kernels[1].precision, "");
  EXPECT_TRUE(kernels[1].channels_last);
  EXPECT_EQ(kernels[2].precision, "fp32");
  const StepTrace trace = trace_of(list, {2}, {"G", FlopsPerSecond{1e12}, BytesPerSecond{1e11}, {}, Bytes{16e9}});
  EXPECT_EQ(trace.executor, "graph");
  list.precision = "fp32";
  EXPECT_THAT(launches(list, "net.forward"), ElementsAre("convolution", "product"));
}

// The FLOPs of the kernels are those of the phases, except for the gradients of the networks' own inputs.
TEST(KernelsOfLayers, DoTheWorkOfThePhases) {
  for (const EmbeddedText& text : embedded_layers()) {
    const LayerList list = read_layer_list(JsonNode::parse(text.text, std::string(text.name)));
    const StepTrace trace = trace_of(list, {1}, {"G", FlopsPerSecond{1e12}, BytesPerSecond{1e11}, {}, Bytes{16e9}});
    std::map<std::string, double> flops;
    for (const TraceKernel& kernel : trace.kernels) flops[kernel.phase] += kernel.times * kernel.flops();
    for (const TracePhase& phase : trace.batches[0].phases) {
      if (phase.name.find("backward") != std::string::npos) continue;
      EXPECT_NEAR(flops[phase.name], phase.flops, 1e-9 * phase.flops) << text.name << " " << phase.name;
    }
  }
}

// Its own launches are the list of what our kernel trains.
TEST(RecordedTraces, ListAsManyKernelsAsTheyLaunched) {
  for (const std::string& name : recorded_names()) {
    const std::string at = std::string(kRecorded) + name;
    const StepTrace trace = read_step_trace(JsonNode::parse(trace_text(JsonNode::wrap(Json(at), at, "")), at));
    EXPECT_FALSE(trace.kernels.empty()) << name;
    for (const TraceBatch& batch : trace.batches)
      for (const TracePhase& phase : batch.phases) {
        double listed = 0, flops = 0;
        for (const TraceKernel& kernel : trace.kernels)
          if (kernel.phase == phase.name && kernel.stage == batch.stage)
            listed += kernel.times, flops += kernel.times * kernel.flops() * batch.batch;
        EXPECT_EQ(listed, static_cast<double>(phase.launches)) << name << " " << phase.name;
        EXPECT_NEAR(flops, phase.flops, 1e-9 * phase.flops) << name << " " << phase.name;
      }
  }
}

// A sum over a large batch takes more kernels than one over a small batch.
TEST(AStepTrace, ListsTheKernelsOfOneOfItsBatchSizes) {
  const std::string at = std::string(kRecorded) + "mlp-gan-cpu";
  Json content = Json::parse(trace_text(JsonNode::wrap(Json(at), at, "")));
  const auto add_launches = [&](Json& batch) {
    for (auto& phase : batch.at("phases"))
      if (phase.at("stream") == "compute") phase.at("launches") = phase.at("launches").get<int>() + 2;
  };
  ASSERT_GE(content.at("batches").size(), 2U);
  add_launches(content.at("batches").back());
  EXPECT_NO_THROW(read_step_trace(JsonNode::wrap(content, "t.json", "")));
  for (std::size_t i = 0; i + 1 < content.at("batches").size(); ++i) add_launches(content.at("batches").at(i));
  EXPECT_THAT(message_of<ConfigError>([&] { read_step_trace(JsonNode::wrap(content, "t.json", "")); }),
              HasSubstr("launches in "));
}

TEST(AStepTrace, WhoseKernelsAreNotItsLaunchesIsRefused) {
  const std::string at = std::string(kRecorded) + "mlp-gan-cpu";
  Json content = Json::parse(trace_text(JsonNode::wrap(Json(at), at, "")));
  content["kernels"].erase(2);
  EXPECT_THAT(message_of<ConfigError>([&] { read_step_trace(JsonNode::wrap(content, "t.json", "")); }),
              AllOf(StartsWith("t.json: /kernels: found "), HasSubstr("launches in ")));
}

}  // namespace
}  // namespace ganymede::traces
