// The synthesis layers of StyleGAN3, whose sizes follow from cutoff frequencies.

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/json_value.hpp"
#include "common/random.hpp"
#include "traces/layer_images.hpp"

namespace ganymede::traces {
namespace {

Json elementwise(double reads, double writes, const Json& backward, bool broadcast = false) {
  return {
      {"kind", "elementwise"}, {"reads", reads}, {"writes", writes}, {"backward", backward}, {"broadcast", broadcast}};
}

Json side(const Json& input, const Json& layers, const char* precision = "fp32") {
  return {{"kind", "side"}, {"precision", precision}, {"input", input}, {"layers", layers}};
}

/// The style of a layer and the scaled filters of each image: times the style; with demodulation the square, its sum
/// and the product with the norm, whose gradient goes both ways; times the gain of the input; and a copy in 16 bits.
void add_styled(Json& layers, int in, int out, int kernel, bool demodulates) {
  layers.push_back(side({512, 1, 1}, Json::array({{{"kind", "linear"}, {"out", in}}})));
  Json each = Json::array({elementwise(0, 1, {4, 2}, true)});
  if (demodulates)
    for (const Json& one : {elementwise(1, 1, {3, 3}), elementwise(1, 0, {0, 0}), elementwise(1, 1, {4, 2}, true),
                            elementwise(0, 0, {2, 1})})
      each.push_back(one);
  each.push_back(elementwise(1, 1, {1, 1}, true));
  each.push_back(elementwise(1, 0.5, {0.5, 1}));
  // Autograd keeps the first product; the convolution counts the copy that it reads.
  for (std::size_t i = 1; i < each.size(); ++i) each[i]["keeps"] = 0;
  layers.push_back(side({out, in, kernel * kernel}, each));
}

}  // namespace

Json alias_free_layers(const LayerSettings& settings, int kernel, int scale) {
  constexpr int kCount = 14, kCritical = 2, kMargin = 10;
  constexpr double kFirstCutoff = 2;
  const auto number = [&](const char* name) { return static_cast<double>(settings.at(name)); };
  const double image = number("image"), last_cutoff = image / 2;
  // As powers of two, which all machines compute alike: cutoffs grow from 2 to half the side, stopbands from 2^2.1 to
  // 2^0.3 times that.
  const double octaves = std::log2(last_cutoff / kFirstCutoff);
  std::vector<int> rates, sizes, channels;
  for (int i = 0; i <= kCount; ++i) {
    const double share = std::min(1.0, static_cast<double>(i) / (kCount - kCritical));
    const double stop = 2.1 + (std::log2(last_cutoff) + 0.3 - 2.1) * share;
    const double cutoff = kFirstCutoff * portable_exp(share * octaves * std::log(2.0));
    rates.push_back(1 << static_cast<int>(std::ceil(std::min(stop + 1, std::log2(image)) - 1e-9)));
    sizes.push_back(rates.back() + 2 * kMargin);
    channels.push_back(
        static_cast<int>(std::lrint(scale * std::min(number("channel_base") / 2 / cutoff, number("channel_max")))));
  }
  sizes[kCount - 1] = sizes[kCount] = static_cast<int>(image);
  channels[kCount] = 3;

  Json layers = Json::array();
  // The Fourier features: four numbers that turn and shift them, their sines at each place, and their mixture.
  layers.push_back(side({512, 1, 1}, Json::array({{{"kind", "linear"}, {"out", 4}}})));
  layers.push_back({{"kind", "reshape"}, {"to", {channels[0], sizes[0], sizes[0]}}});
  layers.push_back(elementwise(3, 4, {8, 4}));
  layers.push_back({{"kind", "convolution"}, {"out", channels[0]}, {"kernel", 1}, {"bias", false}});
  for (int i = 0; i <= kCount; ++i) {
    const auto before = static_cast<std::size_t>(std::max(i - 1, 0)), at = static_cast<std::size_t>(i);
    const bool last = i == kCount;
    const int window = last ? 1 : kernel, inner = sizes[before];
    const char* precision =
        rates[at] * (std::int64_t{1} << settings.at("fp16_resolutions")) > settings.at("image") ? "fp16" : "fp32";
    add_styled(layers, channels[before], channels[at], window, !last);
    layers.push_back({{"kind", "reshape"}, {"to", {channels[before], inner, inner}}});
    layers.push_back({{"kind", "convolution"},
                      {"out", channels[at]},
                      {"kernel", window},
                      {"bias", false},
                      {"each_image", true},
                      {"precision", precision}});
    layers.push_back({{"kind", "elementwise"}, {"reads", 0}, {"writes", 0}, {"parameters", channels[at]}});
    // The filtered activation is one kernel: up to twice the higher rate, leaky ReLU there, and down. It works in
    // shared memory: for each number at the higher rate its tile reads and writes so many words in the loops of
    // torch_utils/ops/filtered_lrelu.cu (NVlabs/stylegan3 @8fb5177d7755), with the tile's margins; forward and
    // backward, at a rate that stays or grows. Filters that are not separable (R) take 12 x 12 products.
    const bool grows = rates[before] != rates[at], radial = kernel == 1 && i < kCount - kCritical;
    const Json words =
        radial ? (grows ? Json{28.8, 28.5} : Json{33.8, 25.6}) : (grows ? Json{12.7, 18.6} : Json{17.7, 17.7});
    const auto fine = std::llround(2.0 * std::max(rates[before], rates[at]) * sizes[at] / rates[at]);
    Json filtered = elementwise(0.5, 0.5, {1, 0.5});
    filtered["shared"] = words;
    filtered["keeps"] = precision == std::string_view("fp16") ? 0.125 : 0.0625;  // two bits of each number
    if (!last) layers.push_back(side({channels[at], fine, fine}, Json::array({filtered}), precision));
  }
  return layers;
}

}  // namespace ganymede::traces
