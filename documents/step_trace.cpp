#include "documents/step_trace.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "documents/forms.hpp"
#include "documents/recipe.hpp"

namespace ganymede::documents {
namespace {

using Kind = TraceKernel::Kind;
using Growth = TraceKernel::Growth;
using Extents = std::array<std::int64_t, 3>;

constexpr std::array kKernelKinds = {"convolution",     "convolution-dgrad", "convolution-wgrad", "product",
                                     "batched-product", "elementwise",       "normalization",     "softmax"};
constexpr std::array kGrowths = {"none", "batch", "m", "n", "k", "rows", "groups"};
const std::vector<std::string_view> kPrecisions = {"fp32", "tf32", "bf16", "fp16"};

constexpr double kMaxBatch = 1 << 24;
constexpr double kMaxBytes = 0x1p50;
// Seconds by which a phase may seem to end after its step, because clocks are rounded.
constexpr double kClockSlack_s = 1e-6;
const About kExtent = {.low = 1, .high = 0x1p31 - 1};  // as in the libraries
const About kRequiredExtent = {.low = 1, .high = 0x1p31 - 1, .required = true};
const About kNumbers = {.low = 1, .high = 0x1p40};  // of a row or column of other kernels
const About kAtMostBytes = {.low = 0, .high = kMaxBytes, .required = true};
const About kRate = {.required = true, .with_unit = true};
const About kQuantity = {.with_unit = true};
const About kFilled = {.filled = true};

/// The growth of a kernel of that kind if its list does not say it.
Growth usual_growth(Kind kind) {
  if (kind <= Kind::convolution_weight_gradient || kind == Kind::batched_product) return Growth::batch;
  return kind == Kind::product ? Growth::m : Growth::rows;
}

bool can_grow(Kind kind, Growth by) {
  if (by == Growth::none) return true;
  if (kind <= Kind::convolution_weight_gradient) return by == Growth::batch || by == Growth::groups;
  return kind <= Kind::batched_product ? by != Growth::rows && by != Growth::groups : by == Growth::rows;
}

void describe_growth(Walk& walk, TraceKernel& kernel) {
  const Growth usual = usual_growth(kernel.kind);
  std::string text = walk.reads() || kernel.grows == usual ? "" : kGrowths[static_cast<std::size_t>(kernel.grows)];
  walk.member_unless("grows", text, {},
                     {.says = "the extent that is as many times as large for a batch as for one image",
                      .choices = {kGrowths.begin(), kGrowths.end()}});
  if (!walk.reads()) return;
  kernel.grows =
      text.empty() ? usual : static_cast<Growth>(std::find(kGrowths.begin(), kGrowths.end(), text) - kGrowths.begin());
  if (!can_grow(kernel.kind, kernel.grows)) walk.refuse("grows", "a kernel of that kind has no such extent");
}

/// A number for each extent: height and width, or depth too if the input has one.
void describe_extents(Walk& walk, std::string_view name, Extents& extents, bool deep, const About& about) {
  const std::size_t first = deep ? 0 : 1;
  using Sizes = std::vector<std::int64_t>;
  const std::int64_t usual = about.low > 0 ? 1 : 0;
  Sizes sizes(extents.begin() + static_cast<std::ptrdiff_t>(first), extents.end());
  walk.member_unless(name, sizes, about.required ? Sizes() : Sizes(sizes.size(), usual), about);
  if (!walk.reads()) return;
  if (sizes.size() != extents.size() - first)
    return walk.expect(name, deep ? "depth, height and width" : "height and width");
  std::copy(sizes.begin(), sizes.end(), extents.begin() + static_cast<std::ptrdiff_t>(first));
}

void describe_convolution(Walk& walk, TraceKernel& kernel) {
  bool deep = kernel.in[0] != 1 || kernel.window[0] != 1 || kernel.padding[0] != 0 || kernel.stride[0] != 1;
  std::vector<std::int64_t> in{kernel.in_channels};
  in.insert(in.end(), kernel.in.begin() + (deep ? 0 : 1), kernel.in.end());
  constexpr std::string_view kInput = "channels, height and width, or depth before height";
  walk.member("in", in, {.says = kInput, .low = 1, .high = kExtent.high, .required = true});
  if (walk.reads()) {
    if (in.size() != 3 && in.size() != 4) walk.expect("in", kInput);
    deep = in.size() == 4;
    kernel.in_channels = in[0];
    std::copy(in.begin() + 1, in.end(), kernel.in.begin() + (deep ? 0 : 1));
  }
  walk.member("out", kernel.out_channels, kRequiredExtent);
  describe_extents(walk, "window", kernel.window, deep, kRequiredExtent);
  describe_extents(walk, "padding", kernel.padding, deep, {.low = 0, .high = kExtent.high});
  describe_extents(walk, "stride", kernel.stride, deep, kExtent);
  walk.member_unless("groups", kernel.groups, std::int64_t{1}, kExtent);
  walk.member_unless("batch", kernel.batch, std::int64_t{1}, kExtent);
  walk.member_unless("channels_last", kernel.channels_last, false);
  if (!walk.reads()) return;
  if (kernel.in_channels % kernel.groups != 0 || kernel.out_channels % kernel.groups != 0)
    walk.refuse("groups", fmt::format("{} groups do not divide {} and {} channels", kernel.groups, kernel.in_channels,
                                      kernel.out_channels));
  for (const std::size_t extent : {0, 1, 2})
    if (kernel.window[extent] > kernel.in[extent] + 2 * kernel.padding[extent])
      walk.refuse("window",
                  fmt::format("a kernel of {} over an input of {} with padding {} leaves an output smaller than one",
                              kernel.window[extent], kernel.in[extent], kernel.padding[extent]));
}

void describe_product(Walk& walk, TraceKernel& kernel) {
  walk.member_unless("batch", kernel.batch, std::int64_t{1}, kExtent);
  walk.member("m", kernel.m, kRequiredExtent);
  walk.member("n", kernel.n, kRequiredExtent);
  walk.member("k", kernel.k, kRequiredExtent);
  std::string transposed = std::string(kernel.transposed_a ? "a" : "") + (kernel.transposed_b ? "b" : "");
  walk.member_unless("transposed", transposed, {}, {.choices = {"a", "b", "ab"}});
  kernel.transposed_a = transposed.starts_with('a');
  kernel.transposed_b = transposed.ends_with('b');
}

void describe_moving(Walk& walk, TraceKernel& kernel) {
  const About times = {.low = 0, .high = 1e6};
  walk.member("op", kernel.op, kText);
  walk.member_unless("rows", kernel.rows, std::int64_t{1}, kNumbers);
  walk.member("cols", kernel.cols, kNumbers);
  walk.member_unless("reads", kernel.reads, 1.0, times);
  walk.member_unless("writes", kernel.writes, 1.0, times);
  walk.member_unless("shared", kernel.shared, 0.0, times);
}

/// Checks that the phase's times are those of steps that take so long.
void check_times(Walk& walk, const std::string& place, const TracePhase& phase, const std::vector<double>& wall) {
  for (const auto& [name, times] :
       {std::pair("start_s", &phase.start_s), {"seconds", &phase.seconds}, {"host_s", &phase.host_s}})
    if (times->size() != wall.size())
      walk.refuse(place + "/" + name,
                  fmt::format("found {} numbers, expected {}: one a step, as in wall_s", times->size(), wall.size()));
  for (std::size_t i = 0; i < wall.size(); ++i) {
    const double end = phase.start_s[i] + phase.seconds[i];
    if (phase.host_s[i] > phase.seconds[i] + kClockSlack_s)
      walk.refuse(place + "/host_s", fmt::format("at step {} found {} s of host work in a phase of {} s", i,
                                                 phase.host_s[i], phase.seconds[i]));
    if (end > wall[i] * (1 + 1e-9) + kClockSlack_s)
      walk.refuse(place + "/seconds",
                  fmt::format("at step {} the phase ends at {} s, after its step's {} s", i, end, wall[i]));
  }
}

/// Checks that phases on the device do not overlap.
void check_order(Walk& walk, const TraceBatch& batch) {
  const TracePhase* before = nullptr;
  for (const auto& phase : batch.phases) {
    if (phase.stream != "compute") continue;
    for (std::size_t i = 0; before && i < batch.wall_s.size(); ++i)
      if (phase.start_s[i] < before->start_s[i] + before->seconds[i] - kClockSlack_s)
        walk.refuse("phases",
                    fmt::format("at step {} the compute phase \"{}\" starts before \"{}\" has ended; compute phases "
                                "follow each other, in the order of their start",
                                i, phase.name, before->name));
    before = &phase;
  }
}

/// Checks that buckets become ready in compute phases, in their order, before what needs them.
void check_buckets(Walk& walk, const TraceBatch& batch) {
  std::vector<std::string> names;
  for (const TracePhase& phase : batch.phases)
    if (phase.stream == "compute") names.push_back(phase.name);
  const auto index_of = [&](const std::string& name) { return std::find(names.begin(), names.end(), name); };
  const auto ready_at = [&](const TraceBucket& bucket) {
    return std::pair(index_of(bucket.after_phase), bucket.ready_fraction);
  };
  for (std::size_t i = 0; i < batch.buckets.size(); ++i) {
    const TraceBucket& bucket = batch.buckets[i];
    const std::string place = fmt::format("buckets/{}", i);
    walk.expect_choice(place + "/after_phase", names);
    if (!bucket.before_phase.empty()) {
      walk.expect_choice(place + "/before_phase", names);
      if (index_of(bucket.before_phase) <= index_of(bucket.after_phase))
        walk.expect(place + "/before_phase", fmt::format("a compute phase after \"{}\"", bucket.after_phase));
    }
    if (i > 0 && ready_at(bucket) < ready_at(batch.buckets[i - 1]))
      walk.refuse(place,
                  "is ready before the bucket listed before it; buckets stand in the order in which they become ready");
  }
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
void check_kernels(Walk& walk, const StepTrace& trace) {
  // A profiler's phases have more launches than the layers, for example copies.
  for (const TraceKernel& kernel : trace.kernels)
    if (kernel.measured_s > 0) return;
  for (const TraceBatch& batch : trace.batches) {
    std::map<std::string, double> listed;
    for (const TraceKernel& kernel : trace.kernels)
      if (kernel.stage == batch.stage) listed[kernel.phase] += kernel.times;
    if (listed.empty()) walk.refuse("kernels", fmt::format("no kernel of the stage \"{}\"", batch.stage));
    const auto stated = launches_of_stage(trace, batch.stage);
    for (const TracePhase& phase : batch.phases) {
      if (phase.stream != "compute") listed.erase(phase.name);
      if (phase.stream != "compute") continue;
      // A phase that runs in some steps only has whole launches, its kernels the mean.
      const double found = listed.contains(phase.name) ? listed.at(phase.name) : 0;
      const auto [fewest, most] = stated.at(phase.name);
      if (found < fewest - 1 + 1e-9 || found > most + 1 - 1e-9)
        walk.refuse("kernels", fmt::format("found {:g} launches in {}, expected the {} of the phase at batch {}", found,
                                           phase.name, phase.launches, batch.batch));
      listed.erase(phase.name);
    }
    if (!listed.empty())
      walk.refuse("kernels", fmt::format("kernels of \"{}\", which is no phase", listed.begin()->first));
  }
}

/// Checks that phases and buckets are of networks that the trace has, and that no batch stands twice.
void check_batches(Walk& walk, const StepTrace& trace) {
  for (std::size_t i = 0; i < trace.batches.size(); ++i) {
    const TraceBatch& batch = trace.batches[i];
    const auto check = [&](const char* list, std::size_t at, const std::string& network) {
      if (!trace.networks.contains(network))
        walk.refuse(fmt::format("batches/{}/{}/{}/network", i, list, at),
                    fmt::format("no network \"{}\" in /networks", network));
    };
    for (std::size_t at = 0; at < batch.phases.size(); ++at)
      if (const std::string& network = batch.phases[at].network; !network.empty()) check("phases", at, network);
    for (std::size_t at = 0; at < batch.buckets.size(); ++at) check("buckets", at, batch.buckets[at].network);
    for (std::size_t before = 0; before < i; ++before)
      if (trace.batches[before].batch == batch.batch && trace.batches[before].stage == batch.stage)
        walk.refuse(fmt::format("batches/{}", i), fmt::format("a second entry for batch {}", batch.batch));
  }
}

}  // namespace

void describe(Walk& walk, TraceDevice& device) {
  walk.member("name", device.name, kText);
  walk.member("kind", device.kind, {.required = true, .choices = {"cpu", "gpu"}});
  walk.member("threads", device.threads, {.low = 1, .high = 65536});
  walk.member("fp32", device.fp32, kRate);
  walk.member("memory_bandwidth", device.memory_bandwidth, kRate);
  walk.member_unless("memory", device.memory, {}, kQuantity);
  walk.member_if_any("convolution", device.convolution, kQuantity);
  walk.member_if_any("launch", device.launch, kQuantity);
  walk.member_if_any("host_copy", device.host_copy, kQuantity);
  walk.member_if_any("storage_read", device.storage_read, kQuantity);
}

void describe(Walk& walk, TraceSoftware& software) {
  walk.member("name", software.name, kText);
  walk.member("version", software.version, kText);
  walk.member("backend", software.backend, kText);
}

void describe(Walk& walk, TraceNetwork& network) {
  walk.member("parameters", network.parameters, kAtMostBytes);
  walk.member("flops_per_image", network.flops_per_image, kAmount);
  walk.member("gradient_bytes", network.gradient_bytes, kAtMostBytes);
}

void describe(Walk& walk, TracePhase& phase) {
  walk.member("name", phase.name, kText);
  walk.member_unless("network", phase.network, {}, kFilled);
  walk.member("stream", phase.stream, {.required = true, .choices = {"compute", "host", "copy"}});
  walk.member("flops", phase.flops, kAmount);
  walk.member("bytes_read", phase.bytes_read, kAmount);
  walk.member("bytes_written", phase.bytes_written, kAmount);
  walk.member("launches", phase.launches, kAtMostBytes);
  walk.member("start_s", phase.start_s, kAmount);
  walk.member("seconds", phase.seconds, kAmount);
  walk.member("host_s", phase.host_s, kAmount);
}

void describe(Walk& walk, TraceBucket& bucket) {
  walk.member("network", bucket.network, kText);
  walk.member("bytes", bucket.bytes, {.low = 1, .high = kMaxBytes, .required = true});
  walk.member("after_phase", bucket.after_phase, kText);
  walk.member("ready_fraction", bucket.ready_fraction, {.low = 0, .high = 1, .required = true});
  if (walk.reads() && !(bucket.ready_fraction > 0)) walk.expect("ready_fraction", "a number above zero");
  walk.member_unless("before_phase", bucket.before_phase, {}, kFilled);
}

void describe(Walk& walk, TraceUtilization& utilization) {
  walk.member("interval_s", utilization.interval_s, {.low = 1e-9, .required = true});
  walk.member("samples", utilization.samples, kAmount);
}

void describe(Walk& walk, TraceBatch& batch) {
  walk.member("batch", batch.batch, {.says = "images of a step", .low = 1, .high = kMaxBatch, .required = true});
  walk.member("warmup_steps_dropped", batch.warmup_steps_dropped, {.low = 0, .required = true});
  walk.member_unless("stage", batch.stage, {}, {.says = "of a growing model", .filled = true});
  walk.member("memory_bytes", batch.memory_bytes, {.says = "by kind", .low = 0, .high = 0x1p63});
  walk.member("wall_s", batch.wall_s, {.says = "of each step", .low = 0, .required = true, .items = "step"});
  walk.member("phases", batch.phases, {.required = true, .items = "phase"});
  walk.member("buckets", batch.buckets, kRequired);
  walk.member_if_any("utilization", batch.utilization);
  if (!walk.reads()) return;
  for (std::size_t i = 0; i < batch.wall_s.size(); ++i)
    if (!(batch.wall_s[i] > 0)) walk.expect(fmt::format("wall_s/{}", i), "a time above zero");
  for (std::size_t i = 0; i < batch.phases.size(); ++i) {
    const std::string place = fmt::format("phases/{}", i);
    check_times(walk, place, batch.phases[i], batch.wall_s);
    for (std::size_t before = 0; before < i; ++before)
      if (batch.phases[before].name == batch.phases[i].name)
        walk.refuse(place, fmt::format("a second phase \"{}\"", batch.phases[i].name));
  }
  check_order(walk, batch);
  check_buckets(walk, batch);
}

void describe(Walk& walk, TraceKernel& kernel) {
  walk.member("phase", kernel.phase, kText);
  walk.member_unless("stage", kernel.stage, {}, kFilled);
  walk.member_unless("layer", kernel.layer, {}, kFilled);
  walk.one_of("kind", kernel.kind, kKernelKinds, kRequired);
  describe_growth(walk, kernel);
  walk.member_unless("times", kernel.times, 1.0, {.says = "launches in a step", .low = 1e-6, .high = 1e9});
  walk.member_unless("measured_s", kernel.measured_s, 0.0, {.low = 0, .high = 1e6});
  walk.member_unless("precision", kernel.precision, {}, {.choices = kPrecisions});
  walk.kind(kernel.is_convolution(), [&] { describe_convolution(walk, kernel); });
  walk.kind(kernel.is_product(), [&] { describe_product(walk, kernel); });
  walk.kind(!kernel.is_convolution() && !kernel.is_product(), [&] { describe_moving(walk, kernel); });
}

void describe(Walk& walk, StepTrace& trace) {
  walk.constant("schema", kStepTraceSchema, kRequired);
  walk.member("device", trace.device, kRequired);
  walk.member("software", trace.software, kRequired);
  walk.member("model", trace.model, kText);
  walk.member("precision", trace.precision, {.required = true, .choices = kPrecisions});
  walk.member("seed", trace.seed, kRequired);
  walk.member_unless("recorded_at", trace.recorded_at, {}, {.says = "date and time in UTC", .filled = true});
  walk.member("host", trace.host,
              {.says = "whether replicas have threads of their own", .choices = {"parallel", "serial"}});
  walk.member_unless("executor", trace.executor, {},
                     {.says = "how the host launches kernels", .choices = {"eager", "compiled", "graph"}});
  walk.member("networks", trace.networks, kRequired);
  if (walk.takes(!trace.kernels.empty())) walk.member("kernels", trace.kernels, {.says = "of a step, for one image"});
  walk.member("batches", trace.batches, {.required = true, .items = "batch size"});
  if (!walk.reads()) return;
  check_batches(walk, trace);
  if (!trace.kernels.empty()) check_kernels(walk, trace);
}

double TraceKernel::flops() const {
  if (is_product())
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (!is_convolution()) return 0;
  const auto in_group = in_channels / groups;
  double products = 2.0 * static_cast<double>(batch * out_channels) * static_cast<double>(in_group);
  for (const std::size_t extent : {0, 1, 2})
    products *= static_cast<double>(out(extent)) * static_cast<double>(window[extent]);
  return products;
}

std::string_view to_string(TraceKernel::Kind kind) { return kKernelKinds.at(static_cast<std::size_t>(kind)); }

std::vector<TraceKernel> read_kernels(const JsonNode& node) {
  std::vector<TraceKernel> kernels;
  read(node, described(kernels));
  return kernels;
}

OrderedJson kernels_json(const std::vector<TraceKernel>& kernels) { return written(described(kernels)); }

const TraceBatch* StepTrace::find_batch(int batch) const {
  const auto found =
      std::find_if(batches.rbegin(), batches.rend(), [&](const TraceBatch& entry) { return entry.batch == batch; });
  return found == batches.rend() ? nullptr : &*found;
}

StepTrace load_step_trace(const std::filesystem::path& file) { return read_step_trace(JsonNode::load(file)); }

StepTrace read_step_trace(const JsonNode& node) {
  JsonObject head(node);
  if (node.value().contains("schema") && node.value()["schema"] == kRecipeSchema)
    node.child("schema").expected(fmt::format("\"{}\"; \"recipe\" (--recipe) names a recipe", kStepTraceSchema));
  check_schema(head, kStepTraceSchema);
  StepTrace trace;
  read(node, described(trace));
  return trace;
}

std::string write_step_trace(const StepTrace& trace) { return written(described(trace)).dump() + "\n"; }

}  // namespace ganymede::documents
