#pragma once
// The variation of step times between the workers of a run, for runs whose trace does not show it. A synchronous step
// lasts as long as that of its slowest worker; in published measurements of scaling, waiting for it costs several times
// as much time as the network.

#include <cstddef>

#include "traces/step_trace.hpp"

namespace ganymede::calibration {

/// Standard deviations of the workers' step times around their common mean, relative to the mean: 0.01 is 1 %.
struct WorkerVariation {
  double between = 0;        ///< the part that stays the same for a GPU from step to step
  double central = 0;        ///< the whole deviation within one step
  double low = 0, high = 0;  ///< the 5 % and the 95 % quantile of the published values
};

// Fitted to weak scaling that NVIDIA published for DGX-1 machines with V100 (DeepLearningExamples): the slowdown of
// each table from 1 to n GPUs, divided by the expected slowest of n normal variates. The study `dgx1_weak_scaling`
// holds the rows and the fit; a test repeats the fit. Communication that those runs do not hide is part of the values.
//
// `between` is the median of 4 rows of BERT pre-training, which reduces gradients only once in hundreds of steps. For
// graph executors (MXNet, TensorFlow) `central` is the median of 8 rows; `low` and `high` are their extremes, at least
// 0, since 8 rows have no 5 % quantile. For eager executors (PyTorch) they are the quantiles of 17 rows, some of which
// have input pipelines that fall behind.
inline constexpr WorkerVariation kGraphVariation{0.0115, 0.0172, 0, 0.0480};
inline constexpr WorkerVariation kEagerVariation{0.0115, 0.0430, 0.0167, 0.1227};

/// The variation for the software that recorded a trace: eager for PyTorch, and for lists of layers, which do not say
/// what software runs them; graph for the project's own kernel.
WorkerVariation default_worker_variation(const traces::TraceSoftware& software);

/// The expected k-th slowest of `workers` standard normal variates, in standard deviations above the mean; 0 for one
/// worker. The approximation is that of Blom, "Statistical Estimates and Transformed Beta-Variables" (1958): within 5 %
/// of the exact value for the slowest of two, and closer for more. Requires 1 <= k <= workers.
double expected_slowest(std::size_t workers, std::size_t k = 1);

}  // namespace ganymede::calibration
