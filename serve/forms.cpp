#include "serve/forms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "platforms/catalog.hpp"
#include "sim/collectives/allreduce.hpp"

namespace ganymede::serve {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::int64_t kMaxImages = 1'000'000'000'000;
constexpr std::int64_t kMaxGpus = 65'536;
constexpr std::int64_t kMaxGenerated = 10'000;
/// Entries of one list of the form, at most. The time limit of a job bounds the number of their combinations.
constexpr std::size_t kMaxEntries = 200;

const std::vector<std::string>& kind_names() {
  static const std::vector<std::string> names = {"compare", "plan", "generate"};
  return names;
}

std::vector<JsonNode> entries(const JsonNode& list) {
  auto all = list.as_array();
  if (all.empty()) list.expected("at least one");
  if (all.size() > kMaxEntries)
    list.fail(fmt::format("found {} entries, expected at most {}", all.size(), kMaxEntries));
  return all;
}

/// The names of an optional list; `check` throws ConfigError for one that is not offered.
template <class Check>
std::vector<std::string> names(JsonObject& in, const char* key, const Check& check) {
  std::vector<std::string> all;
  if (const auto list = in.optional(key))
    for (const JsonNode& entry : entries(*list)) all.push_back(check(entry));
  return all;
}

std::string provider(const JsonNode& node) { return node.as_choice(platforms::provider_names()); }
std::string policy(const JsonNode& node) { return node.as_choice(policy_options()); }
std::string scheme(const JsonNode& node) { return sim::read_scheme(node).name(); }
/// A text that the command only looks up or reads as a quantity.
std::string text(const JsonNode& node) { return node.as_string(); }

void copy_text(JsonObject& in, const char* key, OrderedJson& to) {
  if (const auto node = in.optional(key)) to[key] = node->as_string();
}

struct Workload {
  OrderedJson content;
  std::string title;
};

Workload read_workload(const JsonNode& node, bool steps_allowed) {
  JsonObject in(node);
  Workload workload;
  std::vector<std::string> traces;
  for (const WorkloadOption& option : workload_options()) traces.push_back(option.trace);
  const std::string trace = in.required("trace").as_choice(traces);
  workload.content["trace"] = trace;
  const std::int64_t batch = in.required("batch_per_gpu").as_integer(1, 1 << 24);
  workload.title = fmt::format("{}, batch {}", trace.substr(trace.find(':') + 1), batch);
  if (const auto dataset = in.optional("dataset")) {
    JsonObject of(*dataset);
    workload.content["dataset"] = {{"name", of.required("name").as_string()},
                                   {"images", of.required("images").as_integer(1, kMaxImages)},
                                   {"bytes_per_image", of.required("bytes_per_image").as_number(1, 1e12)}};
    of.finish();
  }
  workload.content["batch_per_gpu"] = batch;
  const char* target = nullptr;
  for (const char* unit : {"epochs", "images", "steps"}) {
    const auto amount = in.optional(unit);
    if (!amount) continue;
    if (target != nullptr) amount->fail(fmt::format("expected one target, there is \"{}\" too", target));
    if (!steps_allowed && unit == std::string_view("steps"))
      amount->fail("a plan compares allocations of different sizes; expected \"images\" or \"epochs\"");
    target = unit;
    workload.content[unit] = amount->as_integer(1, kMaxImages);
    workload.title += fmt::format(", {} {}", amount->as_integer(1, kMaxImages), unit);
  }
  if (target == nullptr) node.expected("a target: \"epochs\", \"images\" or \"steps\"");
  in.finish();
  return workload;
}

OrderedJson platform_entry(const JsonNode& node) {
  JsonObject in(node);
  OrderedJson platform = {{"catalog", provider(in.required("catalog"))}, {"region", in.required("region").as_string()}};
  const JsonNode what = in.one_of("gpu", "instance");
  platform[what.pointer().ends_with("/gpu") ? "gpu" : "instance"] = what.as_string();
  copy_text(in, "market", platform);
  in.finish();
  return platform;
}

/// Writes checkpoints to the catalog's object store, or to its first storage if it has none. A study has one name of
/// storage for all its platforms, which must therefore be of one catalog.
void add_checkpoints(const JsonNode& every, OrderedJson& study) {
  const std::string name = study["platforms"][0]["catalog"].get<std::string>();
  for (const OrderedJson& platform : study["platforms"])
    if (platform["catalog"] != name)
      every.fail("checkpoints need storage, whose name differs by provider: choose platforms of one provider, or none");
  const platforms::Platform& platform = platforms::catalog(name);
  if (platform.storage.empty()) every.fail(fmt::format("the catalog {} has no storage for checkpoints", name));
  const auto store = std::find_if(platform.storage.begin(), platform.storage.end(),
                                  [](const platforms::Storage& storage) { return storage.object_store; });
  study["storage"]["checkpoint"] = (store == platform.storage.end() ? platform.storage.front() : *store).name;
  study["checkpoint"]["every"] = every.as_string();
}

Form read_compare(JsonObject& in) {
  const Workload workload = read_workload(in.required("workload"), true);
  OrderedJson study = {
      {"schema", "ganymede.study/1"}, {"name", "compare"}, {"about", workload.title}, {"workload", workload.content}};
  study["platforms"] = OrderedJson::array();
  for (const JsonNode& platform : entries(in.required("platforms")))
    study["platforms"].push_back(platform_entry(platform));
  study["gpus"] = OrderedJson::array();
  for (const JsonNode& count : entries(in.required("gpus"))) study["gpus"].push_back(count.as_integer(1, kMaxGpus));
  in.required("schemes");
  study["schemes"] = names(in, "schemes", scheme);
  in.required("policies");
  study["policies"] = names(in, "policies", policy);
  for (const char* key : {"deadline", "budget"}) copy_text(in, key, study);
  if (const auto every = in.optional("checkpoint")) add_checkpoints(*every, study);
  JsonObject seeds(in.required("seeds"));
  study["seeds"] = {{"first", seeds.required("first").as_seed()},
                    {"count", seeds.required("count").as_integer(1, 10'000)}};
  seeds.finish();
  const std::size_t platforms = study["platforms"].size();
  return {JobKind::compare,
          fmt::format("{}; {} platform{}, {} GPUs", workload.title, platforms, platforms == 1 ? "" : "s",
                      fmt::join(study["gpus"].get<std::vector<std::int64_t>>(), ", ")),
          study.dump(2) + "\n"};
}

Form read_plan(JsonObject& in) {
  const Workload workload = read_workload(in.required("workload"), false);
  OrderedJson request = {{"schema", "ganymede.request/1"}, {"workload", workload.content}};
  std::string title = workload.title;
  for (const char* key : {"objective", "deadline", "budget"}) {
    copy_text(in, key, request);
    if (request.contains(key)) title += fmt::format(", {} {}", key, request[key].get<std::string>());
  }
  OrderedJson search = OrderedJson::object();
  const auto add = [&](const char* key, const std::vector<std::string>& chosen) {
    if (!chosen.empty()) search[key] = chosen;
  };
  add("catalogs", names(in, "catalogs", provider));
  for (const char* key : {"gpus", "regions", "markets"}) add(key, names(in, key, text));
  add("schemes", names(in, "schemes", scheme));
  add("policies", names(in, "policies", policy));
  for (const char* key : {"min_gpus", "max_gpus"})
    if (const auto count = in.optional(key)) search[key] = count->as_integer(1, kMaxGpus);
  if (const auto seeds = in.optional("seeds")) search["seeds"] = seeds->as_integer(1, 1'000);
  if (const auto certainty = in.optional("certainty")) search["certainty"] = certainty->as_number(0.01, 1);
  if (const auto sure = in.optional("sure")) search["sure"] = sure->as_bool();
  request["search"] = search;
  request["seed"] = in.required("seed").as_seed();
  return {JobKind::plan, title, request.dump(2) + "\n"};
}

struct Generation {
  std::string checkpoint;
  std::int64_t count = 1;
  std::uint64_t seed = 1;
};

Generation read_generation(JsonObject& in, const Checkpoints& checkpoints) {
  const JsonNode checkpoint = in.required("checkpoint");
  if (checkpoints.empty()) checkpoint.fail("there is no checkpoint; --checkpoint DIR of `ganymede serve` names one");
  std::vector<std::string> known;
  for (const auto& [name, path] : checkpoints) known.push_back(name);
  Generation generation;
  generation.checkpoint = checkpoint.as_choice(known);
  generation.count = in.required("count").as_integer(1, kMaxGenerated);
  generation.seed = in.required("seed").as_seed();
  return generation;
}

Form read_generate(JsonObject& in, const Checkpoints& checkpoints) {
  const Generation wanted = read_generation(in, checkpoints);
  const OrderedJson input = {{"checkpoint", wanted.checkpoint}, {"count", wanted.count}, {"seed", wanted.seed}};
  return {JobKind::generate,
          fmt::format("{} image{} from {}, seed {}", wanted.count, wanted.count == 1 ? "" : "s", wanted.checkpoint,
                      wanted.seed),
          input.dump(2) + "\n"};
}

}  // namespace

std::string_view to_string(JobKind kind) { return kind_names()[static_cast<std::size_t>(kind)]; }

JobKind read_job_kind(const JsonNode& node) {
  const auto found = std::find(kind_names().begin(), kind_names().end(), node.as_choice(kind_names()));
  return static_cast<JobKind>(found - kind_names().begin());
}

Form read_form(const JsonNode& form, const Checkpoints& checkpoints) {
  JsonObject in(form);
  const JobKind kind = read_job_kind(in.required("kind"));
  Form read = kind == JobKind::compare ? read_compare(in)
              : kind == JobKind::plan  ? read_plan(in)
                                       : read_generate(in, checkpoints);
  in.finish();
  return read;
}

std::vector<std::string> arguments_of(JobKind kind, const std::string& input, const Checkpoints& checkpoints,
                                      int cores) {
  if (kind != JobKind::generate)
    return {kind == JobKind::plan ? "plan" : "sweep",
            "input.json",
            "--format",
            "json",
            "-o",
            "result.json",
            "--jobs",
            std::to_string(cores)};
  JsonObject in(JsonNode::parse(input, "input.json"));
  const Generation wanted = read_generation(in, checkpoints);
  in.finish();
  return {"generate",
          "--checkpoint",
          std::filesystem::absolute(checkpoints.at(wanted.checkpoint)).string(),
          "--count",
          std::to_string(wanted.count),
          "--seed",
          std::to_string(wanted.seed),
          "--format",
          "json",
          "-o",
          "images.png"};
}

}  // namespace ganymede::serve
