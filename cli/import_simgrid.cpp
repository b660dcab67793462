// ganymede import simgrid: a platform file of SimGrid as one of this program.

#include <memory>

#include "cli/command.hpp"
#include "cli/names.hpp"
#include "platforms/catalog.hpp"
#include "sim/engine/simgrid_import.hpp"

namespace ganymede::cli {
namespace {

struct ImportedSimGrid {
  sim::SimGridImport import;
  std::string gpu, catalog = "aws";
};

void import_simgrid(const ImportedSimGrid& options, const Shared& shared) {
  check_output(shared);
  keep_input(shared, options.import.file);
  sim::SimGridImport import = options.import;
  if (!options.gpu.empty()) import.sheet = platforms::catalog_gpu(options.catalog, options.gpu);
  const sim::ImportedPlatform made = sim::import_simgrid_platform(import);
  emit(shared, made.text);
  for (const std::string& note : made.notes) remark(shared, "note: " + note);
}

void declare_import_simgrid(Parser command, Shared& shared) {
  auto options = std::make_shared<ImportedSimGrid>();
  command.add_option("platform", options->import.file, "a platform file of SimGrid 3.32 (XML, version 4.1)").required();
  command.add_option("--zone", options->import.zone, "take the hosts of this zone or cluster alone; default: all hosts")
      .check(not_empty);
  command
      .add_option("--gpus-per-node", options->import.gpus_per_node,
                  "so many hosts in a row are the GPUs of a node; default: as the file says, else 1")
      .check(integer_between(1, 1024));
  command.add_option("--gpu", options->gpu, "GPU that a host stands for; default: as the file says")
      .check(suggest("@rented-gpus"))
      .check(not_empty);
  command.add_option("--catalog", options->catalog, "catalog whose data sheet --gpu names")
      .check(suggest("@providers @files"))
      .capture_default_str();
  add_output(command, shared);
  command.callback([options, &shared] { import_simgrid(*options, shared); });
}

}  // namespace

Command import_simgrid_command() {
  return {.name = "simgrid",
          .summary = "a platform of SimGrid, as a platform file",
          .examples =
              "  ganymede import simgrid cluster.xml --gpu A100-40GB -o cluster.json\n"
              "  ganymede import simgrid grid.xml --zone nancy --gpus-per-node 4 --gpu V100 -o nancy.json\n"
              "  ganymede allreduce --catalog cluster.json --instance host --nodes 8 --scheme ring --bytes 64MiB\n",
          .about =
              "A host becomes a GPU with the host's speed. SimGrid itself finds the routes, so clusters, zones and\n"
              "shortest paths are understood. Links of one speed that meet in one switch become NICs; all else\n"
              "becomes a fabric of routes, for at most 256 hosts.",
          .declare = declare_import_simgrid};
}

}  // namespace ganymede::cli
