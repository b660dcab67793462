// Simulated runs, and a checkpoint, in an MLflow server. Requests that the server does not accept are kept in a file,
// from which a later export sends them.

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "exports/exporter.hpp"
#include "exports/mlflow_checkpoint.hpp"
#include "exports/mlflow_client.hpp"
#include "exports/mlflow_requests.hpp"
#include "exports/mlflow_runs.hpp"
#include "exports/shell.hpp"

namespace ganymede::exports {
namespace {

namespace fs = std::filesystem;

struct MlflowSettings {
  MlflowSettings(std::string file, const ExportValues& values)
      : document(std::move(file)),
        uri(values.text("tracking-uri")),
        experiment(values.text("experiment")),
        start(values.text("start")),
        checkpoint(values.text("checkpoint")),
        checkpoint_uri(values.text("checkpoint-uri")),
        model_name(values.text("model-name")),
        requests(values.text("requests")),
        replay(values.text("replay")),
        run(values.index("run")),
        all(values.flag("all")),
        timeout_s(values.integer("timeout")) {}

  std::string document, uri, experiment, start, checkpoint, checkpoint_uri, model_name, requests, replay;
  std::optional<std::size_t> run;
  bool all;
  int timeout_s;
};

/// When the document was written, in seconds since 1970. It is the same in every export of the document, so that a
/// repeated export makes the same requests.
std::int64_t written_at(const std::string& file) {
  struct stat about {};
  return ::stat(file.c_str(), &about) == 0 ? about.st_mtime : 0;
}

std::int64_t start_of(const MlflowSettings& options) {
  if (options.start.empty()) return written_at(options.document);
  const auto start = parse_time(options.start);
  if (!start || *start < 0)
    throw ConfigError(
        fmt::format("--start {}: expected a time with its zone, such as 2026-12-01T09:00:00Z", options.start));
  return *start;
}

void check_settings(const MlflowSettings& options) {
  const auto refuse = [](const char* why) { throw ConfigError(why); };
  if (options.document.empty() == options.replay.empty())
    refuse("expected either a document to export or --replay with a file of requests");
  if (!options.replay.empty() && !options.requests.empty())
    refuse("--requests: --replay keeps what is left in its own file; expected one of the two");
  if (options.checkpoint.empty() && !(options.checkpoint_uri.empty() && options.model_name.empty()))
    refuse("--checkpoint-uri, --model-name: expected --checkpoint with the directory too");
  if (options.experiment.empty() || options.experiment.size() > 500)
    refuse("--experiment: expected a name of 1 to 500 bytes");
  // MLflow refuses '/' and ':'; a quote would end the text in a query.
  if (options.model_name.find_first_of("/:'") != std::string::npos)
    refuse("--model-name: found a '/', ':' or quote, expected a name without");
}

MlflowRequests make_requests(const MlflowSettings& options) {
  MlflowOptions out;
  out.experiment = options.experiment;
  out.start_ms = 1000 * start_of(options);
  out.run = options.run;
  out.all = options.all;
  const report::Document document = report::load_document(options.document);
  if (!options.checkpoint.empty())
    out.model = mlflow_model(options.checkpoint, options.model_name, options.checkpoint_uri);
  try {
    return MlflowRequests::made_of(mlflow_requests(document, out));
  } catch (const JsonError&) {
    throw ConfigError(
        fmt::format("{}: is no whole result of this version, or a name is not UTF-8; simulate again with "
                    "--format json",
                    options.document));
  }
}

/// Returns the requests that an earlier try of the same export left in the file, or else `requests`. Throws ConfigError
/// if the file holds open requests of another export, which would be lost.
MlflowRequests continued(MlflowRequests requests, const std::string& file) {
  if (!fs::exists(file)) return requests;
  MlflowRequests left = MlflowRequests::read(file);
  if (left.open.empty()) return requests;
  if (left.fingerprint == requests.fingerprint) return left;
  throw ConfigError(
      fmt::format("{}: holds requests of another export that are not sent yet: `ganymede export mlflow "
                  "--replay {}` sends them, --requests names another file",
                  file, shell_word(file)));
}

void send_all(MlflowRequests requests, const std::string& file, bool replay, const MlflowSettings& options,
              const ExportConsole& console) {
  MlflowClient client(options.uri, options.timeout_s);
  check_writable(file);
  const std::size_t count = requests.open.size();
  // The file is written before the first request is sent: if the program is ended, a later export finds what is done.
  requests.write(file);
  const auto troubles = send(requests, client, console.progress(std::max<std::size_t>(1, count), "requests"));
  const std::string done =
      fmt::format("{} of {} requests accepted by {}", count - requests.open.size(), count, client.uri());
  if (requests.open.empty()) {
    // A file that the user named with --replay stays, without requests.
    if (replay)
      requests.write(file);
    else
      fs::remove(file);
    return console.remark(done);
  }
  requests.write(file);
  constexpr std::size_t kShown = 5;
  std::string message = done + "\n";
  for (std::size_t i = 0; i < std::min(kShown, troubles.size()); ++i)
    message += "  " + printable_line(troubles[i]) + "\n";
  if (troubles.size() > kShown) message += fmt::format("  and {} more\n", troubles.size() - kShown);
  throw Failure(
      fmt::format("{}nothing is lost: {} holds the others. To send them:\n  ganymede export mlflow --replay {} "
                  "--tracking-uri {}",
                  message, file, shell_word(file), shell_word(client.uri())));
}

void send_mlflow(MlflowSettings options, const ExportConsole& console) {
  check_settings(options);
  const char* server = std::getenv("MLFLOW_TRACKING_URI");
  const bool offline = options.uri.empty() && !options.requests.empty();
  if (options.uri.empty() && server != nullptr) options.uri = server;
  if (!offline && options.uri.empty())
    throw ConfigError(
        "expected --tracking-uri or MLFLOW_TRACKING_URI with the server, or --requests with a file to "
        "write");
  if (!options.replay.empty())
    return send_all(MlflowRequests::read(options.replay), options.replay, true, options, console);
  const std::string file = options.requests.empty() ? options.document + ".mlflow.jsonl" : options.requests;
  std::error_code ignored;
  if (fs::equivalent(file, options.document, ignored))
    throw ConfigError(fmt::format("--requests: {} is the input too; write to another file", file));
  MlflowRequests requests = continued(make_requests(options), file);
  if (offline) {
    requests.write(file);
    return console.remark(
        fmt::format("{} requests written; `ganymede export mlflow --replay {} --tracking-uri URI` "
                    "sends them",
                    requests.open.size(), shell_word(file)));
  }
  send_all(std::move(requests), file, false, options, console);
}

}  // namespace

Exporter mlflow_exporter() {
  using Kind = ExportOption::Kind;
  return {
      .name = "mlflow",
      .summary = "runs in an MLflow server, and a checkpoint in its registry",
      .examples =
          "  ganymede export mlflow result.json --tracking-uri http://localhost:5000\n"
          "  ganymede export mlflow sweep.json --tracking-uri https://mlflow.example --experiment clouds\n"
          "  ganymede export mlflow result.json --tracking-uri http://localhost:5000 --checkpoint run\n"
          "  ganymede export mlflow result.json --requests later.jsonl                  no server needed\n"
          "  ganymede export mlflow --replay later.jsonl --tracking-uri http://localhost:5000\n",
      .about =
          "Each simulated run becomes a run of MLflow; what is there already is not made twice. Requests that the\n"
          "server does not accept are kept in a file (exit code 1) with the command that sends them. Credentials come\n"
          "from MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN.",
      .reads = {report::DocumentKind::result, report::DocumentKind::sweep, report::DocumentKind::plan},
      .options =
          {{.name = "tracking-uri", .summary = "the server; default: MLFLOW_TRACKING_URI"},
           {.name = "experiment", .summary = "created if it is not there", .default_value = "ganymede"},
           {.name = "run", .summary = "only this run of a sweep, as in its /runs, from 0", .kind = Kind::index},
           {.name = "all",
            .summary = "every simulated candidate of a plan, not only the best of each provider and the Pareto set",
            .kind = Kind::flag},
           {.name = "start", .summary = "when the runs start; default: when the document was written"},
           {.name = "checkpoint",
            .summary = "register the newest checkpoint of this directory of ganymede train as a version of a model"},
           {.name = "checkpoint-uri", .summary = "where that checkpoint can be fetched, instead of uploading it"},
           {.name = "model-name", .summary = "its name in the registry; default: ganymede- and the model"},
           {.name = "requests",
            .summary = "keep what is not accepted in this file; without --tracking-uri: only write all of it there"},
           {.name = "replay", .summary = "send what such a file holds"},
           {.name = "timeout",
            .summary = "seconds for a connection, and for an answer",
            .kind = Kind::integer,
            .default_value = "10",
            .min = 1,
            .max = 3600}},
      .send = [](const std::string& file, const ExportValues& values, const ExportConsole& console) {
        send_mlflow(MlflowSettings(file, values), console);
      }};
}

}  // namespace ganymede::exports
