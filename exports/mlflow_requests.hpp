#pragma once
// Requests to an MLflow server that are still to be sent, and their file of JSON lines: a head with the ids that the
// server has given so far, then one request a line. docs/exports.md describes the file.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/json_value.hpp"
#include "exports/mlflow_client.hpp"

namespace ganymede::exports {

struct MlflowRequests {
  std::string fingerprint;                   ///< checksum of all requests of the export, sent or not
  std::map<std::string, std::string> known;  ///< the server's ids, by the names that requests use for them
  std::vector<OrderedJson> open;             ///< requests that are not accepted yet, in order

  /// Requests of a new export, none of which has been sent.
  static MlflowRequests made_of(std::vector<OrderedJson> requests);
  /// Throws ConfigError with the line if the file is not of this form.
  static MlflowRequests read(const std::filesystem::path& file);
  /// Replaces the file atomically.
  void write(const std::filesystem::path& file) const;
};

/// Sends the open requests in order; those that are not accepted stay open. Sending ends at an error that every request
/// would meet: the server is down, slow or faulty, or it demands other credentials. A single request that is refused is
/// skipped, with those that need its id. Objects that the server already has are found and not created again. Returns
/// messages for people, one for each request that was not accepted.
std::vector<std::string> send(MlflowRequests& requests, MlflowClient& client,
                              const std::function<void(std::size_t done)>& progress);

}  // namespace ganymede::exports
