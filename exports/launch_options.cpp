#include "exports/launch_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "kernel/models/models.hpp"

namespace ganymede::exports {

std::vector<ExportOption> launch_options(std::vector<ExportOption> more) {
  std::vector<ExportOption> options = {
      {.name = "run",
       .summary = "which run of a sweep, as in its /runs, from 0; default: the cheapest that met its goals",
       .kind = ExportOption::Kind::index},
      {.name = "name", .summary = "name of what is made; default: model and instance"},
      {.name = "command", .summary = "a line for bash that trains, instead of ganymede train"},
      {.name = "disk",
       .summary = "GB for data and checkpoints",
       .kind = ExportOption::Kind::integer,
       .default_value = "256",
       .min = 1,
       .max = 65536}};
  options.insert(options.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return options;
}

Launch launch_of(const report::Document& document, const ExportValues& values, const ExportConsole& console) {
  const auto run = values.index("run");
  Launch launch = read_launch(document, run);
  if (document.kind == report::DocumentKind::sweep && !run)
    console.remark(fmt::format("taking {}: the cheapest that met its goals, {} x {} on {} {}; --run takes another",
                               launch.source, launch.nodes, launch.instance, launch.provider, launch.region));
  const auto models = kernel::models();
  const bool trained_here =
      std::any_of(models.begin(), models.end(), [&](const auto& model) { return model.name == launch.model; });
  if (values.text("command").empty() && !trained_here)
    throw ConfigError(
        fmt::format("{}: is of {}, which is no model of ganymede train; --command says how it is trained, as "
                    "--command 'python train.py'",
                    document.node.file(), Json(launch.model).dump_ascii()));
  return launch;
}

}  // namespace ganymede::exports
