#pragma once
// Simulated runs as requests of MLflow's REST API (2.0), in the order in which they must be sent. Requests use names
// for ids that the server gives in its answers. docs/exports.md describes their form.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/json_fwd.hpp"
#include "report/documents.hpp"

namespace ganymede::exports {

/// A file of `ganymede train --checkpoint` as a version of a registered model.
struct MlflowModel {
  std::string name;  ///< name of the registered model
  std::string file;  ///< absolute path of the checkpoint
  std::string uri;   ///< where the checkpoint can be fetched; empty: it is uploaded to the run's artifacts
  std::string sha256;
  std::vector<std::pair<std::string, std::string>> tags;
};

struct MlflowOptions {
  std::string experiment = "ganymede";
  std::int64_t start_ms = 0;              ///< when the runs start, in milliseconds since 1970-01-01T00:00:00Z
  std::optional<std::size_t> run = {};    ///< export only this run of a sweep
  bool all = false;                       ///< export every simulated candidate of a plan, not only those of its table
  std::optional<MlflowModel> model = {};  ///< needs a document with exactly one run to export
};

/// Returns the requests that make one run for a result, for each run of a sweep, or for each candidate of a plan. A run
/// is found again by its tag `ganymede.run` (scenario hash, seed, checksum of the content), so that it is not made
/// twice.
std::vector<OrderedJson> mlflow_requests(const report::Document& document, const MlflowOptions& options);

/// The longest beginning of an UTF-8 text that has at most `bytes` bytes and does not end inside a character.
std::string shortened(const std::string& text, std::size_t bytes);

}  // namespace ganymede::exports
