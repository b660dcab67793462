#include "kernel/quality/quality.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <system_error>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "kernel/data/loader.hpp"
#include "kernel/models/models.hpp"
#include "kernel/samples.hpp"
#include "kernel/weights.hpp"

namespace ganymede::kernel {
namespace {

constexpr int kBatch = 64;
constexpr int kChannels = 16;
constexpr int kMinSize = 4;
constexpr float kSlope = 0.2F;
constexpr AdamParameters kRule{.learning_rate = 1e-3F};
constexpr int kSteps = 600;
constexpr std::uint64_t kSeed = 1;
/// Version of network and training. It is part of the network's name, so that figures under one name can be compared.
constexpr int kVersion = 2;

FeatureForm completed(FeatureForm form, ImageShape image) {
  if (!form.widths.empty()) return form;
  int size = image.height;
  for (int width = kChannels; size > kMinSize; width *= 2) {
    form.widths.push_back(width);
    size = ConvolutionShape{1, size, size, 1, 4, 2, 1}.out_height();
  }
  return form;
}

Network classifier(ImageShape image, const FeatureForm& form) {
  Layers layers;
  int size = image.height, channels = image.channels, number = 1;
  for (const int next : form.widths) {
    const ConvolutionShape halving{channels, size, size, next, 4, 2, 1};
    layers.push_back(convolution(fmt::format("conv{}", number), halving));
    size = halving.out_height();
    channels = next;
    layers.push_back(batch_norm_leaky(fmt::format("norm{}", number++), {channels, size * size, 0}, kSlope));
  }
  layers.push_back(convolution("features", {channels, size, size, form.features, size, 1, 0}));
  layers.push_back(bias_leaky("features", form.features, 1, 1, kSlope));
  layers.push_back(dense("classes", form.features, form.classes));
  return {"classifier", std::move(layers)};
}

/// The frames of clips as images, at most as many as a classifier learns from.
Dataset stills_of(const Dataset& clips) {
  const Images& images = clips.images;
  constexpr int kMaxStills = 10'000;
  const int many = std::min(images.count, kMaxStills / images.frames);
  Dataset stills{clips.name, {many * images.frames, images.height, images.width, {}, images.channels}, {}};
  const std::vector<float> values = images_of(images, 0, many);
  stills.images.pixels.resize(values.size());
  std::transform(values.begin(), values.end(), stills.images.pixels.begin(),
                 [](float value) { return static_cast<std::uint8_t>(std::lround(value * 255.0F)); });
  for (int i = 0; i < stills.images.count && !clips.labels.empty(); ++i)
    stills.labels.push_back(clips.labels[static_cast<std::size_t>(i / images.frames)]);
  return stills;
}

std::string dimensions(ImageShape shape) { return to_string({shape.height, shape.width, shape.channels}); }

}  // namespace

std::vector<float> images_of(const Images& images, int first, int count) {
  const ImageShape shape = images.shape();
  const auto extent = [](int value) { return static_cast<std::size_t>(value); };
  const std::size_t plane = extent(shape.height * shape.width), frames = extent(shape.frames);
  std::vector<float> values;
  values.reserve(extent(count) * extent(shape.pixels()));
  for (std::size_t image = extent(first); image < extent(first + count); ++image)
    for (std::size_t f = 0; f < frames; ++f)
      for (std::size_t c = 0; c < extent(shape.channels); ++c) {
        const std::uint8_t* from = images.pixels.data() + ((image * extent(shape.channels) + c) * frames + f) * plane;
        for (std::size_t p = 0; p < plane; ++p) values.push_back(static_cast<float>(from[p]) / 255.0F);
      }
  return values;
}

FeatureNetwork::FeatureNetwork(std::string name, ImageShape shape, TensorOps& ops, FeatureForm form)
    : name_(std::move(name)),
      shape_{shape.height, shape.width, shape.channels},
      form_(completed(std::move(form), shape_)),
      ops_(ops),
      network_(classifier(shape_, form_)) {
  RandomStream initial(kSeed, "kernel/classifier/initial");
  network_.prepare(ops_, kBatch, initial);
  const auto plan = [&](Arena arena) {
    images_ = arena.tensor(shape_.pixels(), kBatch);
    d_logits_ = arena.tensor(form_.classes, kBatch);
    loss_ = arena.floats(1);
    return arena.used();
  };
  small_ = ops_.allocate(plan(Arena(ops_.element_type())));
  plan(Arena(small_, ops_.element_type()));
  ops_.reserve_workspace(ops_.dense_workspace_bytes(shape_.pixels(), 1, kBatch));
}

void FeatureNetwork::train(const Dataset& dataset, int steps, std::uint64_t seed) {
  assert(dataset.labels.size() == static_cast<std::size_t>(dataset.images.count) && dataset.images.count >= kBatch);
  Order order(dataset.images.count, kBatch, seed);
  const auto pixels = static_cast<std::size_t>(shape_.pixels());
  std::vector<std::uint8_t> bytes(kBatch * pixels);
  RandomStream unused(seed, "kernel/classifier/noise");
  std::vector<std::uint8_t> labels(kBatch);
  for (int step = 0; step < steps; ++step) {
    std::size_t at = 0;
    for (const std::uint32_t index : order.next()) {
      dataset.read(index, bytes.data() + at * pixels);
      labels[at++] = dataset.labels[index];
    }
    ops_.load_images(images_, bytes, -1, shape_.channels);
    const Tensor logits = network_.forward(ops_, images_, unused);
    ops_.classification_loss(loss_, d_logits_, logits, labels);
    network_.backward(ops_, d_logits_, {true, false, false}, [](std::size_t) {});
    network_.update(ops_, kRule);
  }
}

ClassifierOutput FeatureNetwork::classify(const std::vector<float>& images) {
  const auto pixels = static_cast<std::size_t>(shape_.pixels());
  assert(images.size() % pixels == 0);
  ClassifierOutput output;
  output.images = static_cast<int>(images.size() / pixels);
  const auto count = static_cast<std::size_t>(output.images);
  std::vector<std::uint8_t> bytes(kBatch * pixels);
  const auto features_each = static_cast<std::size_t>(form_.features),
             classes = static_cast<std::size_t>(form_.classes);
  std::vector<float> features(features_each * kBatch), logits(classes * kBatch);
  for (std::size_t first = 0; first < count; first += kBatch) {
    const std::size_t many = std::min<std::size_t>(kBatch, count - first);
    std::fill(bytes.begin(), bytes.end(), std::uint8_t{0});
    std::transform(
        images.begin() + static_cast<std::ptrdiff_t>(first * pixels),
        images.begin() + static_cast<std::ptrdiff_t>((first + many) * pixels), bytes.begin(),
        [](float value) { return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0F, 1.0F) * 255.0F)); });
    ops_.load_images(images_, bytes, -1, shape_.channels);
    Tensor x = images_;
    const auto& layers = network_.layers();
    for (std::size_t i = 0; i + 1 < layers.size(); ++i) x = layers[i]->infer(ops_, x);
    ops_.read_rows(features, x, form_.features);
    ops_.read_rows(logits, layers.back()->infer(ops_, x), form_.classes);
    for (std::size_t i = 0; i < many; ++i) {
      for (std::size_t f = 0; f < features_each; ++f) output.features.push_back(double{features[f * kBatch + i]});
      double sum = 0, most = double{logits[i]};
      for (std::size_t c = 1; c < classes; ++c) most = std::max(most, double{logits[c * kBatch + i]});
      for (std::size_t c = 0; c < classes; ++c) sum += std::exp(double{logits[c * kBatch + i]} - most);
      for (std::size_t c = 0; c < classes; ++c)
        output.probabilities.push_back(std::exp(double{logits[c * kBatch + i]} - most) / sum);
    }
  }
  return output;
}

double FeatureNetwork::accuracy(const Dataset& dataset, int first, int count) {
  const ClassifierOutput output = classify(images_of(dataset.images, first, count));
  int right = 0;
  for (int i = 0; i < count; ++i) {
    const auto begin = output.probabilities.begin() + std::ptrdiff_t{i} * form_.classes;
    const auto named = std::max_element(begin, begin + form_.classes) - begin;
    right += named == dataset.labels[static_cast<std::size_t>(first) + static_cast<std::size_t>(i)] ? 1 : 0;
  }
  return static_cast<double>(right) / count;
}

void FeatureNetwork::save(const std::filesystem::path& file) const {
  SafeTensors content;
  content.metadata = {{"features", name_}};
  for (const auto& [ranges, data] : {std::pair{&network_.parameters(), network_.parameter_data()},
                                     std::pair{&network_.statistics(), network_.statistic_data()}})
    for (const NamedRange& range : *ranges) {
      NamedTensor tensor{{range.shape.begin(), range.shape.end()}, std::vector<float>(range.size)};
      ops_.read_array(tensor.values, data + range.offset, range.shape);
      content.tensors[range.name] = std::move(tensor);
    }
  write_file(file, write_safetensors(content));
}

void FeatureNetwork::load(const std::filesystem::path& file) {
  const SafeTensors content = read_safetensors(file);
  std::size_t known = 0;
  for (const auto& [ranges, data] : {std::pair{&network_.parameters(), network_.parameter_data()},
                                     std::pair{&network_.statistics(), network_.statistic_data()}})
    for (const NamedRange& range : *ranges) {
      const auto found = content.tensors.find(range.name);
      const std::vector<std::int64_t> shape(range.shape.begin(), range.shape.end());
      if (found == content.tensors.end())
        throw ConfigError(fmt::format("{}: no tensor \"{}\", expected one of [{}] for images of {}", file.string(),
                                      range.name, fmt::join(shape, ", "), to_string(shape_)));
      if (found->second.shape != shape)
        throw ConfigError(fmt::format("{}: /{}: found shape [{}], expected [{}] for images of {}", file.string(),
                                      range.name, fmt::join(found->second.shape, ", "), fmt::join(shape, ", "),
                                      to_string(shape_)));
      ++known;
      ops_.write_array(data + range.offset, found->second.values, range.shape);
    }
  if (known != content.tensors.size())
    throw ConfigError(fmt::format("{}: found {} tensors, expected the {} of a classifier for images of {}",
                                  file.string(), content.tensors.size(), known, to_string(shape_)));
}

FeatureNetwork read_feature_network(const std::filesystem::path& file, ImageShape shape, TensorOps& ops) {
  const std::string bytes = read_file(file);
  const SafeTensors content = parse_safetensors(bytes, file.string());
  const auto outputs = [&](const std::string& name) {
    const auto found = content.tensors.find(name);
    return found == content.tensors.end() || found->second.shape.empty() ? 0 : static_cast<int>(found->second.shape[0]);
  };
  FeatureForm form{{}, outputs("features.weight"), outputs("classes.weight")};
  while (const int width = outputs(fmt::format("conv{}.weight", form.widths.size() + 1))) form.widths.push_back(width);
  // More halvings than the image has room for cannot come from a network for this shape.
  if (form.features < 1 || form.classes < 2 || form.widths.empty() || (shape.height >> form.widths.size()) < 1)
    throw ConfigError(
        fmt::format("{}: found no classifier for images of {}, expected tensors conv1.weight, ..., features.weight, "
                    "classes.weight",
                    file.string(), dimensions(shape)));
  FeatureNetwork network(fmt::format("{}-{:08x}", file.stem().string(), fnv1a(bytes) & 0xffffffffU), shape, ops, form);
  network.load(file);
  return network;
}

FeatureNetwork feature_network(const Dataset& dataset, TensorOps& ops, const std::filesystem::path& cache) {
  const ImageShape shape = dataset.images.shape();
  const bool own = dataset.name != kBuiltinDataset && !dataset.labels.empty() && dataset.images.count >= kBatch &&
                   *std::max_element(dataset.labels.begin(), dataset.labels.end()) < FeatureForm{}.classes;
  const char* of = shape.frames > 1 ? "moving-glyph" : "glyph";
  std::string name = fmt::format("{}-classifier-{}-v{}", of, dimensions(shape), kVersion);
  if (own) {
    name =
        fmt::format("label-classifier-{}-{:08x}-v{}", dimensions(shape), dataset.fingerprint() & 0xffffffffU, kVersion);
  }
  FeatureNetwork network(name, shape, ops);
  const std::filesystem::path file = cache / (name + ".safetensors");
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) {
    try {
      network.load(file);
      return network;
    } catch (const ConfigError&) {
      // The file in the cache is damaged; the network is trained again.
    }
  }
  const Dataset learned = own ? dataset : open_dataset(kBuiltinDataset, shape);
  network.train(shape.frames > 1 ? stills_of(learned) : learned, kSteps, kSeed);
  std::filesystem::create_directories(cache, ignored);
  network.save(file);
  return network;
}

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
