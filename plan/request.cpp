#include "plan/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "calibration/stated_step.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/random.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "common/written.hpp"
#include "plan/checks.hpp"
#include "plan/evaluate.hpp"
#include "plan/pick_trace.hpp"
#include "plan/request_recipe.hpp"
#include "platforms/catalog.hpp"
#include "platforms/gpu_names.hpp"
#include "platforms/money.hpp"
#include "platforms/providers.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/scenario/sections.hpp"
#include "traces/recorded.hpp"

namespace ganymede::plan {
namespace {
constexpr int kMaxGpus = 65536, kMaxPasses = 1024;
constexpr std::int64_t kMaxImages = 1'000'000'000'000;
/// What PyTorch's DistributedDataParallel reduces with on GPUs: users of it cannot choose another scheme.
constexpr const char* kDefaultScheme = "nccl";
/// Variation of stage lengths if the request states none; the same default as for scenarios.
constexpr double kStageVariation = 0.25;

/// Reads an optional list of strings, or a single string. Returns an empty list if the key is absent.
std::vector<std::string> read_strings(JsonObject& in, const char* key) {
  std::vector<std::string> all;
  const auto node = in.optional(key);
  if (!node) return all;
  if (node->is_string()) return {node->as_string()};
  for (const JsonNode& entry : node->as_array()) all.push_back(entry.as_string());
  if (all.empty()) node->expected("at least one name");
  return all;
}

std::string hash_of(std::string_view text) { return fmt::format("{:016x}", fnv1a(text)); }

void read_stages(JsonObject& in, Request& request, Json& workload) {
  const std::size_t count = request.batches.back().stages.size();
  request.stage_shares.assign(count, 1 / static_cast<double>(count));
  request.stage_variation = count > 1 ? kStageVariation : 0;
  const auto node = in.optional("stages");
  if (!node) return;
  workload["stages"] = node->value();  // reading the scenario checks it
  JsonObject stages(*node);
  if (const auto shares = stages.optional("shares"))
    if (const auto numbers = shares->as_numbers(0, 1); numbers.size() == count) request.stage_shares = numbers;
  if (const auto variation = stages.optional("variation")) request.stage_variation = variation->as_number(0, 0.9);
}

void read_images(JsonObject& in, const JsonNode& workload_node, Request& request, Json& workload,
                 const traces::Recipe* recipe) {
  if (const auto steps = in.optional("steps"))
    steps->fail(
        "a plan compares allocations of different sizes, on which a step trains different numbers of images; "
        "expected \"images\", \"epochs\" or \"quality\"");
  const auto images = in.optional("images"), epochs = in.optional("epochs"), dataset = in.optional("dataset");
  if (dataset) workload["dataset"] = dataset->value();
  const auto quality = in.optional("quality");
  if (recipe && !images && !epochs && !quality) {
    workload["images"] = request.images = recipe_images(workload_node, *recipe);
    return;
  }
  if (int{images.has_value()} + int{epochs.has_value()} + int{quality.has_value()} != 1)
    workload_node.fail("expected exactly one of \"images\", \"epochs\" and \"quality\"");
  if (quality) {
    request.quality = calibration::QualityGoal::read(*quality, request.trace.model);
    Json& goal = workload["quality"] = quality->value();
    if (goal.contains("curve")) {
      const JsonNode curve = quality->child("curve");
      goal["curve"] = (curve.directory() / curve.as_string()).string();
      request.file_hashes["/workload/quality/curve"] = hash_of(read_file(goal["curve"].get<std::string>()));
    }
    return;
  }
  if (images) {
    workload["images"] = request.images = images->as_integer(1, kMaxImages);
    return;
  }
  if (!dataset) epochs->fail("epochs need \"dataset\" (--dataset-images) beside them, to know how many images one has");
  JsonObject dataset_members(*dataset);
  const std::int64_t size = dataset_members.required("images").as_integer(1, kMaxImages);
  const std::int64_t count = epochs->as_integer(1, kMaxImages / size);
  request.images = count * size;
  workload["epochs"] = count;
}

/// Reads the batch sizes, one or a list; if there are none, takes all that the trace has recorded. Each pass of a step
/// trains a recorded number of images.
void read_batches(const std::optional<JsonNode>& node, const std::string& trace, Request& request) {
  const int passes = request.accumulation_steps;
  std::map<int, std::vector<std::size_t>> recorded;
  std::string names;
  for (std::size_t i = 0; i < request.trace.batches.size(); ++i)
    recorded[request.trace.batches[i].batch * passes].push_back(i);
  for (const auto& [batch, stages] : recorded) names += (names.empty() ? "" : ", ") + std::to_string(batch);
  std::set<int> wanted;
  if (!node) {
    // A growing model can use only the batch sizes that were recorded in all of its stages.
    std::size_t most = 0;
    for (const auto& [batch, stages] : recorded) most = std::max(most, stages.size());
    for (const auto& [batch, stages] : recorded)
      if (stages.size() == most) wanted.insert(batch);
  } else {
    for (const JsonNode& entry : node->value().is_array() ? node->as_array() : std::vector<JsonNode>{*node}) {
      const auto batch = static_cast<int>(entry.as_integer(1, 1 << 24));
      if (!recorded.contains(batch))
        entry.expected(fmt::format("a batch size that {} has recorded{} ({})", trace,
                                   passes == 1 ? "" : fmt::format(", times {} passes", passes), names));
      if (recorded[batch].size() != recorded[wanted.empty() ? batch : *wanted.begin()].size())
        entry.expected("batch sizes that were recorded in the same number of stages");
      wanted.insert(batch);
    }
    if (wanted.empty()) node->expected("at least one batch size");
  }
  for (const int batch : wanted) request.batches.push_back({batch, recorded[batch], passes});
}

void read_workload(const JsonNode& node, Request& request) {
  JsonObject in(node);
  Json workload = Json::object();
  const auto trace = in.optional("trace"), model = in.optional("model"), named = in.optional("recipe");
  if (!trace && !model && !named)
    node.fail("expected \"trace\", a file or a recorded one, or \"model\", to pick a recorded one, or \"recipe\"");
  if (named && (trace || model)) named->fail("stands beside \"trace\" or \"model\", expected only one of them");
  std::string picked;
  std::optional<traces::Recipe> recipe;
  JsonNode at = named ? *named : trace ? *trace : *model;
  if (trace) {
    request.trace_choice = picked = traces::trace_name(*trace);
  } else {
    if (named) recipe = read_recipe(*named, request);
    picked = recipe ? recipe->trace_name() : pick_trace(*model, request.trace_choice);
    at = JsonNode::wrap(Json(picked), node.file(), "");
  }
  const auto known = request.caches->inputs.trace(at);
  request.file_hashes["/workload/trace"] = fmt::format("{:016x}", known.hash);
  request.trace = *known.trace;
  if (trace && model && model->as_string() != request.trace.model && model->as_string() != picked)
    model->fail(fmt::format("{} is a trace of {}", picked, request.trace.model));
  workload["trace"] = picked;
  if (const auto measured = in.optional("measured")) {
    request.trace = *request.caches->inputs.trace(at, &*measured).trace;
    request.trace_choice = calibration::stated_text(request.trace) + ", with the kernels of " + request.trace_choice;
    workload["measured"] = measured->value();
  }
  if (const auto passes = in.optional("accumulation_steps")) {
    request.accumulation_steps = static_cast<int>(passes->as_integer(1, kMaxPasses));
    workload["accumulation_steps"] = request.accumulation_steps;
  }
  const auto batches = in.optional("batch_per_gpu");
  recipe && !batches ? add_recipe_batches(*named, *recipe, request) : read_batches(batches, picked, request);
  read_stages(in, request, workload);
  read_images(in, node, request, workload, recipe ? &*recipe : nullptr);
  in.finish();
  request.common["workload"] = std::move(workload);
}

void read_deadline(JsonObject& in, Request& request, const std::string& now) {
  const auto start = in.optional("start"), deadline = in.optional("deadline");
  if (start && !parse_time(start->as_string()))
    start->expected("a time with its zone, such as \"2026-12-01T09:00:00Z\" or \"2026-12-01T10:00+01:00\"");
  if (!deadline) {
    if (start) start->fail("a start needs a \"deadline\" that is a time, and there is no deadline");
    return;
  }
  request.deadline_text = deadline->as_string();
  const auto end = parse_time(request.deadline_text);
  if (!end) {
    if (request.deadline_text.find('T') != std::string::npos)
      deadline->expected("a duration such as \"60h\", or a time with its zone, such as \"2026-12-01T09:00:00Z\"");
    request.deadline = with_unit(*deadline, {"h", "min"}).as_positive<Seconds>();
    if (start) start->fail("a start needs a \"deadline\" that is a time, and this one is a duration");
    return;
  }
  request.start = start ? start->as_string() : now;
  const std::int64_t left = *end - *parse_time(request.start);
  if (left <= 0) deadline->fail(fmt::format("{} is not after the start, {}", request.deadline_text, request.start));
  request.deadline = Seconds{static_cast<double>(left)};
}

/// Refuses entries of a list that are not in `known`, and suggests the nearest one.
void check_known(const JsonNode& search, const char* key, const std::vector<std::string>& wanted,
                 const std::set<std::string>& known) {
  for (const std::string& one : wanted)
    if (!known.contains(one))
      search.child(key).fail(fmt::format("\"{}\" is in none of the catalogs searched{}", one,
                                         did_you_mean(one, std::vector<std::string>(known.begin(), known.end()))));
}

void read_catalogs(JsonObject& in, const JsonNode& search, Request& request) {
  const auto node = in.optional("catalogs");
  const auto add = [&](const std::string& name, const platforms::Platform& platform) {
    const auto hash = platforms::is_provider(name) ? fnv1a(platforms::catalog_text(name)) : fnv1a(read_file(name));
    request.file_hashes[fmt::format("/search/catalogs/{}", request.catalogs.size())] = fmt::format("{:016x}", hash);
    request.catalogs.push_back({name, hash, std::make_shared<const platforms::Platform>(platform)});
  };
  const auto add_all = [&] {  // but for owned machines, which only their owner can use
    for (const std::string& name : platforms::provider_names())
      if (!platforms::provider_of(name).owned) add(name, platforms::catalog(name));
  };
  if (!node) add_all();
  for (const JsonNode& entry : node ? node->as_array() : std::vector<JsonNode>()) {
    const std::string name = entry.as_string();
    if (name == "all")
      add_all();
    else
      add(platforms::is_provider(name) ? name : (entry.directory() / name).string(),
          platforms::load_catalog(name, entry.directory(), &entry));
  }
  if (request.catalogs.empty()) node->expected("at least one catalog");
  std::set<std::string> gpus, instances, regions;
  std::vector<platforms::Gpu> all_gpus;
  for (const auto& entry : request.catalogs)
    for (const platforms::Instance& instance : entry.platform->instances) {
      const platforms::Gpu& gpu = entry.platform->gpu_of(instance);
      if (gpus.insert(gpu.name).second) all_gpus.push_back(gpu);
      instances.insert(instance.name);
      for (const platforms::Price& price : instance.prices) regions.insert(price.region);
    }
  for (const std::string& text : request.gpus = read_strings(in, "gpus"))
    for (std::string& name : platforms::gpus_named(text, all_gpus)) request.gpu_names.push_back(std::move(name));
  check_known(search, "gpus", request.gpu_names, gpus);
  check_known(search, "instances", request.instances = read_strings(in, "instances"), instances);
  check_known(search, "regions", request.regions = read_strings(in, "regions"), regions);
}

std::vector<RequestPolicy> read_policies(const JsonNode& node) {
  const std::vector<std::string> names = policies::policy_names();
  std::vector<RequestPolicy> all;
  for (const JsonNode& entry : node.as_array()) {
    RequestPolicy one;
    one.content = entry.is_string() ? Json::object({{"name", entry.value()}}) : entry.value();
    if (!one.content.is_object() || !one.content.contains("name"))
      entry.expected("a policy's name, or an object with its \"name\"");
    one.policy = policies::find_policy((entry.is_string() ? entry : entry.child("name")).as_choice(names));
    if (!one.policy->decide)
      entry.fail("a plan cannot try a program of your own; simulate the plan's scenario with it");
    if (one.policy->learns && !one.content.contains("table"))
      entry.expected(R"({"name": …, "table": FILE}, with a file that `ganymede learn` has written)");
    sim::Scenario any;  // each candidate's would refuse what is wrong, but only after a search
    sim::Fingerprint fingerprint(entry);
    if (entry.is_object()) sim::read_policy(entry, any, fingerprint);
    if (one.policy->learns)
      one.content["table"] = (entry.directory() / one.content["table"].get<std::string>()).string();
    all.push_back(std::move(one));
  }
  if (all.empty()) node.expected("at least one policy");
  return all;
}

/// The policies that are tried if the request names none.
std::vector<RequestPolicy> default_policies() {
  std::vector<RequestPolicy> chosen;
  for (const policies::Policy& policy : policies::policies())
    if (policy.plan_default) chosen.push_back({Json{{"name", policy.name}}, &policy});
  return chosen;
}

/// Reads the age up to which prices are not doubtful. Ages are counted to the day that the request names, otherwise to
/// that of `now`. A saved plan names it, so that what is asked of it later does not change with the day.
void read_price_age(JsonObject& in, Request& request, const std::string& now) {
  request.price_age.today = now.substr(0, now.find('T'));
  if (const auto today = in.optional("today")) {
    request.price_age.today = today->as_string();
    if (!is_date(request.price_age.today)) today->expected("a date as YYYY-MM-DD");
  }
  if (const auto age = in.optional("max_price_age")) {
    const double days = with_unit(*age, {"d"}).as_quantity<Seconds>().si / 86400;
    if (!(days >= 0 && days <= 36500)) age->expected("an age from 0 to 36500 days, such as \"365d\"");
    request.price_age.most_days = static_cast<int>(days);
  }
}

/// Refuses what is no checkpoint interval; counts of epochs and images are checked by reading a scenario.
void check_checkpoint_interval(const JsonNode& node) {
  if (const std::string text = node.as_string();
      text != "daly" && !text.ends_with("epoch") && !text.ends_with("images"))
    with_unit(node, {"min", "h"}).as_positive<Seconds>();
}

/// Reads "checkpoint": how the training really saves itself, in place of the intervals that "search" tries.
void read_checkpoint(const JsonNode& node, Request& request) {
  JsonObject in(node);
  if (const auto on_notice = in.optional("on_notice")) request.on_notice = on_notice->as_bool();
  const auto every = in.optional("every");
  in.finish();
  if (!every) return;
  if (every->as_string() != "never") {
    check_checkpoint_interval(*every);
    request.checkpoints = {every->as_string()};
    return;
  }
  if (request.on_notice.value_or(false))
    every->fail("a training that never saves itself cannot do so within a notice: expected \"on_notice\" false");
  request.on_notice = false;
  request.checkpoints = {""};
}

void read_search(const JsonNode& node, Request& request, const std::string& now) {
  JsonObject in(node);
  read_catalogs(in, node, request), prefer_files(request);
  if (const auto markets = in.optional("markets"))
    for (const JsonNode& entry : markets->as_array()) request.markets.push_back(platforms::read_market(entry));
  if (request.markets.empty()) request.markets = {platforms::Market::on_demand, platforms::Market::spot};
  if (const auto least = in.optional("min_gpus")) request.min_gpus = static_cast<int>(least->as_integer(1, kMaxGpus));
  if (const auto most = in.optional("max_gpus")) {
    request.max_gpus = static_cast<int>(most->as_integer(1, kMaxGpus));
    if (request.max_gpus < request.min_gpus)
      most->fail(
          fmt::format("at most {} GPUs and at least {} contradict each other", request.max_gpus, request.min_gpus));
  } else {
    request.max_gpus = std::max(request.max_gpus, request.min_gpus);
  }
  request.schemes = {kDefaultScheme};
  if (const auto schemes = in.optional("schemes")) {
    request.schemes.clear();
    for (const JsonNode& entry : schemes->as_array()) request.schemes.push_back(sim::read_scheme(entry).name());
    if (request.schemes.empty()) schemes->expected("at least one scheme");
  }
  const auto chosen = in.optional("policies");
  request.spot_policies = chosen ? read_policies(*chosen) : default_policies();
  request.on_demand_policies.clear();
  for (const RequestPolicy& one : request.spot_policies)
    if (!one.policy->spot_only) request.on_demand_policies.push_back(one);
  const auto mixed = in.optional("mixed");
  const auto searched = [&](platforms::Market market) {
    return std::find(request.markets.begin(), request.markets.end(), market) != request.markets.end();
  };
  if (mixed && mixed->as_bool() && !(searched(platforms::Market::spot) && searched(platforms::Market::on_demand)))
    mixed->fail("needs both spot and on-demand among the markets");
  if (mixed ? mixed->as_bool() : searched(platforms::Market::spot) && searched(platforms::Market::on_demand))
    for (const RequestPolicy& one : request.spot_policies)
      if (!one.policy->other_market && !one.policy->other_regions) request.mixed_policies.push_back(one);
  request.checkpoints = {request.recipe_saves.empty() ? "daly" : request.recipe_saves};
  if (const auto list = in.optional("checkpoints")) {
    request.checkpoints = read_strings(in, "checkpoints");
    for (const JsonNode& entry : list->is_string() ? std::vector<JsonNode>{*list} : list->as_array())
      check_checkpoint_interval(entry);
  }
  if (const auto seeds = in.optional("seeds"))
    request.seeds = request.seeds_at_risk = static_cast<int>(seeds->as_integer(1, 10'000));
  read_price_age(in, request, now);
  if (const auto share = in.optional("certainty")) request.certainty = share->as_number(0.01, 1);
  if (const auto sure = in.optional("sure")) request.sure = sure->as_bool();
  in.finish();
}

constexpr std::string_view kObjectives[] = {"cost", "time", "carbon", "risk-neutral", "risk-averse"};
}  // namespace

std::string_view to_string(Objective objective) { return kObjectives[static_cast<std::size_t>(objective)]; }
std::vector<std::string> objective_names() { return {std::begin(kObjectives), std::end(kObjectives)}; }

Request read_request(const JsonNode& node, const std::string& now) {
  JsonObject in(node);
  check_schema(in, "ganymede.request/1");
  Request request;
  request.file = node.file();
  request.caches = std::make_shared<EvaluationCaches>();
  request.content = node.value();
  request.common = {{"schema", "ganymede.scenario/1"}};
  read_workload(in.required("workload"), request);
  read_deadline(in, request, now);
  if (const auto budget = in.optional("budget")) {
    request.budget = platforms::read_amount(*budget, "", "500USD");
    if (request.budget->value == 0) budget->fail("expected a budget above 0");
  }
  if (const auto objective = in.optional("objective")) {
    const std::string what = objective->as_choice(objective_names());
    request.objective = static_cast<Objective>(std::find(std::begin(kObjectives), std::end(kObjectives), what) -
                                               std::begin(kObjectives));
  }
  read_search(in.optional("search").value_or(JsonNode::wrap(Json::object(), node.file(), "")), request, now);
  if (const auto checkpoint = in.optional("checkpoint")) read_checkpoint(*checkpoint, request);
  for (const char* key :
       {"storage", "evaluation", "provisioning", "faults", "billing", "power_cap", "fidelity", "synchronization"})
    if (const auto member = in.optional(key)) request.common[key] = member->value();
  request.checks = read_checks(node, request);
  const auto seed = in.optional("seed");
  request.seed = seed ? seed->as_seed() : 1;
  in.finish();
  return request;
}

}  // namespace ganymede::plan
