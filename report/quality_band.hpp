#pragma once
// The picture of a training's FID: its median and the band of 90 %, over images or dollars.

#include <string>
#include <utility>
#include <vector>

#include "common/json_fwd.hpp"

namespace ganymede::report {

struct QualityPicture {
  std::string title;
  std::string x = "images";  ///< the member of the curve's entries that is the axis: "images" or "usd"
  double fid = 0;            ///< the target, drawn as a line; 0: none
  std::vector<std::pair<double, double>> points;  ///< measured: x and FID
};

/// Draws `curve`: objects with "images" or "usd", and "best_fid" with a median and an interval.
std::string quality_band_svg(const OrderedJson& curve, const QualityPicture& picture);

}  // namespace ganymede::report
