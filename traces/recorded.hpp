#pragma once
// The step traces that come with the program: traces/recorded/*.json, embedded when it is built. A scenario names one
// as "recorded:mlp-gan-cpu".

#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"

namespace ganymede {

inline constexpr std::string_view kRecorded = "recorded:";
/// "layers:cyclegan": the list of layers of that name, at batches 1, 2, 4, … 256, timed by the roofline of a V100's
/// data sheet, as `import layers` would; on other GPUs it is counted anew. "layers:cyclegan:fp16": in another
/// precision.
inline constexpr std::string_view kLayers = "layers:";

/// Their names, sorted.
const std::vector<std::string>& recorded_names();

/// The text of what a "trace" names: a recorded one, or a file whose path starts where the value stands. ConfigError at
/// that place, for an unknown name with the list and the nearest.
std::string trace_text(const JsonNode& at);

/// How messages call it: "recorded:mlp-gan-cpu", or the file's path.
std::string trace_name(const JsonNode& at);

}  // namespace ganymede
