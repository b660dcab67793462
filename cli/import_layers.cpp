// ganymede import layers: a list of layers as a workload that can be planned without running it.

#include <memory>

#include "calibration/imported_traces.hpp"
#include "calibration/kernel_workload.hpp"
#include "cli/command.hpp"
#include "cli/names.hpp"
#include "cli/terminal.hpp"
#include "platforms/catalog.hpp"
#include "traces/layer_list.hpp"
#include "traces/recorded.hpp"

namespace ganymede::cli {
namespace {

struct LayerOptions {
  std::string list, catalog = "aws", gpu = "V100", precision;
  std::vector<int> batches = {16};
};

void import_layers(const LayerOptions& options, Shared& shared) {
  check_output(shared);
  keep_input(shared, options.list);
  traces::LayerList list = traces::load_layer_list(options.list);
  if (!options.precision.empty()) list.precision = options.precision;
  const platforms::Gpu gpu = platforms::catalog_gpu(options.catalog, options.gpu);
  traces::StepTrace trace = traces::trace_of(list, options.batches, calibration::roofline_device(gpu, list.precision));
  const std::string how = calibration::time_by_kernels(trace, gpu);
  remark(shared, calibration::layers_text(list, trace, how, remark_width()));
  emit(shared, traces::write_step_trace(trace));
}

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
