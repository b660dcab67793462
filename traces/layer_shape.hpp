#pragma once
// The shape of the activations between the layers of a list, and how fields of a layer are read.

#include "common/json.hpp"

namespace ganymede::traces {

inline constexpr int kMaxChannels = 1 << 20;
inline constexpr int kMaxSide = 1 << 16;
inline constexpr int kMaxLength = 1 << 24;  ///< of a shape of one dimension

struct LayerShape {
  int channels = 0, height = 0, width = 0;
  bool line = false;  ///< of one dimension: kernels, strides and factors are those of its width
  double pixels() const { return static_cast<double>(height) * width; }
  double size() const { return channels * pixels(); }
};

/// Reads [channels, height, width], or [channels, length]. Throws ConfigError with the place for anything else.
LayerShape read_layer_shape(const JsonNode& node);

int optional_integer(JsonObject& in, const char* key, int default_value, int low, int high);
bool optional_flag(JsonObject& in, const char* key, bool default_value);

}  // namespace ganymede::traces
