#pragma once
// Where more money stops buying much time.

#include <cstddef>
#include <span>
#include <utility>

namespace ganymede {

/// Index of the knee of a front of times and costs, all above zero, the fastest first and each cheaper than the one
/// before: the point farthest below the line between the two ends (Das, Structural Optimization 18, 1999), with
/// logarithms of time and cost, each scaled to its range in the front. The last one if no point is below the line.
std::size_t knee_of(std::span<const std::pair<double, double>> front);

}  // namespace ganymede
