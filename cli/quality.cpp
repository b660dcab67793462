// ganymede quality: models of FID against images, and what they say of a training.

#include "cli/command.hpp"

namespace ganymede::cli {

// Each has a file of its own, quality_fit.cpp, quality_forecast.cpp and quality_policies.cpp.
Command quality_fit_command();
Command quality_forecast_command();
Command quality_policies_command();

namespace {

void declare_quality(Parser command, Shared& shared) {
  command.require_subcommand();
  for (const Command& part : {quality_fit_command(), quality_forecast_command(), quality_policies_command()})
    add_command(command, part, shared);
}

}  // namespace

Command quality_command() {
  return {.name = "quality",
          .summary = "how many images an FID takes, and whether a training gets there",
          .examples =
              "  ganymede quality forecast --fid 20 --dataset CIFAR10 --reference 'test 10000' --backbone big_resnet\n"
              "  ganymede quality forecast run.jsonl --fid 20,10 --model dcgan-64\n"
              "  ganymede quality fit points.csv -o curve.json\n",
          .about = "Forecasts come from a model of recorded trainings, in which those that diverged count too.",
          .declare = declare_quality};
}

}  // namespace ganymede::cli
