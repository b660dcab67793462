#pragma once
// Reads the layers of a network: shapes, work and kernels.

#include "common/json_fwd.hpp"
#include "traces/layer_list.hpp"

namespace ganymede::traces {

/// The kernel that makes a 16-bit copy of a layer's weights; a list of another precision has none.
inline constexpr const char* kCast = "cast";

/// Reads a member of "networks". Throws ConfigError as read_layer_list() does.
LayerNetwork read_layer_network(const JsonNode& node);

/// Reads what a layer with so many numbers of result states that it keeps: for each of them, and for each of them to
/// differentiate its gradients. False: what follows cannot undo that.
bool read_keeps(const JsonNode& node, double numbers, Layer& layer);

}  // namespace ganymede::traces
