#pragma once
// Lists of layers for images of several sizes. A list states the size that it is written for and the others:
//
//   "image": { "native": 1024, "sizes": [256, 512, 1024] }
//
// Its networks may then write "image" or "image/32" in place of a number, the side of the image or a part of it, and a
// layer may state for which sizes it is there: "image": { "from": 512 }, "image": { "to": 256 }, or both.

#include <optional>

#include "common/json_fwd.hpp"

namespace ganymede::traces {

/// The list `root` for images of `side` pixels, without all of these members; the list itself if it states no "image"
/// and `side` is empty. Layers that are not there are null, so that later errors point to the right place. Without
/// `side` it is that for the native size. For other sizes the name gets the size, as in "stylegan2-256", and
/// "bytes_per_image" grows with the area. Throws ConfigError for a size that the list does not have.
JsonNode at_image(const JsonNode& root, std::optional<int> side);

}  // namespace ganymede::traces
