#pragma once
// The checkpoint of a model in MLflow's registry, which `python -m ganymede mlflow --checkpoint` has put there.

#include <cstdint>
#include <string>
#include <string_view>

namespace ganymede::serve {

struct RegisteredModel {
  std::string name;
  std::int64_t version = 0;
  std::string file;   ///< the checkpoint's name, for messages
  std::string bytes;  ///< of the checkpoint
};

/// True of "models:/…".
bool is_registered(std::string_view generator);

/// Fetches "models:/NAME/VERSION" or "models:/NAME@ALIAS" from the server "http://HOST:PORT" or "https://HOST"
/// (MLFLOW_TRACKING_URI) by MLflow's REST interface. `authorization` is the header of that name; empty: none is sent.
/// Throws ConfigError for an address that is none, and for what the registry does not have; Failure if the server does
/// not answer.
RegisteredModel fetch_model(const std::string& generator, const std::string& server, const std::string& authorization);

/// The header by which MLflow's client says who asks, of MLFLOW_TRACKING_TOKEN or MLFLOW_TRACKING_USERNAME and
/// MLFLOW_TRACKING_PASSWORD in the environment; empty if there are none.
std::string authorization_of_environment();

}  // namespace ganymede::serve
