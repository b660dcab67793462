#pragma once
// Which GPUs hold a training, and with which batch: `ganymede fits`.

#include <string>
#include <vector>

#include "documents/machine_checks.hpp"
#include "platforms/platform.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::plan {

struct FitsOptions {
  std::string model;                   ///< as a request's "model", or a file: a step trace or a list of layers
  std::string precision = {};          ///< of a list of layers; empty: its own
  std::vector<std::string> gpus = {};  ///< names or families in the catalogs; empty: all GPUs
  int batch = 0;                       ///< images on one GPU; 0: none is asked for
  bool several_gpus = false;
};

/// Throws ConfigError for a model, a precision or a GPU that is not known, with the nearest name.
documents::Fits fits(const FitsOptions& options);
/// The answer for any trace, and the GPUs in this order. Precondition: there is a GPU.
documents::Fits fits(const traces::StepTrace& trace, int batch, const std::vector<platforms::Gpu>& gpus,
                     bool several_gpus);

}  // namespace ganymede::plan
