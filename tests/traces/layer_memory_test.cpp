#include "traces/layer_memory.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "support/errors.hpp"
#include "traces/recipe.hpp"
#include "traces/recorded.hpp"

namespace ganymede::traces {
namespace {

using testing::HasSubstr;

constexpr double kGiB = 1 << 30;

double sum(const std::map<std::string, double>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), 0.0,
                         [](double all, const auto& kind) { return all + kind.second; });
}

LayerList read(const Json& content) { return read_layer_list(JsonNode::wrap(content, "model.json", "")); }

Json linear(int out) { return {{"kind", "linear"}, {"out", out}}; }

/// A step of one network: `passes` in their order.
LayerList one_network(const Json& layers, const Json& passes, const char* precision = "fp32") {
  Json step = Json::array();
  for (const Json& pass : passes) {
    Json entry = pass;
    entry["network"] = "net";
    step.push_back(entry);
  }
  return read({{"schema", "ganymede.layers/1"},
               {"name", "m"},
               {"precision", precision},
               {"networks", {{"net", {{"input", {4, 8, 8}}, {"layers", layers}}}}},
               {"step", step}});
}
const Json kForward = {{"pass", "forward"}}, kBackward = {{"pass", "backward"}}, kUpdate = {{"pass", "update"}};

// Two 1 x 1 convolutions, 4 to 8 and 8 to 2 channels of 8 x 8: each keeps its output, 2048 and 512 bytes an image. At
// the end of the forward pass both are kept, and the second one's gradients pass: of its input and its output.
TEST(LayerMemory, OfAForwardAndABackwardPassByHand) {
  const Json layers = {{{"kind", "convolution"}, {"out", 8}, {"kernel", 1}, {"bias", false}},
                       {{"kind", "convolution"}, {"out", 2}, {"kernel", 1}, {"bias", false}}};
  const auto memory = allocated_memory(one_network(layers, {kForward, kBackward, kUpdate}), 10);
  const double weights = 4 * (4 * 8 + 8 * 2);
  EXPECT_EQ(memory.at("parameters"), weights);
  EXPECT_EQ(memory.at("gradients"), weights);
  EXPECT_EQ(memory.at("optimizer"), 2 * weights);
  EXPECT_EQ(memory.at("activations"), 10 * (2048 + 512));
  EXPECT_EQ(memory.at("passing"), 10 * (2048 + 512));
  EXPECT_FALSE(memory.contains("double_backward"));
  // Gradients of gradients: both outputs' gradients are kept too.
  Json twice = kForward;
  twice["differentiable"] = true;
  EXPECT_EQ(allocated_memory(one_network(layers, {twice, kBackward, kUpdate}), 10).at("double_backward"),
            10 * (2048 + 512));
  // On half of the batch, in every fourth step: in these steps it is there.
  twice["images"] = 0.5, twice["times"] = 0.125;
  const auto rarely = allocated_memory(one_network(layers, {twice, kBackward, kUpdate}), 10);
  EXPECT_EQ(rarely.at("double_backward"), 5 * (2048 + 512));
  // A forward pass that nothing goes back through keeps nothing: the peak is that of the other one.
  EXPECT_EQ(sum(allocated_memory(one_network(layers, {kForward, kForward, kBackward, kUpdate}), 10)), sum(memory));
}

// The weights of a network that is not trained are held, and have neither gradients nor moments.
TEST(LayerMemory, OfAFrozenNetworkIsThatOfItsWeights) {
  Json content = {{"schema", "ganymede.layers/1"},
                  {"name", "m"},
                  {"step",
                   {{{"network", "net"}, {"pass", "forward"}},
                    {{"network", "net"}, {"pass", "backward"}},
                    {{"network", "net"}, {"pass", "update"}}}},
                  {"networks",
                   {{"net", {{"input", {4, 8, 8}}, {"layers", {linear(3)}}}},
                    {"judge", {{"input", {4, 8, 8}}, {"frozen", true}, {"copies", 2}, {"layers", {linear(5)}}}}}}};
  const double trained = 4 * (4 * 8 * 8 * 3 + 3), frozen = 2 * 4 * (4 * 8 * 8 * 5 + 5);
  const auto memory = allocated_memory(read(content), 1);
  EXPECT_EQ(memory.at("parameters"), trained + frozen);
  EXPECT_EQ(memory.at("gradients"), trained);
  EXPECT_EQ(memory.at("optimizer"), 2 * trained);
}

// TensorFlow tries FFT_TILING on the first convolution of a shape: spectra of 32 x 17 complex numbers of 4 x 8 filters
// and of the one tile of 4 + 8 channels of ten images. The second pass of the same images takes what the first has
// chosen; sums of gradients stay.
TEST(LayerMemory, OfAFrameworkThatTriesAlgorithmsByHand) {
  const Json layers = {{{"kind", "convolution"}, {"out", 8}, {"kernel", 3}, {"bias", false}}};
  LayerList list = one_network(layers, {kForward, kBackward, kUpdate});
  const double in = 4 * 256, out = 4 * 512, spectrum = 4 * 2 * 32 * 17, weights = 4 * 9 * 4 * 8;
  const double chosen = 10 * 3.25 * (in + out) + 4 * weights;
  EXPECT_EQ(allocated_memory(list, 10).at("passing"), chosen);
  list.executor = "graph", list.gradient_sums = 2;
  EXPECT_EQ(allocated_memory(list, 10).at("passing"), 10 * (in + out) + spectrum * (4 * 8 + 10 * (4 + 8)));
  EXPECT_EQ(allocated_memory(list, 10).at("gradient_sums"), 2 * weights);
  // 4 GiB are no longer tried with: 32 filters and 12 channels of so many images.
  const int most = static_cast<int>((4 * kGiB / spectrum - 32) / 12);
  EXPECT_GT(allocated_memory(list, most).at("passing"), 4 * kGiB);
  EXPECT_EQ(allocated_memory(list, most + 1).at("passing"), (most + 1) * 3.25 * (in + out) + 4 * weights);
  // A regularizer of every fourth step tries only what the passes of every step have not.
  list.step = {{"", "net", LayerPass::Kind::forward, 0.25, 1, true}, {"", "net", LayerPass::Kind::backward, 0.25}};
  EXPECT_TRUE(allocated_memory(list, 10).contains("double_backward"));
  list.step.push_back({"", "net", LayerPass::Kind::forward});
  list.step.push_back({"", "net", LayerPass::Kind::backward});
  EXPECT_FALSE(allocated_memory(list, 10).contains("double_backward"));
}

// In 16 bits activations take half, and the weights' copies are kept; tensor cores work on copies of input and output.
TEST(LayerMemory, InSixteenBitsByHand) {
  const Json layers = {{{"kind", "convolution"}, {"out", 8}, {"kernel", 1}, {"bias", false}}};
  const auto memory = allocated_memory(one_network(layers, {kForward, kBackward, kUpdate}, "fp16"), 10);
  EXPECT_EQ(memory.at("activations"), 10 * 2048 / 2 + 2 * 32);
  EXPECT_EQ(memory.at("passing"), 2 * 10 * (1024 + 2048) / 2);
  EXPECT_EQ(memory.at("optimizer"), 2 * 4 * 32);  // weights and moments stay in fp32
}

// A convolution with styles keeps its scaled input, what it leaves to noise and norm, and each image's filters.
TEST(LayerMemory, OfStylesByHand) {
  const Json layers = {{{"kind", "convolution"}, {"out", 8}, {"kernel", 3}, {"bias", false}, {"styles", true}}};
  const auto memory = allocated_memory(one_network(layers, {kForward, kBackward, kUpdate}), 10);
  const double in = 4 * 256, out = 4 * 512, filters = 4 * 9 * 4 * 8;
  EXPECT_EQ(memory.at("activations"), 10 * (out + in + out + filters));
  // Gradients, Winograd's tiles (36 numbers for 16 and for 9), and four buffers of the filters' size.
  EXPECT_EQ(memory.at("passing"), 10 * (in + out + 2.25 * (in + out) + 4 * filters) + 4 * filters);
}

// A dense block: torch.cat makes a copy, which the next convolution keeps beside the branch's result. What only goes
// into a copy is not kept.
TEST(LayerMemory, OfACopyOfChannelsThatAreJoined) {
  const Json grow = {{"kind", "branch"}, {"layers", {{{"kind", "convolution"}, {"out", 2}, {"kernel", 1}}}}};
  const Json join = {{"kind", "concat"}, {"channels", 2}}, last = {{"kind", "convolution"}, {"out", 3}, {"kernel", 1}};
  const auto kept = [&](const Json& layers) {
    return allocated_memory(one_network(layers, {kForward, kBackward, kUpdate}), 10).at("activations");
  };
  EXPECT_EQ(kept({grow, join, last}), 10 * 4 * 64 * (2 + 6 + 3));
  EXPECT_EQ(kept({last, join, last}), 10 * 4 * 64 * (5 + 3));
}

TEST(LayerMemory, OfWhatALayerSaysThatItKeeps) {
  const Json bits = {{"kind", "activation"}, {"keeps", 0.25}};
  EXPECT_EQ(allocated_memory(one_network({bits, linear(16)}, {kForward, kBackward, kUpdate}), 1).at("activations"),
            4 * 256 * 0.25);
  EXPECT_THAT(message_of<ConfigError>([] {
                one_network(Json::array({{{"kind", "reshape"}, {"to", {256, 1, 1}}, {"keeps", 1}}}),
                            {kForward, kBackward, kUpdate});
              }),
              HasSubstr("/networks/net/layers/0/keeps"));
  Json wrong = kBackward;
  wrong["differentiable"] = true;
  EXPECT_THAT(message_of<ConfigError>([&] {
                one_network(Json::array({linear(1)}), {kForward, wrong, kUpdate});
              }),
              HasSubstr("/step/1/differentiable: only a forward pass is differentiated twice"));
}

// On several GPUs the buckets of DistributedDataParallel are copies of the gradients; a flat copy is made when no graph
// lives. Nothing was fitted to the peaks.
TEST(LayerMemory, OfRecipesIsNearTheirPublishedPeaks) {
  struct Source {
    const char *recipe, *by;
    std::size_t peaks;
    double least, most, mean_error;
  };
  for (const Source& source : {Source{"stylegan2-ada", "NVIDIA, 2020", 16, 0.88, 1.04, 0.05},
                               {"stylegan3-t", "NVIDIA, 2021", 16, 0.98, 1.1, 0.05},
                               {"stylegan2", "NVIDIA, 2019", 3, 0.94, 1.03, 0.04}}) {
    double errors = 0;
    std::size_t peaks = 0;
    for (const documents::RecipeMeasurement& measured : built_in_recipe(source.recipe).measured)
      for (const documents::RecipePeak& peak : measured.by == source.by ? measured.peaks : decltype(measured.peaks)()) {
        const std::string name = fmt::format("{}/{}?image={}", source.recipe, peak.config, peak.image);
        const LayerList list = resolve_recipe(name).layers;
        const auto memory = allocated_memory(list, peak.batch_per_gpu);
        const double buckets = peak.gpus > 1 && !list.flat_gradients ? memory.at("gradients") : 0;
        const double ratio = (sum(memory) + buckets) / kGiB / peak.gib;
        EXPECT_GT(ratio, source.least) << name << " " << peak.batch_per_gpu;
        EXPECT_LT(ratio, source.most) << name << " " << peak.batch_per_gpu;
        errors += std::abs(ratio - 1), ++peaks;
      }
    EXPECT_EQ(peaks, source.peaks) << source.recipe;
    EXPECT_LT(errors / static_cast<double>(peaks), source.mean_error) << source.recipe << " " << source.by;
  }
}

}  // namespace
}  // namespace ganymede::traces
