#pragma once
// The network whose features a generator's quality is measured in: a small convolutional classifier, trained here on
// labelled images, as Inception was on ImageNet.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernel/data/dataset.hpp"
#include "kernel/network.hpp"

namespace ganymede::kernel {

inline constexpr int kClasses = 10;
inline constexpr int kFeatures = 64;

/// What the network says of images, row by row.
struct Judgement {
  std::vector<double> features;       ///< [images x kFeatures], of the layer before the last
  std::vector<double> probabilities;  ///< [images x kClasses]
  int images = 0;
};

class FeatureNetwork {
 public:
  /// For single images of `shape`; untrained.
  FeatureNetwork(std::string name, ImageShape shape, Ops& ops);

  const std::string& name() const { return name_; }
  ImageShape shape() const { return shape_; }

  /// Adam on the cross-entropy of the labels, so many steps; `seed` draws weights and batches.
  void train(const Dataset& dataset, int steps, std::uint64_t seed);
  /// Of images with values in [0, 1], [images x channels x height x width]; what lies outside is clamped.
  Judgement judge(const std::vector<float>& images);
  /// Share of the labels that the largest probability names.
  double accuracy(const Dataset& dataset, int first, int count);

  void save(const std::filesystem::path& file) const;
  /// ConfigError when the file is not one of these weights.
  void load(const std::filesystem::path& file);

 private:
  std::string name_;
  ImageShape shape_;
  Ops& ops_;
  Network network_;
  Tensor images_, d_logits_;
  Buffer small_;
  float* loss_ = nullptr;
};

/// Images [first, first + count) with values in [0, 1], as `judge` takes them; a clip's frames one after the other.
std::vector<float> images_of(const Images& images, int first, int count);

/// The classifier for this data set's images: trained on its own labels where it has some, else on the built-in glyphs
/// of the same shape, which the name says. Trained once and kept in `cache`.
FeatureNetwork feature_network(const Dataset& dataset, Ops& ops, const std::filesystem::path& cache);

}  // namespace ganymede::kernel
