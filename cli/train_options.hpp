#pragma once
// Groups of options of `ganymede train`.

#include "cli/command.hpp"
#include "cli/train_report.hpp"

namespace ganymede::cli {

/// Declares the options of the optimizer and of the loss.
void add_learning_options(Parser command, kernel::TrainOptions& options);

/// Declares what is written during and after the training, and from what it continues.
void add_output_options(Parser command, TrainArguments& arguments);

}  // namespace ganymede::cli
