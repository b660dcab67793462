#include "serve/job_answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "platforms/catalog.hpp"
#include "platforms/providers.hpp"
#include "report/differences.hpp"
#include "report/documents.hpp"
#include "report/forecasts.hpp"
#include "report/numbers.hpp"
#include "report/runs.hpp"
#include "report/table.hpp"
#include "serve/job_store.hpp"
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

namespace {

/// Bytes of a result that is compared, at most: a parsed result takes many times its size in memory.
constexpr std::uintmax_t kMaxComparedBytes = 32 << 20;

/// Time and cost of the runs of a sweep that differ only in their seed.
struct Measured {
  std::vector<double> seconds, usd;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::map<std::string, Measured> measured_runs(const Json& sweep) {
  std::map<std::string, Measured> all;
  for (const documents::Result& run : report::runs_of(sweep)) {
    Measured& measured =
        all[fmt::format("{} {}, {}, {}, {}", run.platform, run.market, run.allocation, run.scheme, run.policy)];
    measured.seconds.push_back(run.total.si);
    measured.usd.push_back(usd_of(run.usd));
  }
  return all;
}

std::string change(double before, double after) {
  return before > 0 ? fmt::format("{:+.1f} %", 100 * (after / before - 1)) : "";
}

std::string sweep_differences(const Json& before, const Json& after) {
  const auto old = measured_runs(before), now = measured_runs(after);
  report::Table table({"configuration", ">time", ">then", ">change", ">USD", ">then", ">change"});
  std::string only;
  for (const auto& [name, was] : old) {
    const auto found = now.find(name);
    if (found == now.end()) {
      only += fmt::format("only in the first: {}\n", name);
      continue;
    }
    const Measured& is = found->second;
    const bool priced = !was.usd.empty() && !is.usd.empty();
    table.add({name, report::clock(median(was.seconds)), report::clock(median(is.seconds)),
               change(median(was.seconds), median(is.seconds)), priced ? report::usd(median(was.usd)) : "",
               priced ? report::usd(median(is.usd)) : "", priced ? change(median(was.usd), median(is.usd)) : ""});
  }
  for (const auto& [name, is] : now)
    if (!old.contains(name)) only += fmt::format("only in the second: {}\n", name);
  return table.text(report::kAnyWidth) + (only.empty() ? "" : "\n" + only) + "\nMedians over the seeds.\n";
}

}  // namespace

std::string differences_of_results(const std::filesystem::path& before, const std::filesystem::path& after) {
  for (const auto& file : {before, after}) {
    std::error_code ignored;
    if (std::filesystem::file_size(file, ignored) > kMaxComparedBytes)
      throw ConfigError("a result is too large to compare here; `ganymede diff` compares plans of any size");
  }
  const auto kinds = {report::DocumentKind::sweep, report::DocumentKind::plan};
  const report::Document first = report::load_document(before, kinds), second = report::load_document(after, kinds);
  if (first.kind == report::DocumentKind::sweep && second.kind == report::DocumentKind::sweep)
    return sweep_differences(first.json(), second.json());
  return report::differences_text(report::differences_of(first, second, {}));
}

std::string job_metrics(const OrderedJson& jobs) {
  report::Gauges gauges("ganymede_serve_");
  gauges.begin("jobs", "Jobs by state, of the newest 200.");
  std::map<std::string, int> counts;
  for (const auto& job : jobs) ++counts[job.at("state").get<std::string>()];
  for (const std::string& state : state_names()) gauges.sample({{"state", state}}, counts[state]);

  const auto of_running = [&](const char* name, const char* help, auto&& value) {
    gauges.begin(name, help);
    for (const auto& job : jobs) {
      if (job.at("state") != to_string(JobState::running)) continue;
      report::Gauges::Labels labels{{"job", std::to_string(job.at("id").get<int>())},
                                    {"kind", job.at("kind").get<std::string>()},
                                    {"name", job.at("name").get<std::string>()}};
      if (job.contains("progress")) labels.emplace_back("unit", job.at("progress").at("what").get<std::string>());
      if (const OrderedJson found = value(job); found.is_number()) gauges.sample(labels, found.get<double>());
    }
  };
  const auto progress = [](const char* key) {
    return
        [key](const OrderedJson& job) { return job.contains("progress") ? job.at("progress").at(key) : OrderedJson(); };
  };
  of_running("job_seconds", "Time for which a job has run.", [](const auto& job) { return job.at("seconds"); });
  of_running("job_done", "What a running job has done, in its unit.", progress("done"));
  of_running("job_count", "What a running job has to do, in its unit.", progress("count"));
  return gauges.text();
}

}  // namespace ganymede::serve
