#pragma once
// Latency and bandwidth of a link from measured collectives: so much that the model meets the smallest and the largest
// size, and how well it then meets all others.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/units.hpp"

namespace ganymede {

struct CollectiveSample {
  std::int64_t bytes = 0;
  Seconds time;
};

/// What a model says of a collective of so many bytes over links of this latency and bandwidth.
using PredictCollective = std::function<Seconds(Seconds latency, BytesPerSecond bandwidth, std::int64_t bytes)>;

struct FittedSample {
  CollectiveSample measured;
  Seconds predicted;
  Seconds line;         ///< of the straight line through the smallest and the largest sample
  bool fitted = false;  ///< one of these two
};

/// Over the samples of a range of sizes that were not fitted.
struct RangeError {
  std::string range;  ///< "below 64 KiB", "64 KiB to 1 MiB", "from 1 MiB"
  int samples = 0;
  /// exp(mean |ln(predicted / measured)|) - 1: 0.1 is 10 % too long or too short in the geometric mean. 0 of none.
  double model = 0, line = 0;
};

struct LinkFit {
  Seconds latency;
  BytesPerSecond bandwidth;
  bool meets_ends = true;  ///< false: no latency and bandwidth give the two fitted times, to 2 %
  /// Set if no bandwidth is high enough for the largest size: its time without latency over links of endless bandwidth.
  std::optional<Seconds> predicted_at_no_cost;
  std::vector<FittedSample> samples;
  std::vector<RangeError> errors;  ///< all three ranges
};

/// Two parameters, from the first and the last sample; the model must be no faster with more latency or less bandwidth.
/// Precondition: at least two samples, ascending sizes, times above zero.
LinkFit fit_links(std::span<const CollectiveSample> samples, const PredictCollective& predict);

}  // namespace ganymede
