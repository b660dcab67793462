#include "cli/device_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/names.hpp"
#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/text.hpp"
#include "kernel/models/models.hpp"
#include "traces/layer_list.hpp"
#include "traces/recorded.hpp"

namespace ganymede::cli {

void add_device_options(Parser command, kernel::TrainOptions& options) {
  options.backend = "auto";
  command.add_option("--backend", options.backend, "cuda, cpu, or auto: cuda if there is a GPU")
      .check(suggest("auto cuda cpu"))
      .capture_default_str();
  command
      .add_option(
          "--precision", options.precision,
          "precision of products on a GPU: fp32, tf32 or bf16, which also stores activations in two bytes; default: "
          "tf32 if the GPU has it")
      .check(suggest("fp32 tf32 bf16"));
  command.add_flag("--time-algorithms", options.time_algorithms,
                   "time a GPU's convolutions, take the fastest algorithms and keep them for later trainings");
  command.add_flag("!--no-graph", options.graph, "launch a GPU's kernels one by one, not a whole step as a CUDA graph");
  command.add_option("--threads", options.threads, "CPU threads; 0: all cores").capture_default_str();
}

void check_trainable(const std::string& model) {
  const bool prefixed = model.starts_with(traces::kLayers);
  const std::string name = prefixed ? model.substr(traces::kLayers.size()) : model;
  const auto trained = kernel::model_names();
  const auto lists = names_of(embedded_layers());
  const bool listed = std::find(lists.begin(), lists.end(), traces::list_name(name)) != lists.end();
  if (!prefixed && (!listed || std::find(trained.begin(), trained.end(), name) != trained.end())) return;
  throw ConfigError(
      fmt::format("--model {}: is a list of layers, which can be planned (`ganymede plan --model {} --images 10M`) but "
                  "not trained; expected {}",
                  model, name, list_of(trained)));
}

}  // namespace ganymede::cli
