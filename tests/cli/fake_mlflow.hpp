#pragma once
// A thread that serves the part of MLflow's REST API that `export mlflow` uses, with the faults that a test asks for.
// Like MLflow it refuses requests beyond its limits, unknown ids, runs of unknown experiments, and local sources.

#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/json_value.hpp"

namespace ganymede::cli {

class FakeMlflow {
 public:
  struct Run {
    std::string experiment, status = "RUNNING";
    std::map<std::string, std::string> params, tags;
    std::map<std::string, double> metrics;
  };

  FakeMlflow() {
    const auto api = [&](const std::string& path, const std::function<Json(const Json&)>& answer) {
      server_.Post("/api/2.0/mlflow/" + path,
                   [this, answer](const httplib::Request& request, httplib::Response& response) {
                     serve(request, response, [&] { return answer(Json::parse(request.body)); });
                   });
    };
    const auto query = [&](const std::string& path, const std::function<Json(const httplib::Request&)>& answer) {
      server_.Get("/api/2.0/mlflow/" + path,
                  [this, answer](const httplib::Request& request, httplib::Response& response) {
                    serve(request, response, [&] { return answer(request); });
                  });
    };
    query("experiments/get-by-name",
          [this](const auto& request) { return experiment(request.get_param_value("experiment_name")); });
    query("model-versions/search", [this](const auto&) { return Json{{"model_versions", versions}}; });
    api("experiments/create", [this](const Json& body) { return create_experiment(body); });
    api("runs/search", [this](const Json& body) { return search(body); });
    api("runs/create", [this](const Json& body) { return create_run(body); });
    api("runs/log-batch", [this](const Json& body) { return log_batch(body); });
    api("runs/update", [this](const Json& body) {
      run_of(body).status = body.at("status").get<std::string>();
      return Json::object();
    });
    api("registered-models/create", [this](const Json& body) {
      if (!models.insert({body.at("name"), 0}).second) throw Refusal{400, "RESOURCE_ALREADY_EXISTS"};
      return Json{{"registered_model", body}};
    });
    api("model-versions/create", [this](const Json& body) { return create_version(body); });
    server_.Put("/api/2.0/mlflow-artifacts/artifacts/(.*)",
                [this](const httplib::Request& request, httplib::Response& response) {
                  serve(request, response, [&] {
                    artifacts[request.matches[1]] = request.body;
                    return Json::object();
                  });
                });
    server_.set_tcp_nodelay(true);
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();  // a call of stop() before that would have no effect
  }
  FakeMlflow(const FakeMlflow&) = delete;
  FakeMlflow& operator=(const FakeMlflow&) = delete;
  ~FakeMlflow() {
    server_.stop();
    thread_.join();
  }

  std::string uri() const { return "http://127.0.0.1:" + std::to_string(port_); }

  /// Called with the number of each request, from 0, and its path. If `fault` returns a status other than 0, the server
  /// answers with it and does not carry out the request; with `lose`, it carries out the request first.
  std::function<int(int, const std::string&)> fault, lose;
  /// Seconds that the server waits before each answer.
  double slow_s = 0;
  std::string fault_message = "as the test\n\x1b[2Jwants it";
  std::string artifact_root = "mlflow-artifacts:/";

  std::map<std::string, std::string> experiments;  ///< id by name
  std::map<std::string, Run> runs;
  std::map<std::string, int> models;
  Json versions = Json::array();
  std::map<std::string, std::string> artifacts;
  std::vector<std::string> authorizations, paths;

 private:
  struct Refusal {
    int status;
    std::string code;
  };

  void serve(const httplib::Request& request, httplib::Response& response, const std::function<Json()>& answer) {
    const std::lock_guard lock(mutex_);
    const int number = static_cast<int>(paths.size());
    paths.push_back(request.path);
    authorizations.push_back(request.get_header_value("Authorization"));
    if (slow_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(slow_s));
    int status = fault ? fault(number, request.path) : 0;
    const Json fault_body = {{"error_code", "INTERNAL_ERROR"}, {"message", fault_message}};
    Json body = fault_body;
    if (status == 0) try {
        body = answer();
        status = 200;
      } catch (const Refusal& refusal) {
        status = refusal.status;
        body = {{"error_code", refusal.code}, {"message", "refused"}};
      } catch (const JsonError& error) {
        status = 400;
        body = {{"error_code", "INVALID_PARAMETER_VALUE"}, {"message", error.what()}};
      }
    if (const int lost = lose ? lose(number, request.path) : 0; lost != 0) {
      status = lost;
      body = fault_body;
    }
    response.status = status;
    response.set_content(body.dump(), "application/json");
  }

  Json experiment(const std::string& name) const {
    const auto found = experiments.find(name);
    if (found == experiments.end()) throw Refusal{404, "RESOURCE_DOES_NOT_EXIST"};
    return {{"experiment", {{"experiment_id", found->second}, {"name", name}}}};
  }
  Json create_experiment(const Json& body) {
    const auto id = std::to_string(experiments.size() + 1);
    if (!experiments.insert({body.at("name"), id}).second) throw Refusal{400, "RESOURCE_ALREADY_EXISTS"};
    return {{"experiment_id", id}};
  }
  bool is_experiment(const std::string& id) const {
    return std::any_of(experiments.begin(), experiments.end(), [&](const auto& entry) { return entry.second == id; });
  }
  Json info(const std::string& id) const {
    return {
        {"info", {{"run_id", id}, {"artifact_uri", artifact_root + runs.at(id).experiment + "/" + id + "/artifacts"}}}};
  }
  /// Answers a search with a filter of the only form that the client sends: tags.`key` = 'value'.
  Json search(const Json& body) const {
    const auto filter = body.at("filter").get<std::string>();
    const std::size_t tick = filter.find('`'), end = filter.find("` = '");
    if (!filter.starts_with("tags.`") || end == std::string::npos || !filter.ends_with("'"))
      throw Refusal{400, "INVALID_PARAMETER_VALUE"};
    const std::string key = filter.substr(tick + 1, end - tick - 1),
                      value = filter.substr(end + 5, filter.size() - end - 6);
    Json found = Json::array();
    for (const auto& [id, run] : runs)
      if (run.experiment == body.at("experiment_ids")[0] && run.tags.contains(key) && run.tags.at(key) == value)
        found.push_back(info(id));
    return found.empty() ? Json::object() : Json{{"runs", found}};
  }
  Json create_run(const Json& body) {
    if (!is_experiment(body.at("experiment_id"))) throw Refusal{404, "RESOURCE_DOES_NOT_EXIST"};
    const std::string id = "run" + std::to_string(runs.size());
    Run& run = runs[id];
    run.experiment = body.at("experiment_id").get<std::string>();
    for (const Json& tag : body.at("tags")) run.tags[tag.at("key")] = tag.at("value");
    if (run.tags["mlflow.runName"] != body.at("run_name")) throw Refusal{400, "INVALID_PARAMETER_VALUE"};
    return {{"run", info(id)}};
  }
  Run& run_of(const Json& body) {
    const auto found = runs.find(body.at("run_id").get<std::string>());
    if (found == runs.end()) throw Refusal{404, "RESOURCE_DOES_NOT_EXIST"};
    return found->second;
  }
  Json log_batch(const Json& body) {
    Run& run = run_of(body);
    const auto list = [&](const char* kind, std::size_t most) {
      Json all = body.value(kind, Json::array());
      if (all.size() > most) throw Refusal{400, "INVALID_PARAMETER_VALUE"};
      return all;
    };
    for (const Json& metric : list("metrics", 1000)) run.metrics[metric.at("key")] = metric.at("value").get<double>();
    for (const Json& param : list("params", 100)) {
      const auto value = param.at("value").get<std::string>();
      const auto [old, fresh] = run.params.insert({param.at("key"), value});
      if (value.size() > 500 || (!fresh && old->second != value)) throw Refusal{400, "INVALID_PARAMETER_VALUE"};
    }
    for (const Json& tag : list("tags", 100)) {
      if (tag.at("value").get<std::string>().size() > 5000) throw Refusal{400, "INVALID_PARAMETER_VALUE"};
      run.tags[tag.at("key")] = tag.at("value");
    }
    return Json::object();
  }
  Json create_version(const Json& body) {
    const auto source = body.at("source").get<std::string>();
    if (!models.contains(body.at("name"))) throw Refusal{404, "RESOURCE_DOES_NOT_EXIST"};
    if (source.starts_with("/") || source.starts_with("file:")) throw Refusal{400, "INVALID_PARAMETER_VALUE"};
    Json version = body;
    version["version"] = std::to_string(++models[body.at("name")]);
    versions.push_back(version);
    return {{"model_version", version}};
  }

  httplib::Server server_;
  std::mutex mutex_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace ganymede::cli
