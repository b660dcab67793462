#include "cli/measured_options.hpp"

#include "cli/names.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"

namespace ganymede::cli {

void add_measured(Parser command, MeasuredOptions& options) {
  command.add_option("--step", options.step,
                     "a step that you measured, such as 0.11s, in place of the trace's; needs --batch and --on");
  command.add_option("--images-per-second", options.images_per_second, "the same as a rate of one GPU")
      .check(positive_number());
  command.add_option("--on", options.gpu, "the GPU on which the step was measured: ganymede list gpus")
      .check(suggest("@sheets"));
}

void add_measured_batch(Parser command, MeasuredOptions& options) {
  command.add_option("--batch", options.batch, "images on a GPU in a step").check(positive_integer());
}

std::vector<JsonOverride> measured_overrides(const MeasuredOptions& options) {
  std::vector<JsonOverride> overrides;
  const bool rate = options.images_per_second > 0, step = !options.step.empty();
  if (!rate && !step) {
    if (!options.gpu.empty())
      throw ConfigError("--on: names the GPU of a measured step, expected --step or --images-per-second beside it");
    return overrides;
  }
  if (rate && step) throw ConfigError("--images-per-second: stands beside --step, expected only one of the two");
  const std::string what = step ? "--step" : "--images-per-second";
  if (options.gpu.empty())
    throw ConfigError(what +
                      ": expected --on GPU beside it, on which it was measured; `ganymede list gpus` names them");
  if (options.batch == 0) throw ConfigError(what + ": expected --batch IMAGES beside it, of which the step was");
  Json measured = {{"batch", options.batch}, {"gpu", options.gpu}};
  if (step)
    measured["step"] = options.step;
  else
    measured["images_per_second"] = options.images_per_second;
  overrides.push_back({"/workload/measured", measured.dump()});
  return overrides;
}

}  // namespace ganymede::cli
