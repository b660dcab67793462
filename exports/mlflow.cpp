// Simulated runs, and a checkpoint, as MLflow keeps them: what the Python package sends to a server (ganymede.mlflow).

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "common/errors.hpp"
#include "common/host_inventory.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "exports/exporter.hpp"
#include "kernel/checkpoint.hpp"

namespace ganymede::exports {
namespace {

constexpr std::size_t kKey = 250;

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Run {
  std::string id;  ///< by which a run is found again: scenario hash, seed and a checksum of the content
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
const Json& at(const Json& document, const char* pointer) {
  static const Json kNull;
  const JsonPointer where(pointer);
  return document.contains(where) ? document.at(where) : kNull;
}

void add(Pairs& to, const std::string& key, const Json& value) {
  if (const std::string text = shown(value); !text.empty()) to.emplace_back(key, text);
}

/// The text as a key of MLflow (mlflow/utils/validation.py): at most 250 letters, digits, spaces and _ - . here.
std::string key_of(const std::string& text) {
  std::string key = text.substr(0, kKey);
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
  const Json& facts = at(result, "/run");
  if (facts.is_object())
    for (const auto& [key, value] : facts.items()) add(run.params, key_of(key), value);
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

std::vector<Run> runs_of(const report::Document& document, const ExportValues& values) {
  const Json& json = document.json();
  std::vector<Run> runs;
  const std::optional<std::size_t> only = values.index("run");
  if (only && document.kind != report::DocumentKind::sweep)
    throw ConfigError(fmt::format("--run: {} is no sweep", document.node.file()));
  switch (document.kind) {
    case report::DocumentKind::result:
      return {run_of_result(json)};
    case report::DocumentKind::sweep: {
      const Json& all = json.at("runs");
      if (all.empty()) document.node.child("runs").fail("found no run to export");
      if (only && *only >= all.size())
        throw ConfigError(fmt::format("--run: found {}, expected 0 to {}: as in /runs of {}", *only, all.size() - 1,
                                      document.node.file()));
      if (only) return {run_of_result(all[*only])};
      for (const Json& run : all) runs.push_back(run_of_result(run));
      return runs;
    }
    case report::DocumentKind::plan:
    case report::DocumentKind::cluster:
    case report::DocumentKind::rehearsal:
    case report::DocumentKind::service:
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
  if (values.flag("all")) {
    rows.clear();
    for (const Json& row : json.at("simulated")) rows.push_back(row);
  }
  if (rows.empty()) document.node.fail("has no candidate that meets its goals; --all exports those that do not, too");
  for (const Json& row : rows) runs.push_back(run_of_candidate(json, row));
  // A checkpoint belongs to the chosen candidate.
  if (!values.text("checkpoint").empty())
    std::erase_if(runs, [](const Run& run) {
      return std::find(run.tags.begin(), run.tags.end(),
                       std::pair<std::string, std::string>("ganymede.chosen", "true")) == run.tags.end();
    });
  return runs;
}

OrderedJson members(const auto& pairs) {
  OrderedJson out = OrderedJson::object();
  for (const auto& [key, value] : pairs) out[key] = value;
  return out;
}

std::string system_name() {
  utsname name{};
  return ::uname(&name) == 0 ? fmt::format("{} {} {}", name.sysname, name.release, name.machine) : "unknown";
}

/// The newest whole checkpoint of a directory. Its tags hold what it says of its training, and this machine's system,
/// compiler and libraries.
OrderedJson checkpoint_in(const std::string& directory) {
  std::vector<std::string> damaged;
  const auto found = kernel::last_checkpoint(directory, damaged);
  if (!found)
    throw ConfigError(fmt::format(
        "--checkpoint: {}: found no checkpoint, expected a directory that ganymede train --checkpoint wrote",
        directory));
  Pairs tags;
  const auto tag = [&](const std::string& key, const std::string& value) {
    if (!value.empty()) tags.emplace_back("ganymede." + key, value);
  };
  for (const auto& [key, value] : found->content.metadata)
    for (const char* kept : {"model", "image", "batch", "seed", "ema", "loss", "d-steps", "data", "steps", "epoch"})
      if (key == kept) tag("train." + key, value);
  tag("version", GANYMEDE_VERSION);
  tag("system", system_name());
  tag("compiler", __VERSION__);
  const HostInventory host = take_host_inventory();
  tag("processor", host.processor.model);
  for (const std::string& gpu : host.graphics.devices) tag("gpu", gpu);
  tag("gpu_driver", host.graphics.driver.value_or(""));
  for (const HostDependency& library : host.dependencies)
    if (library.found) tag("library." + library.name, library.detail);
  return {{"file", std::filesystem::absolute(found->file).lexically_normal().string()},
          {"model", found->metadata().text("model")},
          {"tags", members(tags)}};
}

std::string write_mlflow(const report::Document& document, const ExportValues& values, const ExportConsole&) {
  const std::vector<Run> runs = runs_of(document, values);
  OrderedJson out = {{"schema", "ganymede.mlflow-runs/1"}, {"runs", OrderedJson::array()}};
  for (const Run& run : runs)
    out["runs"].push_back({{"id", run.id},
                           {"name", run.name},
                           {"seconds", run.seconds},
                           {"params", members(run.params)},
                           {"metrics", members(run.metrics)},
                           {"tags", members(run.tags)}});
  if (const std::string& directory = values.text("checkpoint"); !directory.empty()) {
    if (runs.size() != 1)
      throw ConfigError(fmt::format("--checkpoint: found {} runs in {}, expected the one that it belongs to: --run",
                                    runs.size(), document.node.file()));
    out["checkpoint"] = checkpoint_in(directory);
  }
  try {
    return out.dump(1) + "\n";
  } catch (const JsonError&) {
    throw ConfigError(fmt::format("{}: has a name that is not UTF-8", document.node.file()));
  }
}

}  // namespace

Exporter mlflow_exporter() {
  using Kind = ExportOption::Kind;
  return {
      .name = "mlflow",
      .summary = "runs, and a checkpoint, as the Python package sends them to an MLflow server",
      .examples =
          "  ganymede export mlflow result.json -o runs.json\n"
          "  ganymede export mlflow sweep.json --run 3 --checkpoint run -o runs.json\n"
          "  pip install 'ganymede[mlflow]'\n"
          "  python -m ganymede mlflow runs.json --tracking-uri http://localhost:5000\n",
      .about =
          "Each simulated run becomes a run of MLflow. `python -m ganymede mlflow` sends it by MLflow's own client, "
          "or\n"
          "result.json itself; what is there already is not made twice.",
      .reads = {report::DocumentKind::result, report::DocumentKind::sweep, report::DocumentKind::plan},
      .options = {{.name = "run", .summary = "only this run of a sweep, as in its /runs, from 0", .kind = Kind::index},
                  {.name = "all",
                   .summary =
                       "every simulated candidate of a plan, not only the best of each provider and the Pareto set",
                   .kind = Kind::flag},
                  {.name = "checkpoint",
                   .summary = "the newest checkpoint of this directory of ganymede train too, for a model's version"},
                  {.name = "tracking-uri", .summary = "refused: `python -m ganymede mlflow` sends"}},
      .check =
          [](const ExportValues& values) {
            if (!values.text("tracking-uri").empty())
              throw ConfigError(
                  "--tracking-uri: the Python package sends to a server: pip install 'ganymede[mlflow]', then `python "
                  "-m "
                  "ganymede mlflow FILE --tracking-uri URI`");
          },
      .write = write_mlflow};
}

}  // namespace ganymede::exports
