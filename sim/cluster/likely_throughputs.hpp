#pragma once
// Estimates throughputs that were not measured from those that were: Gaussian process regression
// (Rasmussen and Williams, "Gaussian Processes for Machine Learning", MIT Press 2006, algorithm 2.1) on logarithms.

#include <string>
#include <vector>

namespace ganymede::sim {

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

}  // namespace ganymede::sim
