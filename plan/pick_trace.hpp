#pragma once
// Which of the traces that come with the program a request means by the name of a model.

#include <string>

#include "common/json_fwd.hpp"

namespace ganymede::plan {

/// Picks a recorded trace of a model: one of a GPU if there is one, then the first by name; else its list of layers.
/// A name that begins with "recorded:" or "layers:" is the trace itself. Sets `why` to a sentence for people. Throws
/// ConfigError, with the names there are, if no trace of the model comes with the program.
std::string pick_trace(const JsonNode& model, std::string& why);

}  // namespace ganymede::plan
