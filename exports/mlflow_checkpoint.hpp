#pragma once
// A checkpoint of `ganymede train` as a version of a model in MLflow's registry.

#include <string>

#include "exports/mlflow_runs.hpp"

namespace ganymede::exports {

/// Describes the newest whole checkpoint of a directory. Its tags hold checksums, what the checkpoint says of its
/// training, the commit of the git work tree in which the program runs, and this machine's system, compiler and
/// libraries. `name` is the name of the registered model; empty: "ganymede-" and the GAN's. `uri` is where the
/// checkpoint can be fetched; empty: it is uploaded. Throws ConfigError if the directory holds no checkpoint.
MlflowModel mlflow_model(const std::string& directory, const std::string& name, const std::string& uri);

}  // namespace ganymede::exports
