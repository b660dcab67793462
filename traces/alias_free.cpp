// The synthesis layers of StyleGAN3, whose sizes follow from cutoff frequencies.

#include <algorithm>
#include <cmath>
#include <utility>
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

constexpr int kCritical = 2, kMargin = 10;

/// The output of a synthesis layer. Cutoff and stopband are powers of two, which all machines compute alike.
struct Synthesis {
  double cutoff = 1, stop = 2.1;
  int rate = 0, size = 0, channels = 0;
};

/// `count` layers and the last for images of a side: cutoffs grow from 2 to half the side, stopbands from 2^2.1 to
/// 2^0.3 times that; from those of `stem` on, if these layers take the place of its critically sampled ones.
std::vector<Synthesis> synthesis(const LayerSettings& settings, double image, int count, int scale,
                                 const Synthesis* stem) {
  const auto number = [&](const char* name) { return static_cast<double>(settings.at(name)); };
  const Synthesis first = stem == nullptr ? Synthesis() : *stem;
  const double from = stem == nullptr ? first.stop : std::max(first.stop, std::log2(first.rate) - 1);
  const double last = std::log2(image) - 1;
  std::vector<Synthesis> layers;
  for (int i = 0; i <= count; ++i) {
    const double share = std::min(1.0, static_cast<double>(i) / (count - kCritical));
    Synthesis one{first.cutoff + (last - first.cutoff) * share, from + (last + 0.3 - from) * share};
    one.rate = 1 << static_cast<int>(std::ceil(std::min(one.stop + 1, std::log2(image)) - 1e-9));
    const double cutoff = portable_exp(one.cutoff * std::log(2.0));
    one.channels =
        static_cast<int>(std::lrint(scale * std::min(number("channel_base") / 2 / cutoff, number("channel_max"))));
    if (i == 0 && stem != nullptr) one.rate = stem->rate, one.channels = stem->channels;
    one.size = i >= count - 1 ? static_cast<int>(image) : one.rate + 2 * kMargin;
    if (i == count) one.channels = 3;
    layers.push_back(one);
  }
  return layers;
}

void add_fourier_features(Json& layers, const Synthesis& first) {
  // Four numbers that turn and shift them, their sines at each place, and their mixture.
  layers.push_back(side({512, 1, 1}, Json::array({{{"kind", "linear"}, {"out", 4}}})));
  layers.push_back({{"kind", "reshape"}, {"to", {first.channels, first.size, first.size}}});
  layers.push_back(elementwise(3, 4, {8, 4}));
  layers.push_back({{"kind", "convolution"}, {"out", first.channels}, {"kernel", 1}, {"bias", false}});
}

/// The filtered activation is one kernel: up to twice the higher rate, leaky ReLU there, and down. It works in shared
/// memory: for each number at the higher rate its tile reads and writes so many words in the loops of
/// torch_utils/ops/filtered_lrelu.cu (NVlabs/stylegan3 @8fb5177d7755), with the tile's margins; forward and backward,
/// at a rate that stays or grows. Filters that are not separable (R) take 12 x 12 products.
Json filtered_activation(const Synthesis& in, const Synthesis& out, bool radial, const char* precision) {
  const bool grows = in.rate != out.rate;
  const Json words =
      radial ? (grows ? Json{28.8, 28.5} : Json{33.8, 25.6}) : (grows ? Json{12.7, 18.6} : Json{17.7, 17.7});
  const auto fine = std::llround(2.0 * std::max(in.rate, out.rate) * out.size / out.rate);
  Json filtered = elementwise(0.5, 0.5, {1, 0.5});
  filtered["shared"] = words;
  filtered["keeps"] = precision == std::string_view("fp16") ? 0.125 : 0.0625;  // two bits of each number
  return side({out.channels, fine, fine}, Json::array({filtered}), precision);
}

/// The first `count` of the layers, which are those for images of `image` pixels.
void add_layers(Json& layers, const LayerSettings& settings, std::int64_t image, int kernel,
                const std::vector<Synthesis>& all, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const Synthesis &in = all[i == 0 ? 0 : i - 1], &out = all[i];
    const bool last = i + 1 == all.size();
    const int window = last ? 1 : kernel;
    const char* precision = out.rate * (std::int64_t{1} << settings.at("fp16_resolutions")) > image ? "fp16" : "fp32";
    add_styled(layers, in.channels, out.channels, window, !last);
    layers.push_back({{"kind", "reshape"}, {"to", {in.channels, in.size, in.size}}});
    layers.push_back({{"kind", "convolution"},
                      {"out", out.channels},
                      {"kernel", window},
                      {"bias", false},
                      {"each_image", true},
                      {"precision", precision}});
    layers.push_back({{"kind", "elementwise"}, {"reads", 0}, {"writes", 0}, {"parameters", out.channels}});
    const bool radial = kernel == 1 && i + 1 + kCritical < all.size();
    if (!last) layers.push_back(filtered_activation(in, out, radial, precision));
  }
}

}  // namespace

Json alias_free_layers(const LayerSettings& settings, const AliasFree& of) {
  const std::int64_t image = settings.at("image");
  std::int64_t side = of.grown_from > 0 ? std::min<std::int64_t>(of.grown_from, image) : image;
  std::vector<Synthesis> all = synthesis(settings, static_cast<double>(side), of.layers, of.scale, nullptr);
  Json stem = Json::array(), head = Json::array();
  add_fourier_features(head, all.front());
  for (; side < image; side *= 2) {
    const std::size_t kept = all.size() - 1 - kCritical;
    add_layers(head, settings, side, of.kernel, all, kept);
    for (Json& layer : head) stem.push_back(std::move(layer));
    head = Json::array();
    all = synthesis(settings, static_cast<double>(2 * side), of.head_layers, of.scale, &all[kept - 1]);
  }
  add_layers(head, settings, side, of.kernel, all, all.size());
  return of.stem ? stem : head;
}

}  // namespace ganymede::traces
