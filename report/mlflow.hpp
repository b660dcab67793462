#pragma once
// Runs as MLflow keeps them: the requests of its REST API (2.0) that make them, in the order in which they are to be
// sent, with names for the ids that answers give. docs/exports.md describes the file in which they are kept.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/documents.hpp"

namespace ganymede {

/// A file of `ganymede train --checkpoint` as a version of a registered model.
struct MlflowModel {
  std::string name;  ///< of the registered model
  std::string file;  ///< the checkpoint's absolute path
  std::string uri;   ///< where it can be fetched; empty: it is uploaded among the run's artifacts
  std::string sha256;
  std::vector<std::pair<std::string, std::string>> tags;
};

struct MlflowOptions {
  std::string experiment = "ganymede";
  std::int64_t start_ms = 0;              ///< of the runs: milliseconds since 1970-01-01T00:00:00Z
  std::optional<std::size_t> run = {};    ///< of a sweep only this one
  bool all = false;                       ///< of a plan every simulated candidate, not only those that its table shows
  std::optional<MlflowModel> model = {};  ///< needs exactly one run
};

/// Of a result one run, of a sweep one each, of a plan one a candidate. A run is known by its tag `ganymede.run`, made
/// of the scenario's hash, the seed and a sum of the content: what is there already is found by it and not made twice.
std::vector<nlohmann::ordered_json> mlflow_requests(const Document& document, const MlflowOptions& options);

/// The longest beginning of UTF-8 of at most so many bytes that ends between two characters.
std::string shortened(const std::string& text, std::size_t bytes);

}  // namespace ganymede
