#pragma once
// The step traces that are built into the program from traces/recorded/*.json. A scenario names one as
// "recorded:mlp-gan-cpu".

#include <string>
#include <string_view>
#include <vector>

#include "common/json_fwd.hpp"
#include "traces/layer_list.hpp"

namespace ganymede::traces {

inline constexpr std::string_view kRecorded = "recorded:";
/// "layers:cyclegan" names the trace that `import layers` makes of traces/layers/cyclegan.json, with batches 1, 2, 4, …
/// 256, timed by the roofline of a V100's data sheet (other GPUs are timed by their own). "layers:cyclegan:fp16" is the
/// same in another precision, "layers:cyclegan?image=128" for other images, "layers:cyclegan?image=128&precision=fp16"
/// both.
inline constexpr std::string_view kLayers = "layers:";

/// Names of the recorded traces, sorted.
const std::vector<std::string>& recorded_names();
/// The models of which these are traces, in the same order.
const std::vector<std::string>& recorded_models();

/// The list of layers that comes with the program under a name as above, without "layers:". Throws ConfigError for an
/// unknown list, with the nearest, and for a precision or size of images that it does not have.
LayerList built_in_list(const std::string& name);
/// Reads the list of layers that is `given` on a command line: a file, or the name of a list that comes with the
/// program, with "layers:" before it or not. Throws ConfigError with the nearest name if there is no such list.
LayerList load_layer_list(const std::string& given);
/// The name of a list without precision and image: "cyclegan" of "cyclegan?image=128".
std::string list_name(const std::string& name);

/// The text of the trace that a "trace" value names: a recorded one, a list of layers, or a file, whose path is
/// relative to at.directory(). Throws ConfigError located there; for an unknown name it lists the names and the
/// nearest.
std::string trace_text(const JsonNode& at);

/// The trace of a recipe (recipe.hpp), for the usual sizes of a batch and all that divide its own. Throws ConfigError
/// as resolve_recipe() does.
StepTrace recipe_trace(const std::string& name);

/// True for a name that begins with kRecorded, kLayers or kRecipe (recipe.hpp).
bool comes_with_program(std::string_view name);

/// The trace's name for messages: "recorded:mlp-gan-cpu", or the file's path.
std::string trace_name(const JsonNode& at);

}  // namespace ganymede::traces
