#include "serve/form_options.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "calibration/device_memory.hpp"
#include "calibration/kernels/gpu_sheets.hpp"
#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_parse.hpp"
#include "common/json_value.hpp"
#include "kernel/checkpoint.hpp"
#include "kernel/models/models.hpp"
#include "platforms/catalog.hpp"
#include "platforms/providers.hpp"
#include "policies/policy.hpp"
#include "serve/command_run.hpp"
#include "sim/collectives/allreduce.hpp"
#include "traces/layer_list.hpp"
#include "traces/recorded.hpp"

namespace ganymede::serve {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUploadSchema = "ganymede.serve-upload/1";

const std::vector<std::string>& upload_kinds() {
  static const std::vector<std::string> names = {"trace", "platform"};
  return names;
}

std::shared_ptr<const Upload> checked_upload(int id, const std::string& kind, const std::string& name,
                                             std::string text) {
  auto upload = std::make_shared<Upload>();
  upload->id = id;
  upload->name = shown_name(name);
  const auto& kinds = upload_kinds();
  const JsonNode asked = JsonNode::wrap(Json(kind), "upload: kind", "");
  upload->kind = asked.as_choice(kinds) == "trace" ? UploadKind::trace : UploadKind::platform;
  // Small values take many times their text, and the server's memory is everybody's.
  constexpr Bytes kMostToRead{512.0 * (1U << 20U)};
  if (const Bytes needed = memory_to_read(text); needed > kMostToRead)
    throw ConfigError(fmt::format("{}: reading it would take about {} of memory, expected at most {}", upload->name,
                                  to_string(needed), to_string(kMostToRead)));
  const JsonNode content = JsonNode::parse(text, upload->name);
  if (upload->kind == UploadKind::trace)
    upload->trace = std::make_unique<traces::StepTrace>(traces::read_step_trace(content));
  else
    upload->platform = std::make_unique<platforms::Platform>(platforms::read_platform(content));
  upload->text = std::move(text);
  return upload;
}

}  // namespace

std::string shown_name(std::string name) {
  try {
    (void)Json(name).dump();
  } catch (const JsonError&) {
    throw ConfigError("name: expected UTF-8");
  }
  if (name.size() > UploadStore::kMaxName) {
    std::size_t end = UploadStore::kMaxName;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;  // not within a character
    name.resize(end);
  }
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return name.empty() ? "file" : name;
}

std::string Upload::key() const { return fmt::format("upload:{}", id); }
std::string Upload::file() const {
  return fmt::format("{}-{}.json", kind == UploadKind::trace ? "trace" : "platform", id);
}

UploadStore::UploadStore(fs::path folder, std::vector<std::string>& remarks) : folder_(std::move(folder)) {
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    const std::string stem = entry->path().stem().string();
    if (stem.starts_with(kTrial)) {  // what a killed server was trying
      std::error_code ignored;
      fs::remove_all(entry->path(), ignored);
    }
    int id = 0;
    const auto [rest, wrong] = std::from_chars(stem.data(), stem.data() + stem.size(), id);
    if (wrong != std::errc{} || rest != stem.data() + stem.size() || id <= 0 || id > 999'999 ||
        file_of(id) != entry->path())
      continue;
    last_ = std::max(last_, id);
    try {
      JsonObject in(JsonNode::load(entry->path()));
      check_schema(in, kUploadSchema);
      const std::string kind = in.required("kind").as_string(), name = in.required("name").as_string();
      uploads_[id] = checked_upload(id, kind, name, in.required("content").as_string());
      in.finish();
    } catch (const std::exception& what) {
      uploads_.erase(id);
      remarks.push_back(fmt::format("upload {} is left out: {}", id, what.what()));
    }
  }
}

fs::path UploadStore::file_of(int id) const { return folder_ / fmt::format("{}.json", id); }

int UploadStore::add(const std::string& kind, const std::string& name, std::string text) {
  if (text.size() > kMaxBytes)
    throw ConfigError(fmt::format("found {} bytes, expected at most {}", text.size(), kMaxBytes));
  const std::lock_guard lock(mutex_);
  // A document of small values takes many times its text while it is read, in the heap of whichever thread got it.
  const struct GivesBack {
    ~GivesBack() { ::malloc_trim(0); }
  } gives_back;
  if (uploads_.size() >= kMaxFiles)
    throw ConfigError(fmt::format("there are {} files already, as many as may be: forget one first", kMaxFiles));
  const auto upload = checked_upload(last_ + 1, kind, name, std::move(text));
  const OrderedJson record = {
      {"schema", kUploadSchema}, {"kind", kind}, {"name", upload->name}, {"content", upload->text}};
  write_file(file_of(upload->id), record.dump(1) + "\n");
  uploads_[++last_] = upload;
  return upload->id;
}

void UploadStore::forget(int id) {
  const std::lock_guard lock(mutex_);
  if (!uploads_.contains(id)) throw NoSuchUpload(fmt::format("there is no upload {}", id));
  std::error_code error;
  if (!fs::remove(file_of(id), error) && error)
    throw Failure(fmt::format("{}: {}", file_of(id).string(), error.message()));
  uploads_.erase(id);
}

Uploads UploadStore::all() const {
  const std::lock_guard lock(mutex_);
  Uploads all;
  for (const auto& [id, upload] : uploads_) all.push_back(upload);
  return all;
}

namespace {
struct Dataset {
  const char* name;
  std::int64_t images;
  double bytes_per_image;  ///< as it is stored: one byte for each channel of a pixel
};
constexpr Dataset kDatasets[] = {{"mnist", 60'000, 28 * 28},
                                 {"cifar-10", 50'000, 32 * 32 * 3},
                                 {"celeba", 202'599, 64 * 64 * 3},
                                 {"ffhq", 70'000, 256 * 256 * 3}};

/// The data set whose images have that size; if there is none, the data set with the largest images.
std::string dataset_of(double bytes_per_image) {
  for (const Dataset& dataset : kDatasets)
    if (dataset.bytes_per_image == bytes_per_image) return dataset.name;
  return std::end(kDatasets)[-1].name;
}

/// Bytes of an image of the model's default shape, one for each channel of a pixel; 0 if the program has no such model.
double bytes_per_image_of(const std::string& model) {
  for (const kernel::Model& known : kernel::models()) {
    const kernel::ImageShape& image = known.images.front();
    if (known.name == model) return static_cast<double>(image.height) * image.width * image.channels;
  }
  return 0;
}

WorkloadOption workload_of(const std::string& name, const traces::StepTrace& steps, const std::string& about,
                           double bytes_per_image) {
  WorkloadOption option;
  option.trace = name;
  option.model = steps.model;
  option.about = about.empty() ? "recorded on " + steps.device.name : about;
  std::set<std::string> stages;
  for (const traces::TraceBatch& batch : steps.batches) {
    stages.insert(batch.stage);
    double& most = option.memory_bytes[batch.batch];  // a growing model needs most in its last stage
    most = std::max(most, calibration::device_memory(steps, batch, platforms::Gpu{}, /*several_gpus=*/true).high);
  }
  option.dataset = dataset_of(bytes_per_image > 0 ? bytes_per_image : bytes_per_image_of(steps.model));
  option.measurable = !steps.kernels.empty() && stages.size() == 1;
  return option;
}

WorkloadOption workload_of(const std::string& trace, const std::string& about, double bytes_per_image) {
  const JsonNode at = JsonNode::wrap(Json(trace), trace, "");
  return workload_of(trace, traces::read_step_trace(JsonNode::parse(traces::trace_text(at), trace)), about,
                     bytes_per_image);
}

OrderedJson json_of(const WorkloadOption& option) {
  OrderedJson memory = OrderedJson::object();
  std::vector<int> batches;
  for (const auto& [batch, bytes] : option.memory_bytes) {
    batches.push_back(batch);
    memory[std::to_string(batch)] = bytes;
  }
  return {{"trace", option.trace},  {"model", option.model},     {"about", option.about},          {"batches", batches},
          {"memory_bytes", memory}, {"dataset", option.dataset}, {"measurable", option.measurable}};
}

OrderedJson datasets() {
  OrderedJson rows = OrderedJson::array();
  for (const Dataset& dataset : kDatasets)
    rows.push_back({{"name", dataset.name},
                    {"images", dataset.images},
                    {"bytes_per_image", static_cast<std::int64_t>(dataset.bytes_per_image)}});
  return rows;
}

template <class Names>
std::size_t index_of(const Names& names, const std::string& name) {
  return static_cast<std::size_t>(std::distance(names.begin(), std::find(names.begin(), names.end(), name)));
}

/// A provider's rentable instances; an offer is [index of the region, index of the market, USD an hour].
OrderedJson platforms_of(const std::string& name, const platforms::Platform& platform, bool owned) {
  std::set<std::string> regions;
  for (const platforms::Instance& instance : platform.instances)
    if (instance.retired.empty())
      for (const platforms::Price& price : instance.prices) regions.insert(price.region);
  OrderedJson instances = OrderedJson::array();
  for (const platforms::Instance& instance : platform.instances) {
    if (!instance.retired.empty()) continue;
    std::set<std::pair<std::size_t, std::size_t>> offered;  // zones of a region may have prices of their own
    OrderedJson offers = OrderedJson::array();
    for (const platforms::Price& price : instance.prices) {
      const auto place = std::pair{index_of(regions, price.region), static_cast<std::size_t>(price.market)};
      if (offered.insert(place).second) offers.push_back({place.first, place.second, decimal(price.per_hour)});
    }
    if (offers.empty()) continue;
    const platforms::Gpu& gpu = platform.gpu_of(instance);
    instances.push_back({{"name", instance.name},
                         {"gpu", gpu.name},
                         {"family", gpu.family},
                         {"kind", gpu.kind == platforms::Gpu::Kind::cpu ? "cpu" : "gpu"},
                         {"gpus", instance.gpus},
                         {"memory_bytes", gpu.memory.si},
                         {"offers", std::move(offers)}});
  }
  return {{"name", name}, {"owned", owned}, {"regions", regions}, {"instances", std::move(instances)}};
}

OrderedJson providers() {
  OrderedJson all = OrderedJson::array();
  for (const std::string& name : platforms::provider_names()) {
    OrderedJson one = platforms_of(name, platforms::catalog(name), platforms::provider_of(name).owned);
    if (!one["instances"].empty()) all.push_back(std::move(one));
  }
  return all;
}

/// Policies that the page does not offer, because they need a file of the user's.
OrderedJson needing_files() {
  OrderedJson names = OrderedJson::array();
  for (const policies::Policy& policy : policies::policies())
    if (std::find(policy_options().begin(), policy_options().end(), policy.name) == policy_options().end())
      names.push_back(policy.name);
  return names;
}

/// All options except checkpoints, which may change while the server runs.
const OrderedJson& fixed_options() {
  static const OrderedJson fixed = [] {
    OrderedJson workloads = OrderedJson::array();
    for (const WorkloadOption& option : workload_options()) workloads.push_back(json_of(option));
    OrderedJson sheets = OrderedJson::array();
    for (const calibration::GpuSheet& sheet : calibration::gpu_sheets()) sheets.push_back(sheet.name);
    OrderedJson models = OrderedJson::array();
    for (const kernel::Model& model : kernel::models())
      models.push_back({{"name", model.name}, {"summary", model.summary}});
    OrderedJson schemes = OrderedJson::array();
    for (const sim::AllReduceScheme& scheme : sim::allreduce_schemes())
      schemes.push_back({{"name", scheme.name}, {"summary", scheme.summary}});
    OrderedJson policies = OrderedJson::array();
    for (const std::string& name : policy_options()) {
      const policies::Policy& policy = *policies::find_policy(name);
      policies.push_back({{"name", name},
                          {"summary", policy.summary},
                          {"default", &policy == &policies::default_policy()},
                          {"plan_default", policy.plan_default},
                          {"spot_only", policy.spot_only}});
    }
    return OrderedJson{{"workloads", workloads},
                       {"datasets", datasets()},
                       {"providers", providers()},
                       {"markets", platforms::market_names()},
                       {"schemes", schemes},
                       {"policies", policies},
                       {"measured_on", sheets},
                       {"models", models},
                       {"command_line_policies", needing_files()}};
  }();
  return fixed;
}

bool is_utf8(const std::string& text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const JsonError&) {
    return false;
  }
}

}  // namespace

const std::vector<WorkloadOption>& workload_options() {
  static const std::vector<WorkloadOption> options = [] {
    std::vector<WorkloadOption> all;
    for (const std::string& name : traces::recorded_names())
      all.push_back(workload_of(std::string(traces::kRecorded) + name, "", 0));
    for (const EmbeddedText& list : embedded_layers())
      all.push_back(workload_of(
          std::string(traces::kLayers) + std::string(list.name), "counted from its layers, nothing measured",
          traces::read_layer_list(JsonNode::parse(list.text, std::string(list.name))).bytes_per_image));
    return all;
  }();
  return options;
}

const std::vector<std::string>& policy_options() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const policies::Policy& policy : policies::policies())
      if (policy.decide != nullptr && !policy.learns) all.emplace_back(policy.name);
    return all;
  }();
  return names;
}

Checkpoints find_checkpoints(const Checkpoints& named, const std::filesystem::path& folder) {
  Checkpoints found = named;
  std::error_code ignored;
  for (std::filesystem::directory_iterator it(folder, ignored), end; it != end; it.increment(ignored)) {
    const std::string name = it->path().filename().string();
    if (is_utf8(name) && it->is_directory(ignored) && kernel::has_checkpoints(it->path()))
      found.emplace(name, it->path());
  }
  return found;
}

OrderedJson form_options_json(const Offer& offer) {
  OrderedJson options = fixed_options();
  options["checkpoints"] = OrderedJson::array();
  for (const auto& [name, path] : offer.checkpoints) options["checkpoints"].push_back(name);
  options["uploads"] = OrderedJson::array();
  for (const auto& upload : offer.uploads) {
    const bool trace = upload->trace != nullptr;
    options["uploads"].push_back({{"id", upload->id}, {"kind", trace ? "trace" : "platform"}, {"name", upload->name}});
    if (trace) {
      options["workloads"].push_back(
          json_of(workload_of(upload->key(), *upload->trace, "recorded on " + upload->trace->device.name, 0)));
      options["workloads"].back()["label"] = upload->name;
    } else {
      options["providers"].push_back(platforms_of(upload->key(), *upload->platform, false));
      options["providers"].back()["label"] = upload->name;
    }
  }
  return options;
}

}  // namespace ganymede::serve
