// ganymede why-slow: why is a training slow on several GPUs?

#include "studies/why_slow.hpp"

#include <memory>

#include "cli/command.hpp"
#include "cli/names.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"
#include "report/why_slow.hpp"

namespace ganymede::cli {
namespace {

void run_why_slow(const studies::WhySlowOptions& options, const Shared& shared) {
  check_output(shared);
  if (!options.trace.empty()) keep_input(shared, options.trace);
  auto waiting = show_elapsed(shared, "comparing");
  const documents::WhySlow answer = studies::why_slow(options);
  waiting.reset();
  emit(shared, shared.format == "json" ? documents::why_slow_text(answer)
                                       : report::why_slow_text(answer, result_width(shared)));
}

void declare_why_slow(Parser command, Shared& shared) {
  auto options = std::make_shared<studies::WhySlowOptions>();
  command.add_option("trace", options->trace, "a profiler trace of one rank, in place of two rates");
  command.add_option("--gpus", options->gpus, "number of GPUs of --all").check(integer_between(2, 65536));
  command.add_option("--one", options->one, "rate of one GPU: 250img/s, 4s/kimg").check(not_empty);
  command.add_option("--all", options->all, "rate of all GPUs").check(not_empty);
  command.add_option("--gpu", options->gpu, "the GPU: V100, A100-80GB").check(suggest("@rented-gpus"));
  command.add_option("--nodes", options->nodes, "number of nodes; default: 1").check(integer_between(1, 65536));
  command.add_option("--nic", options->nic, "RDMA NICs of a node, in place of the instance's: 8x200Gbit/s")
      .check(not_empty);
  command.add_option("--catalog", options->catalog, "a provider (ganymede list providers) or a platform file")
      .check(suggest("@providers @files"));
  command.add_option("--instance", options->instance, "the instance type; default: the first that has the GPUs")
      .check(suggest("@instances"));
  command.add_option("--model", options->model, "whose gradients and batch are taken, as `plan --model` names it")
      .check(suggest("@planned"));
  command.add_option("--recipe", options->recipe, "the same of a training: ganymede list recipes")
      .check(suggest("@recipes @files"));
  command.add_option("--parameters", options->parameters, "number of trainable parameters, for the gradients")
      .transform(positive_count());
  command.add_option("--batch", options->batch, "images on one GPU in a step").check(integer_between(1, 1 << 20));
  command.add_option("--images", options->images, "images for which savings are stated")
      .check(positive_number())
      .capture_default_str();
  add_format(command, shared, {"table", "json"});
  add_output(command, shared);
  command.callback([options, &shared] { run_why_slow(*options, shared); });
}

}  // namespace

Command why_slow_command() {
  return {
      .name = "why-slow",
      .summary = "why is a training slow on several GPUs, and what would each cure bring?",
      .examples =
          "  ganymede why-slow --gpus 8 --one 250img/s --all 1200img/s --gpu V100\n"
          "  ganymede why-slow --gpus 16 --nodes 2 --one 2900 --all 23000 --gpu A100 --nic 8x200Gbit/s --parameters "
          "110M --batch 32\n"
          "  ganymede why-slow rank0.json.gz --batch 64\n",
      .about =
          "Predicts from the rate of one GPU what all should give, and what they would give with each cause:\n"
          "links (as `check nccl-log`), one process for all GPUs, no overlap, a split batch, input, workers that\n"
          "wait. The one that explains the measured rate best comes first, with the time and dollars that its cure\n"
          "saves. Of a profiler trace it prints the parts of a step.",
      .declare = declare_why_slow};
}

}  // namespace ganymede::cli
