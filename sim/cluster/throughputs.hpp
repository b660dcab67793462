#pragma once
// Measured speeds of training jobs on several kinds of GPU, alone and two on a GPU (throughputs/README.md).

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace ganymede::sim {

// Estimates throughputs that were not measured from those that were: Gaussian process regression
// (Rasmussen and Williams, "Gaussian Processes for Machine Learning", MIT Press 2006, algorithm 2.1) on logarithms.

/// A job of one model alone on GPUs of one kind.
struct SoloPoint {
  std::string gpu, model;
  double batch = 1;  ///< of one GPU
  bool spread = false;
  double gpus = 1;
};

/// A job beside another one on a GPU.
struct PairPoint {
  std::string gpu, model, beside;
  double batch = 1, batch_beside = 1;
};

/// Fits values above 0 at points, and says what they are likely to be elsewhere.
template <class Point>
class LikelyValues {
 public:
  LikelyValues(std::vector<Point> points, const std::vector<double>& values);
  double at(const Point& point) const;

 private:
  std::vector<Point> points_;
  std::vector<double> weights_;
  double mean_ = 0;
};

extern template class LikelyValues<SoloPoint>;
extern template class LikelyValues<PairPoint>;

/// A job as the tables name it: model and batch of one GPU; "" if the model has one batch only.
using MeasuredModel = std::pair<std::string, std::string>;

/// The speeds of two jobs on one GPU, each relative to its speed alone.
struct SharedSpeeds {
  double first = 1, second = 1;
  bool estimated =
      false;  ///< from how busy the two keep the GPU, because one of the models was never measured beside another
};

class Throughputs {
 public:
  /// The tables that are built into the program.
  Throughputs();
  /// Other tables, as CSV with the same columns.
  Throughputs(std::string_view rates, std::string_view shared);

  /// True if the model was measured with that batch, or with batches around it: between half of the least and the
  /// largest.
  bool has(const MeasuredModel& model) const;
  /// True if the model was measured with that batch, on some GPU.
  bool is_measured(const MeasuredModel& model) const;
  std::vector<std::string> models() const;

  /// Steps per second of all workers together on so many GPUs of that family ("V100"); nullopt if the GPU was not
  /// measured, or the batch is larger than any that ran there. What was not measured is estimated (LikelyValues).
  /// Beyond the largest measured number of GPUs, the speed of a GPU stays the same: an assumption. `spread`: on several
  /// machines.
  std::optional<double> alone(const std::string& gpu, const MeasuredModel& model, int gpus, bool spread) const;

  /// True if jobs of that model were measured beside others on that GPU.
  bool is_measured_beside(const std::string& gpu, const std::string& model) const;
  /// The speeds of two jobs on one GPU; nullopt if they are not known to fit: no pair with batches at least as large
  /// was measured there. What was not measured is estimated. If one of the models was never measured beside another
  /// there, the two are taken to fit if the other fits beside a copy of itself, and the estimate is that of
  /// likely_sharing().
  std::optional<SharedSpeeds> together(const std::string& gpu, const MeasuredModel& a, const MeasuredModel& b) const;

 private:
  using SoloKey = std::tuple<std::string, MeasuredModel, bool>;  // GPU, model, spread
  double likely_alone(const SoloPoint& point) const;
  double likely_beside(const PairPoint& point) const;
  std::optional<SharedSpeeds> likely_sharing(const std::string& gpu, const MeasuredModel& known) const;
  std::optional<MeasuredModel> at_least(const std::string& gpu, const MeasuredModel& model) const;

  std::map<SoloKey, std::map<int, double>> solo_;  // by number of GPUs
  std::map<std::tuple<std::string, MeasuredModel, MeasuredModel>, SharedSpeeds> pairs_;
  // Fitted when they are first needed; pairs by model.
  mutable std::optional<LikelyValues<SoloPoint>> likely_solo_;
  mutable std::map<std::string, LikelyValues<PairPoint>> likely_pairs_;
  mutable std::map<std::pair<std::string, MeasuredModel>, std::optional<SharedSpeeds>> likely_sharing_;
};

}  // namespace ganymede::sim
