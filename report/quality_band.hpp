#pragma once
// The picture of a training's FID: its median and the band of 90 %, over images or dollars.

#include <string>
#include <utility>
#include <vector>

namespace ganymede::report {

struct QualityPicture {
  /// The lowest FID so far: of the median training, and the ends of the interval of 90 %.
  struct Band {
    std::vector<double> x, median, low, high;
    void add(double at, double middle, double least, double most) {
      x.push_back(at), median.push_back(middle), low.push_back(least), high.push_back(most);
    }
  };
  std::string title;
  bool by_usd = false;  ///< the axis is dollars, else images
  double fid = 0;       ///< the target, drawn as a line; 0: none
  Band band = {};
  std::vector<std::pair<double, double>> points = {};  ///< measured: x and FID
};

std::string quality_band_svg(const QualityPicture& picture);

}  // namespace ganymede::report
