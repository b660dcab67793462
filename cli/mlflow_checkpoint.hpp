#pragma once
// A checkpoint of `ganymede train` as MLflow's registry is to know it.

#include <string>

#include "report/mlflow.hpp"

namespace ganymede::cli {

/// The newest whole checkpoint of a directory, with its sums, what it says of its training, the commit of the git work
/// tree in which the program runs, and this machine's system, compiler and libraries as tags. ConfigError when there is
/// none. `name` of the registered model; empty: made of the GAN's.
MlflowModel mlflow_model(const std::string& directory, const std::string& name, const std::string& uri);

}  // namespace ganymede::cli
