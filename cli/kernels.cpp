// ganymede kernels: a step kernel by kernel on a GPU, and measured kernels against the model of their times.

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

#include "calibration/kernel_comparison.hpp"
#include "calibration/kernels/error_of_sums.hpp"
#include "calibration/workload_model.hpp"
#include "cli/command.hpp"
#include "cli/kernel_workload.hpp"
#include "cli/names.hpp"
#include "cli/terminal.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/printable.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "report/table.hpp"

namespace ganymede::cli {
namespace {

using calibration::Kernel;
using calibration::KernelErrors;
using calibration::StepKernel;
struct KernelsOptions {
  KernelWorkloadOptions workload;
  std::string compare;
  bool verbose = false;
};

constexpr std::size_t kShortWidth = 100;  // columns

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string extents(std::int64_t depth, std::int64_t height, std::int64_t width) {
  return (depth > 1 ? fmt::format("{}x", depth) : "") + fmt::format("{}x{}", height, width);
}

/// "128x3x64x64 -> 64, 4x4/2" for a convolution, "128x784x256" for a product, "128x65536" for others.
std::string shape_of(const Kernel& k) {
  if (calibration::is_product(k.kind))
    return (k.batch > 1 ? fmt::format("{} of ", k.batch) : "") + fmt::format("{}x{}x{}", k.m, k.k, k.n);
  if (!calibration::is_convolution(k.kind)) return fmt::format("{} {}x{}", k.op, k.rows, k.cols);
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

std::string interval_text(const calibration::KernelTime& time) {
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
    const calibration::KernelTime& time = one.time;
    std::vector<std::string> row = {one.phase,
                                    one.kernel.name,
                                    std::string(to_string(one.kernel.kind)),
                                    shape_of(one.kernel),
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
  using Kind = calibration::KernelKind;
  const char* before = kernel.kind == Kind::kConvolution                 ? "conv "
                       : kernel.kind == Kind::kConvolutionDataGradient   ? "dgrad "
                       : kernel.kind == Kind::kConvolutionWeightGradient ? "wgrad "
                       : calibration::is_product(kernel.kind)            ? "product "
                                                                         : "";
  return before + shape_of(kernel);
}

/// "86.1 us" and "53.4-171": a time, and its interval in the same unit; three digits say enough.
std::pair<std::string, std::string> short_time(const calibration::KernelTime& time) {
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

/// What decides a kernel's share of the step, in at most so many columns: the kernels below the name of their phase.
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

std::string step_text(const KernelStep& step, bool verbose, std::size_t width) {
  const std::size_t narrow = std::min(width, kShortWidth);
  return (verbose ? table_of(step, true).text_below_constants(width) : short_table(step, narrow)) +
         report::wrap_prose(
             fmt::format("\n{} at batch {} in {} on {}: a step of {} ({} to {}, kernel model) with {:.0f} launches\n"
                         "kernels {}, host {} ({}); decided by {}\n",
                         step.model, step.batch, step.precision, step.gpu, to_string(Seconds{step.sum.seconds}),
                         to_string(Seconds{step.sum.low_s}), to_string(Seconds{step.sum.high_s}), step.sum.launches,
                         to_string(Seconds{step.sum.device_s}), to_string(Seconds{step.sum.host_s}), step.executor,
                         step.sum.decided_by),
             narrow) +
         (verbose ? "" : "--verbose adds algorithms, arithmetic, bytes, tiles and waves.\n");
}

OrderedJson step_json(const KernelStep& step) {
  OrderedJson kernels = OrderedJson::array();
  for (const StepKernel& one : step.kernels)
    kernels.push_back({{"phase", one.phase},
                       {"layer", one.kernel.name},
                       {"kind", to_string(one.kernel.kind)},
                       {"shape", shape_of(one.kernel)},
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
            {"host_s", step.sum.host_s},
            {"launches", step.sum.launches},
            {"decided_by", step.sum.decided_by}}},
          {"kernels", std::move(kernels)}};
}

report::Table errors_table(const std::vector<KernelErrors>& errors, bool for_people) {
  report::Table table({"kind", "gpu", ">kernels", for_people ? ">error" : ">mean_error",
                       for_people ? ">error of sums of 20" : ">sum20_error", for_people ? ">held by 90 %" : ">held"});
  const auto share = [&](double value) { return for_people ? percent(value) : fmt::format("{:.6f}", value); };
  for (const KernelErrors& one : errors)
    table.add({one.kind, one.gpu, std::to_string(one.kernels), share(one.mean_error),
               share(one.sum20_error) +
                   (for_people && one.summed < calibration::kSumOf ? fmt::format(" (of {})", one.summed) : ""),
               share(one.held)});
  return table;
}

OrderedJson errors_json(const std::vector<KernelErrors>& errors) {
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

/// The kernels that were measured on that GPU.
std::vector<calibration::MeasuredKernel> on_gpu(std::vector<calibration::MeasuredKernel> kernels,
                                                const std::string& gpu, const std::string& file) {
  const calibration::GpuSheet* wanted = calibration::find_gpu_sheet(gpu);
  std::vector<std::string> names;
  for (const auto& kernel : kernels)
    if (std::find(names.begin(), names.end(), kernel.gpu) == names.end()) names.push_back(kernel.gpu);
  std::erase_if(kernels, [&](const calibration::MeasuredKernel& kernel) {
    return kernel.gpu != gpu && (wanted == nullptr || calibration::find_gpu_sheet(kernel.gpu) != wanted);
  });
  if (kernels.empty())
    throw ConfigError(fmt::format("--gpu {}: {} has no kernel of it; it has {}", gpu, file, list_of(names)));
  return kernels;
}

/// A file that was cut short within its last number reads like a whole one; that its last line has no end may tell.
bool ends_within_a_line(const std::string& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  return in.tellg() > 0 && in.seekg(-1, std::ios::end) && in.get() != '\n';
}

void compare_kernels(const KernelsOptions& options, Shared& shared) {
  keep_input(shared, options.compare);
  std::vector<calibration::MeasuredKernel> kernels = calibration::read_measured_kernels(options.compare);
  if (ends_within_a_line(options.compare))
    remark(shared,
           fmt::format("{}: line {}: ends without a line break; if the file was cut short, its last time is wrong",
                       options.compare, kernels.back().line));
  if (!options.workload.gpu.empty()) kernels = on_gpu(std::move(kernels), options.workload.gpu, options.compare);
  const std::vector<KernelErrors> errors = calibration::compare(kernels);
  emit(shared, shared.format == "json"  ? errors_json(errors).dump(2) + "\n"
               : shared.format == "csv" ? errors_table(errors, false).csv()
                                        : errors_table(errors, true).text(result_width(shared)));
}

void run_kernels(const KernelsOptions& options, Shared& shared) {
  check_output(shared);
  if (!options.compare.empty()) {
    return compare_kernels(options, shared);
  }
  if (options.workload.model.empty() || options.workload.gpu.empty())
    throw ConfigError("kernels needs --gpu and --model for the kernels of a step, or --compare FILE.csv");
  keep_input(shared, options.workload.model);
  const KernelStep step = kernel_step(options.workload);
  emit(shared, shared.format == "json"  ? step_json(step).dump(2) + "\n"
               : shared.format == "csv" ? table_of(step, false).csv()
                                        : step_text(step, options.verbose, result_width(shared)));
}

void declare_kernels(Parser command, Shared& shared) {
  auto options = std::make_shared<KernelsOptions>();
  command.add_option("--gpu", options->workload.gpu, "the GPU; with --compare: only its kernels")
      .check(suggest("@sheets"));
  Option model = command.add_option(
      "--model", options->workload.model,
      "a model of `ganymede list models`, a list of layers, or a file: layers, or a step trace with kernels");
  model.check(suggest("@models @layers @files"));
  Option batch = command.add_option("--batch", options->workload.batch, "images in a step");
  batch.check(integer_between(1, 1 << 24)).capture_default_str();
  Option precision = command.add_option("--precision", options->workload.precision,
                                        "of products and convolutions; default: the model's");
  precision.check(one_of({"fp32", "tf32", "bf16", "fp16"}));
  Option executor = command.add_option("--executor", options->workload.executor,
                                       "how the host launches kernels; default: the model's");
  executor.check(one_of({"eager", "compiled", "graph"}));
  Option catalog =
      command.add_option("--catalog", options->workload.catalog, "a catalog or platform file that has the GPU");
  catalog.check(suggest("@providers @files"));
  Option compare =
      command.add_option("--compare", options->compare,
                         "measured kernels, in the columns of NeuSight's or DeepBench's figures: prints the model's "
                         "errors");
  compare.check(suggest("@files"));
  Option verbose =
      command.add_flag("--verbose", options->verbose, "every figure of each kernel, in a table of about 200 columns");
  for (Option other : {model, batch, precision, executor, catalog, verbose}) compare.excludes(other);
  add_format(command, shared, {"table", "json", "csv"});
  add_output(command, shared);
  command.callback([options, &shared] { run_kernels(*options, shared); });
}

}  // namespace

Command kernels_command() {
  return {.name = "kernels",
          .summary = "a step kernel by kernel on a GPU, without running it; measured kernels against the model",
          .examples =
              "  ganymede kernels --gpu A100-40GB --model dcgan-64 --batch 128\n"
              "  ganymede kernels --gpu V100 --model resnet50 --batch 64 --precision fp16 --format csv\n"
              "  ganymede kernels --compare measured.csv --gpu V100 --format json\n",
          .about =
              "Predicts each kernel from its shape and the GPU's data sheet: its time with a 90 % interval, its\n"
              "share of the step, and what limits it; with --verbose, and in csv and json, algorithm, arithmetic,\n"
              "bytes, tiles and waves too. With --compare it prints how far it is off on measured kernels: each for\n"
              "itself, and in sums of 20.",
          .declare = declare_kernels};
}

}  // namespace ganymede::cli
