#pragma once
// Answers requests for images over HTTP: batches of a generator that stays in memory. docs/serving.md describes the
// routes.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/units.hpp"

namespace ganymede::serve {

/// The checkpoint of a model in MLflow's registry, which `python -m ganymede mlflow --checkpoint` has put there.
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

struct GeneratorOptions {
  std::string listen = "127.0.0.1:8080";
  std::string model = {};    ///< its name
  std::int64_t version = 0;  ///< steps of training
  int largest_batch = 8;
  Seconds window{0};    ///< how long the first of a batch waits for others while nothing is drawn
  int queue = 200;      ///< requests that may wait, at most kernel::kMostWaiting; more are refused
  Seconds timeout{30};  ///< a request that has waited for so long is given up
};

class GeneratorServer {
 public:
  /// Draws a PNG for each seed; called by one thread.
  using Draw = std::function<std::vector<std::string>(std::span<const std::uint64_t> seeds)>;

  /// Throws ConfigError, which names --listen, if nothing can listen there.
  GeneratorServer(GeneratorOptions options, Draw draw);
  /// Answers what waits, and ends.
  ~GeneratorServer();
  GeneratorServer(const GeneratorServer&) = delete;
  GeneratorServer& operator=(const GeneratorServer&) = delete;

  const std::string& address() const;  ///< "http://127.0.0.1:8080"

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ganymede::serve
