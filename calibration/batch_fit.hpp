#pragma once
// Phase time against batch size: from the batches that a trace has recorded to one that it has not.

#include <span>
#include <string>
#include <vector>

#include "traces/step_trace.hpp"

namespace ganymede {

/// A phase's seconds as a piecewise roofline: launching binds small batches (`floor_s`), memory or arithmetic larger
/// ones (`fixed_s` for what does not depend on the batch, weights above all, and `per_image_s`); the longer counts.
/// What the fit leaves at the recorded sizes is interpolated between them.
class PhaseFit {
 public:
  struct Point {
    double batch, seconds;
  };
  /// At least two points, by ascending batch; seconds above zero. Robust: a size that is more than a
  /// tenth off the line of the others does not move it, and no more than a tenth is interpolated.
  explicit PhaseFit(std::vector<Point> points);
  double seconds(double batch) const;
  /// What binds at a batch size: "launch", or "work" with a share of the fixed part.
  std::string binding(double batch) const;

  double floor_s = 0, fixed_s = 0, per_image_s = 0;

 private:
  double roofline(double batch) const;
  std::vector<Point> points_;
  std::vector<double> residuals_;  // ln(measured / roofline), limited
};

/// What all recorded batch sizes of one stage of a model say together.
class BatchModel {
 public:
  static constexpr std::size_t kFewest = 3;  ///< batch sizes, below which nothing is fitted
  static constexpr std::size_t kEnough = 6;  ///< below which the error is known from too few points, which is said

  /// Entries of one stage with the same phases, at least kFewest sizes; the entries must outlive this.
  explicit BatchModel(std::vector<const TraceBatch*> entries);

  struct Phase {
    std::string name;
    PhaseFit fit;
  };
  const std::vector<Phase>& phases() const { return phases_; }
  double step_s(double batch) const;

  /// Leave-one-out: each size in turn, the smallest and the largest too, predicted from the others. Relative errors of
  /// the step, by ascending batch.
  struct Left {
    int batch;
    double measured_s, predicted_s;
    double error() const { return predicted_s / measured_s - 1; }
  };
  const std::vector<Left>& left_out() const { return left_; }
  double mean_error() const;   ///< of the absolute values
  double worst_error() const;  ///< the largest absolute value

  /// An entry for `batch` made from the nearest recorded one: its jitter, each phase's times in proportion to the fit,
  /// work and memory by straight lines through the two nearest. `carried` says how and how sure.
  TraceBatch at(int batch) const;

 private:
  double rest_s(double batch) const { return rest_.empty() ? 0 : rest_.front().seconds(batch); }

  std::vector<const TraceBatch*> entries_;  // by ascending batch
  std::vector<Phase> phases_;
  std::vector<PhaseFit> rest_;  // between phases, where there is any
  std::vector<bool> sequential_;
  std::vector<Left> left_;
};

/// The entries of `stage` with `batch` images, from the recorded ones or carried; appended to the trace where it is not
/// recorded. Its index. ConfigError with what to record if there are fewer than BatchModel::kFewest sizes.
std::size_t entry_for(StepTrace& trace, const std::string& stage, int batch);

}  // namespace ganymede
