#pragma once
// How good generated images are, over the features of some network: Fréchet Inception Distance (Heusel et al. 2017) and
// Inception Score (Salimans et al. 2016). Both mean something only beside figures of the same network and number of
// images.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernel/gan.hpp"
#include "kernel/quality/features.hpp"

namespace ganymede::kernel {

/// Mean and covariance of the rows of [count x dimensions].
struct Moments {
  int dimensions = 0;
  std::vector<double> mean, covariance;  ///< the latter [dimensions x dimensions], unbiased
};
Moments moments_of_rows(const std::vector<double>& rows, int dimensions);

/// |m1 - m2|^2 + trace(C1 + C2 - 2 (C1 C2)^(1/2)), the root by eigenvalues in double precision.
double frechet_distance(const Moments& a, const Moments& b);

/// exp(mean over the rows of KL(p(class | row) || p(class))), from 1 to the number of classes.
double inception_score(const std::vector<double>& probabilities, int classes);

struct Quality {
  std::string features;  ///< the network's name
  int images = 0;        ///< generated, and as many real ones
  double fid = 0, inception_score = 0;
  /// What as many real images reach against the same ones: of a perfect generator.
  double real_fid = 0, real_inception_score = 0;

  /// By the names under which they are printed: "fid[glyph-classifier-28x28x1-v2]", ...
  std::map<std::string, double> figures() const;
};

/// Measures generators against one data set.
class QualityMeter {
 public:
  /// `images` generated ones are compared with as many real ones, of half the data set at most. ConfigError naming
  /// --quality otherwise. Trains the feature network unless `cache` has it.
  /// `features`: not empty: the feature network's file (feature_network_of).
  QualityMeter(const Dataset& dataset, TensorOps& ops, int images, const std::filesystem::path& cache,
               const std::filesystem::path& features = {});

  /// Of the generator's samples under `seed`, enlarged to gan.whole.
  Quality measure(Gan& gan, TensorOps& ops, std::uint64_t seed);

 private:
  int images_;
  FeatureNetwork network_;
  Moments real_;
  Quality of_real_;
};

/// For a covariance of so many features.
constexpr int least_quality_images(const FeatureForm& form) { return 2 * form.features; }

}  // namespace ganymede::kernel
