#pragma once
// An MLflow server over HTTP(S). Credentials come from MLFLOW_TRACKING_USERNAME and _PASSWORD, or
// MLFLOW_TRACKING_TOKEN, as those of MLflow's own client do, and are never printed.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/json_value.hpp"

namespace ganymede::exports {

/// The server's answer to one request, or why there is none.
struct MlflowAnswer {
  int status = 0;       ///< HTTP status; 0: no answer
  Json body;            ///< null if the answer is not JSON
  std::string trouble;  ///< one line for people that says why the request was not accepted; empty: it was

  bool accepted() const { return trouble.empty(); }
  std::string error_code() const;  ///< MLflow's, such as RESOURCE_DOES_NOT_EXIST; empty: the answer has none
};

class MlflowClient {
 public:
  /// `uri` is http://host:5000 or https://host/prefix. `timeout_s` (at least 1) limits the seconds for connecting and
  /// for each answer. Throws ConfigError for a URI of another scheme or with credentials, and for credentials in the
  /// environment that a header cannot hold.
  MlflowClient(const std::string& uri, int timeout_s);
  MlflowClient(const MlflowClient&) = delete;
  MlflowClient& operator=(const MlflowClient&) = delete;
  ~MlflowClient();

  const std::string& uri() const { return uri_; }

  using Query = std::vector<std::pair<std::string, std::string>>;
  /// `path` is below /api/2.0/mlflow/, for example "runs/create".
  MlflowAnswer get(const std::string& path, const Query& query);
  MlflowAnswer post(const std::string& path, const Json& body);
  /// Returns why `file` cannot be sent to that folder of a run's artifacts, or nothing if it can: it cannot be read, or
  /// the server does not keep artifacts itself (mlflow-artifacts:).
  static std::string cannot_upload(const std::string& folder_uri, const std::string& file);
  /// Uploads the file under its own name. Precondition: cannot_upload() is empty.
  MlflowAnswer upload(const std::string& folder_uri, const std::string& file);

 private:
  struct Connection;
  std::string uri_;
  std::unique_ptr<Connection> connection_;
};

/// Returns the first 300 characters of a text, with everything but printable ASCII replaced by spaces. Text from a
/// server may go to a terminal only in this form.
std::string printable_line(const std::string& text);

}  // namespace ganymede::exports
