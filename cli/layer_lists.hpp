#pragma once
// Lists of layers and data sheets of GPUs, for the commands that take their names.

#include <string>

#include "platforms/platform.hpp"
#include "traces/layer_list.hpp"

namespace ganymede::cli {

/// Reads the list of layers that is `given`: a file, or the name of a list that comes with the program, with "layers:"
/// before it or not. Throws ConfigError with the nearest name if there is no such list.
traces::LayerList load_layer_list(const std::string& given);

/// Throws ConfigError if `model`, which is to be trained, is only a list of layers, and says what can be done with it.
void check_trainable(const std::string& model);

/// Returns a GPU of a catalog. Throws ConfigError with the nearest name if the catalog has no such GPU.
platforms::Gpu catalog_gpu(const std::string& catalog, const std::string& gpu);

/// Returns the GPU's data sheet, with its peak rate at that precision.
traces::RooflineDevice roofline_device(const platforms::Gpu& gpu, const std::string& precision);

}  // namespace ganymede::cli
