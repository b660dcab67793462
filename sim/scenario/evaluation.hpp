#pragma once
// "evaluation" of a scenario: pauses in which the quality of the model is measured and nothing trains.

#include "common/json_fwd.hpp"
#include "common/units.hpp"

namespace ganymede::sim {

/// Pauses in which all GPUs stop training, for example to compute an FID or to write sample images.
struct Evaluation {
  enum class Every { steps, images, epochs, interval };
  Every every = Every::steps;
  double count = 1;     ///< Steps, images or epochs from one pause to the next.
  Seconds interval{0};  ///< For Every::interval: training time from one pause to the next.
  Seconds fixed{0};     ///< Part of a pause that takes as long on any number of GPUs.
  Seconds parallel{0};  ///< Part that the GPUs share out: it takes this time on one GPU.

  /// The length of a pause of `gpus` GPUs.
  Seconds pause(int gpus) const { return fixed + parallel / gpus; }
};

/// The number in "1000 steps" or "2epoch" for the units "steps" and "epoch", a whole one from 1; 0 if the text has
/// another unit or form.
double count_of(std::string_view text, std::string_view unit);

/// Reads an evaluation. `has_dataset`: the scenario states how many images an epoch has. Throws ConfigError for bad
/// input.
Evaluation read_evaluation(const JsonNode& node, bool has_dataset);

}  // namespace ganymede::sim
