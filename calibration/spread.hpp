#pragma once
// How far workers of one run differ where no trace says it: a synchronous step lasts as long as its slowest worker's,
// which published scaling shows to cost several times what the wire does.

#include <cstddef>

#include "traces/step_trace.hpp"

namespace ganymede {

/// Standard deviations of workers' step times around their common mean, relative. `between` is what one GPU keeps from
/// step to step; `central` is all of it, in one step; 5 % and 95 % of what was published lie below `low` and above
/// `high`.
struct Spread {
  double between = 0;
  double central = 0, low = 0, high = 0;
};

// Fitted to weak scaling that NVIDIA published for DGX-1 machines with V100 (DeepLearningExamples): each table's
// slowdown from 1 to n GPUs over the expected slowest of n normal variates. The rows and the fit are the study
// `dgx1_weak_scaling`; a test does the fit again. What little communication those runs do not hide is part of it.
//
// `between`: BERT pre-training, which reduces gradients every hundreds of steps only (the median of 4 rows). Graph
// executors (MXNet, TensorFlow; the median of 8 rows; low and high are the extremes of so few, none below 0); eager
// ones (PyTorch; the median, the 5 % and the 95 % quantile of 17 rows, input pipelines that fall behind among them).
inline constexpr Spread kGraphSpread{0.0115, 0.0172, 0, 0.0480};
inline constexpr Spread kEagerSpread{0.0115, 0.0430, 0.0167, 0.1227};

/// PyTorch and lists of layers, which say nothing of what runs them, are taken as eager; our own kernel as a graph.
Spread default_spread(const TraceSoftware& software);

/// The k-th slowest of `workers` normal variates, expected, in standard deviations above the mean: Blom, "Statistical
/// Estimates and Transformed Beta-Variables" (1958), within 5 % of the exact value for the slowest of two and closer
/// for more. 0 for one worker. Precondition: 1 <= k <= workers.
double expected_slowest(std::size_t workers, std::size_t k = 1);

}  // namespace ganymede
