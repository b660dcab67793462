// ganymede fits: which GPUs hold a training, and with which batch.

#include "plan/fits.hpp"

#include <algorithm>
#include <memory>

#include "cli/command.hpp"
#include "cli/names.hpp"
#include "cli/terminal.hpp"
#include "report/fits.hpp"

namespace ganymede::cli {
namespace {

void run_fits(const plan::FitsOptions& options, Shared& shared) {
  check_output(shared);
  keep_input(shared, options.model);
  const documents::Fits fits = plan::fits(options);
  emit(shared, shared.format == "json"  ? documents::fits_text(fits)
               : shared.format == "csv" ? report::fits_csv(fits)
                                        : report::fits_text(fits, result_width(shared)));
  const bool held = std::any_of(fits.gpus.begin(), fits.gpus.end(), [&](const documents::FitsGpu& gpu) {
    return gpu.at_verdict ? gpu.at_verdict != "no" : gpu.perhaps_batch > 0;
  });
  if (!held) shared.exit_code = ExitCode::infeasible;
}

void declare_fits(Parser command, Shared& shared) {
  auto options = std::make_shared<plan::FitsOptions>();
  command.add_option("model", options->model, "a model as `plan --model` takes it, or a file: layers, or a step trace")
      .required()
      .check(suggest("@planned @files"));
  command.add_option("--gpu", options->gpus, "only these GPUs of the catalogs, or families of them")
      .delimiter(',')
      .check(suggest("@rented-gpus @list"));
  command
      .add_option("--batch", options->batch,
                  "images of a pass on one GPU; without it only the largest batches are said")
      .check(integer_between(1, 1 << 20));
  command.add_option("--precision", options->precision, "of a list of layers; default: its own")
      .check(one_of({"fp32", "tf32", "bf16", "fp16"}));
  command.add_flag("--several-gpus", options->several_gpus,
                   "for a training on several GPUs, each of which then holds buckets of gradients too");
  add_format(command, shared, {"table", "json", "csv"});
  add_output(command, shared);
  command.callback([options, &shared] { run_fits(*options, shared); });
}

}  // namespace

Command fits_command() {
  return {.name = "fits",
          .summary = "which GPUs hold a training in their memory, and with which batch",
          .examples =
              "  ganymede fits stylegan2                                 the largest batch of each GPU\n"
              "  ganymede fits 'stylegan2?image=256' --batch 8 --gpu V100,T4\n"
              "  ganymede fits mine.json --precision fp16 --format csv\n",
          .about =
              "Prints the memory of a step by kind, and for each GPU of the catalogs the largest batch that fits at\n"
              "the upper end of the 90 % interval, and the one that is expected to fit (perhaps). Memory of a list of\n"
              "layers is counted as PyTorch takes it. cudnn.benchmark may take more in the first steps.\n"
              "Exit code 3: none of the GPUs holds it.",
          .declare = declare_fits};
}

}  // namespace ganymede::cli
