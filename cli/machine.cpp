// ganymede doctor: what was found on this machine, and why a backend is missing.

#include "report/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command.hpp"
#include "cli/import.hpp"
#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/host_inventory.hpp"
#include "common/json_value.hpp"
#include "kernel/ops/cuda/cuda_backend.hpp"
#include "plan/fits.hpp"
#include "studies/link_check.hpp"
#include "studies/why_slow.hpp"

namespace ganymede::cli {
namespace {

std::vector<std::string> missing(const HostInventory& host, std::initializer_list<std::string_view> names) {
  std::vector<std::string> absent;
  for (const HostDependency& item : host.dependencies)
    if (!item.found && std::find(names.begin(), names.end(), item.name) != names.end()) absent.push_back(item.name);
  return absent;
}

std::string cuda_reason(const HostInventory& host) {
  const kernel::Gpus gpus = kernel::count_gpus();
  if (gpus.count > 0) return fmt::format("{} GPU{}", gpus.count, gpus.count == 1 ? "" : "s");
  std::string reason = gpus.why_none;
  if (host.graphics.devices.empty()) return reason;
  const auto absent = missing(host, {"nvcc", "cuDNN", "NCCL"});
  reason += fmt::format("; this machine has {} GPU{}", host.graphics.devices.size(),
                        host.graphics.devices.size() == 1 ? "" : "s");
  return absent.empty() ? reason : fmt::format("{}; building it will need {}", reason, fmt::join(absent, ", "));
}

std::string inventory_text(const Shared& shared) {
  const HostInventory host = take_host_inventory();
  const std::vector<HostDependency> backends = {{"cpu", true, fmt::format("Eigen, {} threads", host.processor.usable)},
                                                {"cuda", kernel::count_gpus().count > 0, cuda_reason(host)}};
  if (shared.format == "csv") return report::machine_csv(host, backends);
  if (shared.format != "json") return report::machine_text(host, backends, result_width(shared));
  OrderedJson machine = to_json(host);
  for (const auto& [name, available, reason] : backends)
    machine["backends"].push_back({{"name", name}, {"available", available}, {"reason", reason}});
  return machine.dump(2) + "\n";
}

void declare_doctor(Parser command, Shared& shared) {
  add_result(command, shared, {"table", "json", "csv"});
  command.callback([&shared] { emit(shared, inventory_text(shared)); });
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor",
          .summary = "what was found on this machine, and why a backend is missing",
          .examples =
              "  ganymede doctor\n"
              "  ganymede doctor --format json\n",
          .about =
              "Lists processor, memory, GPUs, drivers and libraries, and says for each backend that cannot be used\n"
              "what is missing.",
          .trains = true,
          .declare = declare_doctor};
}

// ganymede fits: which GPUs hold a training, and with which batch.

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
  command.add_option("--batch", options->batch,
                     "images of a pass on one GPU; without it only the largest batches are said",
                     integer_between(1, 1 << 20));
  command.add_option("--precision", options->precision, "of a list of layers; default: its own",
                     one_of({"fp32", "tf32", "bf16", "fp16"}));
  command.add_flag("--several-gpus", options->several_gpus,
                   "for a training on several GPUs, each of which then holds buckets of gradients too");
  add_result(command, shared, {"table", "json", "csv"});
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

// ganymede check: is what was measured normal, and if not, why?

namespace {

void run_check(const studies::LinkCheckOptions& options, const Shared& shared) {
  check_output(shared);
  for (const std::string& input : {options.log, options.catalog, options.overlay}) keep_input(shared, input);
  auto waiting = show_elapsed(shared, "checking");
  const documents::LinkCheck check = studies::check_link_log(options);
  waiting.reset();
  emit(shared, shared.format == "json"  ? documents::link_check_text(check)
               : shared.format == "csv" ? report::link_check_csv(check)
                                        : report::link_check_text(check, result_width(shared)));
}

void declare_nccl_log(Parser command, Shared& shared) {
  auto options = std::make_shared<studies::LinkCheckOptions>();
  command.add_option("log", options->log, "what nccl-tests printed, or its JSON file").required();
  command.add_option("--catalog", options->catalog, "a provider (ganymede list providers) or a platform file",
                     suggest("@providers @files"));
  command.add_option("--overlay", options->overlay, "overlay to apply to the platform first");
  command.add_option("--instance", options->instance, "the instance type; default: found by what the log says",
                     suggest("@instances"));
  command.add_option("--gpu", options->gpu, "the GPU, where the log does not name it: A100-80GB", not_empty);
  command.add_option("--nic", options->nic, "RDMA NICs of a node, in place of the instance's: 8x200Gbit/s", not_empty);
  add_logged_ranks(command, options->nodes, options->gpus_per_node);
  command.add_option("--scheme", options->scheme, "what should have run; default: NCCL's own choice",
                     suggest("@schemes"));
  add_result(command, shared, {"table", "json", "csv"});
  command.callback([options, &shared] { run_check(*options, shared); });
}

}  // namespace

Command check_command() {
  const Command nccl_log{
      .name = "nccl-log",
      .summary = "is the bandwidth of an nccl-tests log normal, and if not, why?",
      .examples =
          "  ganymede check nccl-log all_reduce.log\n"
          "  ganymede check nccl-log all_reduce.log --catalog aws --instance p4d.24xlarge --nodes 2\n"
          "  ganymede check nccl-log all_reduce.log --gpu H100 --nodes 2 --nic 8x400Gbit/s\n",
      .about =
          "Prints the expected curve beside the measured one and a verdict: normal, low, or broken (under a fifth of\n"
          "what is expected). Each cause is simulated on the same machine: one NIC in place of all, no GPUDirect,\n"
          "TCP, no peer-to-peer, sockets and switches, forced algorithms and protocols, a slow rank. The one that\n"
          "explains the times best is named, with its probability and what would show it. Words of NCCL_DEBUG=INFO\n"
          "in the log count too.",
      .declare = declare_nccl_log};
  return {.name = "check",
          .summary = "is what was measured normal, and if not, why?",
          .examples = nccl_log.examples,
          .about = "Compares measurements of other programs with what their machine should reach.",
          .declare = [nccl_log](Parser command, Shared& shared) {
            command.require_subcommand();
            add_command(command, nccl_log, shared);
          }};
}

// ganymede why-slow: why is a training slow on several GPUs?

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
  command.add_option("--gpus", options->gpus, "number of GPUs of --all", integer_between(2, 65536));
  command.add_option("--one", options->one,
                     "rate of one GPU: 250img/s, 4s/kimg, 2it/s, 0.5s/it; with --images: 25s/epoch, 40h", not_empty);
  command.add_option("--all", options->all, "rate of all GPUs", not_empty);
  command.add_option("--gpu", options->gpu, "the GPU: V100, A100-80GB", suggest("@rented-gpus"));
  command.add_option("--nodes", options->nodes, "number of nodes; default: 1", integer_between(1, 65536));
  command.add_option("--nic", options->nic, "RDMA NICs of a node, in place of the instance's: 8x200Gbit/s", not_empty);
  command.add_option("--catalog", options->catalog, "a provider (ganymede list providers) or a platform file",
                     suggest("@providers @files"));
  command.add_option("--instance", options->instance, "the instance type; default: the first that has the GPUs",
                     suggest("@instances"));
  command.add_option("--model", options->model, "whose gradients and batch are taken, as `plan --model` names it",
                     suggest("@planned"));
  command.add_option("--recipe", options->recipe, "the same of a training: ganymede list recipes",
                     suggest("@recipes @files"));
  command.add_option("--parameters", options->parameters, "number of trainable parameters, for the gradients")
      .transform(positive_count());
  command.add_option("--batch", options->batch, "images on one GPU in a step", integer_between(1, 1 << 20));
  command.add_option("--launcher", options->launcher,
                     "processes (torchrun, Horovod: one for each GPU) or one-process (nn.DataParallel)",
                     one_of({"processes", "one-process"}));
  command.add_flag("--synthetic", options->synthetic, "images are made up: nothing is read");
  command.add_option("--images", options->images,
                     "images that take the times, and for which savings are stated; default for these: a million",
                     positive_number());
  add_result(command, shared, {"table", "json"});
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
