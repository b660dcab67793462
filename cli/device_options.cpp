#include "cli/device_options.hpp"

#include "cli/names.hpp"

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

}  // namespace ganymede::cli
