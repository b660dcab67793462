// ganymede import nccl-tests: a log of measured collectives, as an overlay for a platform.

#include <memory>

#include "cli/command.hpp"
#include "cli/import_links.hpp"
#include "cli/names.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"

namespace ganymede::cli {

void import_collective_log(const LinkImport& options, const Shared& shared) {
  check_output(shared);
  for (const std::string& input : {options.log, options.catalog, options.overlay}) keep_input(shared, input);
  auto waiting = show_elapsed(shared, "fitting");
  const studies::ImportedLinks links = studies::import_links(options, remark_width());
  waiting.reset();
  remark(shared, links.report);
  emit(shared, links.overlay);
}

void add_logged_ranks(Parser command, int& nodes, int& gpus_per_node) {
  command.add_option("--nodes", nodes, "number of nodes; default: as the log says, else 1")
      .check(integer_between(1, 65536));
  command
      .add_option("--gpus-per-node", gpus_per_node,
                  "GPUs used on each node; default: as the log says, else all of the instance")
      .check(integer_between(1, 1024));
}

namespace {

void declare_import_nccl_tests(Parser command, Shared& shared) {
  auto options = std::make_shared<LinkImport>();
  command.add_option("log", options->log, "what nccl-tests printed, or its JSON file").required();
  command.add_option("--catalog", options->catalog, "a provider (ganymede list providers) or a platform file")
      .check(suggest("@providers @files"))
      .required();
  command.add_option("--overlay", options->overlay, "overlay to apply to the platform first");
  command.add_option("--instance", options->instance, "the instance type that was measured")
      .check(suggest("@instances"))
      .required();
  add_logged_ranks(command, options->nodes, options->gpus_per_node);
  command.add_option("--scheme", options->scheme, "scheme that ran; default: nccl, in the version that the log names")
      .check(suggest("@schemes"));
  add_output(command, shared);
  command.callback([options, &shared] { import_collective_log(*options, shared); });
}

}  // namespace

Command import_nccl_tests_command() {
  return {.name = "nccl-tests",
          .summary = "the log of an nccl-tests run, as an overlay for a platform",
          .examples =
              "  ganymede import nccl-tests all_reduce.log --catalog aws --instance p4d.24xlarge --nodes 2 -o "
              "measured.json\n"
              "  ganymede import nccl-tests result.json --catalog lab.json --instance node --scheme nccl:2.9.9/ring\n",
          .about =
              "Fits latency and bandwidth of one kind of link (between nodes, or inside a node) to the smallest and\n"
              "the largest size of a log, text or JSON (-J). It says how far off all other sizes are, beside a\n"
              "straight line through the same two. The overlay goes to standard output or to -o, the table to\n"
              "standard error.",
          .declare = declare_import_nccl_tests};
}

}  // namespace ganymede::cli
