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

/// Convolutions that halve the image until it is 4 pixels wide or less, each with batch norm; one over all that is
/// left, whose outputs are the features; a dense layer to the classes.
struct FeatureForm {
  std::vector<int> widths = {};  ///< channels of the halving convolutions; none: 16, 32, ... as many as are needed
  int features = 64;
  int classes = 10;
};

/// What the network says of images, row by row.
struct Judgement {
  std::vector<double> features;       ///< [images x features], of the layer before the last
  std::vector<double> probabilities;  ///< [images x classes]
  int images = 0;
};

class FeatureNetwork {
 public:
  /// For single images of `shape`; untrained.
  FeatureNetwork(std::string name, ImageShape shape, TensorOps& ops, FeatureForm form = {});

  const std::string& name() const { return name_; }
  const FeatureForm& form() const { return form_; }
  ImageShape shape() const { return shape_; }

  /// Adam on the cross-entropy of the labels, so many steps; `seed` draws weights and batches.
  void train(const Dataset& dataset, int steps, std::uint64_t seed);
  /// Of images with values in [0, 1], [images x channels x height x width]; what lies outside is clamped.
  Judgement judge(const std::vector<float>& images);
  /// Share of the labels that the largest probability names.
  double accuracy(const Dataset& dataset, int first, int count);

  void save(const std::filesystem::path& file) const;
  /// ConfigError naming the tensor when the file does not hold these weights, or others too.
  void load(const std::filesystem::path& file);

 private:
  std::string name_;
  ImageShape shape_;
  FeatureForm form_;
  TensorOps& ops_;
  Network network_;
  Tensor images_, d_logits_;
  Buffer small_;
  float* loss_ = nullptr;
};

/// Images [first, first + count) with values in [0, 1], as `judge` takes them; a clip's frames one after the other.
std::vector<float> images_of(const Images& images, int first, int count);

/// The classifier for this data set's images: trained on its own labels where it has some, else on the built-in glyphs
/// of the same shape, which the name says. Trained once and kept in `cache`.
FeatureNetwork feature_network(const Dataset& dataset, TensorOps& ops, const std::filesystem::path& cache);

/// One that was trained elsewhere, for images of `shape`: its form is that of the file's tensors, its name the file's
/// with a sum of the contents. ConfigError when the file holds no such network.
FeatureNetwork feature_network_of(const std::filesystem::path& file, ImageShape shape, TensorOps& ops);

}  // namespace ganymede::kernel
