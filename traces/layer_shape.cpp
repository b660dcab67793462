#include "traces/layer_shape.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/json.hpp"
#include "common/json_value.hpp"

namespace ganymede::traces {

std::vector<int> LayerShape::numbers() const {
  std::vector<int> all = {channels};
  for (std::size_t i = dimensions == 3 ? 0 : 1; i < 3; ++i) all.push_back(static_cast<int>(sides[i]));
  return all;
}

std::string LayerShape::text() const { return fmt::format("{} x {}", channels, sides_text()); }

std::string LayerShape::sides_text() const {
  return (dimensions == 3 ? fmt::format("{} x ", sides[0]) : "") + fmt::format("{} x {}", sides[1], sides[2]);
}

LayerShape read_layer_shape(const JsonNode& node) {
  const auto numbers = node.as_array();
  if (numbers.size() < 2 || numbers.size() > 4)
    node.expected(
        "channels, height and width, as [3, 256, 256], channels and length, as [80, 8192], or channels, depth, height "
        "and width, as [3, 16, 64, 64]");
  LayerShape shape{static_cast<int>(numbers[0].as_integer(1, kMaxChannels)), {1, 1, 1}, numbers.size() - 1};
  for (std::size_t i = 1; i < numbers.size(); ++i)
    shape.sides[3 - numbers.size() + i] = numbers[i].as_integer(1, shape.dimensions == 1 ? kMaxLength : kMaxSide);
  return shape;
}

Extents read_layer_extents(JsonObject& in, const char* key, const LayerShape& shape, int neutral,
                           std::optional<Extents> default_value, const Extents& low, const Extents& high) {
  const auto node = default_value ? in.optional(key) : std::optional(in.required(key));
  Extents extents = node ? Extents{} : *default_value;
  std::vector<JsonNode> each;
  if (node && node->value().is_array()) {
    each = node->as_array();
    if (each.size() != shape.dimensions)
      node->expected(fmt::format("one number, or a list of {}: one for each side of the input", shape.dimensions));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (!shape.has(i)) {
      extents[i] = neutral;
    } else if (node) {
      extents[i] = (each.empty() ? *node : each[i + shape.dimensions - 3]).as_integer(low[i], high[i]);
    }
  }
  return extents;
}

int optional_integer(JsonObject& in, const char* key, int default_value, int low, int high) {
  const auto node = in.optional(key);
  return node ? static_cast<int>(node->as_integer(low, high)) : default_value;
}

bool optional_flag(JsonObject& in, const char* key, bool default_value) {
  const auto node = in.optional(key);
  return node ? node->as_bool() : default_value;
}

std::array<double, 2> optional_pair(JsonObject& in, const char* key, std::array<double, 2> default_value,
                                    const char* meaning) {
  const auto node = in.optional(key);
  if (!node) return default_value;
  const std::vector<double> values = node->as_numbers(0, 1000);
  if (values.size() != 2) node->expected(meaning);
  return {values[0], values[1]};
}

}  // namespace ganymede::traces
