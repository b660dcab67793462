#pragma once
// The feature network: a generator's quality is measured in its features. It is a small convolutional classifier that
// is trained here on labelled images, as Inception was on ImageNet.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernel/data/dataset.hpp"
#include "kernel/network.hpp"

namespace ganymede::kernel {

/// Sizes of the classifier. Convolutions with batch norm halve the image until it is at most 4 pixels wide; a
/// convolution over all that is left gives the features; a dense layer gives the classes.
struct FeatureForm {
  std::vector<int> widths = {};  ///< channels of the halving convolutions; empty: 16, 32, ... for as many as needed
  int features = 64;
  int classes = 10;
};

/// The network's outputs for some images, a row for each.
struct ClassifierOutput {
  std::vector<double> features;       ///< [images x features], the outputs of the last layer but one
  std::vector<double> probabilities;  ///< [images x classes]
  int images = 0;
};

class FeatureNetwork {
 public:
  /// An untrained network for still images of `shape`. `ops` must outlive it.
  FeatureNetwork(std::string name, ImageShape shape, TensorOps& ops, FeatureForm form = {});

  const std::string& name() const { return name_; }
  const FeatureForm& form() const { return form_; }
  ImageShape shape() const { return shape_; }

  /// Trains the present weights for `steps` steps of Adam on the cross-entropy of the labels. `seed` decides the
  /// batches. The data set must have labels and at least one batch of images.
  void train(const Dataset& dataset, int steps, std::uint64_t seed);
  /// Runs the network on images [images x channels x height x width] with values in [0, 1]; others are clamped.
  ClassifierOutput classify(const std::vector<float>& images);
  /// Share, from 0 to 1, of the images [first, first + count) whose label has the largest probability.
  double accuracy(const Dataset& dataset, int first, int count);

  void save(const std::filesystem::path& file) const;
  /// Throws ConfigError with the tensor's name if the file lacks one of these weights, has it in another shape, or
  /// holds others.
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

/// Images [first, first + count) with values in [0, 1], as classify() takes them. Each frame of a clip becomes an
/// image.
std::vector<float> images_of(const Images& images, int first, int count);

/// The classifier for this data set's images. It is trained on the data set's labels, or on the built-in glyphs of the
/// same shape if there are none; its name says which. It is trained once and then kept in `cache`.
FeatureNetwork feature_network(const Dataset& dataset, TensorOps& ops, const std::filesystem::path& cache);

/// A classifier from a file, for images of `shape`. Its form follows from the file's tensors; its name is the file's
/// with a hash of the contents ("mine-0123abcd"). Throws ConfigError if the file holds no such network.
FeatureNetwork read_feature_network(const std::filesystem::path& file, ImageShape shape, TensorOps& ops);

}  // namespace ganymede::kernel
