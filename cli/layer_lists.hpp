#pragma once
// Lists of layers and data sheets of GPUs, for the commands that take their names.

#include <string>

#include "calibration/kernel_workload.hpp"
#include "platforms/catalog.hpp"
#include "traces/recorded.hpp"

namespace ganymede::cli {

using calibration::roofline_device;
using platforms::catalog_gpu;
using traces::load_layer_list;

/// Throws ConfigError if `model`, which is to be trained, is only a list of layers, and says what can be done with it.
void check_trainable(const std::string& model);

}  // namespace ganymede::cli
