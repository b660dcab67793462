// ganymede export: results in the forms that other tools read. Each exporter of exports/ becomes a subcommand.

#include "cli/export.hpp"

#include <fmt/format.h>

#include <memory>
#include <stdexcept>

#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/plain_text.hpp"
#include "exports/simgrid.hpp"
#include "platforms/overlay.hpp"

namespace ganymede::cli {

std::size_t export_document(const std::string& file, const Shared& shared,
                            const std::function<std::string(const report::Document&)>& make,
                            std::initializer_list<report::DocumentKind> kinds) {
  check_output(shared);
  keep_input(shared, file);
  auto waiting = show_elapsed(shared, "reading");
  const auto fail = [&](const std::exception& error) -> ConfigError {
    return ConfigError(fmt::format("{}: is no whole result of this version ({}); simulate again with --format json",
                                   file, error.what()));
  };
  const report::Document document = report::load_document(file, kinds);
  std::string text;
  try {
    text = make(document);
  } catch (const ConfigError&) {
    throw;
  } catch (const JsonError& error) {
    throw fail(error);
  } catch (const std::logic_error& error) {  // text that is not a number, or an index beyond its list
    throw fail(error);
  }
  waiting.reset();
  emit(shared, text);
  return text.size();
}

// ganymede export simgrid: an allocation as a platform file of SimGrid.

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
  command
      .add_option("--catalog", flags->catalog, "a provider (ganymede list providers) or a platform file",
                  suggest("@providers @files"))
      .required();
  command.add_option("--overlay", flags->overlay, "a file of measured values that replace the platform's");
  command.add_option("--instance", flags->instance, "instance type", suggest("@instances")).required();
  command.add_option("--nodes", flags->nodes, "number of nodes", integer_between(1, 65536)).capture_default_str();
  command.add_option("--gpus-per-node", flags->gpus_per_node, "GPUs used on each node; default: all",
                     integer_between(1, 1024));
  command.add_option("--region", flags->region, "region whose on-demand price and carbon intensity the file states",
                     suggest("@regions"));
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

Command export_simgrid_command();  // export_simgrid.cpp

namespace {

/// Empty if the text is an index of a list, else why not. The parser alone would accept "1.5".
std::string check_index(const std::string& text) {
  return parse_number<std::size_t>(text) ? "" : fmt::format("found {}, expected an index, from 0", text);
}

/// Declares one option, whose value goes to its slot as text.
void declare_option(Parser command, const exports::ExportOption& option, exports::ExportValues& values) {
  const std::string flag = "--" + option.name;
  std::string& slot = values.slot(option.name);
  if (option.kind == exports::ExportOption::Kind::flag) {
    command.add_flag_callback(
        flag, [&slot] { slot = "yes"; }, option.summary);
    return;
  }
  Option declared = command.add_option(flag, slot, option.summary);
  if (option.kind == exports::ExportOption::Kind::index) declared.check(check_index).type_name("UINT");
  if (option.kind == exports::ExportOption::Kind::integer)
    declared.check(integer_between(option.min, option.max)).type_name("INT");
  if (!option.choices.empty()) declared.check(one_of(option.choices));
  if (!option.default_value.empty()) declared.capture_default_str();
}

void run_export(const exports::Exporter& exporter, const std::string& file, const exports::ExportValues& values,
                Shared& shared) {
  const exports::ExportConsole console{.remark = [&](const std::string& text) { remark(shared, text); }};
  if (exporter.check != nullptr) exporter.check(values);
  export_document(file, shared, [&](const report::Document& document) {
    exports::check_kind(exporter, document);
    return exporter.write(document, values, console);
  });
}

}  // namespace

Command exporter_command(const exports::Exporter& exporter) {
  return {.name = exporter.name,
          .summary = exporter.summary,
          .examples = exporter.examples,
          .about = exporter.about,
          .declare = [&exporter](Parser command, Shared& shared) {
            auto file = std::make_shared<std::string>();
            auto values = std::make_shared<exports::ExportValues>(exporter.options);
            command.add_option("document", *file, exports::source_text(exporter.reads)).required();
            for (const exports::ExportOption& option : exporter.options) declare_option(command, option, *values);
            add_output(command, shared);
            command.callback([&exporter, file, values, &shared] { run_export(exporter, *file, *values, shared); });
          }};
}

Command export_command() {
  return {.name = "export",
          .summary = "results in the forms that other tools read, and machines for SimGrid",
          .examples =
              "  ganymede simulate scenario.json --format json -o result.json\n"
              "  ganymede export focus result.json --start 2026-12-01T09:00:00Z -o bill.csv\n"
              "  ganymede export csv result.json\n"
              "  ganymede export skypilot plan.json -o task.yaml\n"
              "  ganymede export kubernetes plan.json --image registry/ganymede -o job.yaml\n"
              "  ganymede export mlflow result.json -o runs.json\n"
              "  ganymede export simgrid --catalog aws --instance p4d.24xlarge --nodes 8 -o platform.xml\n",
          .about = "Results in the forms that other tools read. docs/exports.md has more.",
          .declare = [](Parser command, Shared& shared) {
            command.require_subcommand();
            for (const exports::Exporter& exporter : exports::exporters())
              add_command(command, exporter_command(exporter), shared);
            add_command(command, export_simgrid_command(), shared);
          }};
}

}  // namespace ganymede::cli
