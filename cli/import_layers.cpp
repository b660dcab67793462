// ganymede import layers: a list of layers as a workload that can be planned without running it.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "calibration/kernel_workload.hpp"
#include "calibration/workload_model.hpp"
#include "cli/command.hpp"
#include "cli/layer_lists.hpp"
#include "cli/names.hpp"
#include "cli/terminal.hpp"
#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "kernel/models/models.hpp"
#include "platforms/catalog.hpp"
#include "report/table.hpp"
#include "traces/layer_list.hpp"
#include "traces/recorded.hpp"

namespace ganymede::cli {
namespace {

struct LayerOptions {
  std::string list, catalog = "aws", gpu = "V100", precision;
  std::vector<int> batches = {16};
};

std::string report_of(const traces::LayerList& list, const traces::StepTrace& trace, const std::string& how) {
  std::string out = fmt::format("{}{}\n\n", list.name, list.source.empty() ? "" : ": " + list.source);
  report::Table networks({"network", ">copies", ">parameters", ">GFLOP an image, forward", ">kernels", "output"});
  for (const auto& [name, network] : list.networks) {
    const traces::LayerCost total = network.total();
    networks.add({name, fmt::format("{:g}", network.copies), fmt::format("{}", total.parameters),
                  fmt::format("{:.3f}", total.flops / 1e9), std::to_string(total.launches),
                  fmt::format("{}", fmt::join(network.output, " x "))});
  }
  out += networks.text(remark_width()) + "\n";
  const traces::TraceBatch& batch = trace.batches.back();
  report::Table phases({"phase", ">time", ">share", ">GFLOP", ">MB moved", ">kernels"});
  for (const traces::TracePhase& phase : batch.phases)
    phases.add({phase.name, to_string(Seconds{phase.seconds[0]}),
                fmt::format("{:.1f} %", 100 * phase.seconds[0] / batch.wall_s[0]),
                fmt::format("{:.1f}", phase.flops / 1e9),
                fmt::format("{:.1f}", (phase.bytes_read + phase.bytes_written) / 1e6), std::to_string(phase.launches)});
  phases.rule();
  phases.add(
      {fmt::format("step at batch {}", batch.batch), to_string(Seconds{batch.wall_s[0]}), "100.0 %", "", "", ""});
  double memory = 0;
  for (const auto& [kind, bytes] : batch.memory_bytes) memory += bytes;
  return out + phases.text(remark_width()) +
         fmt::format(
             "\nmemory at batch {}: about {} (as PyTorch saves activations; nothing recomputed, no workspace). {}\n",
             batch.batch, to_string(Bytes{memory}), how);
}

/// Gives the phases of each batch size the times of their kernels on the GPU, one after the other. Returns how, in
/// words for people; without the number of its multiprocessors they keep the times of the roofline.
std::string time_by_kernels(traces::StepTrace& trace, const platforms::Gpu& gpu) {
  std::string how = fmt::format(
      "Times are a roofline's on the data sheet of {}: nothing was measured, and no device reaches them.", gpu.name);
  for (traces::TraceBatch& batch : trace.batches) {
    const auto times = calibration::kernel_times(trace, batch, gpu);
    if (!times) return how;
    double now = 0;
    for (traces::TracePhase& phase : batch.phases) {
      phase.start_s = {now};
      if (const auto found = times->phases.find(phase.name); found != times->phases.end()) {
        phase.seconds = {found->second.device_s + found->second.idle_s};
        phase.host_s = {std::min(found->second.host_s, phase.seconds[0])};
      }
      now += phase.seconds[0];
    }
    batch.wall_s = {now};
    how = "Times are a prediction, nothing was measured: " + times->rule + ".";
  }
  trace.device.name = gpu.name + " by kernel model";
  return how;
}

void import_layers(const LayerOptions& options, Shared& shared) {
  check_output(shared);
  keep_input(shared, options.list);
  traces::LayerList list = load_layer_list(options.list);
  if (!options.precision.empty()) list.precision = options.precision;
  const platforms::Gpu gpu = catalog_gpu(options.catalog, options.gpu);
  traces::StepTrace trace = traces::trace_of(list, options.batches, roofline_device(gpu, list.precision));
  const std::string how = time_by_kernels(trace, gpu);
  remark(shared, report_of(list, trace, how));
  emit(shared, traces::write_step_trace(trace));
}

}  // namespace

void check_trainable(const std::string& model) {
  const bool prefixed = model.starts_with(traces::kLayers);
  const std::string name = prefixed ? model.substr(traces::kLayers.size()) : model;
  const auto trained = kernel::model_names();
  const auto lists = names_of(embedded_layers());
  const bool listed = std::find(lists.begin(), lists.end(), traces::list_name(name)) != lists.end();
  if (!prefixed && (!listed || std::find(trained.begin(), trained.end(), name) != trained.end())) return;
  throw ConfigError(
      fmt::format("--model {}: is a list of layers, which can be planned (`ganymede plan --model {} --images 10M`) but "
                  "not trained; expected {}",
                  model, name, list_of(trained)));
}

traces::LayerList load_layer_list(const std::string& given) {
  const std::string name = given.starts_with(traces::kLayers) ? given.substr(traces::kLayers.size()) : given;
  const auto known = names_of(embedded_layers());
  if (std::find(known.begin(), known.end(), traces::list_name(name)) != known.end()) return traces::built_in_list(name);
  const bool path = name.find('/') != std::string::npos || name.ends_with(".json");
  if (path) return traces::read_layer_list(JsonNode::load(name));
  const auto close = nearest(name, known);
  throw ConfigError(fmt::format("no list of layers \"{}\" comes with the program, expected {} or a file (.json){}",
                                name, list_of(known), close ? fmt::format("; did you mean \"{}\"?", *close) : ""));
}

platforms::Gpu catalog_gpu(const std::string& catalog, const std::string& gpu_name) {
  const platforms::Platform platform = platforms::load_catalog(catalog, ".");
  std::vector<std::string> names;
  for (const platforms::Gpu& gpu : platform.gpus) {
    if (gpu.name == gpu_name) return gpu;
    names.push_back(gpu.name);
  }
  const auto close = nearest(gpu_name, names);
  throw ConfigError(fmt::format("--gpu {}: not in the catalog {}; it has {}{}", gpu_name, platform.name, list_of(names),
                                close ? fmt::format("; did you mean \"{}\"?", *close) : ""));
}

traces::RooflineDevice roofline_device(const platforms::Gpu& gpu, const std::string& precision) {
  return {gpu.name, calibration::peak_rate(precision, gpu), gpu.memory_bandwidth, gpu.launch, gpu.memory};
}

namespace {

void declare_import_layers(Parser command, Shared& shared) {
  auto options = std::make_shared<LayerOptions>();
  command.add_option("list", options->list, "a ganymede.layers/1 file, or the name of one that comes with the program")
      .check(suggest("@layers @files"))
      .required();
  command
      .add_option("--batch", options->batches,
                  "images on a GPU in a step; several sizes make a trace with several entries")
      .delimiter(',')
      .check(integer_between(1, 1 << 24))
      .capture_default_str();
  command.add_option("--precision", options->precision, "arithmetic and activations; default: the list's, else fp32")
      .check(one_of({"fp32", "tf32", "bf16", "fp16"}));
  command.add_option("--catalog", options->catalog, "catalog whose data sheet gives the times")
      .check(suggest("@providers @files"))
      .capture_default_str();
  command.add_option("--gpu", options->gpu, "GPU whose data sheet gives the times")
      .check(suggest("@rented-gpus"))
      .capture_default_str();
  add_output(command, shared);
  command.callback([options, &shared] { import_layers(*options, shared); });
}

}  // namespace

Command import_layers_command() {
  return {.name = "layers",
          .summary = "a list of layers, as a workload that can be planned without running it",
          .examples =
              "  ganymede import layers stylegan2 --batch 4,8 -o stylegan2.json\n"
              "  ganymede import layers 'stylegan2?image=256' --precision fp16 --batch 8 -o stylegan2-256.json\n"
              "  ganymede plan --trace stylegan2.json --images 25000000 --deadline 200h --budget 5000USD\n"
              "  ganymede import layers model.json --batch 32 --gpu A100-40GB -o model-trace.json\n",
          .about =
              "Counts FLOPs, bytes, kernels and gradient buckets of each phase. Times are predicted from the\n"
              "kernels' shapes and a data sheet, and every result says so. Lists that come with the program: biggan,\n"
              "cyclegan, dcgan, pix2pix, resnet50, stylegan2, vae; stylegan2?image=256 is one for other images.",
          .declare = declare_import_layers};
}

}  // namespace ganymede::cli
