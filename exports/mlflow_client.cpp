#include "exports/mlflow_client.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "common/errors.hpp"
#include "common/json.hpp"

namespace ganymede::exports {
namespace {

/// Bytes of an answer, more than any that is asked for. Without a limit a server could send forever.
constexpr std::uint64_t kMaxAnswer = 16U << 20U;
/// Scheme of artifacts that the server itself keeps and receives.
constexpr std::string_view kArtifacts = "mlflow-artifacts:/";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The value of an environment variable that becomes part of a header. Throws ConfigError for control characters, which
/// could begin another header.
std::string credential(const char* name) {
  std::string value = environment(name);
  if (std::any_of(value.begin(), value.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; }))
    throw ConfigError(fmt::format("{}: has a control character (a line break?), expected none", name));
  return value;
}

std::string percent_encoded(const std::string& path) {
  std::string out;
  for (const unsigned char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '~' || c == '/';
    out += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return out;
}

std::string reason_of(httplib::Error error, int timeout_s) {
  switch (error) {
    case httplib::Error::Connection:
      return "no connection: nothing answers there";
    case httplib::Error::ConnectionTimeout:
      return fmt::format("no connection within {} s", timeout_s);
    case httplib::Error::Read:
      return fmt::format("no whole answer within {} s, or the connection broke", timeout_s);
    case httplib::Error::Canceled:
      return fmt::format("an answer of more than {} MiB", kMaxAnswer >> 20U);
    case httplib::Error::Write:
      return "the connection broke while sending";
    case httplib::Error::SSLConnection:
      return "no TLS connection";
    case httplib::Error::SSLLoadingCerts:
      return "the certificates of MLFLOW_TRACKING_SERVER_CERT_PATH cannot be read";
    case httplib::Error::SSLServerVerification:
      return "the server's certificate is not one to trust (MLFLOW_TRACKING_SERVER_CERT_PATH names another authority)";
    default:
      return "the connection failed: " + httplib::to_string(error);
  }
}

/// The text with each secret replaced by stars: a server may send back what it was sent.
std::string without_secrets(const std::vector<std::string>& secrets, std::string text) {
  constexpr std::string_view kStars = "***";
  for (const std::string& secret : secrets)
    for (std::size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at + kStars.size()))
      text.replace(at, secret.size(), kStars);
  return text;
}

/// The same for all strings of a document, which JsonNode has found not to be nested deep.
void remove_secrets(const std::vector<std::string>& secrets, Json& value) {
  if (value.is_string()) value = without_secrets(secrets, value.get<std::string>());
  if (value.is_structured())
    for (Json& part : value) remove_secrets(secrets, part);
}

/// The answer's body; null if it is not JSON, or nested deep. A secret of few characters stays in it, because it may be
/// part of an honest answer.
Json body_of(const std::string& text, const std::vector<std::string>& secrets) {
  try {
    Json body = JsonNode::parse(text, "the answer").value();
    constexpr std::size_t kFewCharacters = 7;
    std::vector<std::string> long_ones = secrets;
    std::erase_if(long_ones, [](const std::string& secret) { return secret.size() <= kFewCharacters; });
    remove_secrets(long_ones, body);
    return body;
  } catch (const ConfigError&) {
    return nullptr;
  }
}

MlflowAnswer answer_of(const httplib::Response& response, const std::string& text,
                       const std::vector<std::string>& secrets) {
  MlflowAnswer answer;
  answer.status = response.status;
  answer.body = body_of(text, secrets);
  if (answer.status >= 200 && answer.status < 300) return answer;
  const std::string code = answer.error_code();
  std::string said = text;
  if (answer.body.is_object() && answer.body.contains("message") && answer.body["message"].is_string())
    said = answer.body["message"].get<std::string>();
  if (answer.status >= 300 && answer.status < 400) said = "it says to ask " + response.get_header_value("Location");
  answer.trouble = printable_line(without_secrets(
      secrets,
      fmt::format("HTTP {}{}{}{}", answer.status, code.empty() ? "" : " " + code, said.empty() ? "" : ": ", said)));
  return answer;
}

/// Breaks the client's connection off when a time is over. The library's own limits are for each piece that arrives, so
/// that a server could send for ever, one byte at a time.
class Watchdog {
 public:
  Watchdog(httplib::Client& client, std::chrono::seconds patience)
      : client_(client), patience_(patience), thread_([this](const std::stop_token& stop) { watch(stop); }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    thread_.request_stop();
    thread_.join();
  }

  /// The content, for each piece of which the time begins again.
  httplib::ContentProvider watching(const httplib::ContentProvider& content) {
    return [this, content](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
      end_ = std::chrono::steady_clock::now() + patience_;
      return content(offset, length, sink);
    };
  }
  bool has_ended_it() const { return barked_; }

 private:
  void watch(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      if (const auto end = end_.load(); std::chrono::steady_clock::now() < end) {
        woken_.wait_until(lock, stop, end, [] { return false; });
        continue;
      }
      barked_ = true;
      client_.stop();  // again and again, because the connection may only now have been made
      woken_.wait_for(lock, stop, std::chrono::milliseconds(100), [] { return false; });
    }
  }

  httplib::Client& client_;
  std::chrono::seconds patience_;
  std::atomic<std::chrono::steady_clock::time_point> end_{std::chrono::steady_clock::now() + patience_};
  std::atomic<bool> barked_ = false;
  std::mutex mutex_;
  std::condition_variable_any woken_;
  std::jthread thread_;  // declared last, because it uses the other members
};

}  // namespace

std::string printable_line(const std::string& text) {
  constexpr std::size_t kMaxLength = 300;
  std::string line = text.substr(0, kMaxLength);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c < ' ' || c > '~'; }, ' ');
  return line + (text.size() > kMaxLength ? " ..." : "");
}

std::string MlflowAnswer::error_code() const {
  if (!body.is_object() || !body.contains("error_code") || !body["error_code"].is_string()) return "";
  return printable_line(body["error_code"].get<std::string>());
}

struct MlflowClient::Connection {
  Connection(const std::string& host, std::string path, int seconds)
      : client(host), prefix(std::move(path)), timeout_s(seconds) {}

  /// Sends the request with `content`, if there is any, of `size` bytes. The whole answer, its head too, must come
  /// within timeout_s after the last byte that was sent, and its body may have kMaxAnswer bytes.
  MlflowAnswer send(httplib::Request request, const httplib::ContentProvider& content = {}, std::size_t size = 0) {
    std::string text;
    request.content_receiver = [&](const char* data, std::size_t length, std::uint64_t, std::uint64_t total) {
      if (std::max<std::uint64_t>(text.size() + length, total) > kMaxAnswer) return false;
      text.append(data, length);
      return true;
    };
    Watchdog watchdog(client, std::chrono::seconds(timeout_s));
    if (content) {
      request.content_length_ = size;
      request.content_provider_ = watchdog.watching(content);
    }
    const httplib::Result result = client.send(request);
    if (result && !watchdog.has_ended_it()) return answer_of(*result, text, secrets);
    MlflowAnswer answer;
    answer.trouble = reason_of(watchdog.has_ended_it() ? httplib::Error::Read : result.error(), timeout_s);
    return answer;
  }

  httplib::Client client;
  std::string prefix;
  int timeout_s;
  std::vector<std::string> secrets = {};  ///< what must not be printed
};

MlflowClient::MlflowClient(const std::string& uri, int timeout_s) : uri_(uri) {
  while (uri_.ends_with('/')) uri_.pop_back();
  const std::size_t scheme = uri_.starts_with("http://") ? 7 : uri_.starts_with("https://") ? 8 : 0;
  const std::string rest = uri_.substr(scheme);
  const std::string host = rest.substr(0, rest.find('/'));
  if (host.find('@') != std::string::npos)
    throw ConfigError(
        "--tracking-uri: has credentials, expected none: MLFLOW_TRACKING_USERNAME and "
        "MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, hold them");
  const bool odd =
      std::any_of(uri_.begin(), uri_.end(), [](char c) { return c <= ' ' || c > '~' || c == '?' || c == '#'; });
  if (scheme == 0 || host.empty() || odd)
    throw ConfigError(
        fmt::format("--tracking-uri: found {}, expected a server such as http://localhost:5000", printable_line(uri_)));
  // If the server goes away while data are sent to it, an error is reported; a signal would end the program.
  std::signal(SIGPIPE, SIG_IGN);
  connection_ = std::make_unique<Connection>(uri_.substr(0, scheme) + host, rest.substr(host.size()), timeout_s);
  httplib::Client& client = connection_->client;
  if (!client.is_valid())
    throw ConfigError(fmt::format("--tracking-uri: found {}, expected a server such as http://localhost:5000", uri_));
  client.set_connection_timeout(timeout_s);
  client.set_read_timeout(timeout_s);
  client.set_write_timeout(timeout_s);
  client.set_keep_alive(true);
  client.set_tcp_nodelay(true);  // otherwise each piece of a request waits until the piece before it is acknowledged
  client.set_url_encode(false);  // paths come encoded
  const std::string user = credential("MLFLOW_TRACKING_USERNAME"), password = credential("MLFLOW_TRACKING_PASSWORD");
  const std::string token = credential("MLFLOW_TRACKING_TOKEN");
  if (!user.empty() && !password.empty()) {
    client.set_basic_auth(user, password);
    connection_->secrets = {
        httplib::make_basic_authentication_header(user, password).second.substr(std::string_view("Basic ").size()),
        password};
  } else if (!token.empty()) {
    client.set_bearer_token_auth(token);
    connection_->secrets = {token};
  }
  if (const std::string file = environment("MLFLOW_TRACKING_SERVER_CERT_PATH"); !file.empty())
    client.set_ca_cert_path(file);
  if (environment("MLFLOW_TRACKING_INSECURE_TLS") == "true") client.enable_server_certificate_verification(false);
}

MlflowClient::~MlflowClient() = default;

MlflowAnswer MlflowClient::get(const std::string& path, const Query& query) {
  httplib::Request request;
  request.method = "GET";
  request.path = httplib::append_query_params(connection_->prefix + "/api/2.0/mlflow/" + path,
                                              httplib::Params(query.begin(), query.end()));
  return connection_->send(std::move(request));
}

MlflowAnswer MlflowClient::post(const std::string& path, const Json& body) {
  httplib::Request request;
  request.method = "POST";
  request.path = connection_->prefix + "/api/2.0/mlflow/" + path;
  request.set_header("Content-Type", "application/json");
  request.body = body.dump();
  return connection_->send(std::move(request));
}

std::string MlflowClient::cannot_upload(const std::string& folder_uri, const std::string& file) {
  // A URI with a host of its own ("//host/...") would send the credentials to that host.
  if (!folder_uri.starts_with(kArtifacts) || folder_uri.starts_with(std::string(kArtifacts) + "/"))
    return fmt::format(
        "the run's artifacts are at {}, where only that storage's own tools write: copy the checkpoint "
        "to where it can be fetched and export again with --checkpoint-uri",
        printable_line(folder_uri));
  return std::ifstream(file) ? "" : fmt::format("{} cannot be read", file);
}

MlflowAnswer MlflowClient::upload(const std::string& folder_uri, const std::string& file) {
  auto in = std::make_shared<std::ifstream>(file, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::size_t>(in->tellg());
  const auto provide = [in](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
    std::vector<char> piece(std::min<std::size_t>(length, 1U << 20U));
    in->seekg(static_cast<std::streamoff>(offset));
    in->read(piece.data(), static_cast<std::streamsize>(piece.size()));
    return in->gcount() > 0 && sink.write(piece.data(), static_cast<std::size_t>(in->gcount()));
  };
  const std::string path = folder_uri.substr(kArtifacts.size()) + "/" + std::filesystem::path(file).filename().string();
  httplib::Request request;
  request.method = "PUT";
  request.path = connection_->prefix + "/api/2.0/mlflow-artifacts/artifacts/" + percent_encoded(path);
  request.set_header("Content-Type", "application/octet-stream");
  return connection_->send(std::move(request), provide, size);
}

}  // namespace ganymede::exports
