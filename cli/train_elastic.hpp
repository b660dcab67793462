#pragma once
// ganymede train --policy: a policy decides while it trains how many processes do.

#include <string>

#include "cli/command.hpp"
#include "cli/train_report.hpp"

namespace ganymede::cli {

struct ElasticOptions {
  std::string policy, plan;
  std::string launcher = "mpirun -n {}";
  double scale = 1;
};

/// Declares --policy, --plan, --launcher and --scale.
void add_elastic_options(Parser command, ElasticOptions& options);

/// Starts `ganymede train` again and again, with the options that `command` was given, as the policy wants.
void train_elastically(Parser command, const TrainArguments& arguments, const ElasticOptions& options, Shared& shared);

}  // namespace ganymede::cli
