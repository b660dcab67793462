#pragma once
// Whether a training fits the memory of GPUs, `ganymede.fits/1`.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_fwd.hpp"
#include "documents/walk.hpp"

namespace ganymede::documents {

inline constexpr std::string_view kFitsSchema = "ganymede.fits/1";

/// Bytes of one kind, such as "activations".
struct FitsKind {
  std::string name;
  double bytes = 0;
};

/// The memory of a GPU at a batch.
struct FitsMemory {
  double bytes = 0;
  Interval interval;
};

struct FitsGpu {
  std::string gpu;
  double memory = 0;
  int largest_batch = 0;                  ///< that fits for sure; 0: none
  int perhaps_batch = 0;                  ///< that is expected to fit
  std::optional<FitsMemory> at_batch;     ///< the memory at the document's batch; none if no batch was given
  std::optional<std::string> at_verdict;  ///< "fits", "perhaps" or "no"
};

struct Fits {
  std::string model, trace, precision, how;
  int batch = 0;  ///< whose memory is shown by kind
  bool several_gpus = false;
  double allocated = 0;
  std::vector<FitsKind> kinds;
  FitsMemory total;
  std::vector<FitsGpu> gpus;
};

void describe(Walk& walk, Fits& fits);
std::string fits_text(const Fits& fits);

}  // namespace ganymede::documents
