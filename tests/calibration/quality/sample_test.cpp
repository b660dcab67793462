#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "calibration/quality/forecast.hpp"

namespace ganymede::calibration {
namespace {

const ShapePrior kPrior{{2.3, 4.5, 1.2, 0.3}, Matrix::diagonal(std::array{1.0, 0.1, 0.1, 0.05})};

Shape mean_of(const std::vector<Shape>& shapes) {
  Shape out{};
  for (const Shape& shape : shapes)
    for (std::size_t d = 0; d < kShapeSize; ++d) out.at(d) += shape.at(d) / static_cast<double>(shapes.size());
  return out;
}

double sd_of(const std::vector<Shape>& shapes, std::size_t d) {
  const double mean = mean_of(shapes).at(d);
  double sum = 0;
  for (const Shape& shape : shapes) sum += (shape.at(d) - mean) * (shape.at(d) - mean);
  return std::sqrt(sum / static_cast<double>(shapes.size()));
}

std::vector<Shape> drawn(const SeenCurve& seen, ShapeFit& fit) {
  RandomStream random(31, "test");
  constexpr double kVariance = 0.0025;
  fit = fit_shape(seen, kPrior, kVariance, kPrior.mean);
  return sample_shapes(seen, kPrior, kVariance, fit, 4000, random);
}

TEST(QualitySample, WithoutPointsItIsThePrior) {
  ShapeFit fit;
  const std::vector<Shape> shapes = drawn({}, fit);
  for (std::size_t d = 0; d < kShapeSize; ++d) {
    EXPECT_NEAR(mean_of(shapes).at(d), kPrior.mean.at(d), 0.06);
    EXPECT_NEAR(sd_of(shapes, d), std::sqrt(kPrior.covariance.at(d, d)), 0.05);
  }
}

TEST(QualitySample, WhereTheFloorIsSeenItIsTheFit) {
  SeenCurve seen;
  for (double images = 2e5; images < 1e9; images *= 1.5)
    seen.add(images, std::exp(log_fid(kPrior.mean, std::log(images / 1e6))));
  ShapeFit fit;
  const std::vector<Shape> shapes = drawn(seen, fit);
  EXPECT_NEAR(mean_of(shapes)[0], fit.shape[0], 0.02);
  EXPECT_NEAR(sd_of(shapes, 0), std::sqrt(fit.covariance.at(0, 0)), 0.02);
}

TEST(QualitySample, WhereNoFloorIsSeenLowerOnesStayPossible) {
  // A curve without a floor: the fit's normal distribution of ln(floor) is about one below the points, while any lower
  // floor explains them as well.
  SeenCurve seen;
  for (double images = 2e5; images < 1e7; images *= 1.5) seen.add(images, 90 / (1 + std::pow(images / 3e6, 1.4)));
  ShapeFit fit;
  std::vector<Shape> shapes = drawn(seen, fit);
  std::sort(shapes.begin(), shapes.end());
  const double lowest = shapes[shapes.size() / 20][0], highest = shapes[shapes.size() * 19 / 20][0];
  EXPECT_LT(lowest, 1);  // an FID of 2.7, a third of what has been seen
  EXPECT_LT(highest, seen.ln_fid.back());
}

}  // namespace
}  // namespace ganymede::calibration
