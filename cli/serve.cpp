// ganymede serve: serves a page to browsers on this machine.

#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "cli/command.hpp"
#include "cli/shared_options.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "kernel/checkpoint.hpp"
#include "kernel/session/draw_images.hpp"
#include "serve/generator_server.hpp"
#include "serve/server.hpp"

namespace ganymede::cli {
namespace {

struct ServeOptions {
  int port = 8765;
  std::string data = "ganymede-serve";
  std::vector<std::string> checkpoints;
  int jobs = 1, queue = 8;
  std::string limit = "10min", short_run = "10s", disk = "10GiB";
  std::string generator, listen = "127.0.0.1:8080", window = "0s", timeout = "30s";
  int batch = 8, waiting = 200;
  kernel::TrainOptions device;  ///< of the generator
};

/// Blocks the signals that end a server. Called before any thread is made, so that only this thread receives them.
sigset_t blocked_ends() {
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGINT);
  ::sigaddset(&ends, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  return ends;
}

serve::Checkpoints named_checkpoints(const std::vector<std::string>& directories) {
  serve::Checkpoints named;
  for (const std::string& directory : directories) {
    if (!kernel::has_checkpoints(directory))
      throw ConfigError(fmt::format(
          "--checkpoint: {}: found no checkpoint, expected a directory that ganymede train --checkpoint wrote",
          directory));
    const auto path = std::filesystem::weakly_canonical(directory);
    if (!named.emplace(path.filename().string(), path).second)
      throw ConfigError(fmt::format("--checkpoint: two directories are called {}; the page could not tell them apart",
                                    path.filename().string()));
  }
  return named;
}

Seconds duration_of(const char* option, const std::string& text) {
  return quantity_of(option, text, Seconds{1}, Seconds{30 * 86400.0}, "a duration from 1s to 720h");
}

void run_serve(const ServeOptions& options, Shared& shared) {
  serve::JobOptions job_options;
  job_options.data = std::filesystem::absolute(options.data);
  job_options.checkpoints = named_checkpoints(options.checkpoints);
  job_options.at_once = options.jobs;
  job_options.queue = options.queue;
  job_options.limit = duration_of("--limit", options.limit);
  job_options.disk = quantity_of("--disk", options.disk, Bytes{1 << 20}, Bytes{1e300}, "a size of at least 1MiB");
  job_options.short_run = duration_of("--short", options.short_run);
  job_options.remark = [&shared](const std::string& text) { remark(shared, "ganymede: " + text); };
  const sigset_t ends = blocked_ends();
  ::umask(077);  // only this user may read what jobs write
  int signal = 0;
  {
    serve::Jobs jobs(job_options);
    serve::Server server(jobs, {.port = options.port});
    emit(shared, server.address() + "\n");
    remark(shared, fmt::format("jobs are kept in {}; Ctrl-C ends the server", options.data));
    bool served = true;
    std::thread listener([&] {
      served = server.run();
      if (!served) ::kill(::getpid(), SIGTERM);
    });
    ::sigwait(&ends, &signal);
    server.stop();
    listener.join();
    if (!served) throw Failure("the server cannot listen");
  }
  shared.exit_code = signal == SIGINT ? ExitCode::interrupted : ExitCode::done;
}

struct Generator {
  kernel::Checkpoint checkpoint;
  std::optional<std::int64_t> version;  ///< in a registry
};

/// The newest checkpoint of a directory, or the one of a model's version in MLflow's registry.
Generator named_generator(const std::string& name, Shared& shared) {
  if (serve::is_registered(name)) {
    const char* server = std::getenv("MLFLOW_TRACKING_URI");
    const serve::RegisteredModel model =
        serve::fetch_model(name, server == nullptr ? "" : server, serve::authorization_of_environment());
    return {kernel::read_checkpoint(fmt::format("{}: {}", name, model.file), model.bytes), model.version};
  }
  std::vector<std::string> damaged;
  auto checkpoint = kernel::last_checkpoint(name, damaged);
  for (const std::string& file : damaged) remark(shared, file + "; left aside");
  if (!checkpoint)
    throw ConfigError(fmt::format(
        "--generator: {}: found no checkpoint, expected a directory that ganymede train --checkpoint wrote, or "
        "models:/NAME/VERSION",
        name));
  return {std::move(*checkpoint), std::nullopt};
}

/// Answers requests for images until a signal comes.
void serve_generator(const ServeOptions& options, Shared& shared) {
  const auto time = [](const char* option, const std::string& text) {
    return JsonNode::wrap(Json(text), option, ".").as_quantity<Seconds>();
  };
  const Seconds window = time("--window", options.window), timeout = time("--timeout", options.timeout);
  const Generator generator = named_generator(options.generator, shared);
  const sigset_t ends = blocked_ends();
  kernel::ImageMaker maker(generator.checkpoint, options.device, options.batch);
  int signal = 0;
  {
    const serve::GeneratorServer server({.listen = options.listen,
                                         .model = maker.model(),
                                         .version = generator.version.value_or(maker.steps()),
                                         .largest_batch = options.batch,
                                         .window = window,
                                         .queue = options.waiting,
                                         .timeout = timeout},
                                        [&](std::span<const std::uint64_t> seeds) { return maker.draw(seeds); });
    emit(shared, server.address() + "\n");
    remark(shared, fmt::format("{}{} after {} steps, on {}; POST /generate, GET /health, GET /metrics; Ctrl-C ends it",
                               generator.version ? options.generator + ": " : "", maker.model(), maker.steps(),
                               maker.backend().device));
    ::sigwait(&ends, &signal);
  }
  shared.exit_code = signal == SIGINT ? ExitCode::interrupted : ExitCode::done;
}

void declare_serve(Parser command, Shared& shared) {
  auto options = std::make_shared<ServeOptions>();
  command.add_option("--port", options->port, "port of 127.0.0.1; 0: a free one", integer_between(0, 65535))
      .capture_default_str();
  command.add_option("--data", options->data, "where jobs are kept; DATA/checkpoints/* are offered too")
      .capture_default_str();
  command.add_option("--checkpoint", options->checkpoints, "directories of ganymede train --checkpoint").delimiter(',');
  command
      .add_option("--jobs", options->jobs, "short jobs at once, which share the cores, and as many long ones",
                  integer_between(1, 64))
      .capture_default_str();
  command.add_option("--queue", options->queue, "jobs that may wait", integer_between(0, 1000)).capture_default_str();
  command.add_option("--limit", options->limit, "time after which a job is ended").capture_default_str();
  command.add_option("--disk", options->disk, "size of DATA beyond which no job begins and running ones are ended")
      .capture_default_str();
  command.add_option("--short", options->short_run, "time after which a job goes on in the background, behind others")
      .capture_default_str();
  command.add_option("--generator", options->generator,
                     "in place of the page: answer requests for images with the generator of this checkpoint's "
                     "directory, or of models:/NAME/VERSION in MLflow's registry");
  command.add_option("--listen", options->listen, "with --generator: where").capture_default_str();
  command.add_option("--batch", options->batch, "with --generator: images drawn at once, at most")
      .check(integer_between(1, kernel::kMostDrawnAtOnce))
      .capture_default_str();
  command.add_option("--window", options->window, "with --generator: how long the first of a batch waits for others")
      .capture_default_str();
  command.add_option("--waiting", options->waiting, "with --generator: requests that may wait")
      .check(integer_between(1, kernel::kMostWaiting))
      .capture_default_str();
  command.add_option("--timeout", options->timeout, "with --generator: a request that waits longer is given up")
      .capture_default_str();
  add_device_options(command, options->device);
  command.callback([options, &shared] {
    const ServeOptions unset;
    const auto refuse = [](bool given, const char* option, const char* why) {
      if (given) throw ConfigError(fmt::format("{}: says nothing {} --generator", option, why));
    };
    if (options->generator.empty()) {
      refuse(options->listen != unset.listen, "--listen", "without");
      refuse(options->window != unset.window, "--window", "without");
      refuse(options->timeout != unset.timeout, "--timeout", "without");
      refuse(options->batch != unset.batch, "--batch", "without");
      refuse(options->waiting != unset.waiting, "--waiting", "without");
    } else {
      refuse(options->port != unset.port, "--port", "with");
      refuse(options->jobs != unset.jobs, "--jobs", "with");
      refuse(options->data != unset.data, "--data", "with");
      refuse(!options->checkpoints.empty(), "--checkpoint", "with");
    }
    options->generator.empty() ? run_serve(*options, shared) : serve_generator(*options, shared);
  });
}

}  // namespace

Command serve_command() {
  return {.name = "serve",
          .summary = "serve a page for the browser, on which to compare, plan, train and generate",
          .examples =
              "  ganymede serve                                     then open the address that it prints\n"
              "  ganymede serve --port 0 --data runs                a free port; jobs are kept in runs/\n"
              "  ganymede serve --checkpoint run,other/run2         generate images from these\n"
              "  ganymede serve --jobs 2 --limit 2h\n"
              "  ganymede serve --generator run --listen 127.0.0.1:8080\n"
              "  MLFLOW_TRACKING_URI=http://localhost:5000 ganymede serve --generator models:/digits/3\n"
              "  curl -X POST http://127.0.0.1:8080/generate -d '{\"seed\": 7}' -o image.png\n",
          .about =
              "Serves a page on this machine, for this machine alone: choose a model, platforms, schemes and\n"
              "policies, compare them or ask what to rent, train a small model here and see beside it what that\n"
              "takes on each cloud, and generate images from checkpoints. The address that it prints holds a token,\n"
              "which every request needs. Each job is this program, run in a folder of its own. docs/serve.md says\n"
              "what a request cannot do.\n"
              "With --generator it answers whoever can reach the address: docs/serving.md.",
          .trains = true,
          .declare = declare_serve};
}

}  // namespace ganymede::cli
