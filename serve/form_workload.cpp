#include "serve/form_workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "calibration/stated_step.hpp"
#include "common/dates.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "common/written.hpp"
#include "platforms/catalog.hpp"
#include "report/numbers.hpp"
#include "traces/recorded.hpp"

namespace ganymede::serve {
namespace {
constexpr int kMaxFormBatch = 1 << 24;

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
    words = report::with_thousands(amount->as_integer(1, kMaxFormImages)) + " " + unit;
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

}  // namespace

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
    JsonObject of(*dataset);
    workload.content["dataset"] = {{"name", of.required("name").as_string()},
                                   {"images", of.required("images").as_integer(1, kMaxFormImages)},
                                   {"bytes_per_image", of.required("bytes_per_image").as_number(1, 1e12)}};
    of.finish();
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

std::string read_form_catalog(const JsonNode& node, FormReading& reading) {
  std::vector<std::string> known = platforms::provider_names();
  for (const auto& upload : reading.offer.uploads)
    if (upload->platform) known.push_back(upload->key());
  const std::string name = node.as_choice(known);
  const auto upload = find_upload(name, reading.offer);
  return upload ? use_upload(*upload, reading) : name;
}

const platforms::Platform& form_platform(const std::string& name, const Offer& offer) {
  const auto upload = find_upload(name, offer);
  return upload ? *upload->platform : platforms::catalog(name);
}

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

}  // namespace ganymede::serve
