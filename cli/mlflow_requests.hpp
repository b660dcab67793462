#pragma once
// The requests that are still to be sent, in a file of JSON lines: a head, which also holds the ids that servers have
// given so far, then a request a line. docs/exports.md describes it.

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/mlflow_client.hpp"

namespace ganymede::cli {

struct MlflowRequests {
  std::string fingerprint;                   ///< of all requests of the export, sent or not
  std::map<std::string, std::string> known;  ///< ids by the names that requests have for them
  std::vector<nlohmann::ordered_json> open;

  static MlflowRequests made_of(std::vector<nlohmann::ordered_json> requests);
  /// ConfigError with the line, for what is no such file.
  static MlflowRequests read(const std::filesystem::path& file);
  /// Seen whole or not at all.
  void write(const std::filesystem::path& file) const;
};

/// Sends what is open, in order, and keeps in it what is not accepted. A server that is down, slow, at fault or wants
/// other credentials ends it; one request that is refused for itself is passed over, with those that need its id. What
/// is there already is found and not made again. Returns the troubles, each with its request, for people.
std::vector<std::string> send(MlflowRequests& requests, MlflowClient& client,
                              const std::function<void(std::size_t done)>& progress);

}  // namespace ganymede::cli
