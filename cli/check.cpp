// ganymede check: is what was measured normal, and if not, why?

#include <memory>

#include "cli/command.hpp"
#include "cli/import_links.hpp"
#include "cli/names.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"
#include "report/link_check.hpp"
#include "studies/link_check.hpp"

namespace ganymede::cli {
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
  command.add_option("--catalog", options->catalog, "a provider (ganymede list providers) or a platform file")
      .check(suggest("@providers @files"));
  command.add_option("--overlay", options->overlay, "overlay to apply to the platform first");
  command.add_option("--instance", options->instance, "the instance type; default: found by what the log says")
      .check(suggest("@instances"));
  command.add_option("--gpu", options->gpu, "the GPU, where the log does not name it: A100-80GB").check(not_empty);
  command.add_option("--nic", options->nic, "RDMA NICs of a node, in place of the instance's: 8x200Gbit/s")
      .check(not_empty);
  add_logged_ranks(command, options->nodes, options->gpus_per_node);
  command.add_option("--scheme", options->scheme, "what should have run; default: NCCL's own choice")
      .check(suggest("@schemes"));
  add_format(command, shared, {"table", "json", "csv"});
  add_output(command, shared);
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

}  // namespace ganymede::cli
