#include "cli/shared_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <csignal>
#include <set>
#include <sstream>

#include "calibration/kernels/gpu_sheets.hpp"
#include "common/dates.hpp"
#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "kernel/gan_step.hpp"
#include "kernel/models/models.hpp"
#include "platforms/catalog.hpp"
#include "platforms/price_doubt.hpp"
#include "studies/validation.hpp"
#include "traces/layer_list.hpp"
#include "traces/recipe.hpp"
#include "traces/recorded.hpp"

namespace ganymede::cli {
namespace {

constexpr std::string_view kPrefix = "suggest:";

std::vector<std::string> names_of(const std::string& topic) {
  if (topic == "rented-gpus") {
    std::set<std::string> names;
    for (const std::string& provider : platforms::provider_names())
      for (const platforms::Gpu& gpu : platforms::catalog(provider).gpus) names.insert({gpu.name, gpu.family});
    return {names.begin(), names.end()};
  }
  if (topic == "sheets") return ganymede::names_of(calibration::gpu_sheets());
  if (topic == "planned") return planned_models();
  if (topic == "recipes") return traces::recipe_names();  // `list recipes` resolves each, in a quarter of a second
  // To train: `list models` has those that can only be planned with too.
  if (topic == "models") return kernel::model_names();
  if (topic == "studies") return studies::validation_names();
  if (topic == "losses") return {std::begin(kernel::kLossNames), std::end(kernel::kLossNames)};
  if (topic == "layers") return ganymede::names_of(embedded_layers());
  auto topics = listed_topics();
  if (topic == "topics") return topics;
  assert(std::find(topics.begin(), topics.end(), topic) != topics.end());
  return listed_names(topic);
}

}  // namespace

template <class Q>
Q quantity_of(const char* option, const std::string& text, Q low, Q high, const char* expected) {
  try {
    if (const Q quantity = parse_quantity<Q>(text); quantity >= low && quantity <= high) return quantity;
    throw std::invalid_argument(fmt::format("expected {}", expected));
  } catch (const std::invalid_argument& error) {
    throw ConfigError(fmt::format("{} {}: {}", option, text, error.what()));
  }
}
template Seconds quantity_of(const char*, const std::string&, Seconds, Seconds, const char*);
template Bytes quantity_of(const char*, const std::string&, Bytes, Bytes, const char*);

std::vector<std::string> planned_models() {
  std::vector<std::string> models = traces::recorded_models();
  for (const std::string& list : ganymede::names_of(embedded_layers())) models.push_back(list);
  return models;
}

Check suggest(const std::string& spec) {
  return {[](std::string&) { return std::string{}; }, "", std::string(kPrefix) + spec};
}

Suggestion read_suggestion(const std::string& validator_name) {
  Suggestion suggestion;
  if (!validator_name.starts_with(kPrefix)) return suggestion;
  suggestion.any = true;
  std::istringstream words(validator_name.substr(kPrefix.size()));
  for (std::string word; words >> word;) {
    if (word == "@files") {
      suggestion.files = true;
    } else if (word == "@list") {
      suggestion.list = true;
    } else if (word.starts_with('@')) {
      const auto names = names_of(word.substr(1));
      suggestion.names.insert(suggestion.names.end(), names.begin(), names.end());
    } else {
      suggestion.names.push_back(word);
    }
  }
  return suggestion;
}

void add_measured(Parser command, MeasuredOptions& options) {
  command.add_option("--step", options.step,
                     "a step that you measured, such as 0.11s, in place of the trace's; needs --batch and --on");
  command.add_option("--images-per-second", options.images_per_second, "the same as a rate of one GPU",
                     positive_number());
  command.add_option("--on", options.gpu, "the GPU on which the step was measured: ganymede list gpus",
                     suggest("@sheets"));
}

void add_measured_batch(Parser command, MeasuredOptions& options) {
  command.add_option("--batch", options.batch, "images on a GPU in a step", positive_integer());
}

std::vector<JsonOverride> measured_overrides(const MeasuredOptions& options) {
  std::vector<JsonOverride> overrides;
  const bool rate = options.images_per_second > 0, step = !options.step.empty();
  if (!rate && !step) {
    if (!options.gpu.empty())
      throw ConfigError("--on: names the GPU of a measured step, expected --step or --images-per-second beside it");
    return overrides;
  }
  if (rate && step) throw ConfigError("--images-per-second: stands beside --step, expected only one of the two");
  const std::string what = step ? "--step" : "--images-per-second";
  if (options.gpu.empty())
    throw ConfigError(what +
                      ": expected --on GPU beside it, on which it was measured; `ganymede list gpus` names them");
  if (options.batch == 0) throw ConfigError(what + ": expected --batch IMAGES beside it, of which the step was");
  Json measured = {{"batch", options.batch}, {"gpu", options.gpu}};
  if (step)
    measured["step"] = options.step;
  else
    measured["images_per_second"] = options.images_per_second;
  overrides.push_back({"/workload/measured", measured.dump()});
  return overrides;
}

void add_device_options(Parser command, kernel::TrainOptions& options) {
  options.backend = "auto";
  command
      .add_option("--backend", options.backend, "cuda, cpu, or auto: cuda if there is a GPU", suggest("auto cuda cpu"))
      .capture_default_str();
  command.add_option(
      "--precision", options.precision,
      "precision of products on a GPU: fp32, tf32 or bf16, which also stores activations in two bytes; default: "
      "tf32 if the GPU has it",
      suggest("fp32 tf32 bf16"));
  command.add_flag("--time-algorithms", options.time_algorithms,
                   "time a GPU's convolutions, take the fastest algorithms and keep them for later trainings");
  command.add_flag("!--no-graph", options.graph, "launch a GPU's kernels one by one, not a whole step as a CUDA graph");
  command.add_option("--threads", options.threads, "CPU threads; 0: all cores, or this process's part of them")
      .capture_default_str();
}

void check_trainable(const std::string& model) {
  const bool prefixed = model.starts_with(traces::kLayers);
  const std::string name = prefixed ? model.substr(traces::kLayers.size()) : model;
  const auto trained = kernel::model_names();
  const auto lists = names_of(embedded_layers());
  const bool listed = std::find(lists.begin(), lists.end(), traces::list_name(name)) != lists.end();
  if (!prefixed && (!listed || std::find(trained.begin(), trained.end(), name) != trained.end())) return;
  throw ConfigError(
      fmt::format("--model {}: is a list of layers, which can be planned (`ganymede plan --model {} --images 10M`) but "
                  "not trained; expected {}",
                  model, name, list_of(trained)));
}

void add_hosts(Parser command, rehearsal::HostsChoice& choice) {
  Option hosts =
      command.add_option("--hosts", choice.hosts,
                         "start the processes on this machine, each as a host with a network as slow as the platform's",
                         integer_between(2, rehearsal::kMaxLocalHosts));
  command
      .add_option("--scale", choice.scale,
                  "with --hosts: how many times as long everything takes; default: as this machine needs",
                  number_between(1e-6, 1e6))
      .needs(hosts);
  command
      .add_option(
          "--network", choice.network,
          "with --hosts: namespaces (root: veth pairs and token buckets), paced (sockets that pace themselves) "
          "or mpirun (name spaces, in which mpirun starts the processes); default: namespaces where they can be "
          "made",
          one_of({"namespaces", "paced", "mpirun"}))
      .needs(hosts);
  command
      .add_option(
          "--loss", choice.loss,
          "with --hosts: the share of packets that are lost and sent again, for example 0.001; predictions know "
          "nothing of it",
          number_between(0.0, 0.5))
      .needs(hosts);
}

namespace {

volatile std::sig_atomic_t shard_stop_asked = 0;
void note_shard_stop(int /*signal*/) { shard_stop_asked = 1; }

}  // namespace

void add_shard(Parser command, std::string& shard) {
  command
      .add_option("--shard", shard,
                  "do only shard I of N, and keep its rows in the folder that -o names; auto: as Slurm, mpirun or "
                  "Kubernetes says (auto/N: the count is N); `ganymede merge` puts them together",
                  not_empty)
      .type_name("auto|I/N");
}

studies::ShardOptions shard_options(const Shared& shared, const std::string& what) {
  std::signal(SIGTERM, note_shard_stop);
  return {.jobs = jobs(shared),
          .use = ChildUse::reused,
          .stopped = [] { return shard_stop_asked != 0; },
          .remark = [&shared](const std::string& text) { remark(shared, text); },
          .show = [&shared, what](std::size_t count) { return progress_bar(shared, count, what); }};
}

void report_shard(Shared& shared, const studies::Shard& shard, const studies::ShardOutcome& outcome) {
  const std::string failures = outcome.failed == 0 ? "" : fmt::format(", {} failed", outcome.failed);
  remark(shared, fmt::format("shard {} of {}: {} runs, of which {} were there already and {} were done now{}",
                             shard.index, shard.count, outcome.runs, outcome.earlier, outcome.done, failures));
  if (!outcome.complete()) {
    say("ganymede: stopped early; the same command goes on from there\n");
    shared.exit_code = ExitCode::interrupted;
  } else if (outcome.failed > 0) {
    throw Failure(fmt::format("{} of {} runs of this shard failed; the first: {}", outcome.failed, outcome.runs,
                              outcome.first_reason));
  }
}

void require_folder(const Shared& shared) {
  if (shared.output.empty())
    throw ConfigError("--shard needs -o: a folder, the same for all shards, in which their rows are kept");
}

std::string today() { return format_time(stated_now()).substr(0, 10); }

void remark_price_age(const Shared& shared, const std::string& date) {
  if (!is_date(date)) return;
  const int days = days_between(date, today());
  if (days > platforms::kFreshDays)
    remark(shared,
           fmt::format("prices are of {}, {} days old; `ganymede catalog --update` merges new ones", date, days));
}

void remark_price_age(const Shared& shared, const sim::Scenario& scenario) {
  std::string oldest;
  for (const sim::ScenarioPool& pool : scenario.pools)
    if (!pool.price.ownership && is_date(pool.price.as_of) && (oldest.empty() || pool.price.as_of < oldest))
      oldest = pool.price.as_of;
  remark_price_age(shared, oldest);
}

}  // namespace ganymede::cli
