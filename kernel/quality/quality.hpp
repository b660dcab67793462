#pragma once
// How good generated images are, in the features of a classifier: Fréchet Inception Distance (FID, Heusel et al. 2017)
// and Inception Score (Salimans et al. 2016). Figures can be compared only if they come from the same network and
// number of images.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernel/data/dataset.hpp"
#include "kernel/gan.hpp"
#include "kernel/network.hpp"

namespace ganymede::kernel {

// The feature network: a generator's quality is measured in its features. It is a small convolutional classifier that
// is trained here on labelled images, as Inception was on ImageNet.

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

/// Mean and covariance of the rows of a matrix [count x dimensions]; there must be at least 2 rows.
struct Moments {
  int dimensions = 0;
  std::vector<double> mean, covariance;  ///< covariance: [dimensions x dimensions], unbiased
};
Moments moments_of_rows(const std::vector<double>& rows, int dimensions);

/// |m1 - m2|^2 + trace(C1 + C2 - 2 (C1 C2)^(1/2)), with the root by eigenvalues in double precision (Heusel et al.
/// 2017).
double frechet_distance(const Moments& a, const Moments& b);

/// exp(mean over the rows of KL(p(class | row) || p(class))), between 1 and the number of classes (Salimans et al.
/// 2016). `probabilities` is [rows x classes].
double inception_score(const std::vector<double>& probabilities, int classes);

struct Quality {
  std::string features;  ///< name of the feature network
  int images = 0;        ///< number of generated images, and of real ones
  double fid = 0, inception_score = 0;
  /// The same figures for as many other real images: what a perfect generator would reach.
  double real_fid = 0, real_inception_score = 0;

  /// The figures by the names under which they are printed: "fid[glyph-classifier-28x28x1-v2]", ...
  std::map<std::string, double> figures() const;
};

/// Measures generators against one data set.
class QualityMeter {
 public:
  /// Prepares to compare `images` generated images with as many real ones. Throws ConfigError about --quality if that
  /// is more than half of the data set or fewer than min_quality_images. Trains the feature network unless `cache` has
  /// it, or reads it from the file `features` if that is not empty (see read_feature_network).
  QualityMeter(const Dataset& dataset, TensorOps& ops, int images, const std::filesystem::path& cache,
               const std::filesystem::path& features = {});

  /// Measures samples that the generator draws under `seed`, enlarged to gan.whole.
  Quality measure(Gan& gan, TensorOps& ops, std::uint64_t seed);

 private:
  int images_;
  FeatureNetwork network_;
  Moments real_;
  Quality of_real_;
};

/// The fewest images for a covariance matrix of this many features: twice as many.
constexpr int min_quality_images(const FeatureForm& form) { return 2 * form.features; }

}  // namespace ganymede::kernel
