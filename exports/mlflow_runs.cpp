#include "exports/mlflow_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"

namespace ganymede::exports {
namespace {
using Request = OrderedJson;

// Limits of mlflow/utils/validation.py. The limit of a parameter's value is that of servers before 2.8. It is counted
// in bytes here, which is stricter than the servers' count of characters.
constexpr std::size_t kMetricsABatch = 1000, kParamsABatch = 100, kTagsABatch = 100;
constexpr std::size_t kParamValue = 500, kTagValue = 5000, kKey = 250;
constexpr const char* kRunTag = "ganymede.run";

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Run {
  std::string id;  ///< the value of kRunTag
  std::string name;
  double seconds = 0;
  Pairs params, tags;
  std::vector<std::pair<std::string, double>> metrics;
};

std::string shown(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : value.dump();
}

/// The value at a JSON pointer; null if there is none.
const Json& at(const Json& of, const char* pointer) {
  static const Json kNull;
  const JsonPointer where(pointer);
  return of.contains(where) ? of.at(where) : kNull;
}

void add(Pairs& to, const std::string& key, const Json& value) {
  if (const std::string text = shown(value); !text.empty()) to.emplace_back(key, text);
}

/// The text as a key of MLflow, which may hold letters, digits, spaces and _ - . only here.
std::string key_of(const std::string& text) {
  std::string key = shortened(text, kKey);
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == ' ';
  };
  std::replace_if(
      key.begin(), key.end(), [&](char c) { return !allowed(c); }, '_');
  return key;
}

/// Adds a number, or an amount that is written as text, as a metric; an interval becomes two metrics, an object one for
/// each member. Values that are not finite or not known are left out.
void add_metrics(Run& run, const std::string& name, const Json& value) {
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) add_metrics(run, fmt::format("{}.{}", name, key), inner);
    return;
  }
  if (value.is_array() && value.size() == 2) {
    add_metrics(run, name + ".low", value[0]);
    add_metrics(run, name + ".high", value[1]);
    return;
  }
  double number = std::nan("");
  if (value.is_number()) number = value.get<double>();
  if (value.is_string() && name.find("usd") != std::string::npos)
    number = std::strtod(value.as_string().c_str(), nullptr);
  if (std::isfinite(number)) run.metrics.emplace_back(key_of(name), number);
}

double finite(const Json& value) {
  const double number = value.is_number() ? value.get<double>() : 0;
  return std::isfinite(number) && number > 0 ? number : 0;
}

/// The letters and digits of a text, so that it can stand in a query.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text)
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) out += c;
  return out.substr(0, 64);
}

std::string lines(const Json& list) {
  std::string out;
  if (list.is_array())
    for (const Json& entry : list) out += (out.empty() ? "" : "\n") + shown(entry);
  return out;
}

Run run_of_result(const Json& result) {
  Run run;
  run.id = fmt::format("{}-{}-{:016x}", plain(shown(at(result, "/provenance/scenario_hash"))),
                       plain(shown(at(result, "/provenance/seed"))), fnv1a(result.dump()));
  run.name = fmt::format("{}, {}, {}, {}, seed {}", shown(at(result, "/run/platform")),
                         shown(at(result, "/run/allocation")), shown(at(result, "/run/scheme")),
                         shown(at(result, "/run/policy")), shown(at(result, "/provenance/seed")));
  run.seconds = finite(at(result, "/time/total_s"));
  const Json& of = at(result, "/run");
  if (of.is_object())
    for (const auto& [key, value] : of.items()) add(run.params, key_of(key), value);
  for (const char* key : {"model", "precision", "dataset", "batch_per_gpu"})
    add(run.params, key, at(result, (std::string("/launch/") + key).c_str()));
  const Json& pools = at(result, "/launch/pools");
  for (std::size_t i = 0; pools.is_array() && i < pools.size(); ++i)
    if (pools[i].is_object())
      for (const auto& [key, value] : pools[i].items())
        add(run.params, fmt::format("pool{}.{}", i == 0 ? "" : std::to_string(i + 1), key_of(key)), value);
  add(run.params, "seed", at(result, "/provenance/seed"));
  add(run.params, "scenario_hash", at(result, "/provenance/scenario_hash"));
  add(run.params, "deadline_s", at(result, "/goals/deadline_s"));
  add(run.params, "budget_usd", at(result, "/goals/budget_usd"));
  for (const char* part : {"time", "utilization", "gpu_seconds", "gpu_hours", "energy", "life"})
    add_metrics(run, part, at(result, (std::string("/") + part).c_str()));
  add_metrics(run, "cost.total_usd", at(result, "/cost/total_usd"));
  add_metrics(run, "cost.interval_usd", at(result, "/cost/interval_usd"));
  add(run.tags, "ganymede.goals_met", at(result, "/goals/met"));
  const Json& provenance = at(result, "/provenance");
  if (provenance.is_object())
    for (const auto& [key, value] : provenance.items())
      add(run.tags, "ganymede." + key_of(key), value.is_array() ? Json(lines(value)) : value);
  return run;
}

Run run_of_candidate(const Json& plan, const Json& row) {
  Run run;
  const Json& request = at(plan, "/request");
  run.id = fmt::format("plan-{}-{:016x}", plain(shown(at(request, "/seed"))), fnv1a(request.dump() + row.dump()));
  run.name = fmt::format("{} {}, {} x {}, {}, {}, {}", shown(at(row, "/provider")), shown(at(row, "/region")),
                         shown(at(row, "/nodes")), shown(at(row, "/instance")), shown(at(row, "/market")),
                         shown(at(row, "/scheme")), shown(at(row, "/policy")));
  run.seconds = finite(at(row, "/time_s/median"));
  for (const char* key : {"provider", "region", "market", "instance", "nodes", "gpu", "gpus", "scheme", "policy",
                          "checkpoint", "prices_as_of"})
    add(run.params, key, at(row, (std::string("/") + key).c_str()));
  if (request.is_object())
    for (const auto& [key, value] : request.items())
      add(run.params, "request." + key_of(key), value.is_array() ? Json(lines(value)) : value);
  for (const char* part : {"time_s", "usd", "kg_co2e", "gpu_busy", "losses_mean", "met_share", "usd_per_hour"})
    add_metrics(run, part, at(row, (std::string("/") + part).c_str()));
  for (const char* key : {"verdict", "reason", "chosen", "inputs"})
    add(run.tags, std::string("ganymede.") + key, at(row, (std::string("/") + key).c_str()));
  add(run.tags, "ganymede.tool", at(plan, "/provenance/tool"));
  return run;
}

std::vector<Run> runs_of(const report::Document& document, const MlflowOptions& options) {
  const Json& json = document.json();
  std::vector<Run> runs;
  if (options.run && document.kind != report::DocumentKind::sweep)
    throw ConfigError(fmt::format("--run: {} is no sweep", document.node.file()));
  switch (document.kind) {
    case report::DocumentKind::result:
      return {run_of_result(json)};
    case report::DocumentKind::sweep: {
      const Json& all = json.at("runs");
      if (all.empty()) document.node.child("runs").fail("found no run to export");
      if (options.run && *options.run >= all.size())
        throw ConfigError(fmt::format("--run: found {}, expected 0 to {}: as in /runs of {}", *options.run,
                                      all.size() - 1, document.node.file()));
      if (options.run) return {run_of_result(all[*options.run])};
      for (const Json& run : all) runs.push_back(run_of_result(run));
      return runs;
    }
    case report::DocumentKind::plan:
    case report::DocumentKind::cluster:
    case report::DocumentKind::rehearsal:
    case report::DocumentKind::validation:  // load_document() returns neither of these here
    case report::DocumentKind::study:
      break;
  }
  std::vector<Json> rows;
  const auto add_rows = [&](const char* list) {
    if (json.contains(list))
      for (const Json& row : json.at(list))
        if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
  };
  // `chosen` is one of these rows, with more members.
  for (const char* list : {"best_of_each", "pareto"}) add_rows(list);
  if (options.all) {
    rows.clear();
    for (const Json& row : json.at("simulated")) rows.push_back(row);
  }
  if (rows.empty()) document.node.fail("has no candidate that meets its goals; --all exports those that do not, too");
  for (const Json& row : rows) runs.push_back(run_of_candidate(json, row));
  // A model belongs to the chosen candidate.
  if (options.model)
    std::erase_if(runs, [](const Run& run) {
      return std::find(run.tags.begin(), run.tags.end(),
                       std::pair<std::string, std::string>("ganymede.chosen", "true")) == run.tags.end();
    });
  return runs;
}

Request id_of(const std::string& name) { return {{"$id", name}}; }

Request key_values(const Pairs& pairs, std::size_t longest) {
  Request out = Request::array();
  for (const auto& [key, value] : pairs) out.push_back({{"key", key}, {"value", shortened(value, longest)}});
  return out;
}

Request create_experiment(const std::string& name) {
  Request request;
  request["find"] = {{"path", "experiments/get-by-name"},
                     {"query", {{"experiment_name", name}}},
                     {"gives", {{"experiment", "/experiment/experiment_id"}}}};
  request["path"] = "experiments/create";
  request["body"] = {{"name", name}};
  request["gives"] = {{"experiment", "/experiment_id"}};
  return request;
}

Request create_run(const Run& run, const std::string& name, std::int64_t start_ms) {
  const std::string uri = name + ".artifacts";
  Request request;
  request["find"] = {{"path", "runs/search"},
                     {"body",
                      {{"experiment_ids", Request::array({id_of("experiment")})},
                       {"filter", fmt::format("tags.`{}` = '{}'", kRunTag, run.id)},
                       {"max_results", 1}}},
                     {"list", "/runs"},
                     {"gives", {{name, "/info/run_id"}, {uri, "/info/artifact_uri"}}}};
  const std::string shown_name = shortened(run.name, kKey);
  Pairs tags = {{kRunTag, run.id}, {"mlflow.runName", shown_name}, {"mlflow.source.name", "ganymede export mlflow"}};
  tags.emplace_back("mlflow.note.content", "Simulated by ganymede, not measured.");
  request["path"] = "runs/create";
  request["body"] = {{"experiment_id", id_of("experiment")},
                     {"run_name", shown_name},
                     {"start_time", start_ms},
                     {"tags", key_values(tags, kTagValue)}};
  request["gives"] = {{name, "/run/info/run_id"}, {uri, "/run/info/artifact_uri"}};
  return request;
}

/// Adds the run's parameters, metrics and tags, in as many requests as their limits need. A request holds one kind
/// only, which keeps it below the limit of all kinds together.
void log_batches(std::vector<Request>& requests, const Run& run, const std::string& name, std::int64_t start_ms) {
  const auto split = [&](const char* kind, const Request& all, std::size_t most) {
    for (std::size_t first = 0; first < all.size(); first += most) {
      Request request;
      request["path"] = "runs/log-batch";
      request["body"] = {{"run_id", id_of(name)}};
      Request& part = request["body"][kind] = Request::array();
      for (std::size_t i = first; i < std::min(all.size(), first + most); ++i) part.push_back(all[i]);
      requests.push_back(std::move(request));
    }
  };
  Request metrics = Request::array();
  for (const auto& [key, value] : run.metrics)
    metrics.push_back({{"key", key}, {"value", value}, {"timestamp", start_ms}, {"step", 0}});
  split("params", key_values(run.params, kParamValue), kParamsABatch);
  split("metrics", metrics, kMetricsABatch);
  split("tags", key_values(run.tags, kTagValue), kTagsABatch);
}

void register_model(std::vector<Request>& requests, const MlflowModel& model, const std::string& run) {
  Request create;
  create["path"] = "registered-models/create";
  create["body"] = {{"name", model.name}};
  create["existing"] = "is well";
  requests.push_back(std::move(create));
  const std::string file = model.file.substr(model.file.rfind('/') + 1);
  Request source = model.uri;
  if (model.uri.empty()) {
    Request upload;
    upload["upload"] = model.file;
    upload["to"] = id_of(run + ".artifacts");
    upload["folder"] = "checkpoint";
    upload["gives"] = run + ".checkpoint";
    requests.push_back(std::move(upload));
    source = id_of(run + ".checkpoint");
  }
  Pairs tags = {{"ganymede.sha256", model.sha256}, {"ganymede.file", file}};
  tags.insert(tags.end(), model.tags.begin(), model.tags.end());
  Request version;
  version["find"] = {{"path", "model-versions/search"},
                     {"query", {{"filter", fmt::format("name='{}'", model.name)}, {"max_results", "1000"}}},
                     {"list", "/model_versions"},
                     {"tag", {{"key", "ganymede.sha256"}, {"value", model.sha256}}},
                     {"gives", {{"version", "/version"}}}};
  version["path"] = "model-versions/create";
  version["body"] = {{"name", model.name},
                     {"source", source},
                     {"run_id", id_of(run)},
                     {"tags", key_values(tags, kTagValue)},
                     {"description", "A checkpoint of ganymede train; ganymede generate draws from it."}};
  version["gives"] = {{"version", "/model_version/version"}};
  requests.push_back(std::move(version));
}

}  // namespace

std::string shortened(const std::string& text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  std::size_t end = bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

std::vector<Request> mlflow_requests(const report::Document& document, const MlflowOptions& options) {
  const std::vector<Run> runs = runs_of(document, options);
  if (options.model && runs.size() != 1)
    throw ConfigError(fmt::format("--checkpoint: found {} runs in {}, expected the one that it belongs to: --run",
                                  runs.size(), document.node.file()));
  std::vector<Request> requests = {create_experiment(options.experiment)};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string name = fmt::format("run-{}", i);
    requests.push_back(create_run(runs[i], name, options.start_ms));
    log_batches(requests, runs[i], name, options.start_ms);
    if (options.model) register_model(requests, *options.model, name);
    Request update;
    update["path"] = "runs/update";
    update["body"] = {{"run_id", id_of(name)},
                      {"status", "FINISHED"},
                      {"end_time", options.start_ms + std::llround(std::min(runs[i].seconds, 1e12) * 1000)}};
    requests.push_back(std::move(update));
  }
  return requests;
}

}  // namespace ganymede::exports
