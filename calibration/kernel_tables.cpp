#include "calibration/kernel_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "calibration/kernels/error_of_sums.hpp"
#include "calibration/kernels/gpu_sheets.hpp"
#include "calibration/kernels/row_predictor.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/printable.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "report/table.hpp"
#include "traces/layer_list.hpp"

namespace ganymede::calibration {

std::vector<KernelErrors> compare(std::span<const MeasuredKernel> kernels) {
  const RowPredictor predictor(built_in_kernel_parameters(), kernels);
  struct Compared {
    std::vector<std::pair<double, double>> kernels;  // predicted and measured seconds
    std::size_t held = 0;
  };
  std::map<std::pair<KernelKind, std::string>, Compared> groups;
  for (const MeasuredKernel& row : kernels) {
    const KernelTime time = predictor(row);
    Compared& group = groups[{row.kernel.kind, row.gpu}];
    group.kernels.emplace_back(time.central_s, row.measured_s);
    group.held += time.low_s <= row.measured_s && row.measured_s <= time.high_s;
  }
  RandomStream random(kSumSeed, "kernels/sums");
  std::vector<KernelErrors> all;
  for (const auto& [key, group] : groups) {
    KernelErrors& errors = all.emplace_back();
    errors.kind = to_string(key.first);
    errors.gpu = key.second;
    errors.kernels = group.kernels.size();
    const auto count = static_cast<double>(errors.kernels);
    for (const auto& [predicted, measured] : group.kernels) errors.mean_error += std::abs(predicted / measured - 1);
    errors.mean_error /= count;
    errors.held = static_cast<double>(group.held) / count;
    errors.summed = std::min(kSumOf, errors.kernels);
    errors.sum20_error = error_of_sums(group.kernels, random);
  }
  return all;
}

std::vector<MeasuredKernel> kernels_on_gpu(std::vector<MeasuredKernel> kernels, const std::string& gpu,
                                           const std::string& file) {
  const GpuSheet* wanted = find_gpu_sheet(gpu);
  std::vector<std::string> names;
  for (const auto& kernel : kernels)
    if (std::find(names.begin(), names.end(), kernel.gpu) == names.end()) names.push_back(kernel.gpu);
  std::erase_if(kernels, [&](const MeasuredKernel& kernel) {
    return kernel.gpu != gpu && (wanted == nullptr || find_gpu_sheet(kernel.gpu) != wanted);
  });
  if (kernels.empty())
    throw ConfigError(fmt::format("--gpu {}: {} has no kernel of it; it has {}", gpu, file, list_of(names)));
  return kernels;
}

namespace {

constexpr std::size_t kShortWidth = 100;  // columns

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string extents(std::int64_t depth, std::int64_t height, std::int64_t width) {
  return (depth > 1 ? fmt::format("{}x", depth) : "") + fmt::format("{}x{}", height, width);
}

/// "128x3x64x64 -> 64, 4x4/2" for a convolution, "128x784x256" for a product, "128x65536" for others.
std::string shape_text(const Kernel& k) {
  if (is_product(k.kind))
    return (k.batch > 1 ? fmt::format("{} of ", k.batch) : "") + fmt::format("{}x{}x{}", k.m, k.k, k.n);
  if (!is_convolution(k.kind)) return fmt::format("{} {}x{}", k.op, k.rows, k.cols);
  std::string text = fmt::format("{}x{}x{} -> {}, {}", k.batch, k.in_channels, extents(k.in_d, k.in_h, k.in_w),
                                 k.out_channels, extents(k.kernel_d, k.kernel_h, k.kernel_w));
  if (k.stride_h > 1 || k.stride_w > 1)
    text += k.stride_h == k.stride_w ? fmt::format("/{}", k.stride_h) : fmt::format("/{}x{}", k.stride_h, k.stride_w);
  if (k.groups > 1) text += fmt::format(" in {} groups", k.groups);
  return text;
}

double share_of(const StepKernel& one, const KernelStep& step) {
  return one.times * one.time.central_s / step.sum.device_s;
}

std::string interval_text(const KernelTime& time) {
  return fmt::format("{} to {}", to_string(Seconds{time.low_s}), to_string(Seconds{time.high_s}));
}

/// Every figure of every kernel, for a wide window or for a program.
report::Table table_of(const KernelStep& step, bool for_people) {
  std::vector<std::string> names = {"phase",     "layer",  "kind", "shape",  "precision", ">launches",
                                    "algorithm", ">GFLOP", ">MB",  ">tiles", ">waves"};
  for (const char* name : {">time", ">90 %", ">share", "limit"})
    if (for_people) names.emplace_back(name);
  for (const char* name : {">seconds", ">low_seconds", ">high_seconds", ">share", "limit"})
    if (!for_people) names.emplace_back(name);
  report::Table table(names);
  for (const StepKernel& one : step.kernels) {
    const KernelTime& time = one.time;
    std::vector<std::string> row = {one.phase,
                                    one.kernel.name,
                                    std::string(to_string(one.kernel.kind)),
                                    shape_text(one.kernel),
                                    std::string(to_string(one.kernel.precision)),
                                    fmt::format("{:g}", one.times),
                                    time.algorithm,
                                    fmt::format("{:.3g}", time.flops / 1e9),
                                    fmt::format("{:.3g}", time.bytes / 1e6),
                                    std::to_string(time.tiles),
                                    fmt::format("{:.2f}", time.waves)};
    const double share = share_of(one, step);
    if (for_people) {
      row.insert(row.end(), {to_string(Seconds{time.central_s}), interval_text(time), percent(share), time.limit});
    } else {
      row.insert(row.end(), {fmt::format("{}", time.central_s), fmt::format("{}", time.low_s),
                             fmt::format("{}", time.high_s), fmt::format("{:.6f}", share), time.limit});
    }
    table.add(std::move(row));
  }
  return table;
}

/// A positive number with three significant digits and without an exponent.
std::string three_digits(double value) {
  return value >= 100  ? fmt::format("{:.0f}", value)
         : value >= 10 ? fmt::format("{:.1f}", value)
                       : fmt::format("{:.2f}", value);
}

/// "dgrad 128x512x4x4 -> 1, 4x4": the direction of a convolution before its shape; the other kinds say what they are.
std::string short_kernel(const Kernel& kernel) {
  using Kind = KernelKind;
  const char* before = kernel.kind == Kind::kConvolution                 ? "conv "
                       : kernel.kind == Kind::kConvolutionDataGradient   ? "dgrad "
                       : kernel.kind == Kind::kConvolutionWeightGradient ? "wgrad "
                       : is_product(kernel.kind)                         ? "product "
                                                                         : "";
  return before + shape_text(kernel);
}

/// "86.1 us" and "53.4-171": a time, and its interval in the same unit; three digits say enough.
std::pair<std::string, std::string> short_time(const KernelTime& time) {
  const auto [unit, name] = time.central_s < 1e-3 ? std::pair{1e-6, "us"}
                            : time.central_s < 1  ? std::pair{1e-3, "ms"}
                                                  : std::pair{1.0, "s"};
  return {fmt::format("{} {}", three_digits(time.central_s / unit), name),
          fmt::format("{}-{}", three_digits(time.low_s / unit), three_digits(time.high_s / unit))};
}

/// "21 conv" for "21 convolution", "21 transposed" for "21 transposed-convolution": the longest of a list's layers.
std::string short_layer(std::string layer) {
  constexpr std::string_view transposed = "-convolution", convolution = "olution";
  if (layer.ends_with(transposed)) {
    layer.erase(layer.size() - transposed.size());
  } else if (layer.ends_with(" convolution")) {
    layer.erase(layer.size() - convolution.size());
  }
  return layer;
}

/// The figures that decide a kernel's share of the step, in at most so many columns: the kernels below the name of
/// their phase.
std::string short_table(const KernelStep& step, std::size_t width) {
  report::Table table({"layer", "kernel", "type", ">times", ">time", ">90 %", ">share", "limit"});
  std::vector<std::string> phases;
  for (const StepKernel& one : step.kernels) {
    if (phases.empty() || phases.back() != one.phase) {
      phases.push_back(one.phase);
      table.rule();
    }
    const auto [time, interval] = short_time(one.time);
    table.add({short_layer(one.kernel.name), short_kernel(one.kernel), std::string(to_string(one.kernel.precision)),
               fmt::format("{:g}", one.times), time, interval, percent(share_of(one, step)), one.time.limit});
  }
  // The phases take the places of the lines between them.
  const std::string constant = table.take_constant_columns();
  std::istringstream lines(table.text(width));
  std::string text = constant.empty() ? "" : report::wrap_prose("all: " + constant + "\n\n", width);
  std::string rule;
  auto phase = phases.begin();
  for (std::string line; std::getline(lines, line);) {
    if (rule.empty() && line.find_first_not_of("- ") == std::string::npos) {
      rule = line;
    } else if (line == rule) {
      line = printable(*phase++);
    }
    text += line + "\n";
  }
  return text;
}

report::Table errors_table(const std::vector<KernelErrors>& errors, bool for_people) {
  report::Table table({"kind", "gpu", ">kernels", for_people ? ">error" : ">mean_error",
                       for_people ? ">error of sums of 20" : ">sum20_error", for_people ? ">held by 90 %" : ">held"});
  const auto share = [&](double value) { return for_people ? percent(value) : fmt::format("{:.6f}", value); };
  for (const KernelErrors& one : errors)
    table.add({one.kind, one.gpu, std::to_string(one.kernels), share(one.mean_error),
               share(one.sum20_error) + (for_people && one.summed < kSumOf ? fmt::format(" (of {})", one.summed) : ""),
               share(one.held)});
  return table;
}

}  // namespace

KernelStep kernel_step(const traces::StepTrace& trace, const KernelModel& model, int batch) {
  traces::TraceBatch entry;
  entry.batch = batch;
  if (!trace.batches.empty()) entry.stage = trace.batches.back().stage;
  if (trace.batches.empty() && !trace.kernels.empty()) entry.stage = trace.kernels.back().stage;
  KernelStep step{.gpu = model.sheet().name,
                  .model = trace.model,
                  .precision = trace.precision,
                  .executor = std::string(executor_of(trace)),
                  .batch = batch,
                  .kernels = kernels_at(trace, entry),
                  .sum = {}};
  predict(step.kernels, model, traces::is_counted(trace.software));
  step.sum = sum_of(step.kernels, step.executor, list_error(trace));
  return step;
}

std::string to_table(const KernelStep& step, bool verbose, std::size_t width) {
  const std::size_t narrow = std::min(width, kShortWidth);
  return (verbose ? table_of(step, true).text_below_constants(width) : short_table(step, narrow)) +
         report::wrap_prose(
             fmt::format("\n{} at batch {} in {} on {}: a step of {} ({} to {}, kernel model) with {:.0f} launches\n"
                         "kernels {},{} host {} ({}); decided by {}\n",
                         step.model, step.batch, step.precision, step.gpu, to_string(Seconds{step.sum.seconds}),
                         to_string(Seconds{step.sum.low_s}), to_string(Seconds{step.sum.high_s}), step.sum.launches,
                         to_string(Seconds{step.sum.device_s}),
                         step.sum.beside_s > 0 ? " beside them " + to_string(Seconds{step.sum.beside_s}) + "," : "",
                         to_string(Seconds{step.sum.host_s}), step.executor, step.sum.decided_by),
             narrow) +
         (verbose ? "" : "--verbose adds algorithms, arithmetic, bytes, tiles and waves.\n");
}

OrderedJson to_json(const KernelStep& step) {
  OrderedJson kernels = OrderedJson::array();
  for (const StepKernel& one : step.kernels)
    kernels.push_back({{"phase", one.phase},
                       {"layer", one.kernel.name},
                       {"kind", to_string(one.kernel.kind)},
                       {"shape", shape_text(one.kernel)},
                       {"precision", to_string(one.kernel.precision)},
                       {"launches", one.times},
                       {"algorithm", one.time.algorithm},
                       {"flops", one.time.flops},
                       {"bytes", one.time.bytes},
                       {"tiles", one.time.tiles},
                       {"waves", one.time.waves},
                       {"seconds", one.time.central_s},
                       {"interval_s", {one.time.low_s, one.time.high_s}},
                       {"share", share_of(one, step)},
                       {"limit", one.time.limit}});
  return {{"gpu", step.gpu},
          {"model", step.model},
          {"batch", step.batch},
          {"precision", step.precision},
          {"executor", step.executor},
          {"step",
           {{"seconds", step.sum.seconds},
            {"interval_s", {step.sum.low_s, step.sum.high_s}},
            {"kernels_s", step.sum.device_s},
            {"beside_s", step.sum.beside_s},
            {"host_s", step.sum.host_s},
            {"launches", step.sum.launches},
            {"decided_by", step.sum.decided_by}}},
          {"kernels", std::move(kernels)}};
}

OrderedJson to_json(const std::vector<KernelErrors>& errors) {
  OrderedJson kinds = OrderedJson::array();
  for (const KernelErrors& one : errors)
    kinds.push_back({{"kind", one.kind},
                     {"gpu", one.gpu},
                     {"kernels", one.kernels},
                     {"mean_error", one.mean_error},
                     {"sum20_error", one.sum20_error},
                     {"held", one.held}});
  return {{"kinds", std::move(kinds)}};
}

std::string to_csv(const KernelStep& step) { return table_of(step, false).csv(); }

std::string to_table(const std::vector<KernelErrors>& errors, std::size_t width) {
  return errors_table(errors, true).text(width);
}

std::string to_csv(const std::vector<KernelErrors>& errors) { return errors_table(errors, false).csv(); }

namespace {

std::string with_commas(const std::set<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

}  // namespace

std::vector<platforms::ListedName> list_gpus() {
  std::map<std::string, std::set<std::string>> providers_of;  // by the sheet's name, else by the catalog's
  std::map<std::string, std::string> others;
  platforms::for_each_instance([&](const platforms::Platform& platform, const platforms::Instance& instance) {
    const platforms::Gpu& gpu = platform.gpu_of(instance);
    const GpuSheet* sheet = find_gpu_sheet(gpu.name);
    const std::string& name = sheet == nullptr ? gpu.name : sheet->name;
    providers_of[name].insert(platform.name);
    if (sheet == nullptr)
      others[name] = fmt::format("{} fp32, {}", to_string(gpu.fp32), to_string(gpu.memory_bandwidth));
  });
  std::vector<platforms::ListedName> rows;
  const auto add = [&](const std::string& name, std::string summary) {
    if (const auto found = providers_of.find(name); found != providers_of.end())
      summary += "; " + with_commas(found->second);
    rows.push_back({name, std::move(summary)});
  };
  for (const GpuSheet& gpu : gpu_sheets()) {
    std::string summary =
        fmt::format("{} multiprocessors, {} fp32, {}", gpu.multiprocessors, to_string(FlopsPerSecond{gpu.fp32_flops()}),
                    to_string(BytesPerSecond{gpu.memory_bandwidth}));
    if (gpu.tensor_fp16_flops > 0)
      summary += fmt::format(", {} on tensor cores", to_string(FlopsPerSecond{gpu.tensor_fp16_flops}));
    add(gpu.name, std::move(summary));
  }
  for (const auto& [name, summary] : others) add(name, summary + "; times of its kernels are not known");
  return rows;
}

}  // namespace ganymede::calibration
