#include "platforms/measured_collective.hpp"

#include <algorithm>
#include <cmath>

#include "common/json_value.hpp"
#include "common/random.hpp"

namespace ganymede::platforms {
namespace {

// Over 79 curves (those of bench/nccl_logs.py, some with more sizes) sizes from 1 MiB on that are left out are
// predicted 4.0 % off in the geometric mean by straight lines between their neighbours, 4.7 % by lines in
// logarithms, 4.4 % by monotone cubics there, and 3.9 % with the links' shape where it is twice as good. Between the
// smallest and the largest size alone the straight line is 15.7 % off, and 11.0 % with half of the links' shape.
constexpr double kBetterThanLines = 0.5;
constexpr double kPlainGap = 2, kWideGap = 8, kMostOfLinks = 0.5;  // gaps as logarithms to base 2

double logarithm(double value) { return portable_log(value); }

/// The share of the way from `low` to `high`, in logarithms.
double way(double low, double high, double at) { return logarithm(at / low) / logarithm(high / low); }

}  // namespace

Seconds MeasuredCollective::between(const Size& low, const Size& high, double bytes, Seconds links,
                                    bool follows) const {
  const Seconds line = low.measured + (bytes - low.bytes) / (high.bytes - low.bytes) * (high.measured - low.measured);
  const double gap = logarithm(high.bytes / low.bytes) / logarithm(2);
  const double share = follows ? 1 : std::clamp((gap - kPlainGap) / kWideGap, 0.0, kMostOfLinks);
  if (share == 0) return line;
  const double first = logarithm(low.measured / low.links), last = logarithm(high.measured / high.links);
  const double shaped = logarithm(links.si) + first + way(low.bytes, high.bytes, bytes) * (last - first);
  return Seconds{portable_exp((1 - share) * logarithm(line.si) + share * shaped)};
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
    const auto error = [&](bool follows) {
      const Seconds time = between(sizes[i - 1], sizes[i + 1], sizes[i].bytes, sizes[i].links, follows);
      return std::abs(logarithm(time / sizes[i].measured));
    };
    lines += error(false), shape += error(true);
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
