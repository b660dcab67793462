#pragma once
// The shape of the activations between the layers of a list, and how fields of a layer are read.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"

namespace ganymede::traces {

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
