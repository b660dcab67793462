#include "calibration/quality/shape.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace ganymede::calibration {
namespace {

const Shape kShape = {std::log(7.0), std::log(90.0), std::log(4.0), std::log(1.5)};

TEST(QualityShape, FollowsItsFormula) {
  for (const double millions : {0.1, 1.0, 4.0, 60.0})
    EXPECT_NEAR(std::exp(log_fid(kShape, std::log(millions))), 7 + 90 / (1 + std::pow(millions / 4, 1.5)), 1e-9);
  // Half of the drop is left after `half` images.
  EXPECT_NEAR(std::exp(log_fid(kShape, std::log(4.0))), 7 + 45, 1e-9);
}

TEST(QualityShape, ImagesToAnFidInvertTheCurve) {
  for (const double fid : {10.0, 30.0, 80.0})
    EXPECT_NEAR(log_fid(kShape, log_images_to(kShape, fid)), std::log(fid), 1e-9);
  EXPECT_EQ(log_images_to(kShape, 6.9), INFINITY);
  EXPECT_EQ(log_images_to(kShape, 98), -INFINITY);
}

TEST(QualityShape, AFitFindsTheCurveThatPointsWereDrawnFrom) {
  SeenCurve seen;
  for (double images = 2e5; images < 2e8; images *= 1.5)
    seen.add(images, std::exp(log_fid(kShape, std::log(images / 1e6))));
  ShapePrior vague{{2.5, 4.5, 1.5, 0.2}, Matrix::diagonal(std::array{4.0, 4.0, 4.0, 4.0})};
  const ShapeFit fit = fit_shape(seen, vague, 1e-6, vague.mean);
  for (std::size_t d = 0; d < kShapeSize; ++d) EXPECT_NEAR(fit.shape.at(d), kShape.at(d), 1e-3) << kShapeNames.at(d);
}

TEST(QualityShape, WithoutPointsThePriorIsThePosterior) {
  const ShapePrior prior{{2, 4, 1, 0}, Matrix::diagonal(std::array{0.1, 0.2, 0.3, 0.4})};
  const ShapeFit fit = fit_shape({}, prior, 0.01, {1, 1, 1, 1});
  for (std::size_t d = 0; d < kShapeSize; ++d) {
    EXPECT_NEAR(fit.shape.at(d), prior.mean.at(d), 1e-3);
    EXPECT_NEAR(fit.covariance.at(d, d), prior.covariance.at(d, d), 1e-9);
  }
}

TEST(QualityShape, PointsCloseTogetherCountAsLessThanOne) {
  SeenCurve seen;
  for (int i = 0; i < 100; ++i) seen.add(1e7 * std::exp(0.004 * i), 20);
  EXPECT_NEAR(seen.weight(), 1 + 99 * 0.004 / 0.4, 1e-9);
}

TEST(QualityMatrix, AnInverseTimesItsMatrixIsOne) {
  Matrix m = Matrix::diagonal(std::array{3.0, 2.0, 5.0});
  m.add_outer(std::array{1.0, -2.0, 0.5}, 0.7);
  const Matrix other = inverse(m);
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<double> column(3);
    for (std::size_t j = 0; j < 3; ++j) column[j] = other.at(j, i);
    const std::vector<double> product = m.times(column);
    for (std::size_t j = 0; j < 3; ++j) EXPECT_NEAR(product[j], i == j ? 1 : 0, 1e-12);
  }
}

TEST(QualityShape, PointsFurtherBackCountForLess) {
  SeenCurve seen;
  for (const double images : {1e6, 4e6, 16e6}) seen.add(images, 50);
  const SeenCurve aged = seen.from_its_end(0.2, 0.0025);
  EXPECT_EQ(aged.weights[2], seen.weights[2]);
  EXPECT_NEAR(aged.weights[1], 0.0025 / (0.0025 + 0.04 * std::log(4)), 1e-12);
  EXPECT_LT(aged.weights[0], aged.weights[1]);
}

}  // namespace
}  // namespace ganymede::calibration
