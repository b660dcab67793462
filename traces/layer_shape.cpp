#include "traces/layer_shape.hpp"

namespace ganymede::traces {

LayerShape read_layer_shape(const JsonNode& node) {
  const auto sizes = node.as_array();
  if (sizes.size() != 2 && sizes.size() != 3)
    node.expected("channels, height and width, as [3, 256, 256], or channels and length, as [80, 8192]");
  const auto channels = static_cast<int>(sizes[0].as_integer(1, kMaxChannels));
  if (sizes.size() == 2) return {channels, 1, static_cast<int>(sizes[1].as_integer(1, kMaxLength)), true};
  return {channels, static_cast<int>(sizes[1].as_integer(1, kMaxSide)),
          static_cast<int>(sizes[2].as_integer(1, kMaxSide))};
}

int optional_integer(JsonObject& in, const char* key, int default_value, int low, int high) {
  const auto node = in.optional(key);
  return node ? static_cast<int>(node->as_integer(low, high)) : default_value;
}

bool optional_flag(JsonObject& in, const char* key, bool default_value) {
  const auto node = in.optional(key);
  return node ? node->as_bool() : default_value;
}

}  // namespace ganymede::traces
