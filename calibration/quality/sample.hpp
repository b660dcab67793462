#pragma once
// Shapes drawn from what a training's points and its kind say of its curve.

#include "calibration/quality/shape.hpp"
#include "common/random.hpp"

namespace ganymede::calibration {

/// Draws `count` shapes from the posterior by Metropolis's random walk from `fit`. The posterior is far from normal
/// where points have not come near a floor: any lower floor fits them as well, which a normal distribution about the
/// most probable floor does not know. `variance` is that of a point's ln FID, as fit_shape() takes it.
std::vector<Shape> sample_shapes(const SeenCurve& seen, const ShapePrior& prior, double variance, const ShapeFit& fit,
                                 std::size_t count, RandomStream& random);

}  // namespace ganymede::calibration
