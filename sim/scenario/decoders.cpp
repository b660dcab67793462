#include "sim/scenario/decoders.hpp"

#include <algorithm>
#include <array>

#include "common/units.hpp"

namespace ganymede::sim {
namespace {

using namespace literals;

// Libraries were measured on one thread of an otherwise idle host. Two busy threads of a core do about 1.2 times the
// work of one, so each takes 1 / 0.6 of that time: an assumption.
constexpr double kBusy = 1 / 0.6;

// JPEG and PNG by Pillow and torchvision: huggingface/transformers pull request 45195 (2026), medians of 20 on the host
// of an A10G on AWS (AMD EPYC 7R32) at 224, 512 and 1024 pixels: Pillow 0.77, 3.19, 12.29 ms (PNG 0.83, 4.93, 19.15),
// torchvision 0.64, 2.99, 11.60 ms (PNG 0.73, 4.52, 17.93); the lines through them are within 8 %. OpenCV from Pillow
// by the ratio of their rates for ImageNet on three x86 hosts, 1.20 (arXiv 2605.08731, 2026, one thread: 664, 841 and
// 721 against 537, 726 and 577 images/s).
//
// Whole pipelines: tensorpack/benchmarks, ImageNet/README.md, on a DGX-1 with 80 hardware threads: tf.data with crop,
// resize and flip 11,000 images/s; Python processes with OpenCV, crop, resize, lighting and flip 5,600 images/s.
// ImageNet's images have 400 x 350 pixels on average (tensorpack, efficient-dataflow). Nothing says how their time
// depends on the size; it is taken as proportional.
constexpr double kImageNetMegapixels = 0.4 * 0.35;
constexpr std::array kDecoders{
    Decoder{"pillow", "JPEG by Pillow, without augmentation", 0.17_ms * kBusy, 11.6_ms * kBusy},
    Decoder{"pillow-png", "PNG by Pillow, without augmentation", 0_ms, 18.3_ms * kBusy},
    Decoder{"torchvision", "JPEG by torchvision, without augmentation", 0.09_ms * kBusy, 11.0_ms * kBusy},
    Decoder{"torchvision-png", "PNG by torchvision, without augmentation", 0_ms, 17.2_ms * kBusy},
    Decoder{"opencv", "JPEG by OpenCV, without augmentation", 0.14_ms * kBusy, 9.7_ms * kBusy},
    Decoder{"tf-data", "JPEG by tf.data, with crop, resize and flip", 0_ms,
            Seconds{80 / 11000.0 / kImageNetMegapixels}},
    Decoder{"opencv-processes", "JPEG by OpenCV in Python processes, with crop, resize, lighting and flip", 0_ms,
            Seconds{80 / 5600.0 / kImageNetMegapixels}}};

}  // namespace

std::span<const Decoder> decoders() { return kDecoders; }

std::vector<std::string> decoder_names() {
  std::vector<std::string> names;
  for (const Decoder& decoder : kDecoders) names.emplace_back(decoder.name);
  return names;
}

const Decoder* find_decoder(std::string_view name) {
  const auto found =
      std::find_if(kDecoders.begin(), kDecoders.end(), [&](const Decoder& decoder) { return decoder.name == name; });
  return found == kDecoders.end() ? nullptr : &*found;
}

}  // namespace ganymede::sim
