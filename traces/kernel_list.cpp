#include "traces/kernel_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/json.hpp"
#include "common/json_value.hpp"

namespace ganymede::traces {
namespace {

using Kind = TraceKernel::Kind;
using Growth = TraceKernel::Growth;

constexpr std::int64_t kMaxExtent = (std::int64_t{1} << 31) - 1;  // as in the libraries
constexpr std::int64_t kMaxNumbers = std::int64_t{1} << 40;       // of a row or column of other kernels
constexpr double kMaxTimes = 1e9;

const std::vector<std::string> kKernelKinds = {"convolution",     "convolution-dgrad", "convolution-wgrad", "product",
                                               "batched-product", "elementwise",       "normalization",     "softmax"};
const std::vector<std::string> kGrowths = {"none", "batch", "m", "n", "k", "rows", "groups"};

std::size_t index_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

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

/// Reads one number for each extent: height and width, or depth too if the input has one.
std::array<std::int64_t, 3> read_extents(const JsonNode& node, bool deep, std::int64_t low) {
  const auto sizes = node.as_array();
  if (sizes.size() != (deep ? 3U : 2U)) node.expected(deep ? "depth, height and width" : "height and width");
  std::array<std::int64_t, 3> extents{low == 0 ? 0 : 1, 1, 1};
  for (std::size_t i = 0; i < sizes.size(); ++i) extents[i + (deep ? 0 : 1)] = sizes[i].as_integer(low, kMaxExtent);
  return extents;
}

void read_convolution(JsonObject& in, TraceKernel& kernel) {
  const JsonNode input = in.required("in");
  const auto sizes = input.as_array();
  if (sizes.size() != 3 && sizes.size() != 4) input.expected("channels, height and width, or depth before height");
  const bool deep = sizes.size() == 4;
  kernel.in_channels = sizes[0].as_integer(1, kMaxExtent);
  for (std::size_t i = 1; i < sizes.size(); ++i) kernel.in[i - (deep ? 1 : 0)] = sizes[i].as_integer(1, kMaxExtent);
  kernel.out_channels = in.required("out").as_integer(1, kMaxExtent);
  const JsonNode window = in.required("window");
  kernel.window = read_extents(window, deep, 1);
  if (const auto padding = in.optional("padding")) kernel.padding = read_extents(*padding, deep, 0);
  if (const auto stride = in.optional("stride")) kernel.stride = read_extents(*stride, deep, 1);
  if (const auto groups = in.optional("groups")) {
    kernel.groups = groups->as_integer(1, kMaxExtent);
    if (kernel.in_channels % kernel.groups != 0 || kernel.out_channels % kernel.groups != 0)
      groups->fail(fmt::format("{} groups do not divide {} and {} channels", kernel.groups, kernel.in_channels,
                               kernel.out_channels));
  }
  if (const auto images = in.optional("batch")) kernel.batch = images->as_integer(1, kMaxExtent);
  if (const auto last = in.optional("channels_last")) kernel.channels_last = last->as_bool();
  for (const std::size_t extent : {0, 1, 2})
    if (kernel.window[extent] > kernel.in[extent] + 2 * kernel.padding[extent])
      window.fail(fmt::format("a kernel of {} over an input of {} with padding {} leaves an output smaller than one",
                              kernel.window[extent], kernel.in[extent], kernel.padding[extent]));
}

void read_product(JsonObject& in, TraceKernel& kernel) {
  kernel.m = in.required("m").as_integer(1, kMaxExtent);
  kernel.n = in.required("n").as_integer(1, kMaxExtent);
  kernel.k = in.required("k").as_integer(1, kMaxExtent);
  if (const auto batch = in.optional("batch")) kernel.batch = batch->as_integer(1, kMaxExtent);
  if (const auto transposed = in.optional("transposed")) {
    const std::string which = transposed->as_choice({"a", "b", "ab"});
    kernel.transposed_a = which != "b";
    kernel.transposed_b = which != "a";
  }
}

void read_moving(JsonObject& in, TraceKernel& kernel) {
  kernel.op = in.required("op").as_string();
  if (const auto rows = in.optional("rows")) kernel.rows = rows->as_integer(1, kMaxNumbers);
  if (const auto cols = in.optional("cols")) kernel.cols = cols->as_integer(1, kMaxNumbers);
  if (const auto reads = in.optional("reads")) kernel.reads = reads->as_number(0, 1e6);
  if (const auto writes = in.optional("writes")) kernel.writes = writes->as_number(0, 1e6);
  if (const auto shared = in.optional("shared")) kernel.shared = shared->as_number(0, 1e6);
}

TraceKernel read_kernel(const JsonNode& node) {
  JsonObject in(node);
  TraceKernel kernel;
  kernel.phase = in.required("phase").as_string();
  if (const auto stage = in.optional("stage")) kernel.stage = stage->as_string();
  if (const auto layer = in.optional("layer")) kernel.layer = layer->as_string();
  kernel.kind = Kind(index_of(kKernelKinds, in.required("kind").as_choice(kKernelKinds)));
  const auto grows = in.optional("grows");
  kernel.grows = grows ? Growth(index_of(kGrowths, grows->as_choice(kGrowths))) : usual_growth(kernel.kind);
  if (grows && !can_grow(kernel.kind, kernel.grows)) grows->fail("a kernel of that kind has no such extent");
  if (const auto times = in.optional("times")) kernel.times = times->as_number(1e-6, kMaxTimes);
  if (const auto measured = in.optional("measured_s")) kernel.measured_s = measured->as_number(0, 1e6);
  if (const auto precision = in.optional("precision"))
    kernel.precision = precision->as_choice({"fp32", "tf32", "bf16", "fp16"});
  if (kernel.is_convolution()) {
    read_convolution(in, kernel);
  } else if (kernel.is_product()) {
    read_product(in, kernel);
  } else {
    read_moving(in, kernel);
  }
  in.finish();
  return kernel;
}
OrderedJson extents_json(const std::array<std::int64_t, 3>& extents, bool deep) {
  if (deep) return {extents[0], extents[1], extents[2]};
  return {extents[1], extents[2]};
}

void add_convolution(OrderedJson& out, const TraceKernel& kernel) {
  const bool deep = kernel.in[0] != 1 || kernel.window[0] != 1 || kernel.padding[0] != 0 || kernel.stride[0] != 1;
  out["in"] = {kernel.in_channels};
  for (std::size_t i = deep ? 0 : 1; i < 3; ++i) out["in"].push_back(kernel.in[i]);
  out["out"] = kernel.out_channels;
  out["window"] = extents_json(kernel.window, deep);
  if (kernel.padding != TraceKernel{}.padding) out["padding"] = extents_json(kernel.padding, deep);
  if (kernel.stride != TraceKernel{}.stride) out["stride"] = extents_json(kernel.stride, deep);
  if (kernel.groups != 1) out["groups"] = kernel.groups;
  if (kernel.batch != 1) out["batch"] = kernel.batch;
  if (kernel.channels_last) out["channels_last"] = true;
}

OrderedJson kernel_json(const TraceKernel& kernel) {
  OrderedJson out = {{"phase", kernel.phase}};
  if (!kernel.stage.empty()) out["stage"] = kernel.stage;
  if (!kernel.layer.empty()) out["layer"] = kernel.layer;
  out["kind"] = to_string(kernel.kind);
  if (kernel.grows != usual_growth(kernel.kind)) out["grows"] = kGrowths[static_cast<std::size_t>(kernel.grows)];
  if (kernel.times != 1) out["times"] = kernel.times;
  if (kernel.measured_s > 0) out["measured_s"] = kernel.measured_s;
  if (!kernel.precision.empty()) out["precision"] = kernel.precision;
  if (kernel.is_convolution()) {
    add_convolution(out, kernel);
  } else if (kernel.is_product()) {
    if (kernel.batch != 1) out["batch"] = kernel.batch;
    out["m"] = kernel.m, out["n"] = kernel.n, out["k"] = kernel.k;
    if (kernel.transposed_a || kernel.transposed_b)
      out["transposed"] = std::string(kernel.transposed_a ? "a" : "") + (kernel.transposed_b ? "b" : "");
  } else {
    out["op"] = kernel.op;
    if (kernel.rows != 1) out["rows"] = kernel.rows;
    out["cols"] = kernel.cols;
    if (kernel.reads != 1) out["reads"] = kernel.reads;
    if (kernel.writes != 1) out["writes"] = kernel.writes;
    if (kernel.shared != 0) out["shared"] = kernel.shared;
  }
  return out;
}

}  // namespace

double TraceKernel::flops() const {
  if (is_product())
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  if (!is_convolution()) return 0;
  double products = 2.0 * static_cast<double>(batch * out_channels) * static_cast<double>(in_channels / groups);
  for (const std::size_t extent : {0, 1, 2})
    products *= static_cast<double>(out(extent)) * static_cast<double>(window[extent]);
  return products;
}

std::string_view to_string(TraceKernel::Kind kind) { return kKernelKinds[static_cast<std::size_t>(kind)]; }

std::vector<TraceKernel> read_kernels(const JsonNode& node) {
  std::vector<TraceKernel> kernels;
  for (const JsonNode& entry : node.as_array()) kernels.push_back(read_kernel(entry));
  return kernels;
}

std::string write_kernels(const std::vector<TraceKernel>& kernels) {
  OrderedJson out = OrderedJson::array();
  for (const TraceKernel& kernel : kernels) out.push_back(kernel_json(kernel));
  return out.dump();
}

}  // namespace ganymede::traces
