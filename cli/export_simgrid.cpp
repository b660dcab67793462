// ganymede export simgrid: an allocation as a platform file of SimGrid.

#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "cli/names.hpp"
#include "common/errors.hpp"
#include "exports/simgrid.hpp"
#include "platforms/overlay.hpp"

namespace ganymede::cli {
namespace {

struct SimGridFlags {
  std::string catalog, overlay, instance, region;
  int nodes = 1, gpus_per_node = 0;
  bool unit_factors = false;
};

void export_simgrid(const SimGridFlags& flags, const Shared& shared) {
  check_output(shared);
  for (const std::string& input : {flags.catalog, flags.overlay}) keep_input(shared, input);
  const platforms::Platform platform = platforms::load_platform_choice(flags.catalog, flags.overlay);
  const platforms::Instance& instance = platform.instance(flags.instance);
  if (flags.gpus_per_node > instance.gpus)
    throw ConfigError(fmt::format("--gpus-per-node {}: {} has {}", flags.gpus_per_node, instance.name, instance.gpus));
  if (instance.available && flags.nodes > *instance.available)
    throw ConfigError(
        fmt::format("--nodes {}: the platform has {} of {}", flags.nodes, *instance.available, instance.name));
  const exports::SimGridExport made = exports::simgrid_platform(
      {platform, instance, flags.nodes, flags.gpus_per_node > 0 ? flags.gpus_per_node : instance.gpus, flags.region,
       flags.unit_factors});
  emit(shared, made.xml);
  for (const std::string& warning : made.warnings) remark(shared, "warning: " + warning);
}

void declare_export_simgrid(Parser command, Shared& shared) {
  auto flags = std::make_shared<SimGridFlags>();
  command.add_option("--catalog", flags->catalog, "a provider (ganymede list providers) or a platform file")
      .check(suggest("@providers @files"))
      .required();
  command.add_option("--overlay", flags->overlay, "a file of measured values that replace the platform's");
  command.add_option("--instance", flags->instance, "instance type").check(suggest("@instances")).required();
  command.add_option("--nodes", flags->nodes, "number of nodes").check(integer_between(1, 65536)).capture_default_str();
  command.add_option("--gpus-per-node", flags->gpus_per_node, "GPUs used on each node; default: all")
      .check(integer_between(1, 1024));
  command.add_option("--region", flags->region, "region whose on-demand price and carbon intensity the file states")
      .check(suggest("@regions"));
  command.add_flag("--unit-factors", flags->unit_factors,
                   "the file sets SimGrid's factors for TCP and MPI to one, so that links are as fast as they say");
  add_output(command, shared);
  command.callback([flags, &shared] { export_simgrid(*flags, shared); });
}

}  // namespace

Command export_simgrid_command() {
  return {.name = "simgrid",
          .summary = "nodes of a catalog as a platform file of SimGrid 3.32, for SMPI, WRENCH and Batsim",
          .examples =
              "  ganymede export simgrid --catalog aws --instance p4d.24xlarge --nodes 8 -o platform.xml\n"
              "  ganymede export simgrid --catalog lab.json --instance node --nodes 4 --unit-factors -o platform.xml\n"
              "  smpirun -np 64 -platform platform.xml ./a-program-of-mpi\n",
          .about =
              "Writes a host for each GPU, the links between them, a route for each pair, loopbacks, and power for\n"
              "SimGrid's energy plugin. What the simulation knows and XML cannot say is named on stderr. Beside\n"
              "--unit-factors, smpirun needs --cfg=network/model:CM02, since it names a network model itself.",
          .declare = declare_export_simgrid};
}

}  // namespace ganymede::cli
