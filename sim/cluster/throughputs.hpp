#pragma once
// Measured speeds of training jobs on several kinds of GPU, alone and two on a GPU (throughputs/README.md).

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace ganymede::sim {

/// A job as the tables name it: model and batch of one GPU; "" if the model has one batch only.
using MeasuredModel = std::pair<std::string, std::string>;

class Throughputs {
 public:
  /// The tables that are built into the program.
  Throughputs();

  bool has(const MeasuredModel& model) const;
  std::vector<std::string> models() const;

  /// Steps per second of all workers together on so many GPUs of that family ("V100"); nullopt if it was not measured
  /// or did not run. Between measured numbers of GPUs, and beyond the largest, the speed of a GPU is that of the
  /// nearest number below: an assumption. `spread`: on several machines.
  std::optional<double> alone(const std::string& gpu, const MeasuredModel& model, int gpus, bool spread) const;

  /// The speeds of two jobs on one GPU, each relative to its speed alone; nullopt if not measured or if they do not
  /// fit.
  std::optional<std::pair<double, double>> together(const std::string& gpu, const MeasuredModel& a,
                                                    const MeasuredModel& b) const;

 private:
  using SoloKey = std::tuple<std::string, MeasuredModel, bool>;  // GPU, model, spread
  std::map<SoloKey, std::map<int, double>> solo_;                // by number of GPUs
  std::map<std::tuple<std::string, MeasuredModel, MeasuredModel>, std::pair<double, double>> pairs_;
};

}  // namespace ganymede::sim
