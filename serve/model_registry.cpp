#include "serve/model_registry.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"

namespace ganymede::serve {
namespace {

constexpr std::string_view kScheme = "models:/";

/// One server of MLflow, below the path of its address.
class Registry {
 public:
  Registry(const std::string& server, const std::string& authorization) : server_(server) {
    const std::size_t host = std::string_view(server.starts_with("https://") ? "https://" : "http://").size();
    const std::size_t path = server.find('/', host);
    if (!(server.starts_with("http://") || server.starts_with("https://")) || server.size() == host || path == host)
      throw ConfigError(fmt::format(
          "MLFLOW_TRACKING_URI: found \"{}\", expected the address of MLflow's server, such as http://localhost:5000",
          server));
    client_ = std::make_unique<httplib::Client>(server.substr(0, path));
    prefix_ = path == std::string::npos ? "" : server.substr(path);
    while (prefix_.ends_with('/')) prefix_.pop_back();
    client_->set_connection_timeout(10);
    client_->set_read_timeout(10);
    if (!authorization.empty()) client_->set_default_headers({{"Authorization", authorization}});
  }

  /// The answer to a question of the REST interface. `what` is what was asked for, for messages.
  Json ask(const std::string& route, const httplib::Params& parameters, const std::string& what) const {
    const std::string text = get("/api/2.0/mlflow/" + route, parameters, what);
    try {
      return Json::parse(text);
    } catch (const JsonError&) {
      throw Failure(fmt::format("{}: the answer is not of MLflow's server", server_));
    }
  }

  std::string get(const std::string& route, const httplib::Params& parameters, const std::string& what) const {
    const httplib::Result answer = client_->Get(prefix_ + route, parameters, httplib::Headers{});
    if (!answer) throw Failure(fmt::format("{}: gave no answer ({})", server_, httplib::to_string(answer.error())));
    if (answer->status == 200) return answer->body;
    std::string why = fmt::format("status {}", answer->status);
    try {
      why = Json::parse(answer->body).at("message").get<std::string>();
    } catch (const JsonError&) {  // no message: the status has to do
    }
    if (answer->status == 404 || answer->status == 400)
      throw ConfigError(fmt::format("--generator: {}: {} says: {}", what, server_, why));
    throw Failure(fmt::format("{}: {}", server_, why));
  }

 private:
  std::string server_, prefix_;
  std::unique_ptr<httplib::Client> client_;
};

std::string text_of(const Json& object, const char* key, const std::string& what) {
  if (!object.is_object() || !object.contains(key) || !object.at(key).is_string())
    throw Failure(fmt::format("{}: MLflow's answer has no \"{}\"", what, key));
  return object.at(key).get<std::string>();
}

/// "digits/3" or "digits@best" as the registry knows it.
Json version_of(const Registry& registry, const std::string& generator) {
  const std::string_view rest = std::string_view(generator).substr(kScheme.size());
  const std::size_t at = rest.find_last_of("/@");
  if (at == std::string_view::npos || at == 0 || at + 1 == rest.size())
    throw ConfigError(
        fmt::format("--generator: found \"{}\", expected models:/NAME/VERSION or models:/NAME@ALIAS", generator));
  const std::string name(rest.substr(0, at)), which(rest.substr(at + 1));
  const bool by_alias = rest[at] == '@';
  if (!by_alias && which.find_first_not_of("0123456789") != std::string::npos)
    throw ConfigError(fmt::format("--generator: {}: found \"{}\", expected a version's number", generator, which));
  const Json answer = registry.ask(by_alias ? "registered-models/alias" : "model-versions/get",
                                   {{"name", name}, {by_alias ? "alias" : "version", which}}, generator);
  if (!answer.is_object() || !answer.contains("model_version"))
    throw Failure(fmt::format("{}: MLflow's answer has no \"model_version\"", generator));
  return answer.at("model_version");
}

/// The name that `python -m ganymede mlflow` has noted of the checkpoint.
std::string file_of(const Json& version, const std::string& generator) {
  if (version.contains("tags") && version.at("tags").is_array())
    for (const Json& tag : version.at("tags"))
      if (text_of(tag, "key", generator) == "ganymede.file") {
        std::string file = text_of(tag, "value", generator);
        if (file.find('/') == std::string::npos) return file;
      }
  throw ConfigError(
      fmt::format("--generator: {}: has no tag ganymede.file, expected a version that `python -m ganymede mlflow "
                  "--checkpoint` registered",
                  generator));
}

}  // namespace

bool is_registered(std::string_view generator) { return generator.starts_with(kScheme); }

RegisteredModel fetch_model(const std::string& generator, const std::string& server, const std::string& authorization) {
  const Registry registry(server, authorization);
  const Json version = version_of(registry, generator);
  RegisteredModel out;
  out.name = text_of(version, "name", generator);
  out.file = file_of(version, generator);
  const std::string number = text_of(version, "version", generator);
  std::from_chars(number.data(), number.data() + number.size(), out.version);
  std::string place =
      text_of(registry.ask("model-versions/get-download-uri", {{"name", out.name}, {"version", number}}, generator),
              "artifact_uri", generator);
  while (place.ends_with('/')) place.pop_back();
  constexpr std::string_view kProxied = "mlflow-artifacts:", kFile = "file://";
  if (place.starts_with(kProxied)) {
    std::string path = place.substr(kProxied.size());
    if (path.starts_with("//")) path.erase(0, std::min(path.find('/', 2), path.size()));
    out.bytes = registry.get("/api/2.0/mlflow-artifacts/artifacts" + path + "/" + out.file, {}, generator);
  } else if (place.starts_with('/') || place.starts_with(kFile)) {
    out.bytes =
        read_file(std::filesystem::path(place.starts_with('/') ? place : place.substr(kFile.size())) / out.file);
  } else {
    throw ConfigError(
        fmt::format("--generator: {}: its file is in {}, which MLflow's own client fetches: mlflow artifacts download "
                    "--artifact-uri {} --dst-path DIR, then --generator DIR",
                    generator, place, place));
  }
  return out;
}

std::string authorization_of_environment() {
  const auto value = [](const char* name) {
    const char* found = std::getenv(name);
    return std::string(found == nullptr ? "" : found);
  };
  if (const std::string token = value("MLFLOW_TRACKING_TOKEN"); !token.empty()) return "Bearer " + token;
  const std::string user = value("MLFLOW_TRACKING_USERNAME");
  if (user.empty()) return "";
  return httplib::make_basic_authentication_header(user, value("MLFLOW_TRACKING_PASSWORD")).second;
}

}  // namespace ganymede::serve
