#pragma once
// Fitted figures of the kernel model. calibration/kernels/data/parameters.json holds them, built into the library; the
// program kernel_fit writes that file.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/kernels/gpu_sheets.hpp"
#include "common/json_fwd.hpp"

namespace ganymede::calibration {

/// A scalar of the model. The table in parameters.cpp gives its name, its start value and the range of the fit.
enum class Scalar : std::size_t {
  kTileWork128x128,
  kTileWork128x64,
  kTileWork64x64,
  kTileWork128x32,
  kTileWork32x128,
  kTileWorkSliced,
  kTileLone128x128,
  kTileLone128x64,
  kTileLone64x64,
  kTileLone128x32,
  kTileLone32x128,
  kTileLoneSliced,
  kWaveCycles,
  kL2BytesPerCycle,
  kL2Reuse,
  kStreamL2Speed,
  kWinogradWork,
  kWinogradDepth,
  kWinogradOtherShape,
  kTransformBytes,
  kDirectWork,
  kFftWork,
  kStridedGradientWork,
  kDataGradientWork,
  kWeightGradientWork,
  kTensorWork,
  kTensorLone,
  kTensorStridedGradientWork,
  kTransposeBytes,
  kScatterSeconds,
  kEnergyFactor,
  kZerosEnergy,
  kLaunchSeconds,
  kDelayShare,
  kDelayShareElementwise,
  kCount
};

/// The share of its data sheet that one GPU reaches, beyond what holds for all.
struct GpuShares {
  double arithmetic = 1, memory = 1;
};

/// Quantities on which the learned part of the utilisation depends; logarithms to base 2.
enum class Feature : std::size_t {
  kBlocksPerMultiprocessor,
  kDepth,
  kMemoryShare,
  kFill,
  kFootprint,
  kOlderSpan,
  kSpan,
  kCount
};
inline constexpr std::size_t kFeatures = static_cast<std::size_t>(Feature::kCount);
using Features = std::array<double, kFeatures>;

/// A sum of piecewise linear functions, one of each feature, that is constant beyond the first and last knot.
class Residual {
 public:
  Residual() : values_(size(), 0) {}
  explicit Residual(std::vector<double> values) : values_(std::move(values)) {}

  static std::size_t size();  ///< number of values: the knots of all features and a constant
  /// First value and number of knots of each feature.
  static std::array<std::pair<std::size_t, std::size_t>, kFeatures> features();
  /// Returns the terms whose weighted sum is at(): pairs of the index of a value and its weight, two for each feature
  /// and one for the constant.
  static std::array<std::pair<std::size_t, double>, 2 * kFeatures + 1> terms(const Features& features);

  double at(const Features& features) const;  ///< logarithm of measured over analytic time
  const std::vector<double>& values() const { return values_; }
  bool learned() const;
  void add(const Residual& other);

 private:
  std::vector<double> values_;
};

/// Groups of kernels that share a residual and an interval.
enum class Group : std::size_t {
  kProduct,
  kBatchedProduct,
  kWinogradFused,
  kWinogradNonfused,
  kDirect,
  kFft,
  kDataGradient,
  kWeightGradient,
  kStridedForward,
  kTensorProduct,
  kTensorConvolution,
  kTensorGradient,
  kHalfStorage,
  kHalfScatter,
  kElementwise,
  kNormalization,
  kSoftmax,
  kCount
};
inline constexpr std::size_t kGroups = static_cast<std::size_t>(Group::kCount);
std::string_view to_string(Group group);

/// Number of duration classes (below 20 us, 100 us, 1 ms, and longer); each has an interval of its own.
inline constexpr std::size_t kDurations = 4;
std::size_t duration_class(double seconds);

/// Quantiles 5 % and 95 % of ln(measured / predicted).
struct Spread {
  double low = -0.5, high = 0.5;
};
using Spreads = std::array<std::array<Spread, kDurations>, kGroups>;

/// The evidence of the measured kernels of one chip, on any of its boards, beyond what holds for all: added to the
/// residuals of the groups, and the intervals of its kernels.
struct ChipFit {
  std::array<Residual, kGroups> residuals;
  Spreads known;
};

struct KernelParameters {
  std::array<double, static_cast<std::size_t>(Scalar::kCount)> scalars;
  std::map<std::string, GpuShares> gpus;  ///< by the sheet's name
  std::array<Residual, kGroups> residuals;
  std::map<std::string, ChipFit> chips;                         ///< by chip_key()
  Spreads left_out;                                             ///< on chips that the fit did not see
  std::map<std::string, std::map<std::string, double>> floors;  ///< of the host, in seconds, by GPU and operation
  std::map<std::string, std::map<std::string, Spread>> floor_spreads;  ///< of what the floors leave, likewise

  KernelParameters();  ///< starting values, nothing learned
  double operator[](Scalar scalar) const { return scalars[static_cast<std::size_t>(scalar)]; }
};

struct ScalarRange {
  std::string_view name;
  double start, low, high;
};
const ScalarRange& range_of(Scalar scalar);

/// The name of a sheet's chip in KernelParameters::chips, for example "7.0 with 80 multiprocessors".
std::string chip_key(const GpuSheet& sheet);

KernelParameters read_kernel_parameters(const JsonNode& node);
const std::shared_ptr<const KernelParameters>& built_in_kernel_parameters();

}  // namespace ganymede::calibration
