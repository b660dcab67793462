#pragma once
// Fits the times of phases over the batch sizes that a trace has recorded, to predict other batch sizes.

#include <span>
#include <string>
#include <vector>

#include "traces/step_trace.hpp"

namespace ganymede::calibration {

/// The time of a phase as a piecewise roofline over the batch size, max(floor_s, fixed_s + per_image_s x batch): small
/// batches are bound by launching kernels, larger ones by memory or arithmetic. The residuals of the fit at the
/// recorded sizes are interpolated between them, so that a recorded size keeps its time.
class PhaseFit {
 public:
  struct Point {
    double batch, seconds;
  };
  /// Requires at least two points in ascending order of batch, with seconds above zero. The fit is robust: a size that
  /// is more than a tenth off the line of the others does not move it, and at most a tenth of residual is interpolated.
  explicit PhaseFit(std::vector<Point> points);
  /// The predicted time, in seconds.
  double seconds(double batch) const;
  /// The bound of the phase at a batch size: "launch", or the share of the time that grows with the batch, such as
  /// "80 % per image".
  std::string bound_by(double batch) const;

  double floor_s = 0;      ///< time of launching kernels, in seconds
  double fixed_s = 0;      ///< seconds of work that does not depend on the batch, such as reading weights
  double per_image_s = 0;  ///< seconds of work for each image

 private:
  double roofline(double batch) const;
  std::vector<Point> points_;
  std::vector<double> residuals_;  // ln(measured / roofline) at each point, within a tenth
};

/// The fit over all recorded batch sizes of one stage of a model.
class BatchModel {
 public:
  static constexpr std::size_t kMinSizes = 3;          ///< least number of batch sizes for a fit
  static constexpr std::size_t kMinSizesForError = 6;  ///< with fewer sizes, a warning says that the error is uncertain

  /// Requires entries of one stage with the same phases, of at least kMinSizes sizes. They must outlive the object.
  explicit BatchModel(std::vector<const traces::TraceBatch*> entries);

  struct Phase {
    std::string name;
    PhaseFit fit;
  };
  const std::vector<Phase>& phases() const { return phases_; }
  double step_s(double batch) const;  ///< predicted time of a step, in seconds

  /// Leave-one-out cross-validation: the time of a step at each size, predicted from all other sizes.
  struct LeaveOneOut {
    int batch;
    double measured_s, predicted_s;
    double error() const { return predicted_s / measured_s - 1; }
  };
  /// One entry for each size, by ascending batch; the smallest and the largest size too.
  const std::vector<LeaveOneOut>& leave_one_out() const { return leave_one_out_; }
  double mean_error() const;   ///< mean absolute leave-one-out error, relative
  double worst_error() const;  ///< largest absolute leave-one-out error, relative

  /// Returns an entry for `batch` that is made from the nearest recorded one. It keeps that one's jitter; the times of
  /// each phase are scaled by the fit; work and memory follow straight lines through the two nearest sizes. Its member
  /// `carried` states the rule and the error.
  traces::TraceBatch at(int batch) const;

 private:
  void cross_validate(const std::vector<std::vector<PhaseFit::Point>>& points, const std::vector<double>& walls);
  void scale_times(traces::TraceBatch& entry, int from_batch) const;
  traces::CarriedBatch describe_prediction(int batch) const;
  double rest_s(double batch) const { return rest_.empty() ? 0 : rest_.front().seconds(batch); }

  std::vector<const traces::TraceBatch*> entries_;  // by ascending batch
  std::vector<Phase> phases_;
  std::vector<PhaseFit> rest_;    // one fit of the time between phases; empty if there is none at some size
  std::vector<bool> sequential_;  // by phase: in_sequence()
  std::vector<LeaveOneOut> leave_one_out_;
};

/// Returns the index of the trace's entry of `stage` with `batch` images. If it is not recorded, the entry is predicted
/// and appended. Throws ConfigError that says what to record if there are fewer than BatchModel::kMinSizes sizes, or if
/// their phases differ.
std::size_t entry_for(traces::StepTrace& trace, const std::string& stage, int batch);

}  // namespace ganymede::calibration
