#include "exports/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "documents/plan.hpp"
#include "kernel/models/models.hpp"
#include "platforms/catalog.hpp"
#include "policies/policy.hpp"
#include "report/numbers.hpp"
#include "report/runs.hpp"

namespace ganymede::exports {
namespace {
constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();

/// The text at a pointer; empty if there is none.
std::string text_at(const JsonNode& node, const char* pointer) {
  const JsonPointer at(pointer);
  return node.value().contains(at) && node.value().at(at).is_string() ? node.value().at(at).as_string() : "";
}

/// The name without its folder, so that the same document gives the same bytes wherever it lies.
std::string file_name(const JsonNode& node) { return std::filesystem::path(node.file()).filename().string(); }

/// The member, a count of things that are rented or trained. A document may have none of them, a launch file not.
std::int64_t count(const JsonNode& node, const char* key, std::int64_t most = 1'000'000) {
  return JsonObject(node).required(key).as_integer(1, most);
}

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

/// Takes over what is rented, from a pool of a result or from a plan's row.
void rent(Launch& launch, const auto& from, const JsonNode& node) {
  for (const char* stated : {"provider", "market", "instance", "gpu"})
    (void)JsonObject(node).required(stated).as_string();
  (void)count(node, "nodes");
  launch.provider = from.provider;
  launch.region = from.region;
  launch.market = from.market;
  launch.instance = from.instance;
  launch.gpu = from.gpu;
  launch.nodes = from.nodes;
}

Launch from_result(const JsonNode& node, std::string source) {
  if (!node.value().contains("launch"))
    node.fail("does not say what to rent (\"launch\" is missing): simulate again with --format json");
  const documents::Result run = documents::read_result(node);
  const JsonNode what = node.child("launch"), pools = what.child("pools");
  if (run.launch.pools.size() != 1)
    pools.fail(
        fmt::format("found {} pools, expected one: a launch file is for nodes of one kind", run.launch.pools.size()));
  const documents::LaunchPool& pool = run.launch.pools.front();
  const JsonNode pool_node = pools.as_array().front();
  Launch launch;
  launch.source = std::move(source);
  launch.model = what.child("model").as_string();
  launch.precision = run.launch.precision;
  launch.dataset = run.launch.dataset;
  launch.batch_per_gpu = static_cast<int>(count(what, "batch_per_gpu"));
  rent(launch, pool, pool_node);
  launch.zone = pool.zone;
  launch.gpus_per_node = static_cast<int>(count(pool_node, "gpus_per_node"));
  launch.steps = count(node.child("time"), "steps", kMaxCount);
  launch.images = count(node.child("time"), "images", kMaxCount);
  launch.seed = run.seed;
  launch.scheme = run.scheme;
  launch.mode = run.mode;
  launch.placement = run.placement;
  launch.policy = run.policy;
  launch.time_s = run.total.si;
  launch.usd = usd_of(run.usd);
  launch.seeds = run.seeds;
  // The launched training trains a batch on every GPU in each step. If fewer images counted in a simulated step, the
  // same number of images takes fewer steps.
  launch.global_batch = launch.gpus() * std::int64_t{launch.batch_per_gpu};
  if (run.launch.global_batch > 0) {
    const std::int64_t counted = count(what, "global_batch", launch.global_batch);
    launch.steps = std::max<std::int64_t>(
        1, std::llround(std::ceil(static_cast<double>(launch.steps) * static_cast<double>(counted) /
                                  static_cast<double>(launch.global_batch))));
    launch.global_batch = counted;
  }
  if (run.checkpoints >= 1)
    launch.checkpoint_every = std::max<std::int64_t>(
        1, std::llround(static_cast<double>(launch.steps) / static_cast<double>(run.checkpoints + 1)));
  add_catalog_facts(launch, pool_node);
  return launch;
}

/// Steps between two checkpoints for an interval of a plan such as "10min"; 0 for a rule such as "daly".
std::int64_t steps_of(const std::string& interval, const Launch& launch) {
  if (launch.time_s <= 0) return 0;
  try {
    if (interval.ends_with(" images"))
      return std::clamp<std::int64_t>(std::stoll(interval) * launch.steps / launch.images, 1, launch.steps);
    const double seconds = parse_quantity<Seconds>(interval).si;
    const double steps = seconds * static_cast<double>(launch.steps) / launch.time_s;
    return std::clamp<std::int64_t>(std::llround(steps), 1, launch.steps);
  } catch (const std::logic_error&) {  // std::invalid_argument, or a count that no integer holds
    return 0;
  }
}

/// Adds the other places of a plan that run the same training, on all GPUs of their nodes if the chosen ones do.
void add_others(Launch& launch, const documents::Plan& plan, const JsonNode& node) {
  const documents::PlanRow& chosen = *plan.chosen;
  std::vector<const documents::PlanRow*> rows;
  for (const auto* some : {&plan.best_of_each, &plan.pareto, &plan.simulated})
    for (const documents::PlanRow& row : *some)
      if (row.verdict == "meets" && row.market == launch.market && row.nodes == launch.nodes &&
          row.gpus == chosen.gpus && (chosen.part_of_instance || !row.part_of_instance) &&
          row.on_demand_nodes == chosen.on_demand_nodes && row.scheme == launch.scheme && row.policy == launch.policy &&
          row.batch_per_gpu.value_or(launch.batch_per_gpu) == launch.batch_per_gpu)
        rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto* a, const auto* b) { return a->usd.median < b->usd.median; });
  std::set<std::pair<std::string, std::string>> places = {{launch.provider, launch.region}};
  std::vector<Launch> others;
  for (const documents::PlanRow* row : rows) {
    const bool device = row->gpu.starts_with("TPU") || row->gpu.starts_with("cpu");
    if (device || launch.cpu || !places.emplace(row->provider, row->region).second) continue;
    Launch other = launch;
    other.provider = row->provider, other.region = row->region;
    other.instance = row->instance, other.gpu = row->gpu;
    other.instance_gpus = 0;
    add_catalog_facts(other, node);
    others.push_back(std::move(other));
  }
  launch.others = std::move(others);
}

Launch from_plan(const JsonNode& node) {
  const documents::Plan plan = documents::read_plan(node);
  if (!plan.chosen) node.fail("has chosen nothing, for nothing meets its goals: there is nothing to launch");
  const documents::PlanRow& chosen = *plan.chosen;
  const JsonNode chosen_node = node.child("chosen"), request = node.child("request");
  Launch launch;
  launch.source = file_name(node);
  launch.model = request.child("model").as_string();
  launch.dataset = text_at(chosen_node, "/scenario/workload/dataset/name");
  // A request may search several batch sizes: the candidate says which. Plans of earlier versions searched one.
  launch.batch_per_gpu = static_cast<int>(count(chosen.batch_per_gpu ? chosen_node : request, "batch_per_gpu"));
  launch.images = count(request, "images", kMaxCount);
  launch.seed = JsonObject(request).required("seed").as_seed();
  rent(launch, chosen, chosen_node);
  if (chosen.gpus % launch.nodes != 0)
    chosen_node.child("gpus").expected(fmt::format("a multiple of the {} nodes", launch.nodes));
  launch.gpus_per_node = chosen.gpus / launch.nodes;
  const std::int64_t batch = std::int64_t{launch.batch_per_gpu} * chosen.gpus;
  launch.steps = launch.images / batch + (launch.images % batch == 0 ? 0 : 1);
  launch.scheme = chosen.scheme;
  launch.mode = text_at(chosen_node, "/scenario/synchronization/mode");
  launch.placement = text_at(chosen_node, "/scenario/synchronization/placement");
  launch.policy = chosen.policy;
  launch.time_s = chosen.time_s.median;
  launch.usd = chosen.usd.median;
  launch.checkpoint_every = steps_of(chosen.checkpoint.value_or(""), launch);
  // What a rule such as "daly" came to in the plan's runs.
  if (const double images = chosen.saved_every_s.value_or(0) * chosen.images_per_s.value_or(0);
      launch.checkpoint_every == 0 && images > 0)
    launch.checkpoint_every =
        std::llround(std::clamp(images / static_cast<double>(batch), 1.0, static_cast<double>(launch.steps)));
  add_catalog_facts(launch, chosen_node);
  add_others(launch, plan, node);
  return launch;
}

std::size_t cheapest_that_met(const JsonNode& sweep) {
  const std::vector<documents::Result> runs = report::runs_of(sweep.value());
  const documents::Result* best = nullptr;
  for (const documents::Result& run : runs)
    if (run.met && (best == nullptr || run.usd < best->usd)) best = &run;
  if (best == nullptr) sweep.fail("no run met its goals at a known cost; --run says which one to launch");
  return static_cast<std::size_t>(best - runs.data());
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
  const std::size_t index = run ? *run : cheapest_that_met(node);
  return from_result(runs[index], fmt::format("{}, run {}", file_name(node), index));
}

bool Launch::falls_back() const {
  const policies::Policy* known = policies::find_policy(policy);
  return spot() && known != nullptr && known->other_market;
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

std::string placeholder_image() { return "ganymede:" GANYMEDE_VERSION; }

namespace {

/// True for "registry.example:5000/team/name:tag@sha256:...", by the grammar of the distribution project's references.
bool is_image(std::string_view text) {
  const auto only = [](std::string_view part, std::string_view more, bool upper) {
    return !part.empty() && std::all_of(part.begin(), part.end(), [&](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (upper && c >= 'A' && c <= 'Z') ||
             more.find(c) != more.npos;
    });
  };
  if (const std::size_t at = text.find('@'); at != text.npos) {
    const std::string_view digest = text.substr(at + 1),
                           hex = digest.substr(std::min(digest.size(), digest.find(':') + 1));
    if (digest.find(':') == digest.npos || hex.size() < 32 || !only(hex, "", false)) return false;
    text = text.substr(0, at);
  }
  const std::size_t slash = text.rfind('/'), colon = text.find(':', slash == text.npos ? 0 : slash);
  if (colon != text.npos) {
    const std::string_view tag = text.substr(colon + 1);
    if (!only(tag, "_.-", true) || tag.size() > 128 || tag[0] == '.' || tag[0] == '-') return false;
    text = text.substr(0, colon);
  }
  for (bool first = true;; first = false) {
    const std::size_t end = std::min(text.find('/'), text.size());
    const std::string_view part = text.substr(0, end);
    const bool host = first && end < text.size() && (part.find_first_of(".:") != part.npos || part == "localhost");
    if (host ? !only(part, ".:-", true) : !only(part, "._-", false)) return false;
    if (!only(part.substr(0, 1), "", host) || !only(part.substr(part.size() - 1), "", host)) return false;
    if (end == text.size()) return true;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string image_of(const ExportValues& values) {
  const std::string& image = values.text("image");
  if (image.empty()) return placeholder_image();
  if (!is_image(image))
    throw ConfigError(
        fmt::format("--image {}: expected a container image such as registry.example/team/name:tag", image));
  return image;
}

std::vector<ExportOption> launch_options(std::vector<ExportOption> more) {
  std::vector<ExportOption> options = {
      {.name = "run",
       .summary = "which run of a sweep, as in its /runs, from 0; default: the cheapest that met its goals",
       .kind = ExportOption::Kind::index},
      {.name = "name", .summary = "name of what is made; default: model and instance"},
      {.name = "command", .summary = "a line for bash that trains, instead of ganymede train"},
      {.name = "disk",
       .summary = "GB for data and checkpoints",
       .kind = ExportOption::Kind::integer,
       .default_value = "256",
       .min = 1,
       .max = 65536}};
  options.insert(options.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return options;
}

Launch launch_of(const report::Document& document, const ExportValues& values, const ExportConsole& console) {
  const auto run = values.index("run");
  Launch launch = read_launch(document, run);
  if (document.kind == report::DocumentKind::sweep && !run)
    console.remark(fmt::format("taking {}: the cheapest that met its goals, {} x {} on {} {}; --run takes another",
                               launch.source, launch.nodes, launch.instance, launch.provider, launch.region));
  const auto models = kernel::models();
  const bool trained_here =
      std::any_of(models.begin(), models.end(), [&](const auto& model) { return model.name == launch.model; });
  if (values.text("command").empty() && !trained_here)
    throw ConfigError(
        fmt::format("{}: is of {}, which is no model of ganymede train; --command says how it is trained, as "
                    "--command 'python train.py'",
                    document.node.file(), Json(launch.model).dump_ascii()));
  return launch;
}

}  // namespace ganymede::exports
