#include "traces/layer_memory.hpp"

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
Json side(const Json& input, const Json& layers) { return {{"kind", "side"}, {"input", input}, {"layers", layers}}; }

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

const Json kAct = {{"kind", "activation"}};
Json conv(int out, int kernel, bool styles) {
  return {{"kind", "convolution"}, {"out", out}, {"kernel", kernel}, {"styles", styles}};
}
Json style(int channels) { return side({512, 1, 1}, Json::array({linear(channels)})); }
/// Layers in one precision.
Json block(const char* precision, const Json& layers) {
  return {{"kind", "repeat"}, {"times", 1}, {"precision", precision}, {"layers", layers}};
}
/// What is kept of images of some pixels beside the network, in fp32.
Json keeping(int channels, int pixels, double keeps) {
  return side({channels, pixels, pixels}, Json::array({{{"kind", "elementwise"}, {"keeps", keeps}}}));
}

/// The discriminator of NVlabs/stylegan2-ada-pytorch and NVlabs/stylegan3, with fp16 in its four highest resolutions,
/// behind the augmentation by ADA, if there is one: enlarged images, the grid of places, images between changes of
/// colour.
Json discriminator_of(int size, int base, bool augmented) {
  const auto width = [&](int pixels) { return std::min(base / pixels, 512); };
  const auto precision = [&](int pixels) { return pixels * 16 > size ? "fp16" : "fp32"; };
  Json layers = Json::array();
  if (augmented) layers = {keeping(3, 2 * (size + 12), 1), keeping(2, 2 * (size + 6), 1), keeping(3, size, 3)};
  layers.push_back(block(precision(size), {conv(width(size), 1, false), kAct}));
  for (int pixels = size; pixels > 4; pixels /= 2) {
    const Json down = {{"kind", "downsample"}, {"factor", 2}};
    Json filtered = down;  // at full size, before a convolution with a stride
    filtered["keeps"] = 4;
    const Json main = {conv(width(pixels), 3, false), kAct, filtered, conv(width(pixels / 2), 3, false), kAct};
    Json short_conv = conv(width(pixels / 2), 1, false);
    short_conv["bias"] = false;
    layers.push_back(
        block(precision(pixels),
              Json::array({{{"kind", "residual"}, {"layers", main}, {"shortcut", Json::array({down, short_conv})}}})));
  }
  for (const Json& layer :
       {Json{{"kind", "concat"}, {"channels", 1}}, conv(width(4), 3, false), kAct, linear(width(4)), kAct, linear(1)})
    layers.push_back(layer);
  return layers;
}

/// StyleGAN2's passes with other networks, without path length if `regularized` is false.
LayerList with_networks(const Json& generator, const Json& discriminator, int size, bool regularized) {
  LayerList list = built_in_list("stylegan2");
  if (!regularized)
    std::erase_if(list.step, [](const LayerPass& pass) { return pass.name.find("path_length") != std::string::npos; });
  list.networks = read({{"schema", "ganymede.layers/1"},
                        {"name", "m"},
                        {"networks",
                         {{"generator", {{"input", {512, 1, 1}}, {"average", true}, {"layers", generator}}},
                          {"discriminator", {{"input", {3, size, size}}, {"layers", discriminator}}}}}})
                      .networks;
  list.bytes_per_image = 4.0 * 3 * size * size;
  return list;
}

/// StyleGAN2-ADA as its PyTorch program trains it with the configuration "auto": two layers of mapping, fp16 in the
/// four highest resolutions.
LayerList stylegan2_ada(int size) {
  const int base = size >= 512 ? 32768 : 16384;
  const auto width = [&](int pixels) { return std::min(base / pixels, 512); };
  Json generator = {side({512, 1, 1}, {linear(512), kAct, linear(512), kAct}),
                    {{"kind", "constant"}, {"to", {width(4), 4, 4}}}};
  for (int pixels = 4; pixels <= size; pixels *= 2) {
    Json layers = Json::array();
    if (pixels > 4) {
      Json up = conv(width(pixels), 3, true);
      up["kind"] = "transposed-convolution", up["stride"] = 2, up["padding"] = 1, up["output_padding"] = 1;
      layers = {style(width(pixels / 2)), up, {{"kind", "upsample"}, {"factor", 1}}, kAct};
    }
    for (const Json& layer : {style(width(pixels)), conv(width(pixels), 3, true), kAct}) layers.push_back(layer);
    layers.push_back({{"kind", "branch"}, {"layers", {style(width(pixels)), conv(3, 1, true)}}});
    generator.push_back(block(pixels * 16 > size ? "fp16" : "fp32", layers));
  }
  return with_networks(generator, discriminator_of(size, base, true), size, true);
}

/// StyleGAN3-T as its program builds it (training/networks_stylegan3.py): 14 layers whose cutoffs grow from 2 to half
/// the side. A convolution has each image's filters, which are kept once in fp32 and once as it reads them; the
/// filtered activation keeps two bits for each number of its fine grid, and makes the next layer's input.
LayerList stylegan3_t(int size, int base, bool augmented) {
  Json generator = {side({512, 1, 1}, {linear(512), kAct, linear(512), kAct})};
  constexpr int kLayers = 14;
  const double first = std::log2(2), last = std::log2(size / 2.0);
  int channels = 0, inner = 0, rate = 0;
  for (int i = 0; i <= kLayers; ++i) {
    const double share = std::min(1.0, i / 12.0), cutoff = first + (last - first) * share;
    const double stop = 2.1 + (last + 0.3 - 2.1) * share;
    const int own_rate = 1 << static_cast<int>(std::ceil(std::min(stop + 1, std::log2(size)) - 1e-9));
    const int own = i < kLayers ? static_cast<int>(std::lrint(std::min(base / 2 / std::exp2(cutoff), 512.0))) : 3;
    const int outer = i < kLayers - 1 ? own_rate + 20 : size;
    if (i == 0) {
      channels = own, inner = outer, rate = own_rate;
      generator.push_back({{"kind", "reshape"}, {"to", {channels, inner, inner}}});
      generator.push_back(conv(channels, 1, false));
    }
    const bool half = own_rate * 16 > size;
    const int kernel = i < kLayers ? 3 : 1;
    generator.push_back(style(channels));
    generator.push_back({{"kind", "reshape"}, {"to", {channels, inner, inner}}});
    Json each = conv(own, kernel, false);
    each["each_image"] = true, each["padding"] = kernel - 1;
    Json layers = {side({own, channels, kernel * kernel},
                        Json::array({{{"kind", "elementwise"}, {"precision", "fp32"}, {"keeps", 1}}})),
                   each};
    const int fine = static_cast<int>(2.0 * std::max(rate, own_rate) / rate * (inner + 2));
    if (i < kLayers)
      layers.push_back(side({own, fine, fine}, Json::array({{{"kind", "elementwise"},
                                                             {"reads", 0.25},  // input and output are coarse
                                                             {"writes", 0.25},
                                                             {"keeps", half ? 0.125 : 0.0625}}})));
    generator.push_back(block(half ? "fp16" : "fp32", layers));
    channels = own, inner = outer, rate = own_rate;
  }
  return with_networks(generator, discriminator_of(size, base, augmented), size, false);
}

// Published: NVlabs/stylegan2-ada-pytorch, README "Expected training time" @d72cc7d041b4, peaks of
// torch.cuda.max_memory_allocated() in GiB on V100 with 1, 2, 4 and 8 GPUs. Nothing was fitted to them. On several GPUs
// the buckets of DistributedDataParallel are copies of the gradients, of the generator's average too.
TEST(LayerMemory, OfStyleGan2AdaIsNearThePublishedPeaks) {
  struct Row {
    int side, batch;
    std::vector<double> one_gpu, several;
  };
  double all = 0;
  int rows = 0;
  for (const Row& row :
       {Row{128, 32, {7.2}, {7.4}}, Row{128, 16, {}, {4.2}}, Row{128, 8, {}, {2.6}}, Row{256, 16, {5.0}, {5.2, 5.2}},
        Row{256, 8, {}, {3.2}}, Row{512, 8, {7.6}, {7.8, 7.9, 7.8}}, Row{1024, 4, {8.1}, {8.6, 8.4, 8.3}}}) {
    const LayerList list = stylegan2_ada(row.side);
    const auto memory = allocated_memory(list, row.batch);
    const double one = sum(memory) / kGiB, buckets = (memory.at("gradients") + memory.at("averages")) / kGiB;
    const auto check = [&](double counted, double published) {
      EXPECT_GT(counted, 0.9 * published) << row.side << " " << row.batch;
      EXPECT_LT(counted, 1.1 * published) << row.side << " " << row.batch;
      all += std::abs(counted / published - 1), ++rows;
    };
    for (const double published : row.one_gpu) check(one, published);
    for (const double published : row.several) check(one + buckets, published);
  }
  EXPECT_EQ(rows, 16);
  EXPECT_LT(all / rows, 0.05);
}

// Published: NVlabs/stylegan3, list of configurations @c233a919a6fa, stylegan3-t, peaks in GiB on V100 and A100 alike,
// again with nothing fitted. Its gradients are reduced in one flat copy after the last pass, when no graph lives.
TEST(LayerMemory, OfStyleGan3IsNearThePublishedPeaks) {
  struct Row {
    int size, batch, base;
    bool augmented;
    std::vector<double> published;
  };
  double all = 0;
  int rows = 0;
  for (const Row& row :
       {Row{128, 16, 32768, true, {7.2, 7.1}}, Row{128, 8, 32768, true, {4.1}}, Row{128, 4, 32768, true, {2.6}},
        Row{256, 16, 32768, true, {9.5, 9.3}}, Row{256, 8, 32768, true, {5.2}}, Row{256, 4, 32768, true, {3.1}},
        Row{512, 8, 32768, true, {7.8, 7.7, 7.6}}, Row{512, 4, 32768, true, {4.3, 4.3}},
        Row{1024, 4, 32768, true, {7.0, 6.8, 6.7, 6.6, 7.7, 7.7}}, Row{1024, 4, 32768, false, {6.6}},
        Row{256, 8, 16384, false, {3.5}}}) {
    const double counted = sum(allocated_memory(stylegan3_t(row.size, row.base, row.augmented), row.batch)) / kGiB;
    for (const double published : row.published) {
      EXPECT_GT(counted, 0.9 * published) << row.size << " " << row.batch;
      EXPECT_LT(counted, 1.1 * published) << row.size << " " << row.batch;
      all += std::abs(counted / published - 1), ++rows;
    }
  }
  EXPECT_EQ(rows, 21);
  EXPECT_LT(all / rows, 0.05);
}

// NVlabs/stylegan2 README: 13.3 GiB (of TensorFlow's allocator) in fp32 at 1024 pixels and batch 4.
TEST(LayerMemory, OfStyleGan2InSinglePrecisionIsNearThePublishedPeak) {
  const double counted = sum(allocated_memory(built_in_list("stylegan2"), 4)) / kGiB;
  EXPECT_GT(counted, 0.9 * 13.3);
  EXPECT_LT(counted, 1.1 * 13.3);
}

}  // namespace
}  // namespace ganymede::traces
