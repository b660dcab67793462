// The progressive GAN (Karras, Aila, Laine and Lehtinen 2018): 4x4 images first, then stages of twice the size whose
// layers fade in. Equalised learning rates, pixel norm in the generator, the deviation over the minibatch before the
// discriminator's last convolutions; WGAN-GP and Adam at 1e-3 without first moment.
//
// The authors' 512 channels are for 1024x1024 faces; here a stage has 2048 / size channels, 16 to 128. Their drift
// term on the critic's outputs is left out.
//
// The same for clips, with 3x3x3 convolutions: as in Acharya, Huang, Paudel and Van Gool (2018) a stage doubles the
// frames as well as the size, from the last stages back, so that the first ones make still images.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernel/models/models.hpp"

namespace ganymede::kernel {
namespace {

constexpr int kProgressiveLatent = 128;
constexpr int kFirstSize = 4;
constexpr int kMostChannels = 128, kLeastChannels = 16;
constexpr int kChannelPixels = 2048;

/// What follows a convolution's sums.
struct Equalized {
  float slope = 0.2F;  ///< of the LeakyReLU; 1: none
  float gain = 1.41421356F;
  bool transposed = false;  ///< from the shape's outputs to its inputs
};
constexpr Equalized kPlain{.slope = 1, .gain = 1};  // to colours and to the logit

/// A clip's convolutions have three times the weights and its grids the frames: half as many channels.
int channels_at(int size, bool clip) {
  if (clip) return std::clamp(kChannelPixels / 2 / size, kLeastChannels, kMostChannels / 2);
  return std::clamp(kChannelPixels / size, kLeastChannels, kMostChannels);
}

/// The convolutions of a stage's grid.
class Stage {
 public:
  Stage(ImageShape image, bool clip) : image_(image), clip_(clip) {}

  int size() const { return image_.height; }
  int channels() const { return channels_at(size(), clip_); }
  int positions() const { return image_.pixels() / image_.channels; }
  std::string named(const char* what) const { return fmt::format("{}{}", what, size()); }

  ConvolutionShape same(int from, int to) const {
    ConvolutionShape shape{from, size(), size(), to, 3, 1, 1};
    shape.in_frames = image_.frames;
    shape.kernel_frames = clip_ ? 3 : 1;
    shape.padding_frames = clip_ ? 1 : 0;
    return shape;
  }
  ConvolutionShape pointwise(int from, int to) const {
    ConvolutionShape shape{from, size(), size(), to, 1, 1, 0};
    shape.in_frames = image_.frames;
    return shape;
  }
  /// From the stage before and back.
  BlockShape blocks(int channels) const { return image_.halves(channels); }
  int colours() const { return image_.channels; }

 private:
  ImageShape image_;
  bool clip_;
};

struct Builder {
  Layers layers;

  void add(std::unique_ptr<Layer> layer) { layers.push_back(std::move(layer)); }
  /// Two layers of one name: weights drawn normal(0, 1), then their sums by gain / sqrt(fan in), which is He's initial
  /// deviation (He et al. 2015). So every weight moves at the same speed under Adam, whatever its layer's width.
  void convolution(const std::string& name, const ConvolutionShape& shape, Equalized options = {}) {
    const bool back = options.transposed;
    const double fan_in = double{1} * (back ? shape.out_channels : shape.in_channels) * shape.taps();
    const int channels = back ? shape.in_channels : shape.out_channels;
    add(back ? transposed_convolution(name, shape, 1) : kernel::convolution(name, shape, 1));
    add(bias_leaky(name, channels, (back ? shape.in_features() : shape.out_features()) / channels,
                   static_cast<float>(double{options.gain} / std::sqrt(fan_in)), options.slope));
  }
  void normalized(const std::string& name, const Stage& stage, int from) {
    convolution(name, stage.same(from, stage.channels()));
    add(pixel_norm(name + ".norm", stage.channels(), stage.positions()));
  }
  void append(Layers more) {
    for (auto& layer : more) add(std::move(layer));
  }
};

/// The latents or the last features seen whole.
ConvolutionShape whole(int channels, int from) { return {channels, kFirstSize, kFirstSize, from, kFirstSize, 1, 0}; }

Layers to_colours(const Stage& stage) {
  Builder built;
  built.convolution(stage.named("rgb"), stage.pointwise(stage.channels(), stage.colours()), kPlain);
  return std::move(built.layers);
}

Layers from_colours(const Stage& stage) {
  Builder built;
  built.convolution(stage.named("rgb"), stage.pointwise(stage.colours(), stage.channels()));
  return std::move(built.layers);
}

Network generator(const std::vector<Stage>& stages, bool fading, const std::shared_ptr<float>& share) {
  Builder built;
  const Stage& first = stages.front();
  built.add(pixel_norm("latent.norm", kProgressiveLatent, 1));
  built.convolution("conv4.1", whole(first.channels(), kProgressiveLatent), {.gain = 0.35355339F, .transposed = true});
  built.add(pixel_norm("conv4.1.norm", first.channels(), first.positions()));
  built.normalized("conv4.2", first, first.channels());
  for (std::size_t i = 1; i < stages.size(); ++i) {
    const Stage &before = stages[i - 1], &stage = stages[i];
    Builder block;
    block.add(upsample(stage.named("up"), stage.blocks(before.channels())));
    block.normalized(stage.named("conv") + ".1", stage, before.channels());
    block.normalized(stage.named("conv") + ".2", stage, stage.channels());
    if (!fading || i + 1 < stages.size()) {
      built.append(std::move(block.layers));
      continue;
    }
    block.append(to_colours(stage));
    Builder skip;
    skip.append(to_colours(before));
    skip.add(upsample(stage.named("up") + ".rgb", stage.blocks(stage.colours())));
    built.add(faded(std::move(block.layers), std::move(skip.layers), share));
    return {"generator", std::move(built.layers)};
  }
  built.append(to_colours(stages.back()));
  return {"generator", std::move(built.layers)};
}

Network discriminator(const std::vector<Stage>& stages, bool fading, const std::shared_ptr<float>& share) {
  Builder built;
  if (!fading) built.append(from_colours(stages.back()));
  for (std::size_t i = stages.size() - 1; i > 0; --i) {
    const Stage &stage = stages[i], &next = stages[i - 1];
    Builder block;
    block.convolution(stage.named("conv") + ".1", stage.same(stage.channels(), stage.channels()));
    block.convolution(stage.named("conv") + ".2", stage.same(stage.channels(), next.channels()));
    block.add(downsample(stage.named("down"), stage.blocks(next.channels())));
    if (!fading || i + 1 < stages.size()) {
      built.append(std::move(block.layers));
      continue;
    }
    Builder main, skip;
    main.append(from_colours(stage));
    main.append(std::move(block.layers));
    skip.add(downsample(stage.named("down") + ".rgb", stage.blocks(stage.colours())));
    skip.append(from_colours(next));
    built.add(faded(std::move(main.layers), std::move(skip.layers), share));
  }
  const Stage& last = stages.front();
  built.add(minibatch_stddev("deviation", last.channels(), last.positions()));
  built.convolution("conv4.1", last.same(last.channels() + 1, last.channels()));
  built.convolution("conv4.2", whole(last.channels(), last.channels()));
  built.convolution("logit", {last.channels(), 1, 1, 1, 1, 1, 0}, kPlain);
  return {"discriminator", std::move(built.layers)};
}

Gan build(const char* name, ImageShape image, Growth growth, bool clip) {
  std::vector<Stage> stages;
  ImageShape now = image;
  for (int i = 0; i <= growth.stage; ++i) stages.emplace_back(now = progressive_image(image, i), clip);
  const auto share = std::make_shared<float>(1.0F);
  return {.model = name,
          .image = now,
          .whole = image,
          .share = share,
          .fading = growth.fading,
          .darkest = -1,
          .generator = generator(stages, growth.fading, share),
          .discriminator = discriminator(stages, growth.fading, share)};
}

}  // namespace

int progressive_stages(ImageShape image) {
  int stages = 1;
  for (int size = kFirstSize; size < image.height; size *= 2) ++stages;
  return stages;
}

ImageShape progressive_image(ImageShape image, int stage) {
  const int halvings = progressive_stages(image) - 1 - stage;
  return {image.height >> halvings, image.width >> halvings, image.channels, std::max(1, image.frames >> halvings)};
}

Gan build_progressive_gan(ImageShape image, Growth growth) { return build("progressive-gan", image, growth, false); }

Gan build_progressive_gan_video(ImageShape image, Growth growth) {
  return build("progressive-gan-video", image, growth, true);
}

}  // namespace ganymede::kernel
