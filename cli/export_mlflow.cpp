// ganymede export mlflow: simulated runs, and a checkpoint, in an MLflow server. Nothing is lost when it does not
// answer.

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cli/command.hpp"
#include "cli/mlflow_checkpoint.hpp"
#include "cli/mlflow_client.hpp"
#include "cli/mlflow_requests.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "report/mlflow.hpp"

namespace ganymede::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string document, uri, experiment = "ganymede", start, checkpoint, checkpoint_uri, model_name, requests, replay;
  std::optional<std::size_t> run;
  bool all = false;
  int timeout_s = 10;
};

/// As a word of a POSIX shell.
std::string shell_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

/// When the document was written: the same in every export of it, so that a repeated one says the same.
std::int64_t written_at(const std::string& file) {
  struct stat about {};
  return ::stat(file.c_str(), &about) == 0 ? about.st_mtime : 0;
}

std::int64_t start_of(const Options& options) {
  if (options.start.empty()) return written_at(options.document);
  const auto start = parse_time(options.start);
  if (!start || *start < 0)
    throw ConfigError(
        fmt::format("--start {}: expected a time with its zone, such as 2026-12-01T09:00:00Z", options.start));
  return *start;
}

void check(const Options& options) {
  const auto refuse = [](const char* why) { throw ConfigError(why); };
  if (options.document.empty() == options.replay.empty())
    refuse("expected either a document to export or --replay with a file of requests");
  if (!options.replay.empty() && !options.requests.empty())
    refuse("--requests: --replay keeps what is left in its own file; expected one of the two");
  if (options.checkpoint.empty() && !(options.checkpoint_uri.empty() && options.model_name.empty()))
    refuse("--checkpoint-uri, --model-name: expected --checkpoint with the directory too");
  if (options.experiment.empty() || options.experiment.size() > 500)
    refuse("--experiment: expected a name of 1 to 500 bytes");
  // MLflow refuses the first two; the third would end a text in a query.
  if (options.model_name.find_first_of("/:'") != std::string::npos)
    refuse("--model-name: found a '/', ':' or quote, expected a name without");
}

MlflowRequests make_requests(const Options& options) {
  MlflowOptions out;
  out.experiment = options.experiment;
  out.start_ms = 1000 * start_of(options);
  out.run = options.run;
  out.all = options.all;
  const Document document = load_document(options.document);
  if (!options.checkpoint.empty())
    out.model = mlflow_model(options.checkpoint, options.model_name, options.checkpoint_uri);
  try {
    return MlflowRequests::made_of(mlflow_requests(document, out));
  } catch (const nlohmann::json::exception&) {
    throw ConfigError(
        fmt::format("{}: is no whole result of this version, or a name is not UTF-8; simulate again with "
                    "--format json",
                    options.document));
  }
}

/// Requests of this very export that an earlier try left are gone on with; those of another are not overwritten.
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

void send_all(MlflowRequests requests, const std::string& file, bool replay, const Options& options, Shared& shared) {
  MlflowClient client(options.uri, options.timeout_s);
  check_writable(file);
  const std::size_t count = requests.open.size();
  // Before the first is sent: whatever ends this program, what is there already is found again.
  requests.write(file);
  const auto troubles = send(requests, client, progress_bar(shared, std::max<std::size_t>(1, count), "requests"));
  const std::string done =
      fmt::format("{} of {} requests accepted by {}", count - requests.open.size(), count, client.uri());
  if (requests.open.empty()) {
    // A file of the user's own stays, without requests.
    if (replay)
      requests.write(file);
    else
      fs::remove(file);
    return remark(shared, done);
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

void export_mlflow(Options& options, Shared& shared) {
  check(options);
  const char* server = std::getenv("MLFLOW_TRACKING_URI");
  const bool offline = options.uri.empty() && !options.requests.empty();
  if (options.uri.empty() && server != nullptr) options.uri = server;
  if (!offline && options.uri.empty())
    throw ConfigError(
        "expected --tracking-uri or MLFLOW_TRACKING_URI with the server, or --requests with a file to "
        "write");
  if (!options.replay.empty())
    return send_all(MlflowRequests::read(options.replay), options.replay, true, options, shared);
  const std::string file = options.requests.empty() ? options.document + ".mlflow.jsonl" : options.requests;
  std::error_code ignored;
  if (fs::equivalent(file, options.document, ignored))
    throw ConfigError(fmt::format("--requests: {} is the input too; write to another file", file));
  MlflowRequests requests = continued(make_requests(options), file);
  if (offline) {
    requests.write(file);
    return remark(shared, fmt::format("{} requests written; `ganymede export mlflow --replay {} --tracking-uri URI` "
                                      "sends them",
                                      requests.open.size(), shell_word(file)));
  }
  send_all(std::move(requests), file, false, options, shared);
}

}  // namespace

void add_export_mlflow(CLI::App& exports, Shared& shared) {
  auto options = std::make_shared<Options>();
  auto* command = exports.add_subcommand(
      "mlflow",
      "runs in an MLflow server, and a checkpoint in its registry\n"
      "Examples:\n"
      "  ganymede export mlflow result.json --tracking-uri http://localhost:5000\n"
      "  ganymede export mlflow sweep.json --tracking-uri https://mlflow.example --experiment clouds\n"
      "  ganymede export mlflow result.json --tracking-uri http://localhost:5000 --checkpoint run\n"
      "  ganymede export mlflow result.json --requests later.jsonl                  no server needed\n"
      "  ganymede export mlflow --replay later.jsonl --tracking-uri http://localhost:5000\n"
      "\n"
      "Each simulated run becomes a run of MLflow; what is there already is not made twice. Requests that the server\n"
      "does not take are kept in a file (exit code 1) with the command that sends them. Credentials come from\n"
      "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN.");
  command->add_option("document", options->document, "what simulate, sweep or plan wrote with --format json");
  command->add_option("--tracking-uri", options->uri, "the server; default: MLFLOW_TRACKING_URI");
  command->add_option("--experiment", options->experiment, "made if it is not there")->capture_default_str();
  command->add_option("--run", options->run, "of a sweep only this run, as in its /runs, from 0")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--all", options->all,
                    "of a plan every simulated candidate, not only the best of each provider and the Pareto set");
  command->add_option("--start", options->start, "when the runs start; default: when the document was written");
  command->add_option("--checkpoint", options->checkpoint,
                      "register the newest checkpoint of this directory of ganymede train as a version of a model");
  command->add_option("--checkpoint-uri", options->checkpoint_uri,
                      "where that checkpoint can be fetched, instead of uploading it");
  command->add_option("--model-name", options->model_name, "in the registry; default: ganymede- and the model");
  command->add_option("--requests", options->requests,
                      "keep what is not accepted in this file; without --tracking-uri: only write all of it there");
  command->add_option("--replay", options->replay, "send what such a file holds");
  command->add_option("--timeout", options->timeout_s, "seconds for a connection, and for an answer")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  command->callback([options, &shared] { export_mlflow(*options, shared); });
}

}  // namespace ganymede::cli
