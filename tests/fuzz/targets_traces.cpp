// Readers of what was recorded elsewhere: step traces, layer lists, logs of nccl-tests, profilers and quality.

#include <array>

#include "calibration/kernels/measured_kernels.hpp"
#include "calibration/quality/model.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "target.hpp"
#include "traces/bill_file.hpp"
#include "traces/layer_list.hpp"
#include "traces/nccl_log.hpp"
#include "traces/profiler_trace.hpp"
#include "traces/quality_curve.hpp"
#include "traces/quality_log.hpp"
#include "traces/run_pace.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::fuzz {
namespace {

traces::RooflineDevice some_gpu() {
  return {"V100", FlopsPerSecond{15.7e12}, BytesPerSecond{900e9}, Seconds{4e-6}, Bytes{16e9}};
}

void read_step_trace(std::string_view bytes) {
  const traces::StepTrace trace = traces::read_step_trace(JsonNode::parse(bytes, "trace.json"));
  const std::string text = traces::write_step_trace(trace);
  expect(traces::write_step_trace(traces::read_step_trace(JsonNode::parse(text, "again.json"))) == text,
         "a trace that is read as it was written");
}

/// Lines POINTER=VALUE as `--set` takes them, an empty line, and the document.
void set_values(std::string_view bytes) {
  std::vector<JsonOverride> given;
  while (!bytes.empty() && bytes[0] != '\n') {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
    const std::size_t sign = std::min(line.find('='), line.size());
    if (!line.starts_with('/')) return;  // as the command line's reader refuses it
    given.push_back({std::string(line.substr(0, sign)), std::string(line.substr(std::min(sign + 1, line.size())))});
  }
  const JsonNode changed = JsonNode::load(file_of(bytes), given);
  for (const JsonOverride& one : given)
    if (given.size() == 1 && one.value.find("null") == std::string::npos && one.pointer.find('-') == std::string::npos)
      expect(changed.value().contains(JsonPointer(one.pointer)), "what was set is there");
}

void read_layers(std::string_view bytes) {
  const traces::LayerList list = traces::read_layer_list(JsonNode::parse(bytes, "layers.json"));
  const traces::StepTrace trace = traces::trace_of(list, {1, 64}, some_gpu());
  (void)traces::write_step_trace(trace);
}

void read_profiler(std::string_view bytes) {
  const traces::ProfilerEvents events = traces::read_profiler_events(file_of(bytes));
  traces::ProfilerOptions options;
  options.batch = 64;
  options.model = "model";
  options.device = some_gpu();
  (void)traces::import_profiler(events, options);
  options.parameters = 1'000'000;
  (void)traces::import_profiler(events, options);
  static const traces::LayerList kLayers = traces::read_layer_list(JsonNode::parse(R"({
    "schema": "ganymede.layers/1", "name": "m", "networks": {
      "generator": { "input": [3, 8, 8], "layers": [ { "kind": "linear", "out": 1 } ] },
      "discriminator": { "input": [3, 8, 8], "layers": [ { "kind": "linear", "out": 1 } ] } } })",
                                                                                   "layers.json"));
  options.layers = kLayers;
  (void)traces::import_profiler(events, options);
}

void read_quality_curves(std::string_view bytes) {
  const traces::QualityCurves curves = traces::read_quality_curves(JsonNode::parse(bytes, "curves.json"));
  (void)traces::write_quality_curves(curves);
  (void)traces::images_for(curves, {20.0, {}}, 64);
}

/// TensorFlow's checksum of records: CRC-32C, rotated and moved.
std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ (0x82f63b78U & (0U - (crc & 1U)));
  }
  crc = ~crc;
  return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

void append(std::string& out, std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i) out.push_back(static_cast<char>(value >> (8U * static_cast<unsigned>(i))));
}

/// The input is the events alone, each after its length in one byte: checksums that hold are added, because no change
/// would find them.
void read_events(std::string_view bytes) {
  std::string file;
  while (!bytes.empty()) {
    const std::size_t length = std::min<std::size_t>(static_cast<unsigned char>(bytes[0]), bytes.size() - 1);
    std::string head;
    append(head, length, 8);
    const std::string_view event = bytes.substr(1, length);
    file += head;
    append(file, checksum(head), 4);
    file += event;
    append(file, checksum(event), 4);
    bytes.remove_prefix(1 + length);
  }
  if (!traces::is_event_file(file)) return;
  (void)traces::read_event_file("events.out", file, {"", 64, ""});
}

/// Whole, and by tag, resource and window, which may find nothing.
void read_bills(std::string_view bytes) {
  const std::filesystem::path file = file_of(bytes);
  for (const traces::BillPart& part : {traces::BillPart{.tag = "project=gan"}, traces::BillPart{.resource = "i-0abc"},
                                       traces::BillPart{.from = 1'790'000'000, .to = 1'800'000'000}})
    try {
      (void)traces::read_bill_file(file, {"p3.2xlarge"}, part);
    } catch (const ConfigError&) {
      // Most inputs have no row of it; the whole bill is read all the same.
    }
  (void)traces::read_bill_file(file, {"p3.2xlarge"});
}

}  // namespace

std::vector<Target> trace_targets() {
  return {
      {"step-trace", "documents/step_trace.cpp", read_step_trace, "step-trace"},
      {"set", "common/json.cpp common/json_parse.cpp", set_values},
      {"layers", "traces/layer_list.cpp traces/layer_walk.cpp traces/layer_images.cpp", read_layers, "layers"},
      {"nccl-log", "traces/nccl_log.cpp", [](std::string_view bytes) { (void)traces::read_nccl_log(file_of(bytes)); }},
      {"bill", "traces/bill_file.cpp traces/bill_part.cpp traces/inflated_text.cpp common/csv.cpp", read_bills},
      {"profiler", "traces/profiler_events.cpp traces/profiler_steps.cpp traces/profiler_trace.cpp", read_profiler},
      {"quality-curve", "traces/quality_curve.cpp", read_quality_curves},
      {"quality-log", "traces/quality_log.cpp traces/quality_csv.cpp common/csv.cpp",
       [](std::string_view bytes) {
         const std::filesystem::path file = file_of(bytes);
         (void)traces::read_quality_logs(file, {"", 64, ""});
         (void)traces::read_quality_logs(file, {"", 0, ""});
       }},
      {"run-pace", "traces/run_pace.cpp",
       [](std::string_view bytes) { (void)traces::read_run_pace(std::string(bytes), "log"); }},
      {"event-file", "traces/event_file.cpp", read_events},
      {"kernel-csv", "calibration/kernels/measured_kernels.cpp",
       [](std::string_view bytes) { (void)calibration::parse_measured_kernels(bytes, "kernels.csv"); }},
      {"quality-model", "calibration/quality/model_json.cpp",
       [](std::string_view bytes) {
         (void)calibration::write_quality_model(calibration::read_quality_model(JsonNode::parse(bytes, "model.json")));
       }},
  };
}

}  // namespace ganymede::fuzz
