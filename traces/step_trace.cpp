#include "traces/step_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"

namespace ganymede::traces {
namespace {

constexpr double kMax = std::numeric_limits<double>::max();
constexpr std::int64_t kMaxBatch = 1 << 24;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;
// Seconds by which a phase may seem to end after its step, because clocks are rounded.
constexpr double kClockSlack_s = 1e-6;
const std::vector<std::string> kExecutors = {"eager", "compiled", "graph"};

TraceDevice read_device(const JsonNode& node) {
  JsonObject in(node);
  TraceDevice device;
  device.name = in.required("name").as_string();
  device.kind = in.required("kind").as_choice({"cpu", "gpu"});
  if (auto threads = in.optional("threads")) device.threads = static_cast<int>(threads->as_integer(1, 65536));
  device.fp32 = in.required("fp32").as_positive<FlopsPerSecond>();
  device.memory_bandwidth = in.required("memory_bandwidth").as_positive<BytesPerSecond>();
  if (auto memory = in.optional("memory")) device.memory = memory->as_positive<Bytes>();
  if (auto rate = in.optional("convolution")) device.convolution = rate->as_positive<FlopsPerSecond>();
  if (auto launch = in.optional("launch")) device.launch = launch->as_positive<Seconds>();
  if (auto rate = in.optional("host_copy")) device.host_copy = rate->as_positive<BytesPerSecond>();
  if (auto rate = in.optional("storage_read")) device.storage_read = rate->as_positive<BytesPerSecond>();
  in.finish();
  return device;
}

TraceSoftware read_software(const JsonNode& node) {
  JsonObject in(node);
  TraceSoftware software{in.required("name").as_string(), in.required("version").as_string(),
                         in.required("backend").as_string()};
  in.finish();
  return software;
}

TraceNetwork read_trace_network(const JsonNode& node) {
  JsonObject in(node);
  TraceNetwork network;
  network.parameters = in.required("parameters").as_integer(0, kMaxBytes);
  network.flops_per_image = in.required("flops_per_image").as_number(0, kMax);
  network.gradient_bytes = in.required("gradient_bytes").as_integer(0, kMaxBytes);
  in.finish();
  return network;
}

std::vector<double> read_times(const JsonNode& node, std::size_t steps) {
  auto times = node.as_numbers(0, kMax);
  if (times.size() != steps)
    node.fail(fmt::format("found {} numbers, expected {}: one a step, as in wall_s", times.size(), steps));
  return times;
}

TracePhase read_phase(const JsonNode& node, const std::vector<double>& wall,
                      const std::map<std::string, TraceNetwork>& networks) {
  JsonObject in(node);
  TracePhase phase;
  phase.name = in.required("name").as_string();
  if (auto network = in.optional("network")) {
    phase.network = network->as_string();
    if (!networks.contains(phase.network)) network->fail(fmt::format("no network \"{}\" in /networks", phase.network));
  }
  phase.stream = in.required("stream").as_choice({"compute", "host", "copy"});
  phase.start_s = read_times(in.required("start_s"), wall.size());
  const JsonNode seconds = in.required("seconds");
  phase.seconds = read_times(seconds, wall.size());
  const JsonNode host = in.required("host_s");
  phase.host_s = read_times(host, wall.size());
  phase.flops = in.required("flops").as_number(0, kMax);
  phase.bytes_read = in.required("bytes_read").as_number(0, kMax);
  phase.bytes_written = in.required("bytes_written").as_number(0, kMax);
  phase.launches = in.required("launches").as_integer(0, kMaxBytes);
  in.finish();
  for (std::size_t i = 0; i < wall.size(); ++i) {
    if (phase.host_s[i] > phase.seconds[i] + kClockSlack_s)
      host.fail(
          fmt::format("at step {} found {} s of host work in a phase of {} s", i, phase.host_s[i], phase.seconds[i]));
    if (phase.start_s[i] + phase.seconds[i] > wall[i] * (1 + 1e-9) + kClockSlack_s)
      seconds.fail(fmt::format("at step {} the phase ends at {} s, after its step's {} s", i,
                               phase.start_s[i] + phase.seconds[i], wall[i]));
  }
  return phase;
}

TraceBucket read_bucket(const JsonNode& node, const TraceBatch& batch,
                        const std::map<std::string, TraceNetwork>& networks) {
  JsonObject in(node);
  TraceBucket bucket;
  const JsonNode network = in.required("network");
  bucket.network = network.as_string();
  if (!networks.contains(bucket.network)) network.fail(fmt::format("no network \"{}\" in /networks", bucket.network));
  bucket.bytes = in.required("bytes").as_integer(1, kMaxBytes);
  std::vector<std::string> names;
  for (const auto& phase : batch.phases)
    if (phase.stream == "compute") names.push_back(phase.name);
  bucket.after_phase = in.required("after_phase").as_choice(names);
  const JsonNode fraction = in.required("ready_fraction");
  bucket.ready_fraction = fraction.as_number(0, 1);
  if (!(bucket.ready_fraction > 0)) fraction.expected("a number above zero");
  if (const auto before = in.optional("before_phase")) {
    bucket.before_phase = before->as_choice(names);
    const auto place = [&](const std::string& name) { return std::find(names.begin(), names.end(), name); };
    if (place(bucket.before_phase) <= place(bucket.after_phase))
      before->expected(fmt::format("a compute phase after \"{}\"", bucket.after_phase));
  }
  in.finish();
  return bucket;
}

TraceUtilization read_utilization(const JsonNode& node) {
  JsonObject in(node);
  TraceUtilization utilization;
  utilization.interval_s = in.required("interval_s").as_number(1e-9, kMax);
  for (const auto& [name, samples] : in.required("samples").as_map())
    utilization.samples[name] = samples.as_numbers(0, kMax);
  in.finish();
  return utilization;
}

/// Orders buckets by the index of the phase that computes them, then by the share of that phase.
std::pair<std::ptrdiff_t, double> ready_at(const TraceBatch& batch, const TraceBucket& bucket) {
  const auto producer = std::find_if(batch.phases.begin(), batch.phases.end(),
                                     [&](const TracePhase& phase) { return phase.name == bucket.after_phase; });
  return {producer - batch.phases.begin(), bucket.ready_fraction};
}

/// Checks that phases on the device do not overlap.
void check_order(const JsonNode& node, const TraceBatch& batch) {
  const TracePhase* before = nullptr;
  for (const auto& phase : batch.phases) {
    if (phase.stream != "compute") continue;
    for (std::size_t i = 0; before && i < batch.wall_s.size(); ++i)
      if (phase.start_s[i] < before->start_s[i] + before->seconds[i] - kClockSlack_s)
        node.fail(
            fmt::format("at step {} the compute phase \"{}\" starts before \"{}\" has ended; compute phases follow "
                        "each other, in the order of their start",
                        i, phase.name, before->name));
    before = &phase;
  }
}

TraceBatch read_batch(const JsonNode& node, const std::map<std::string, TraceNetwork>& networks) {
  JsonObject in(node);
  TraceBatch batch;
  batch.batch = static_cast<int>(in.required("batch").as_integer(1, kMaxBatch));
  batch.warmup_steps_dropped =
      static_cast<int>(in.required("warmup_steps_dropped").as_integer(0, std::numeric_limits<int>::max()));
  if (auto stage = in.optional("stage")) batch.stage = stage->as_string();
  if (auto memory = in.optional("memory_bytes"))
    for (const auto& [kind, bytes] : memory->as_map()) batch.memory_bytes[kind] = bytes.as_number(0, kMax);
  const JsonNode wall = in.required("wall_s");
  batch.wall_s = wall.as_numbers(0, kMax);
  if (batch.wall_s.empty()) wall.expected("at least one step");
  for (const auto& step : wall.as_array())
    if (!(step.as_number(0, kMax) > 0)) step.expected("a time above zero");
  const JsonNode phases = in.required("phases");
  for (const auto& phase : phases.as_array()) {
    batch.phases.push_back(read_phase(phase, batch.wall_s, networks));
    for (std::size_t i = 0; i + 1 < batch.phases.size(); ++i)
      if (batch.phases[i].name == batch.phases.back().name)
        phase.fail(fmt::format("a second phase \"{}\"", batch.phases[i].name));
  }
  if (batch.phases.empty()) phases.expected("at least one phase");
  check_order(phases, batch);
  for (const auto& node_of_bucket : in.required("buckets").as_array()) {
    batch.buckets.push_back(read_bucket(node_of_bucket, batch, networks));
    if (batch.buckets.size() > 1 && ready_at(batch, batch.buckets.back()) < ready_at(batch, batch.buckets.end()[-2]))
      node_of_bucket.fail(
          "is ready before the bucket listed before it; buckets stand in the order in which they become ready");
  }
  if (auto utilization = in.optional("utilization")) batch.utilization = read_utilization(*utilization);
  in.finish();
  return batch;
}

/// The fewest and the most launches of each compute phase of a stage, over its batch sizes.
std::map<std::string, std::pair<double, double>> launches_of_stage(const StepTrace& trace, const std::string& stage) {
  std::map<std::string, std::pair<double, double>> launches;
  for (const TraceBatch& batch : trace.batches)
    for (const TracePhase& phase : batch.phases) {
      if (batch.stage != stage || phase.stream != "compute") continue;
      const auto count = static_cast<double>(phase.launches);
      const auto [at, added] = launches.try_emplace(phase.name, count, count);
      at->second = {std::min(at->second.first, count), std::max(at->second.second, count)};
    }
  return launches;
}

/// Checks that the list of kernels has as many launches in each phase as the phase states. Where its number depends on
/// the batch, because sums over many images need several kernels, the list may be that of any batch size.
void check_kernels(const JsonNode& node, const StepTrace& trace) {
  // A profiler's phases have more launches than the layers, for example copies.
  for (const TraceKernel& kernel : trace.kernels)
    if (kernel.measured_s > 0) return;
  for (const TraceBatch& batch : trace.batches) {
    std::map<std::string, double> listed;
    for (const TraceKernel& kernel : trace.kernels)
      if (kernel.stage == batch.stage) listed[kernel.phase] += kernel.times;
    if (listed.empty()) node.fail(fmt::format("no kernel of the stage \"{}\"", batch.stage));
    const auto stated = launches_of_stage(trace, batch.stage);
    for (const TracePhase& phase : batch.phases) {
      if (phase.stream != "compute") listed.erase(phase.name);
      if (phase.stream != "compute") continue;
      // A phase that runs in some steps only has whole launches, its kernels the mean.
      const double found = listed.contains(phase.name) ? listed.at(phase.name) : 0;
      const auto [fewest, most] = stated.at(phase.name);
      if (found < fewest - 1 + 1e-9 || found > most + 1 - 1e-9)
        node.fail(fmt::format("found {:g} launches in {}, expected the {} of the phase at batch {}", found, phase.name,
                              phase.launches, batch.batch));
      listed.erase(phase.name);
    }
    if (!listed.empty()) node.fail(fmt::format("kernels of \"{}\", which is no phase", listed.begin()->first));
  }
}

/// Writes a quantity so that reading it gives exactly the same value.
template <class Unit>
std::string exact(Quantity<Unit> quantity, std::string_view unit) {
  return fmt::format("{}{}", quantity.si, unit);
}

OrderedJson phase_json(const TracePhase& phase) {
  OrderedJson out;
  out["name"] = phase.name;
  if (!phase.network.empty()) out["network"] = phase.network;
  out["stream"] = phase.stream;
  out["flops"] = phase.flops;
  out["bytes_read"] = phase.bytes_read;
  out["bytes_written"] = phase.bytes_written;
  out["launches"] = phase.launches;
  out["start_s"] = phase.start_s;
  out["seconds"] = phase.seconds;
  out["host_s"] = phase.host_s;
  return out;
}

OrderedJson batch_json(const TraceBatch& batch) {
  OrderedJson out;
  out["batch"] = batch.batch;
  out["warmup_steps_dropped"] = batch.warmup_steps_dropped;
  if (!batch.stage.empty()) out["stage"] = batch.stage;
  out["memory_bytes"] = batch.memory_bytes;
  out["wall_s"] = batch.wall_s;
  out["phases"] = OrderedJson::array();
  for (const auto& phase : batch.phases) out["phases"].push_back(phase_json(phase));
  out["buckets"] = OrderedJson::array();
  for (const auto& bucket : batch.buckets) {
    out["buckets"].push_back({{"network", bucket.network},
                              {"bytes", bucket.bytes},
                              {"after_phase", bucket.after_phase},
                              {"ready_fraction", bucket.ready_fraction}});
    if (!bucket.before_phase.empty()) out["buckets"].back()["before_phase"] = bucket.before_phase;
  }
  if (batch.utilization)
    out["utilization"] = {{"interval_s", batch.utilization->interval_s}, {"samples", batch.utilization->samples}};
  return out;
}

}  // namespace

const TraceBatch* StepTrace::find_batch(int batch) const {
  const auto found =
      std::find_if(batches.rbegin(), batches.rend(), [&](const TraceBatch& entry) { return entry.batch == batch; });
  return found == batches.rend() ? nullptr : &*found;
}

StepTrace load_step_trace(const std::filesystem::path& file) { return read_step_trace(JsonNode::load(file)); }

StepTrace read_step_trace(const JsonNode& node) {
  JsonObject in(node);
  check_schema(in, kStepTraceSchema);
  StepTrace trace;
  trace.device = read_device(in.required("device"));
  trace.software = read_software(in.required("software"));
  trace.model = in.required("model").as_string();
  trace.precision = in.required("precision").as_choice({"fp32", "tf32", "bf16", "fp16"});
  trace.seed = in.required("seed").as_seed();
  if (auto recorded = in.optional("recorded_at")) trace.recorded_at = recorded->as_string();
  if (auto host = in.optional("host")) trace.host = host->as_choice({"parallel", "serial"});
  if (auto executor = in.optional("executor")) trace.executor = executor->as_choice(kExecutors);
  for (const auto& [name, network] : in.required("networks").as_map())
    trace.networks[name] = read_trace_network(network);
  const auto kernels = in.optional("kernels");
  if (kernels) trace.kernels = read_kernels(*kernels);
  const JsonNode batches = in.required("batches");
  for (const auto& entry : batches.as_array()) {
    trace.batches.push_back(read_batch(entry, trace.networks));
    for (std::size_t i = 0; i + 1 < trace.batches.size(); ++i)
      if (trace.batches[i].batch == trace.batches.back().batch && trace.batches[i].stage == trace.batches.back().stage)
        entry.fail(fmt::format("a second entry for batch {}", trace.batches[i].batch));
  }
  if (trace.batches.empty()) batches.expected("at least one batch size");
  if (kernels) check_kernels(*kernels, trace);
  in.finish();
  return trace;
}

std::string write_step_trace(const StepTrace& trace) {
  OrderedJson out;
  out["schema"] = kStepTraceSchema;
  out["device"] = {{"name", trace.device.name},
                   {"kind", trace.device.kind},
                   {"threads", trace.device.threads},
                   {"fp32", exact(trace.device.fp32, "flop/s")},
                   {"memory_bandwidth", exact(trace.device.memory_bandwidth, "B/s")}};
  if (trace.device.memory.si > 0) out["device"]["memory"] = exact(trace.device.memory, "B");
  const auto add_measured = [&](const char* name, const auto& value, const char* unit) {
    if (value) out["device"][name] = exact(*value, unit);
  };
  add_measured("convolution", trace.device.convolution, "flop/s");
  add_measured("launch", trace.device.launch, "s");
  add_measured("host_copy", trace.device.host_copy, "B/s");
  add_measured("storage_read", trace.device.storage_read, "B/s");
  out["software"] = {
      {"name", trace.software.name}, {"version", trace.software.version}, {"backend", trace.software.backend}};
  out["model"] = trace.model;
  out["precision"] = trace.precision;
  out["seed"] = trace.seed;
  if (!trace.recorded_at.empty()) out["recorded_at"] = trace.recorded_at;
  out["host"] = trace.host;
  if (!trace.executor.empty()) out["executor"] = trace.executor;
  out["networks"] = OrderedJson::object();
  for (const auto& [name, network] : trace.networks)
    out["networks"][name] = {{"parameters", network.parameters},
                             {"flops_per_image", network.flops_per_image},
                             {"gradient_bytes", network.gradient_bytes}};
  if (!trace.kernels.empty()) out["kernels"] = OrderedJson::parse(write_kernels(trace.kernels));
  out["batches"] = OrderedJson::array();
  for (const auto& batch : trace.batches) out["batches"].push_back(batch_json(batch));
  return out.dump() + "\n";
}

}  // namespace ganymede::traces
