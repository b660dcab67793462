#include "report/quality_band.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/table.hpp"

namespace ganymede::report {
namespace {

constexpr double kBandWidth = 720, kBandHeight = 420;  // of the picture, in pixels
constexpr double kBandLeft = 70, kBandRight = 20, kBandTop = 40, kBandBottom = 50;

/// A logarithmic axis.
struct LogAxis {
  double low = 1, high = 10;  ///< values at its ends
  double from = 0, to = 1;    ///< pixels of its ends
  double at(double value) const {
    return from + (to - from) * std::log(std::clamp(value, low, high) / low) / std::log(high / low);
  }
  /// 1, 2 and 5 times powers of ten, or only these if there are many.
  std::vector<double> ticks() const {
    std::vector<double> out;
    const bool few = high / low < 1e3;
    for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10)
      for (const double factor : {1.0, 2.0, 5.0})
        if (const double value = factor * power; value >= low && value <= high && (few || factor == 1))
          out.push_back(value);
    return out;
  }
};

/// 200k, 5M, 1G.
std::string short_count(double value) {
  for (const auto& [unit, name] : {std::pair{1e9, "G"}, {1e6, "M"}, {1e3, "k"}})
    if (value >= unit) return fmt::format("{:g}{}", value / unit, name);
  return fmt::format("{:g}", value);
}

std::string grid(const LogAxis& x, const LogAxis& y, bool by_usd) {
  std::string out;
  const auto line = [&](double x1, double y1, double x2, double y2) {
    out += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n", x1, y1,
                       x2, y2);
  };
  const auto text = [&](double at_x, double at_y, const char* anchor, const std::string& words) {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", at_x, at_y, anchor, words);
  };
  for (const double value : x.ticks()) {
    line(x.at(value), y.from, x.at(value), y.to);
    text(x.at(value), y.from + 18, "middle", short_count(value));
  }
  for (const double value : y.ticks()) {
    line(x.from, y.at(value), x.to, y.at(value));
    text(x.from - 8, y.at(value) + 4, "end", fmt::format("{:g}", value));
  }
  text((x.from + x.to) / 2, kBandHeight - 10, "middle", by_usd ? "USD" : "real images");
  text(x.from - 50, kBandTop - 14, "start", "FID, the lowest so far");
  return out;
}

std::string path_of(const std::vector<double>& xs, const std::vector<double>& ys, const LogAxis& x, const LogAxis& y) {
  std::string out;
  for (std::size_t i = 0; i < xs.size(); ++i)
    out += fmt::format("{}{:.1f},{:.1f}", out.empty() ? "" : " ", x.at(xs[i]), y.at(ys[i]));
  return out;
}

}  // namespace

std::string quality_band_svg(const QualityPicture& picture) {
  const QualityPicture::Band& band = picture.band;
  std::vector<double> xs = band.x, ys = band.low;
  ys.insert(ys.end(), band.high.begin(), band.high.end());
  for (const auto& [at, fid] : picture.points) {
    xs.push_back(at);
    ys.push_back(fid);
  }
  if (picture.fid > 0) ys.push_back(picture.fid);
  const auto axis = [](const std::vector<double>& values, double from, double to) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const double least = std::max(*low, *high * 1e-6);
    return LogAxis{0.95 * least, 1.05 * std::max(*high, least), from, to};
  };
  const LogAxis x = axis(xs, kBandLeft, kBandWidth - kBandRight), y = axis(ys, kBandHeight - kBandBottom, kBandTop);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" height=\"{1:g}\" "
      "font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>{2}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kBandWidth, kBandHeight, escaped(picture.title));
  out += grid(x, y, picture.by_usd);
  std::vector<double> back_x(band.x.rbegin(), band.x.rend()), back_y(band.low.rbegin(), band.low.rend());
  out += fmt::format("<polygon points=\"{} {}\" fill=\"#0072b2\" fill-opacity=\"0.2\"/>\n",
                     path_of(band.x, band.high, x, y), path_of(back_x, back_y, x, y));
  out += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"#0072b2\" stroke-width=\"2\"/>\n",
                     path_of(band.x, band.median, x, y));
  if (picture.fid > 0)
    out += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{2:.1f}\" x2=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"#d55e00\" "
        "stroke-dasharray=\"6 4\"/>\n",
        x.from, x.to, y.at(picture.fid));
  for (const auto& [at, fid] : picture.points)
    out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"#222222\"/>\n", x.at(at), y.at(fid));
  return out + "</svg>\n";
}

}  // namespace ganymede::report
