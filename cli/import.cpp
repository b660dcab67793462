// ganymede import: what other programs measured, as files that this one reads.

#include "cli/command.hpp"

namespace ganymede::cli {

// Each importer has a file of its own, for example import_layers.cpp.
Command import_layers_command();
Command import_profiler_command();
Command import_nccl_tests_command();
Command import_simgrid_command();
Command import_jobs_command();

namespace {

void declare_import(Parser command, Shared& shared) {
  command.require_subcommand();
  for (const Command& importer : {import_layers_command(), import_profiler_command(), import_nccl_tests_command(),
                                  import_simgrid_command(), import_jobs_command()})
    add_command(command, importer, shared);
}

}  // namespace

Command import_command() {
  return {
      .name = "import",
      .summary = "take over what other programs measured",
      .examples =
          "  ganymede import nccl-tests all_reduce.log --catalog aws --instance p4d.24xlarge --nodes 2 -o "
          "measured.json\n"
          "  ganymede allreduce --catalog aws --overlay measured.json --instance p4d.24xlarge --nodes 8 --scheme "
          "nccl,ring --bytes 64MiB\n"
          "  ganymede import profiler rank0.json.gz --batch 64 --gpu A100-40GB -o trace.json\n"
          "  ganymede import layers stylegan2 --batch 4,8 -o stylegan2.json\n"
          "  ganymede import jobs sacct.txt -o jobs.csv\n"
          "  ganymede import simgrid cluster.xml --gpu A100-40GB -o cluster.json\n",
      .about =
          "Turns measurements of other programs into files that simulations use: a log of nccl-tests into a link\n"
          "of a platform, a PyTorch profiler trace or a list of layers into a step trace, the accounting of a cluster\n"
          "into the jobs of a simulated one, and a platform of SimGrid into one of its own.",
      .declare = declare_import};
}

}  // namespace ganymede::cli
