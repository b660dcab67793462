#pragma once
// The variation of step times between the workers of a run, for runs whose trace does not show it. A synchronous step
// lasts as long as that of its slowest worker; in published measurements of scaling, waiting for it costs several times
// as much time as the network.

#include <cstddef>

#include "platforms/platform.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::calibration {

/// The time that a synchronous step of several workers takes beyond one worker's step and the collectives that the
/// simulator times. It has a part in proportion to the step, because workers differ, and a part in proportion to the
/// gradients: hooks, copies into buckets and back, and how far kernels beside a collective run slower than is
/// simulated.
struct WorkerVariation {
  double between = 0;           ///< standard deviation of a GPU's mean step, relative: it stays from step to step
  double central = 0;           ///< standard deviation of the workers' steps around their mean, relative: 0.01 is 1 %
  double seconds_per_byte = 0;  ///< seconds that a step is longer for each byte of gradients
  double bandwidth = 0;         ///< memory bandwidth of the GPU that this holds for, in bytes/s; 0: it holds for any
};

// Fitted to weak scaling on one machine, from the studies that variation_studies() of studies/variation_fit.hpp names:
// the slow-down from 1 to n GPUs less the simulated collectives is `central` times the expected slowest of n normal
// variates plus `seconds_per_byte` times the gradients over the step's time. The fit has the least mean absolute error
// of logarithms, of which none counts more than a tenth, and each publication counts the same. `ganymede validate`
// repeats it without each publication in turn; a test repeats it in full.
//
// `between` is the median of 4 rows of BERT pre-training, which reduces gradients only once in hundreds of steps.
// Graph executors are MXNet and TensorFlow, eager ones PyTorch.
inline constexpr WorkerVariation kGraphVariation{0.0115, 0.0135, 0.036e-9};
inline constexpr WorkerVariation kEagerVariation{0.0115, 0.0110, 0.080e-9, 900e9};

/// True if the software that recorded a trace launches its kernels one by one: PyTorch, and lists of layers, which do
/// not say what software runs them. The project's own kernel is a graph.
bool is_eager(const traces::TraceSoftware& software);

/// The variation for the software that recorded a trace.
WorkerVariation default_worker_variation(const traces::TraceSoftware& software);

/// The factor on `seconds_per_byte` on a GPU: the inverse ratio of the memory bandwidths, because the work is to move
/// gradients. What is published of PyTorch beyond what workers who differ explain is 100 ms/GB on V100 (4 publications,
/// 900 GB/s), 0 to 50 on A100 (StyleGAN3; ResNet-50 86) and 25 to 40 on H100 (Lambda). Fitted to the other
/// publications, Lambda's H100 are 1.5 % off; without the ratio 6.7 %. Of graph executors later GPUs than V100 are not
/// published, nor is any CPU: there the factor is 1.
double work_on_gradients(const WorkerVariation& variation, const platforms::Gpu& gpu);

/// The expected k-th slowest of `workers` standard normal variates, in standard deviations above the mean; 0 for one
/// worker. The approximation is that of Blom, "Statistical Estimates and Transformed Beta-Variables" (1958): within 5 %
/// of the exact value for the slowest of two, and closer for more. Requires 1 <= k <= workers.
double expected_slowest(std::size_t workers, std::size_t k = 1);

/// A synchronous step of several workers over one worker's, without simulated collectives. `steps` is the number of
/// steps between two reductions, over which all but `between` averages out; a step waits for all workers but the
/// `not_waited_for` slowest. `bytes` are reduced each time and one worker's step takes `step_s`.
double synchronization_slowdown(const WorkerVariation& variation, std::size_t workers, std::size_t not_waited_for,
                                double steps, double bytes, double step_s);

}  // namespace ganymede::calibration
