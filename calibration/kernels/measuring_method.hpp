#pragma once
// The parts of a published measurement of a kernel beyond the device's own time.
//
// NeuSight records one event before and one after a call on an idle GPU. The second event cannot be earlier than the
// host's return from the call (`floor`), and the kernel starts some time after the first event (`delay`), so the
// measured time is the longer of the floor and delay + device time. DeepBench's loop of calls hides the host.

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calibration/kernels/kernel_model.hpp"
#include "calibration/kernels/measured_kernels.hpp"

namespace ganymede::calibration {

class MeasuringMethod {
 public:
  /// `file`: the rows that will be compared. Where the parameters know no floor of a GPU's host, it is the time of the
  /// rows' shortest kernels on that GPU, or the mean of the known hosts if there are too few of them.
  MeasuringMethod(std::shared_ptr<const KernelParameters> parameters, std::span<const MeasuredKernel> file);

  /// The measured time that the model expects for the row, with its interval.
  KernelTime expected(const KernelModel& model, const MeasuredKernel& row) const;
  double expected_s(const MeasuredKernel& row, double device_s) const;
  /// The device's time that a measured one leaves; at most 0 if the host's floor hides it.
  double device_s(const MeasuredKernel& row) const;

  /// False if the host's part hides the device's time, which is taken to be about `predicted_s`.
  bool tells_device(const MeasuredKernel& row, double predicted_s) const;

  double floor_s(const MeasuredKernel& row) const;
  double delay_s(const MeasuredKernel& row) const;
  static Load load(const MeasuredKernel& row);
  /// Name of the operation in the parameters' floors; empty for sets without a floor.
  static std::string operation(const MeasuredKernel& row);

  /// A measured time, and the device time that the model predicts.
  struct Pair {
    double measured_s, device_s;
  };
  /// Returns the floor near `expected_s` that best explains the measured times of one operation on one GPU.
  static double best_floor(std::span<const Pair> rows, double delay_share, double expected_s);
  /// Returns the median delay of the shortest kernels, for convolutions (see the source).
  static double typical_delay(std::span<const Pair> rows, double expected_s);
  /// The floors by GPU (as the rows name it) and operation that the shortest rows and the operations' ratios suggest.
  static std::map<std::pair<std::string, std::string>, double> expected_floors(std::span<const MeasuredKernel> rows);

  double delay_share(const MeasuredKernel& row) const;

 private:
  Spread floor_spread(const MeasuredKernel& row) const;
  double file_floor(const KernelModel& model, std::span<const MeasuredKernel* const> rows, double expected_s) const;

  std::shared_ptr<const KernelParameters> parameters_;
  std::map<std::pair<std::string, std::string>, double> floors_;  // by GPU and operation
};

}  // namespace ganymede::calibration
