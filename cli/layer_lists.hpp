#pragma once
// What `import layers` and `import profiler` share.

#include <string>

#include "traces/layer_list.hpp"

namespace ganymede::cli {

/// A file, or the name of a list that comes with the program.
LayerList load_layer_list(const std::string& name);

/// The data sheet of a GPU of a catalog; the rate is that of the precision. ConfigError with the nearest name.
RooflineDevice roofline_device(const std::string& catalog, const std::string& gpu, const std::string& precision);

}  // namespace ganymede::cli
