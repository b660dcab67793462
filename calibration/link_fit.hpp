#pragma once
// Fits the latency and the bandwidth of a link to measured collectives, so that the model gives the measured times of
// the smallest and the largest size. The errors at all other sizes tell how good the model is.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/units.hpp"

namespace ganymede::calibration {

/// The measured time of a collective.
struct CollectiveSample {
  std::int64_t bytes = 0;
  Seconds time;
};

/// A model: predicts the time of a collective of `bytes` over links of that latency and bandwidth.
using PredictCollective = std::function<Seconds(Seconds latency, BytesPerSecond bandwidth, std::int64_t bytes)>;

struct FittedSample {
  CollectiveSample measured;
  Seconds predicted;
  Seconds line;         ///< predicted by the straight line through the smallest and the largest sample
  bool fitted = false;  ///< true for these two samples
};

/// The errors over a range of sizes, without the two samples that were fitted.
struct RangeError {
  std::string range;  ///< "below 64 KiB", "64 KiB to 1 MiB" or "from 1 MiB"
  int samples = 0;    ///< number of samples in the range
  /// exp(mean |ln(predicted / measured)|) - 1, for example 0.1 if times are 10 % too long or too short in the geometric
  /// mean; 0 without samples.
  double model = 0, line = 0;
};

/// The errors of all three ranges.
std::vector<RangeError> errors_of(const std::vector<FittedSample>& samples);

struct LinkFit {
  Seconds latency;
  BytesPerSecond bandwidth;
  bool latency_fitted = true, bandwidth_fitted = true;
  bool meets_ends = true;  ///< false: no latency and bandwidth give both fitted times within 2 %
  /// The predicted time of the largest size without latency over links of unlimited bandwidth; set if no bandwidth is
  /// enough and even that is longer than measured.
  std::optional<Seconds> predicted_at_no_cost;
  std::vector<FittedSample> samples;
};

/// The knowledge of the link before a fit.
struct StatedLink {
  BytesPerSecond bandwidth;
  bool keep = false;                    ///< true: the bandwidth is kept
  std::optional<Seconds> latency = {};  ///< kept, if set
};

/// Fits both parameters to the first and the last sample. The model must not be faster with more latency, and should
/// not be with less bandwidth; where a model's choices make it so, the bandwidth nearest to the stated one that gives
/// the time is taken. What is kept is not fitted. Requires at least two samples of ascending sizes, with times above
/// zero.
LinkFit fit_links(std::span<const CollectiveSample> samples, const PredictCollective& predict, StatedLink stated);

}  // namespace ganymede::calibration
