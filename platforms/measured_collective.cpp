#include "platforms/measured_collective.hpp"

#include <algorithm>
#include <cmath>

#include "common/json_value.hpp"
#include "common/random.hpp"

namespace ganymede::platforms {
namespace {

// The share of the links' shape grows from a gap of a factor of 2 on by an eighth with each further doubling, and is
// all that it may be where the links fold between both sizes, which no line can. It may be most where the machine was
// known. Chosen on 70 curves of bench/nccl_logs.py, from 1 MiB on: between their smallest and largest size alone they
// are 7.3 % off in the geometric mean (8.4 by half of the shape, 11.7 by a straight line), with every sixth size known
// 5.8 % (5.9, 6.4), with both neighbours 4.0 % (4.0, 4.1). With bounds chosen without a source at a time its curves
// are 7.3, 5.7 and 4.0 % off.
constexpr double kPlainGap = 1, kWideGap = 8;  // gaps as logarithms to base 2
constexpr double kMostOfKnown = 0.8, kMostOfUnknown = 0.2;
constexpr double kBetterThanLines = 0.5;

double logarithm(double value) { return portable_log(value); }

/// The share of the way from `low` to `high`, in logarithms.
double way(double low, double high, double at) { return logarithm(at / low) / logarithm(high / low); }

}  // namespace

Seconds MeasuredCollective::between(const Size& low, const Size& high, double bytes, Seconds links,
                                    bool follows) const {
  const Seconds span = high.measured - low.measured;
  const Seconds line = low.measured + (bytes - low.bytes) / (high.bytes - low.bytes) * span;
  if (high.links <= low.links) return line;
  const bool folds = links < low.links || links > high.links;
  // What was measured may contain a launch more or less, and be faster or slower: the shape meets both ends by a sum
  // and a factor, and so stays between them. Where the links fold, the factor alone changes from one end to the other.
  const auto sum_and_factor = [&] { return low.measured + (links - low.links) / (high.links - low.links) * span; };
  const double low_ratio = logarithm(low.measured / low.links), high_ratio = logarithm(high.measured / high.links);
  const Seconds shaped =
      folds ? portable_exp(low_ratio + way(low.bytes, high.bytes, bytes) * (high_ratio - low_ratio)) * links
            : sum_and_factor();
  const double gap = logarithm(high.bytes / low.bytes) / logarithm(2);
  const double most = stated_off < kKnown ? kMostOfKnown : kMostOfUnknown;
  const double share = follows ? 1 : folds ? most : std::clamp((gap - kPlainGap) / kWideGap, 0.0, most);
  return Seconds{portable_exp((1 - share) * logarithm(line.si) + share * logarithm(shaped.si))};
}

double MeasuredCollective::ratio(double bytes) const {
  const auto next = std::find_if(sizes.begin(), sizes.end(), [&](const Size& size) { return bytes <= size.bytes; });
  if (next == sizes.begin()) return next->measured / next->links;
  if (next == sizes.end()) return sizes.back().measured / sizes.back().links;
  const auto low = next - 1;
  const double first = logarithm(low->measured / low->links), last = logarithm(next->measured / next->links);
  return portable_exp(first + way(low->bytes, next->bytes, bytes) * (last - first));
}

Seconds MeasuredCollective::time(double bytes, Seconds links) const {
  const auto next = std::find_if(sizes.begin(), sizes.end(), [&](const Size& size) { return bytes <= size.bytes; });
  if (next != sizes.end() && next->bytes == bytes) return next->measured;
  if (next == sizes.begin() || next == sizes.end()) return ratio(bytes) * links;
  return between(*(next - 1), *next, bytes, links, follows_links_);
}

Seconds MeasuredCollective::left_out(std::size_t index) const {
  return between(sizes[index - 1], sizes[index + 1], sizes[index].bytes, sizes[index].links, follows_links_);
}

void MeasuredCollective::compare_shapes() {
  double lines = 0, shape = 0;
  for (std::size_t i = 1; i + 1 < sizes.size(); ++i) {
    const Size &low = sizes[i - 1], &high = sizes[i + 1], &size = sizes[i];
    const Seconds line =
        low.measured + (size.bytes - low.bytes) / (high.bytes - low.bytes) * (high.measured - low.measured);
    lines += std::abs(logarithm(line / size.measured));
    shape += std::abs(logarithm(between(low, high, size.bytes, size.links, true) / size.measured));
  }
  follows_links_ = shape < kBetterThanLines * lines;
}

MeasuredCollective read_measured_collective(const Json& fit) {
  MeasuredCollective curve;
  const auto text = [&](const char* key) {
    return fit.is_object() && fit.contains(key) && fit[key].is_string() ? fit[key].get<std::string>() : std::string();
  };
  const auto number = [](const Json& object, const char* key) {
    return object.is_object() && object.contains(key) && object[key].is_number() ? object[key].get<double>() : 0.0;
  };
  curve.instance = text("instance"), curve.collective = text("collective"), curve.scheme = text("scheme");
  curve.nodes = static_cast<int>(number(fit, "nodes"));
  curve.gpus_per_node = static_cast<int>(number(fit, "gpus_per_node"));
  if (fit.is_object() && fit.contains("stated_off") && fit["stated_off"].is_number() && number(fit, "stated_off") >= 0)
    curve.stated_off = number(fit, "stated_off");
  if (curve.instance.empty() || !fit.contains("rows") || !fit["rows"].is_array()) return {};
  for (const auto& row : fit["rows"]) {
    const MeasuredCollective::Size size{number(row, "bytes"), Seconds{number(row, "measured_s")},
                                        Seconds{number(row, "links_s")}};
    if (size.bytes <= 0 || size.measured.si <= 0 || size.links.si <= 0) return {};
    if (!curve.sizes.empty() && size.bytes <= curve.sizes.back().bytes) return {};
    curve.sizes.push_back(size);
  }
  if (curve.sizes.size() < 2 || curve.nodes < 1 || curve.gpus_per_node < 1) return {};
  curve.compare_shapes();
  return curve;
}

}  // namespace ganymede::platforms
