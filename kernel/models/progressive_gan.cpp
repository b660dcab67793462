// The progressive GAN (Karras, Aila, Laine and Lehtinen 2018). It learns 4x4 images first; each further stage doubles
// the size and fades in its layers. It has equalised learning rates, pixel norm in the generator, the minibatch's
// standard deviation before the discriminator's last convolutions, WGAN-GP as loss, and Adam at 1e-3 without first
// moment.
//
// The authors' 512 channels are for 1024x1024 faces; here a stage has 2048 / size channels, between 16 and 128. Their
// drift term on the critic's outputs is left out.
//
// For clips the convolutions are 3x3x3. As in Acharya, Huang, Paudel and Van Gool (2018) a stage doubles the frames
// with the size, except for the first stages, which make still images: 8 frames of 32x32 begin with one frame of 4x4.

#include <fmt/format.h>

#include <algorithm>

#include "kernel/models/equalized.hpp"
#include "kernel/models/models.hpp"

namespace ganymede::kernel {
namespace {

constexpr int kProgressiveLatent = 128;
constexpr int kFirstSize = 4;
constexpr int kMaxChannels = 128, kMinChannels = 16;
constexpr int kChannelPixels = 2048;

/// Channels at a size. Clips have half as many, because their convolutions have three times the weights.
int channels_at(int size, bool clip) {
  if (clip) return std::clamp(kChannelPixels / 2 / size, kMinChannels, kMaxChannels / 2);
  return std::clamp(kChannelPixels / size, kMinChannels, kMaxChannels);
}

/// The shapes of the convolutions at a stage's size.
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
  /// The blocks of this stage's pixels, one block for each pixel of the stage before.
  BlockShape blocks(int channels) const { return image_.halves(channels); }
  int colours() const { return image_.channels; }

 private:
  ImageShape image_;
  bool clip_;
};

/// Adds a convolution from `from` channels to the stage's, then pixel norm.
void normalized(Builder& built, const std::string& name, const Stage& stage, int from) {
  built.convolution(name, stage.same(from, stage.channels()));
  built.add(pixel_norm(name + ".norm", stage.channels(), stage.positions()));
}

/// The convolution whose kernel covers a whole image of the first stage.
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
  normalized(built, "conv4.2", first, first.channels());
  for (std::size_t i = 1; i < stages.size(); ++i) {
    const Stage &before = stages[i - 1], &stage = stages[i];
    Builder block;
    block.add(upsample(stage.named("up"), stage.blocks(before.channels())));
    normalized(block, stage.named("conv") + ".1", stage, before.channels());
    normalized(block, stage.named("conv") + ".2", stage, stage.channels());
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

/// Number of stages from 4x4 to `image`.
int progressive_stages(ImageShape image) {
  int stages = 1;
  for (int size = kFirstSize; size < image.height; size *= 2) ++stages;
  return stages;
}

/// Shape of the images that stage `stage`, counted from 0, makes when the last stage makes `image`.
ImageShape progressive_image(ImageShape image, int stage) {
  const int halvings = progressive_stages(image) - 1 - stage;
  return {image.height >> halvings, image.width >> halvings, image.channels, std::max(1, image.frames >> halvings)};
}

Gan build_progressive(const char* name, ImageShape image, Growth growth, bool clip) {
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

// From Karras et al. 2018.
constexpr AdamParameters kProgressiveAdam{.learning_rate = 1e-3F, .beta1 = 0.0F, .beta2 = 0.99F};

}  // namespace

Model progressive_gan() {
  return {.name = "progressive-gan",
          .summary = "grows from 4x4 to 32x32 ... 256x256 colour images; WGAN-GP; 64x64: 2.28 million parameters",
          .images = {{64, 64, 3}, {32, 32, 3}, {128, 128, 3}, {256, 256, 3}},
          .build = [](ImageShape image,
                      Growth growth) { return build_progressive("progressive-gan", image, growth, false); },
          .adam = kProgressiveAdam,
          .loss = AdversarialLoss::wasserstein,
          .stages = progressive_stages};
}

Model progressive_gan_video() {
  return {.name = "progressive-gan-video",
          .summary = "the same for clips, by 3-D convolutions: 8 frames of 32x32 or 16 of 64x64",
          .images = {{32, 32, 3, 8}, {64, 64, 3, 16}},
          .build = [](ImageShape image,
                      Growth growth) { return build_progressive("progressive-gan-video", image, growth, true); },
          .adam = kProgressiveAdam,
          .loss = AdversarialLoss::wasserstein,
          .stages = progressive_stages};
}

}  // namespace ganymede::kernel
