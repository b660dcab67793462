#pragma once
// An MLflow server over HTTP(S). Credentials come from MLFLOW_TRACKING_USERNAME and _PASSWORD, or
// MLFLOW_TRACKING_TOKEN, as those of MLflow's own client do, and are never printed.

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ganymede::cli {

/// What came back, or why nothing did.
struct MlflowAnswer {
  int status = 0;       ///< of HTTP; 0: no answer
  nlohmann::json body;  ///< null where the answer is no JSON
  std::string trouble;  ///< for people, one line: why it is not accepted; empty: it is

  bool accepted() const { return trouble.empty(); }
  std::string error_code() const;  ///< of MLflow, such as RESOURCE_DOES_NOT_EXIST; "" without one
};

class MlflowClient {
 public:
  /// `uri` as http://host:5000 or https://host/prefix. ConfigError for another scheme, for credentials in it, and for
  /// credentials in the environment that no header can hold. `timeout_s`, at least 1, is for connecting and for each
  /// answer.
  MlflowClient(const std::string& uri, int timeout_s);
  MlflowClient(const MlflowClient&) = delete;
  MlflowClient& operator=(const MlflowClient&) = delete;
  ~MlflowClient();

  const std::string& uri() const { return uri_; }

  using Query = std::vector<std::pair<std::string, std::string>>;
  /// `path` below /api/2.0/mlflow/.
  MlflowAnswer get(const std::string& path, const Query& query);
  MlflowAnswer post(const std::string& path, const nlohmann::json& body);
  /// Why `file` cannot be sent to that folder of a run's artifacts: it cannot be read, or the server does not keep
  /// artifacts itself (mlflow-artifacts:). Empty: it can.
  static std::string cannot_upload(const std::string& folder_uri, const std::string& file);
  /// Under its own name. Precondition: cannot_upload is empty.
  MlflowAnswer upload(const std::string& folder_uri, const std::string& file);

 private:
  struct Connection;
  std::string uri_;
  std::unique_ptr<Connection> connection_;
};

/// One line of printable characters, at most 300: what a server says goes to a terminal.
std::string printable_line(const std::string& text);

}  // namespace ganymede::cli
