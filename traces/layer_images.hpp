#pragma once
// Lists of layers for images of several sizes. A list states the size that it is written for and the others:
//
//   "image": { "native": 1024, "sizes": [256, 512, 1024] }
//
// Its networks may then write "image" or "image/32" in place of a number, the side of the image or a part of it, and a
// layer may state for which sizes it is there: "image": { "from": 512 }, "image": { "to": 256 }, or both. A recipe's
// layers name its settings in the same way, and repeat what each resolution has:
//
//   { "kind": "resolutions", "from": 8, "to": "image", "layers": [ { "kind": "convolution", "out": "width", … } ] }
//
// "resolution" is then the side, "width" its channels, which are "channel_base" / side, but at most "channel_max", and
// "below" those of half the side. The highest "fp16_resolutions" of them are in fp16, but none below 8. Layers that
// come back with other numbers are written once, in "blocks", and named with their numbers:
//
//   "blocks": { "down": [ { "kind": "convolution", "out": "channels", … } ] }
//   { "kind": "block", "name": "down", "channels": 64 }

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"

namespace ganymede::traces {

using LayerSettings = std::map<std::string, std::int64_t, std::less<>>;

/// The list `root` for images of `side` pixels, without all of these members; the list itself if it has none of them
/// and neither `side` nor settings are given. Layers that are not there are null, so that later errors point to the
/// right place. Without `side` it is that for the native size. For other sizes the name gets the size, as in
/// "stylegan2-256", and "bytes_per_image" grows with the area. Throws ConfigError for a size that the list does not
/// have.
JsonNode at_image(const JsonNode& root, std::optional<int> side, const LayerSettings& settings = {});

/// Synthesis layers of StyleGAN3, or of StyleGAN-XL, which grow.
struct AliasFree {
  int kernel = 3, scale = 1;  ///< `scale` times the channels
  int layers = 14;            ///< before the last, of images of the first size
  int grown_from = 0;         ///< the first size of images, which doubles from stage to stage; 0: that of the image
  int head_layers = 7;        ///< before the last, in place of the critically sampled ones of the stage before
  bool stem = false;          ///< the layers of the stages before, and not those of the last stage
};

/// The synthesis layers for the settings "image", "channel_base", "channel_max" and "fp16_resolutions", whose rates and
/// sizes are those of section 3 and of the appendices of Karras et al., "Alias-Free Generative Adversarial Networks"
/// (2021), and of its code (NVlabs/stylegan3 @c233a919a6fa), and of autonomousvision/stylegan-xl @aa6531372d35,
/// training/networks_stylegan3_resetting.py, for those that grow.
Json alias_free_layers(const LayerSettings& settings, const AliasFree& of);

// The shape of the activations between the layers of a list, and how fields of a layer are read.

inline constexpr int kMaxChannels = 1 << 20;
inline constexpr int kMaxSide = 1 << 16;
inline constexpr int kMaxLength = 1 << 24;  ///< of a shape of one dimension

/// One number for depth, height and width.
using Extents = std::array<std::int64_t, 3>;

struct LayerShape {
  int channels = 0;
  Extents sides = {1, 1, 1};
  std::size_t dimensions = 2;  ///< a shape of one has a width only, a shape of three has a depth too
  bool has(std::size_t extent) const { return extent + dimensions >= 3; }
  double pixels() const { return static_cast<double>(sides[0]) * static_cast<double>(sides[1] * sides[2]); }
  double size() const { return channels * pixels(); }
  std::vector<int> numbers() const;  ///< channels, and the sides from the height on, or from the depth if it has one
  std::string text() const;          ///< "3 x 64 x 64"
  std::string sides_text() const;    ///< "64 x 64"
  bool operator==(const LayerShape&) const = default;
};

/// Reads [channels, height, width], [channels, length] or [channels, depth, height, width]. Throws ConfigError with the
/// place for anything else.
LayerShape read_layer_shape(const JsonNode& node);

/// Reads one number for all sides of a shape, or a list with one for each. Sides that the shape does not have get
/// `neutral`. Without a `default_value` the key is required.
Extents read_layer_extents(JsonObject& in, const char* key, const LayerShape& shape, int neutral,
                           std::optional<Extents> default_value, const Extents& low, const Extents& high);

int optional_integer(JsonObject& in, const char* key, int default_value, int low, int high);
bool optional_flag(JsonObject& in, const char* key, bool default_value);
/// Two numbers from 0 to 1000.
std::array<double, 2> optional_pair(JsonObject& in, const char* key, std::array<double, 2> default_value,
                                    const char* meaning);

}  // namespace ganymede::traces
