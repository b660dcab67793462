#include "serve/forms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "common/written.hpp"
#include "kernel/models/models.hpp"
#include "sim/collectives/allreduce.hpp"

namespace ganymede::serve {
namespace {
constexpr std::int64_t kMaxGenerated = 10'000;
constexpr std::int64_t kMaxTrainedBatch = 4096, kMaxTrainedSteps = 10'000'000;
constexpr std::int64_t kMaxPredictedGpus = 16;  ///< more would make the search for what to rent long
/// Entries of one list of the form, at most. The time limit of a job bounds the number of their combinations.
constexpr std::size_t kMaxEntries = 200;

const std::vector<std::string>& kind_names() {
  static const std::vector<std::string> names = {"compare", "plan", "generate", "train"};
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

std::string policy(const JsonNode& node) { return node.as_choice(policy_options()); }
std::string scheme(const JsonNode& node) { return sim::read_scheme(node).name(); }
/// A text that the command only looks up or reads as a quantity.
std::string text(const JsonNode& node) { return node.as_string(); }

/// Writes checkpoints to the catalog's object store, or to its first storage if it has none. A study has one name of
/// storage for all its platforms, which must therefore be of one catalog.
void add_checkpoints(const JsonNode& every, const std::vector<JsonNode>& platforms, const Offer& offer,
                     OrderedJson& study) {
  const std::string name = platforms.front().child("catalog").as_string();
  for (const JsonNode& platform : platforms)
    if (platform.child("catalog").as_string() != name)
      every.fail("checkpoints need storage, whose name differs by provider: choose platforms of one provider, or none");
  const platforms::Platform& platform = form_platform(name, offer);
  if (platform.storage.empty()) every.fail(fmt::format("the catalog {} has no storage for checkpoints", name));
  const auto store = std::find_if(platform.storage.begin(), platform.storage.end(),
                                  [](const platforms::Storage& storage) { return storage.object_store; });
  study["storage"]["checkpoint"] = (store == platform.storage.end() ? platform.storage.front() : *store).name;
  if (every.as_string() != "daly") (void)with_unit(every, {"min", "h"}).as_positive<Seconds>();
  study["checkpoint"]["every"] = every.as_string();
}

Form read_compare(JsonObject& in, const Offer& offer) {
  FormReading reading{offer};
  const FormWorkload workload = read_form_workload(in.required("workload"), true, reading);
  OrderedJson study = {
      {"schema", "ganymede.study/1"}, {"name", "compare"}, {"about", workload.title}, {"workload", workload.content}};
  study["platforms"] = OrderedJson::array();
  const std::vector<JsonNode> wanted = entries(in.required("platforms"));
  for (const JsonNode& platform : wanted) study["platforms"].push_back(read_form_platform(platform, reading));
  study["gpus"] = OrderedJson::array();
  for (const JsonNode& count : entries(in.required("gpus"))) study["gpus"].push_back(count.as_integer(1, kMaxFormGpus));
  in.required("schemes");
  study["schemes"] = names(in, "schemes", scheme);
  in.required("policies");
  study["policies"] = names(in, "policies", policy);
  read_form_goals(in, false, study);
  if (const auto every = in.optional("checkpoint")) add_checkpoints(*every, wanted, offer, study);
  JsonObject seeds(in.required("seeds"));
  study["seeds"] = {{"first", seeds.required("first").as_seed()},
                    {"count", seeds.required("count").as_integer(1, 10'000)}};
  seeds.finish();
  const std::size_t platforms = study["platforms"].size();
  return {JobKind::compare,
          fmt::format("{}; {} platform{}, {} GPUs", workload.title, platforms, platforms == 1 ? "" : "s",
                      fmt::join(study["gpus"].get<std::vector<std::int64_t>>(), ", ")),
          study.dump(2) + "\n", std::move(reading.files)};
}

Form read_plan(JsonObject& in, const Offer& offer) {
  FormReading reading{offer};
  const FormWorkload workload = read_form_workload(in.required("workload"), false, reading);
  OrderedJson request = {{"schema", "ganymede.request/1"}, {"workload", workload.content}};
  std::string title = workload.title;
  if (const auto objective = in.optional("objective")) request["objective"] = objective->as_string();
  read_form_goals(in, true, request);
  for (const char* key : {"objective", "deadline", "budget"})
    if (request.contains(key)) title += fmt::format(", {} {}", key, request[key].get<std::string>());
  OrderedJson search = OrderedJson::object();
  const auto add = [&](const char* key, const std::vector<std::string>& chosen) {
    if (!chosen.empty()) search[key] = chosen;
  };
  add("catalogs", names(in, "catalogs", [&](const JsonNode& node) { return read_form_catalog(node, reading); }));
  for (const char* key : {"gpus", "regions", "markets"}) add(key, names(in, key, text));
  add("schemes", names(in, "schemes", scheme));
  add("policies", names(in, "policies", policy));
  for (const char* key : {"min_gpus", "max_gpus"})
    if (const auto count = in.optional(key)) search[key] = count->as_integer(1, kMaxFormGpus);
  if (const auto seeds = in.optional("seeds")) search["seeds"] = seeds->as_integer(1, 1'000);
  if (const auto certainty = in.optional("certainty")) search["certainty"] = certainty->as_number(0.01, 1);
  if (const auto sure = in.optional("sure")) search["sure"] = sure->as_bool();
  request["search"] = search;
  request["seed"] = in.required("seed").as_seed();
  return {JobKind::plan, title, request.dump(2) + "\n", std::move(reading.files)};
}

Form read_generate(JsonObject& in, const Checkpoints& checkpoints) {
  const Generation wanted = read_generation(in, checkpoints);
  const OrderedJson input = {{"checkpoint", wanted.checkpoint}, {"count", wanted.count}, {"seed", wanted.seed}};
  return {JobKind::generate,
          fmt::format("{} image{} from {}, seed {}", wanted.count, wanted.count == 1 ? "" : "s", wanted.checkpoint,
                      wanted.seed),
          input.dump(2) + "\n"};
}

Form read_train(JsonObject& in) {
  const Training wanted = read_training(in);
  const OrderedJson input = {{"model", wanted.model}, {"batch", wanted.batch},   {"steps", wanted.steps},
                             {"seed", wanted.seed},   {"images", wanted.images}, {"max_gpus", wanted.max_gpus}};
  return {JobKind::train, fmt::format("{}, batch {}, {} steps", wanted.model, wanted.batch, wanted.steps),
          input.dump(2) + "\n"};
}

}  // namespace

std::string_view to_string(JobKind kind) { return kind_names()[static_cast<std::size_t>(kind)]; }

JobKind read_job_kind(const JsonNode& node) {
  const auto found = std::find(kind_names().begin(), kind_names().end(), node.as_choice(kind_names()));
  return static_cast<JobKind>(found - kind_names().begin());
}

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

Training read_training(JsonObject& in) {
  Training training;
  training.model = in.required("model").as_choice(kernel::model_names());
  training.batch = in.required("batch").as_integer(1, kMaxTrainedBatch);
  training.steps = in.required("steps").as_integer(1, kMaxTrainedSteps);
  training.seed = in.required("seed").as_seed();
  const auto images = in.optional("images");
  training.images = images ? images->as_integer(1, kMaxFormImages) : training.steps * training.batch;
  if (const auto gpus = in.optional("max_gpus")) training.max_gpus = gpus->as_integer(1, kMaxPredictedGpus);
  return training;
}

Form read_form(const JsonNode& form, const Offer& offer) {
  JsonObject in(form);
  const JobKind kind = read_job_kind(in.required("kind"));
  Form read = kind == JobKind::compare    ? read_compare(in, offer)
              : kind == JobKind::plan     ? read_plan(in, offer)
              : kind == JobKind::generate ? read_generate(in, offer.checkpoints)
                                          : read_train(in);
  in.finish();
  return read;
}

}  // namespace ganymede::serve
