#include "kernel/quality/quality.hpp"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cassert>
#include <cmath>

#include "common/errors.hpp"
#include "kernel/samples.hpp"

namespace ganymede::kernel {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Turns clips into still images: [images x channels x frames x plane] becomes [images x frames x channels x plane].
std::vector<float> frames_of(const std::vector<float>& clips, ImageShape shape) {
  if (shape.frames == 1) return clips;
  const auto frames = static_cast<std::size_t>(shape.frames), channels = static_cast<std::size_t>(shape.channels);
  const std::size_t plane = static_cast<std::size_t>(shape.height) * static_cast<std::size_t>(shape.width);
  const std::size_t pixels = frames * channels * plane;
  std::vector<float> images;
  images.reserve(clips.size());
  for (std::size_t clip = 0; clip < clips.size() / pixels; ++clip)
    for (std::size_t f = 0; f < frames; ++f)
      for (std::size_t c = 0; c < channels; ++c) {
        const auto from = clips.begin() + static_cast<std::ptrdiff_t>(clip * pixels + (c * frames + f) * plane);
        images.insert(images.end(), from, from + static_cast<std::ptrdiff_t>(plane));
      }
  return images;
}

void check(int images, int least, const Dataset& dataset) {
  if (images < least || images > dataset.images.count / 2)
    throw ConfigError(fmt::format("--quality: found {}, expected {} to {}: half the images of {}", images, least,
                                  dataset.images.count / 2, dataset.name));
}

FeatureNetwork network_of(int images, const Dataset& dataset, TensorOps& ops, const std::filesystem::path& cache,
                          const std::filesystem::path& features) {
  // Checked before the feature network is trained, which takes long.
  if (features.empty()) check(images, min_quality_images({}), dataset);
  FeatureNetwork network = features.empty() ? feature_network(dataset, ops, cache)
                                            : read_feature_network(features, dataset.images.shape(), ops);
  check(images, min_quality_images(network.form()), dataset);
  return network;
}

}  // namespace

Moments moments_of_rows(const std::vector<double>& rows, int dimensions) {
  const auto count = static_cast<Eigen::Index>(rows.size()) / dimensions;
  assert(count >= 2);
  const Eigen::Map<const Matrix> all(rows.data(), count, dimensions);
  const Eigen::RowVectorXd mean = all.colwise().mean();
  const Matrix centred = all.rowwise() - mean;
  const Matrix covariance = centred.transpose() * centred / static_cast<double>(count - 1);
  return {
      dimensions, {mean.data(), mean.data() + dimensions}, {covariance.data(), covariance.data() + covariance.size()}};
}

double frechet_distance(const Moments& a, const Moments& b) {
  assert(a.dimensions == b.dimensions);
  const Eigen::Index n = a.dimensions;
  const Eigen::Map<const Matrix> first(a.covariance.data(), n, n), second(b.covariance.data(), n, n);
  const Eigen::Map<const Eigen::VectorXd> m1(a.mean.data(), n), m2(b.mean.data(), n);
  // The eigenvalues of C1 C2 are those of C1^(1/2) C2 C1^(1/2), which is symmetric; rounding may leave some a little
  // below zero, which counts as zero.
  const Eigen::SelfAdjointEigenSolver<Matrix> solved(first);
  const Matrix root = solved.eigenvectors() * solved.eigenvalues().cwiseMax(0.0).cwiseSqrt().asDiagonal() *
                      solved.eigenvectors().transpose();
  const Eigen::SelfAdjointEigenSolver<Matrix> product(Matrix(root * second * root), Eigen::EigenvaluesOnly);
  const double shared = product.eigenvalues().cwiseMax(0.0).cwiseSqrt().sum();
  return std::max(0.0, (m1 - m2).squaredNorm() + first.trace() + second.trace() - 2 * shared);
}

double inception_score(const std::vector<double>& probabilities, int classes) {
  const std::size_t many = probabilities.size() / static_cast<std::size_t>(classes);
  assert(many > 0);
  std::vector<double> mean(static_cast<std::size_t>(classes));
  for (std::size_t i = 0; i < probabilities.size(); ++i)
    mean[i % mean.size()] += probabilities[i] / static_cast<double>(many);
  double divergence = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i)
    if (probabilities[i] > 0) divergence += probabilities[i] * std::log(probabilities[i] / mean[i % mean.size()]);
  return std::exp(divergence / static_cast<double>(many));
}

std::map<std::string, double> Quality::figures() const {
  return {{fmt::format("fid[{}]", features), fid},
          {fmt::format("inception_score[{}]", features), inception_score},
          {fmt::format("real_fid[{}]", features), real_fid},
          {fmt::format("real_inception_score[{}]", features), real_inception_score}};
}

QualityMeter::QualityMeter(const Dataset& dataset, TensorOps& ops, int images, const std::filesystem::path& cache,
                           const std::filesystem::path& features)
    : images_(images), network_(network_of(images, dataset, ops, cache, features)) {
  const auto [widths, dimensions, classes] = network_.form();
  const ClassifierOutput reference = network_.classify(images_of(dataset.images, 0, images));
  const ClassifierOutput others = network_.classify(images_of(dataset.images, images, images));
  real_ = moments_of_rows(reference.features, dimensions);
  of_real_.real_fid = frechet_distance(real_, moments_of_rows(others.features, dimensions));
  of_real_.real_inception_score = inception_score(others.probabilities, classes);
}

Quality QualityMeter::measure(Gan& gan, TensorOps& ops, std::uint64_t seed) {
  const std::vector<float> samples = enlarge(sample_images(gan, ops, seed, images_), gan.image, gan.whole);
  const ClassifierOutput output = network_.classify(frames_of(samples, gan.whole));
  Quality quality = of_real_;
  quality.features = network_.name();
  quality.images = images_;
  quality.fid = frechet_distance(real_, moments_of_rows(output.features, real_.dimensions));
  quality.inception_score = inception_score(output.probabilities, network_.form().classes);
  return quality;
}

}  // namespace ganymede::kernel
