#include "serve/job_commands.hpp"

#include <algorithm>

#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "platforms/catalog.hpp"
#include "platforms/providers.hpp"
#include "sim/scenario/scenario.hpp"

namespace ganymede::serve {
namespace {

constexpr std::int64_t kTracedSteps = 12;  ///< of which the first one is left out as warm-up
constexpr std::int64_t kPictures = 10;     ///< written during a training, and as many checkpoints
constexpr const char* kTrace = "step-trace.json";

JobCommand images_command(const std::string& input, const Checkpoints& checkpoints) {
  JsonObject in(JsonNode::parse(input, kInputFile));
  const Generation wanted = read_generation(in, checkpoints);
  in.finish();
  return {.arguments = {"generate", "--checkpoint",
                        std::filesystem::absolute(checkpoints.at(wanted.checkpoint)).string(), "--count",
                        std::to_string(wanted.count), "--seed", std::to_string(wanted.seed), "--format", "json", "-o",
                        "images.png"}};
}

/// Rented clouds by name, with commas between them.
std::string rented_catalogs() {
  std::string all;
  for (const std::string& name : platforms::provider_names())
    if (!platforms::provider_of(name).owned) all += (all.empty() ? "" : ",") + name;
  return all;
}

/// A few steps are recorded and carried to the clouds before the training begins, so that the prediction stands beside
/// it while it runs.
std::vector<JobCommand> training_commands(const std::string& input, int cores) {
  JsonObject in(JsonNode::parse(input, kInputFile));
  const Training wanted = read_training(in);
  in.finish();
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  const std::vector<std::string> same = {
      "train", "--model", wanted.model, "--batch", number(wanted.batch), "--seed", std::to_string(wanted.seed)};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = same;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::string every = number(std::max<std::int64_t>(1, wanted.steps / kPictures));
  return {{.arguments = with({"--steps", number(kTracedSteps), "--trace", kTrace}),
           .log = "trace-log.txt",
           .without = "prediction"},
          {.arguments = {"plan",
                         "--trace",
                         kTrace,
                         "--batch",
                         number(wanted.batch),
                         "--images",
                         number(wanted.images),
                         "--catalog",
                         rented_catalogs(),
                         "--max-gpus",
                         number(wanted.max_gpus),
                         "--policy",
                         "fixed",
                         "--seeds",
                         "1",
                         "--jobs",
                         std::to_string(cores),
                         "--format",
                         "json",
                         "-o",
                         kPrediction},
           .log = "prediction-log.txt",
           .without = "prediction"},
          {.arguments = with({"--steps", number(wanted.steps), "--checkpoint", kTrainedCheckpoint, "--checkpoint-every",
                              every, "--resume", "--samples", "samples.png", "--samples-every", every, "--format",
                              "json", "-o", "result.json"}),
           .progress = true}};
}

}  // namespace

std::vector<JobCommand> commands_of(JobKind kind, const std::string& input, const Checkpoints& checkpoints, int cores) {
  if (kind == JobKind::train) return training_commands(input, cores);
  if (kind == JobKind::generate) return {images_command(input, checkpoints)};
  return {{.arguments = {kind == JobKind::plan ? "plan" : "sweep", kInputFile, "--format", "json", "-o", "result.json",
                         "--jobs", std::to_string(cores)},
           .progress = true}};
}

std::string clouds_json(const std::filesystem::path& folder) {
  const auto plan = Json::parse(read_file(folder / kPrediction));
  const traces::StepTrace trace = traces::load_step_trace(folder / kTrace);
  OrderedJson rows = OrderedJson::array();
  for (const Json& best : plan.at("best_of_each")) {
    OrderedJson row;
    for (const char* key : {"provider", "region", "market", "instance", "nodes", "gpu", "gpus", "usd_per_hour",
                            "prices_as_of", "time_s", "usd", "risk"})
      row[key] = best.at(key);
    const platforms::Platform& platform = platforms::catalog(best.at("provider").get<std::string>());
    row["gpu_memory_bytes"] = platform.gpu_of(platform.instance(best.at("instance").get<std::string>())).memory.si;
    rows.push_back(std::move(row));
  }
  return OrderedJson{{"images", plan.at("request").at("images")},
                     {"memory_bytes", sim::gpu_memory(trace.batches.back()).si},
                     {"clouds", std::move(rows)}}
             .dump(1) +
         "\n";
}

}  // namespace ganymede::serve
