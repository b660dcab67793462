#pragma once
// How good generated images are, in the features of a classifier: Fréchet Inception Distance (FID, Heusel et al. 2017)
// and Inception Score (Salimans et al. 2016). Figures can be compared only if they come from the same network and
// number of images.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernel/gan.hpp"
#include "kernel/quality/features.hpp"

namespace ganymede::kernel {

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
