#include "serve/forms.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "calibration/stated_step.hpp"
#include "common/dates.hpp"
#include "common/json.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "common/written.hpp"
#include "kernel/models/models.hpp"
#include "platforms/catalog.hpp"
#include "sim/collectives/allreduce.hpp"
#include "traces/recorded.hpp"

namespace ganymede::serve {
namespace {
constexpr std::int64_t kMaxFormImages = 1'000'000'000'000;
constexpr std::int64_t kMaxFormGpus = 65'536;
constexpr int kMaxFormBatch = 1 << 24;

/// The offers, and the files that the form needs as far as it was read.
struct FormReading {
  const Offer& offer;
  std::vector<JobInput> files{};
};

struct FormWorkload {
  OrderedJson content;
  std::string title;
};

std::shared_ptr<const Upload> find_upload(const std::string& key, const Offer& offer) {
  for (const auto& upload : offer.uploads)
    if (upload->key() == key) return upload;
  return nullptr;
}

/// The name of the upload's file in the job's folder; the file is added if it is not there yet.
std::string use_upload(const Upload& upload, FormReading& reading) {
  const std::string file = upload.file();
  const bool known = std::any_of(reading.files.begin(), reading.files.end(),
                                 [&](const JobInput& input) { return input.name == file; });
  if (!known) reading.files.push_back({file, upload.text});
  return file;
}

traces::StepTrace trace_called(const std::string& name, const Offer& offer) {
  if (const auto upload = find_upload(name, offer)) return *upload->trace;
  const JsonNode at = JsonNode::wrap(Json(name), name, "");
  return traces::read_step_trace(JsonNode::parse(traces::trace_text(at), name));
}

/// Checks the step that the user measured as the command will.
void check_measured(const JsonNode& measured, const std::string& trace, std::int64_t batch, const Offer& offer) {
  const calibration::StatedStep stated = calibration::read_stated_step(measured);
  if (stated.batch != batch)
    measured.child("batch").fail(
        fmt::format("found a step of {} images, expected one of the {} of a GPU in a step", stated.batch, batch));
  (void)calibration::with_stated_step(trace_called(trace, offer), stated, measured);
}

/// Copies the target of the training, one of "epochs", "images" and "steps", and returns it in words.
std::string read_target(JsonObject& in, bool steps_allowed, OrderedJson& to) {
  const char* target = nullptr;
  std::string words;
  for (const char* unit : {"epochs", "images", "steps"}) {
    const auto amount = in.optional(unit);
    if (!amount) continue;
    if (target != nullptr) amount->fail(fmt::format("expected one target, there is \"{}\" too", target));
    if (!steps_allowed && unit == std::string_view("steps"))
      amount->fail("a plan compares allocations of different sizes; expected \"images\" or \"epochs\"");
    target = unit;
    to[unit] = amount->as_integer(1, kMaxFormImages);
    words = with_thousands(amount->as_integer(1, kMaxFormImages)) + " " + unit;
  }
  if (target == nullptr) in.node().expected("a target: \"epochs\", \"images\" or \"steps\"");
  return words;
}

/// Fails at the node of the region or of the market for which none of these instances has a price.
void check_priced(const std::vector<const platforms::Instance*>& instances, const JsonNode& region,
                  const JsonNode* market_at, platforms::Market market) {
  std::set<std::string> regions;
  bool sold = false;
  for (const platforms::Instance* instance : instances)
    for (const platforms::Price& price : instance->prices) {
      regions.insert(price.region);
      sold = sold || (price.region == region.as_string() && price.market == market);
    }
  (void)region.as_choice({regions.begin(), regions.end()});
  if (sold) return;
  const std::string problem =
      fmt::format("there is no {} price of it in {}", platforms::to_string(market), region.as_string());
  (market_at != nullptr ? *market_at : region).fail(problem);
}

/// Reads { "trace", "batch_per_gpu", "dataset", "epochs" ... , "measured" }.
FormWorkload read_form_workload(const JsonNode& node, bool steps_allowed, FormReading& reading) {
  JsonObject in(node);
  FormWorkload workload;
  std::vector<std::string> known;
  for (const WorkloadOption& option : workload_options()) known.push_back(option.trace);
  for (const auto& upload : reading.offer.uploads)
    if (upload->trace) known.push_back(upload->key());
  const std::string trace = in.required("trace").as_choice(known);
  const auto upload = find_upload(trace, reading.offer);
  workload.content["trace"] = upload ? use_upload(*upload, reading) : trace;
  const std::int64_t batch = in.required("batch_per_gpu").as_integer(1, kMaxFormBatch);
  workload.title = fmt::format("{}, batch {}", upload ? upload->name : trace.substr(trace.find(':') + 1), batch);
  if (const auto dataset = in.optional("dataset")) {
    JsonObject members(*dataset);
    workload.content["dataset"] = {{"name", members.required("name").as_string()},
                                   {"images", members.required("images").as_integer(1, kMaxFormImages)},
                                   {"bytes_per_image", members.required("bytes_per_image").as_number(1, 1e12)}};
    members.finish();
  }
  workload.content["batch_per_gpu"] = batch;
  if (const auto measured = in.optional("measured")) {
    check_measured(*measured, trace, batch, reading.offer);
    workload.content["measured"] = OrderedJson::parse(measured->value().dump());
    workload.title += fmt::format(", measured on {}", measured->child("gpu").as_string());
  }
  workload.title += ", " + read_target(in, steps_allowed, workload.content);
  in.finish();
  return workload;
}

/// The name of a catalog for the input file: a provider's, or that of a file among `reading.files`.
std::string read_form_catalog(const JsonNode& node, FormReading& reading) {
  std::vector<std::string> known = platforms::provider_names();
  for (const auto& upload : reading.offer.uploads)
    if (upload->platform) known.push_back(upload->key());
  const std::string name = node.as_choice(known);
  const auto upload = find_upload(name, reading.offer);
  return upload ? use_upload(*upload, reading) : name;
}

/// The platform that the form calls so. Precondition: read_form_catalog() has accepted the name.
const platforms::Platform& form_platform(const std::string& name, const Offer& offer) {
  const auto upload = find_upload(name, offer);
  return upload ? *upload->platform : platforms::catalog(name);
}

/// Reads one of the platforms to compare: a region, and a GPU or an instance with a price there.
OrderedJson read_form_platform(const JsonNode& node, FormReading& reading) {
  JsonObject in(node);
  const JsonNode catalog = in.required("catalog"), region = in.required("region");
  OrderedJson entry = {{"catalog", read_form_catalog(catalog, reading)}, {"region", region.as_string()}};
  const platforms::Platform& platform = form_platform(catalog.as_string(), reading.offer);
  const JsonNode what = in.one_of("gpu", "instance");
  std::vector<const platforms::Instance*> instances;
  if (what.pointer().ends_with("/gpu")) {
    std::set<std::string> names;
    for (const platforms::Instance& instance : platform.instances) {
      const platforms::Gpu& gpu = platform.gpu_of(instance);
      names.insert({gpu.name, gpu.family});
      if (what.as_string() == gpu.name || what.as_string() == gpu.family) instances.push_back(&instance);
    }
    entry["gpu"] = what.as_choice({names.begin(), names.end()});
  } else {
    instances.push_back(&platform.instance(what.as_string(), &what));
    entry["instance"] = what.as_string();
  }
  const auto market = in.optional("market");
  check_priced(instances, region, market ? &*market : nullptr,
               market ? platforms::read_market(*market) : platforms::Market::on_demand);
  if (market) entry["market"] = market->as_string();
  in.finish();
  return entry;
}

/// Copies "deadline" and "budget", checked, to `to`. A deadline that is a time is allowed if `times` is true.
void read_form_goals(JsonObject& in, bool times, OrderedJson& to) {
  if (const auto deadline = in.optional("deadline")) {
    const std::string text = deadline->as_string();
    if (const auto end = parse_time(text); end && times) {
      if (*end <= stated_now()) deadline->fail(fmt::format("{} is past", text));
    } else if (times && text.find('T') != std::string::npos) {
      deadline->expected("a duration such as \"60h\", or a time with its zone, such as \"2026-12-01T09:00:00Z\"");
    } else {
      (void)with_unit(*deadline, {"h", "min"}).as_positive<Seconds>();
    }
    to["deadline"] = text;
  }
  if (const auto budget = in.optional("budget")) {
    if (platforms::read_money(*budget).value == 0) budget->fail("expected a budget above 0");
    to["budget"] = budget->as_string();
  }
}

constexpr std::int64_t kMaxGenerated = 10'000;
constexpr std::int64_t kMaxTrainedBatch = 4096, kMaxTrainedSteps = 10'000'000;
constexpr std::int64_t kMaxPredictedGpus = 16;  ///< more would make the search for what to rent long
/// Entries of one list of the form, at most. The time limit of a job bounds the number of their combinations.
constexpr std::size_t kMaxEntries = 200;

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

const std::vector<std::string>& kind_names() {
  static const std::vector<std::string> names = {"compare", "plan", "generate", "train"};
  return names;
}

std::string_view to_string(JobKind kind) { return kind_names()[static_cast<std::size_t>(kind)]; }

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
  const std::string word = in.required("kind").as_choice(kind_names());
  const auto kind =
      static_cast<JobKind>(std::find(kind_names().begin(), kind_names().end(), word) - kind_names().begin());
  Form read = kind == JobKind::compare    ? read_compare(in, offer)
              : kind == JobKind::plan     ? read_plan(in, offer)
              : kind == JobKind::generate ? read_generate(in, offer.checkpoints)
                                          : read_train(in);
  in.finish();
  return read;
}

}  // namespace ganymede::serve
