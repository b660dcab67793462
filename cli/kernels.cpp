// ganymede kernels: a step kernel by kernel on a GPU, and measured kernels against the model of their times.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "calibration/kernel_comparison.hpp"
#include "calibration/kernels/error_of_sums.hpp"
#include "calibration/workload_model.hpp"
#include "cli/command.hpp"
#include "cli/kernel_workload.hpp"
#include "cli/names.hpp"
#include "cli/terminal.hpp"
#include "common/errors.hpp"
#include "report/table.hpp"

namespace ganymede::cli {
namespace {

using calibration::Kernel;
using calibration::KernelErrors;
using calibration::StepKernel;
using OrderedJson = nlohmann::ordered_json;

struct KernelsOptions {
  KernelWorkloadOptions workload;
  std::string compare;
};

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
    const double share = one.times * time.central_s / step.sum.device_s;
    if (for_people) {
      row.insert(row.end(), {to_string(Seconds{time.central_s}),
                             fmt::format("{} to {}", to_string(Seconds{time.low_s}), to_string(Seconds{time.high_s})),
                             percent(share), time.limit});
    } else {
      row.insert(row.end(), {fmt::format("{}", time.central_s), fmt::format("{}", time.low_s),
                             fmt::format("{}", time.high_s), fmt::format("{:.6f}", share), time.limit});
    }
    table.add(std::move(row));
  }
  return table;
}

std::string step_text(const KernelStep& step, std::size_t width) {
  return table_of(step, true).text_below_constants(width) +
         fmt::format(
             "\n{} at batch {} in {} on {}: a step of {} ({} to {}, kernel model) with {:.0f} launches\n"
             "kernels {}, host {} ({}); decided by {}\n",
             step.model, step.batch, step.precision, step.gpu, to_string(Seconds{step.sum.seconds}),
             to_string(Seconds{step.sum.low_s}), to_string(Seconds{step.sum.high_s}), step.sum.launches,
             to_string(Seconds{step.sum.device_s}), to_string(Seconds{step.sum.host_s}), step.executor,
             step.sum.decided_by);
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
                       {"share", one.times * one.time.central_s / step.sum.device_s},
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

void compare_kernels(const KernelsOptions& options, Shared& shared) {
  keep_input(shared, options.compare);
  std::vector<calibration::MeasuredKernel> kernels = calibration::read_measured_kernels(options.compare);
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
                                        : step_text(step, result_width(shared)));
}

void declare_kernels(CLI::App& command, Shared& shared) {
  auto options = std::make_shared<KernelsOptions>();
  command.add_option("--gpu", options->workload.gpu, "the GPU; with --compare: only its kernels")
      ->check(suggest("@sheets"));
  CLI::Option* model = command.add_option(
      "--model", options->workload.model,
      "a model of `ganymede list models`, a list of layers, or a file: layers, or a step trace with kernels");
  model->check(suggest("@models @layers @files"));
  CLI::Option* batch = command.add_option("--batch", options->workload.batch, "images in a step");
  batch->check(CLI::Range(1, 1 << 24))->capture_default_str();
  CLI::Option* precision = command.add_option("--precision", options->workload.precision,
                                              "of products and convolutions; default: the model's");
  precision->check(CLI::IsMember({"fp32", "tf32", "bf16", "fp16"}));
  CLI::Option* executor = command.add_option("--executor", options->workload.executor,
                                             "how the host launches kernels; default: the model's");
  executor->check(CLI::IsMember({"eager", "compiled", "graph"}));
  CLI::Option* catalog =
      command.add_option("--catalog", options->workload.catalog, "a catalog or platform file that has the GPU");
  catalog->check(suggest("@providers @files"));
  CLI::Option* compare =
      command.add_option("--compare", options->compare,
                         "measured kernels, in the columns of NeuSight's or DeepBench's figures: prints the model's "
                         "errors");
  compare->check(suggest("@files"));
  for (CLI::Option* other : {model, batch, precision, executor, catalog}) compare->excludes(other);
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
              "Predicts each kernel from its shape and the GPU's data sheet: algorithm, arithmetic, bytes, tiles,\n"
              "waves and time, with a 90 % interval, its share of the step, and what limits it. With --compare it\n"
              "prints how far it is off on measured kernels: each for itself, and in sums of 20.",
          .declare = declare_kernels};
}

}  // namespace ganymede::cli
