#include "exports/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "platforms/catalog.hpp"
#include "report/numbers.hpp"

namespace ganymede::exports {
namespace {
constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();

/// The member at a path of names; nullptr if it is missing or null.
const Json* member(const JsonNode& node, std::initializer_list<const char*> path) {
  const Json* at = &node.value();
  for (const char* key : path) {
    if (!at->is_object() || !at->contains(key)) return nullptr;
    at = &(*at)[key];
  }
  return at->is_null() ? nullptr : at;
}

std::optional<double> number(const Json* value) {
  if (value == nullptr) return std::nullopt;
  double found = std::numeric_limits<double>::quiet_NaN();
  if (value->is_number()) found = value->get<double>();
  if (value->is_string()) found = std::strtod(value->as_string().c_str(), nullptr);
  return std::isfinite(found) ? std::optional(found) : std::nullopt;
}

std::string text(const Json* value) { return value != nullptr && value->is_string() ? value->get<std::string>() : ""; }

/// The name without its folder, so that the same document gives the same bytes wherever it lies.
std::string file_name(const JsonNode& node) { return std::filesystem::path(node.file()).filename().string(); }

int count(JsonObject& in, const char* key) { return static_cast<int>(in.required(key).as_integer(1, 1'000'000)); }

/// Adds what the catalog knows of the instance, which is nothing on a platform of the user's own. Throws ConfigError
/// for a TPU.
void add_catalog_facts(Launch& launch, const JsonNode& at) {
  launch.cpu = launch.gpu.starts_with("cpu");
  bool tpu = launch.gpu.starts_with("TPU");
  if (platforms::is_provider(launch.provider)) {
    const platforms::Platform& platform = platforms::catalog(launch.provider);
    for (const platforms::Instance& instance : platform.instances) {
      if (instance.name != launch.instance) continue;
      launch.instance_gpus = instance.gpus;
      launch.cpu = platform.gpu_of(instance).kind == platforms::Gpu::Kind::cpu;
      tpu = tpu || platform.gpu_of(instance).kind == platforms::Gpu::Kind::tpu;
    }
  }
  if (tpu) at.fail(fmt::format("trains on {}: launch files are written for GPUs and CPUs", launch.gpu));
}

void read_pool(Launch& launch, const JsonNode& node) {
  JsonObject pool(node);
  launch.provider = pool.required("provider").as_string();
  launch.region = text(member(node, {"region"}));
  launch.zone = text(member(node, {"zone"}));
  launch.market = pool.required("market").as_string();
  launch.instance = pool.required("instance").as_string();
  launch.gpu = pool.required("gpu").as_string();
  launch.nodes = count(pool, "nodes");
}

std::optional<LaunchSeeds::Spread> spread_of(const JsonNode& run, const char* what) {
  const auto median = number(member(run, {"seeds", what, "median"}));
  const Json* ends = member(run, {"seeds", what, "interval"});
  if (!median || ends == nullptr || !ends->is_array() || ends->size() != 2) return std::nullopt;
  const auto low = number(&ends->at(0)), high = number(&ends->at(1));
  if (!low || !high) return std::nullopt;
  return LaunchSeeds::Spread{*median, *low, *high};
}

std::optional<LaunchSeeds> seeds_of(const JsonNode& run) {
  if (member(run, {"seeds"}) == nullptr) return std::nullopt;
  const auto counted = [&](const char* what) {
    return static_cast<int>(number(member(run, {"seeds", what})).value_or(0));
  };
  return LaunchSeeds{counted("count"), counted("finished"), counted("met"), spread_of(run, "time_s"),
                     spread_of(run, "usd")};
}

Launch from_result(const JsonNode& run, std::string source) {
  if (member(run, {"launch"}) == nullptr)
    run.fail("does not say what to rent (\"launch\" is missing): simulate again with --format json");
  const JsonNode what = run.child("launch");
  JsonObject in(what);
  Launch launch;
  launch.source = std::move(source);
  launch.model = in.required("model").as_string();
  launch.precision = text(member(what, {"precision"}));
  launch.dataset = text(member(what, {"dataset"}));
  launch.batch_per_gpu = count(in, "batch_per_gpu");
  const std::vector<JsonNode> pools = in.required("pools").as_array();
  if (pools.size() != 1)
    in.required("pools").fail(
        fmt::format("found {} pools, expected one: a launch file is for nodes of one kind", pools.size()));
  read_pool(launch, pools[0]);
  JsonObject pool(pools[0]);
  launch.gpus_per_node = count(pool, "gpus_per_node");
  JsonObject time(run.child("time"));
  launch.steps = time.required("steps").as_integer(1, kMaxCount);
  launch.images = time.required("images").as_integer(1, kMaxCount);
  launch.seed = JsonObject(run.child("provenance")).required("seed").as_seed();
  launch.scheme = text(member(run, {"run", "scheme"}));
  launch.mode = text(member(run, {"run", "mode"}));
  launch.placement = text(member(run, {"run", "placement"}));
  launch.policy = text(member(run, {"run", "policy"}));
  launch.time_s = number(member(run, {"time", "total_s"}));
  launch.usd = number(member(run, {"cost", "total_usd"}));
  launch.seeds = seeds_of(run);
  // The launched training trains a batch on every GPU in each step. If fewer images counted in a simulated step, the
  // same number of images takes fewer steps.
  launch.global_batch = launch.gpus() * std::int64_t{launch.batch_per_gpu};
  if (member(what, {"global_batch"}) != nullptr) {
    const std::int64_t counted = in.required("global_batch").as_integer(1, launch.global_batch);
    launch.steps = std::max<std::int64_t>(
        1, std::llround(std::ceil(static_cast<double>(launch.steps) * static_cast<double>(counted) /
                                  static_cast<double>(launch.global_batch))));
    launch.global_batch = counted;
  }
  const double checkpoints = number(member(run, {"life", "checkpoints"})).value_or(0);
  if (checkpoints >= 1)
    launch.checkpoint_every =
        std::max<std::int64_t>(1, std::llround(static_cast<double>(launch.steps) / (checkpoints + 1)));
  add_catalog_facts(launch, pools[0]);
  return launch;
}

/// Steps between two checkpoints for an interval of a plan such as "10min"; 0 for a rule such as "daly".
std::int64_t steps_of(const std::string& interval, const Launch& launch) {
  if (!launch.time_s || *launch.time_s <= 0) return 0;
  try {
    const double seconds = parse_quantity<Seconds>(interval).si;
    const double steps = seconds * static_cast<double>(launch.steps) / *launch.time_s;
    return std::clamp<std::int64_t>(std::llround(steps), 1, launch.steps);
  } catch (const std::invalid_argument&) {
    return 0;
  }
}

Launch from_plan(const JsonNode& plan) {
  if (member(plan, {"chosen"}) == nullptr)
    plan.fail("has chosen nothing, for nothing meets its goals: there is nothing to launch");
  const JsonNode chosen = plan.child("chosen");
  JsonObject in(chosen);
  JsonObject request(JsonObject(plan).required("request"));
  Launch launch;
  launch.source = file_name(plan);
  launch.model = request.required("model").as_string();
  launch.dataset = text(member(chosen, {"scenario", "workload", "dataset", "name"}));
  // A request may search several batch sizes: the candidate says which. Plans of earlier versions searched one.
  launch.batch_per_gpu =
      member(chosen, {"batch_per_gpu"}) != nullptr ? count(in, "batch_per_gpu") : count(request, "batch_per_gpu");
  launch.images = request.required("images").as_integer(1, kMaxCount);
  launch.seed = request.required("seed").as_seed();
  read_pool(launch, chosen);
  const int gpus = count(in, "gpus");
  if (gpus % launch.nodes != 0) in.required("gpus").expected(fmt::format("a multiple of the {} nodes", launch.nodes));
  launch.gpus_per_node = gpus / launch.nodes;
  const std::int64_t batch = std::int64_t{launch.batch_per_gpu} * gpus;
  launch.steps = launch.images / batch + (launch.images % batch == 0 ? 0 : 1);
  launch.scheme = text(member(chosen, {"scheme"}));
  const auto simulated_with = [&](const char* key, const char* default_value) {
    const std::string found = text(member(chosen, {"scenario", "synchronization", key}));
    return found.empty() ? default_value : found;
  };
  launch.mode = simulated_with("mode", "all-reduce");
  launch.placement = simulated_with("placement", "data-parallel");
  launch.policy = text(member(chosen, {"policy"}));
  launch.time_s = number(member(chosen, {"time_s", "median"}));
  launch.usd = number(member(chosen, {"usd", "median"}));
  launch.checkpoint_every = steps_of(text(member(chosen, {"checkpoint"})), launch);
  add_catalog_facts(launch, chosen);
  return launch;
}

std::size_t cheapest_that_met(const std::vector<JsonNode>& runs, const JsonNode& sweep) {
  std::optional<std::size_t> best;
  double least = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Json* met = member(runs[i], {"goals", "met"});
    const auto usd = number(member(runs[i], {"cost", "total_usd"}));
    if (met == nullptr || *met != true || !usd || (best && *usd >= least)) continue;
    best = i;
    least = *usd;
  }
  if (!best) sweep.fail("no run met its goals at a known cost; --run says which one to launch");
  return *best;
}

}  // namespace

Launch read_launch(const report::Document& document, std::optional<std::size_t> run) {
  const JsonNode& node = document.node;
  if (document.kind != report::DocumentKind::sweep && run)
    throw ConfigError(fmt::format("--run: {} is no sweep, and has one thing to launch", node.file()));
  if (document.kind == report::DocumentKind::plan) return from_plan(node);
  if (document.kind == report::DocumentKind::result) return from_result(node, file_name(node));
  const std::vector<JsonNode> runs = node.child("runs").as_array();
  if (runs.empty()) node.child("runs").fail("found no run to launch");
  if (run && *run >= runs.size())
    throw ConfigError(
        fmt::format("--run: found {}, expected 0 to {}: as in /runs of {}", *run, runs.size() - 1, node.file()));
  const std::size_t index = run ? *run : cheapest_that_met(runs, node);
  return from_result(runs[index], fmt::format("{}, run {}", file_name(node), index));
}

std::string label_of(const std::string& text, std::size_t longest) {
  std::string label;
  for (const char c : text) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool known = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    if (known)
      label += lower;
    else if (!label.empty() && label.back() != '-')
      label += '-';
  }
  if (label.empty() || label.front() < 'a' || label.front() > 'z') label.insert(0, "g-");
  label.resize(std::min(label.size(), longest));
  while (label.back() == '-') label.pop_back();
  return label;
}

void check_label(const std::string& flag, const std::string& name, std::size_t longest) {
  if (name.empty() || label_of(name, longest) != name)
    throw ConfigError(
        fmt::format("{}: found \"{}\", expected at most {} small letters, digits and single '-', a letter first "
                    "and no '-' last, such as \"{}\"",
                    flag, name, longest, label_of(name, longest)));
}

}  // namespace ganymede::exports
