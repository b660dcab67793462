#pragma once
// Step traces that are made of a profiler's traces or of a list of layers, and what they hold as text.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "traces/layer_list.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::calibration {

/// The traces of a profiler, one file for each rank, as options name them.
struct ProfilerFiles {
  std::vector<std::string> files;
  /// `gpu` may be empty if the traces name it; layers, precision: "" if not given.
  std::string catalog = "aws", gpu, model = "model", layers, precision;
  int batch = 0;                ///< images on a GPU in a step
  std::int64_t parameters = 0;  ///< 0: the all-reduces tell
  std::int64_t max_size = 0;    ///< bytes that a file may hold once it is inflated; 0: the reader's bound
  bool override_gpu = false;    ///< times are those of `gpu` although the trace names another one
};

struct ImportedProfile {
  std::string trace;   ///< the step trace of the first rank
  std::string report;  ///< the breakdown of each rank's step, the phases and gradients of the first, and notes
};

/// `show` is called with the mebibytes of all files; what it returns gets those that have been read. The report's
/// tables are fitted to `width` columns. Throws ConfigError for a --gpu that is not the one that a trace names, and for
/// what traces::import_profiler() refuses.
ImportedProfile import_profiles(const ProfilerFiles& request,
                                const std::function<std::function<void(std::size_t)>(std::size_t)>& show,
                                std::size_t width);

/// The networks of a list, then the phases and the memory of the trace's last batch size; `how` tells where the times
/// come from.
std::string layers_text(const traces::LayerList& list, const traces::StepTrace& trace, const std::string& how,
                        std::size_t width);

}  // namespace ganymede::calibration
