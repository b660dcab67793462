// ganymede compare: one training on several instance types, GPUs or clouds, side by side.

#include <algorithm>
#include <memory>

#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "cli/request_flags.hpp"
#include "cli/shared_options.hpp"
#include "common/json_value.hpp"
#include "plan/planner.hpp"
#include "platforms/catalog.hpp"
#include "report/compared.hpp"

namespace ganymede::cli {
namespace {

struct CompareOptions {
  std::vector<std::string> names;
  RequestFlags request;
};

/// What a name makes of a request's search: a cloud or platform file, a GPU, else an instance type. Some clouds name
/// machines after their GPUs: of "V100" the GPU is meant.
std::vector<JsonOverride> search_of(const std::string& name) {
  const std::string list = Json::array({name}).dump();
  if (platforms::is_provider(name) || name.ends_with(".json")) return {{"/search/catalogs", list}};
  bool is_instance = false;
  for (const std::string& provider : platforms::provider_names()) {
    const platforms::Platform& platform = platforms::catalog(provider);
    for (const platforms::Instance& instance : platform.instances) {
      const platforms::Gpu& gpu = platform.gpu_of(instance);
      if (gpu.name == name || gpu.family == name) return {{"/search/gpus", list}};
      is_instance = is_instance || instance.name == name;
    }
  }
  if (is_instance) return {{"/search/instances", list}};
  // So many of a GPU, as people and launchers write it: 8xV100, V100x8 or V100:8.
  const std::size_t behind = name.find_last_not_of("0123456789"), before = name.find_first_not_of("0123456789");
  std::string gpu, count;
  if (before != name.npos && name[before] == 'x') {
    count = name.substr(0, before);
    gpu = name.substr(before + 1);
  } else if (behind != name.npos && (name[behind] == 'x' || name[behind] == ':')) {
    gpu = name.substr(0, behind);
    count = name.substr(behind + 1);
  }
  if (gpu.empty() || count.empty() || count[0] == '0') return {{"/search/gpus", list}};
  return {{"/search/gpus", Json::array({gpu}).dump()}, {"/search/min_gpus", count}, {"/search/max_gpus", count}};
}

void run_compare(const CompareOptions& options, Shared& shared) {
  check_output(shared);
  if (!options.request.file.empty()) keep_input(shared, options.request.file);
  plan::PlanOptions search;
  search.jobs = jobs(shared);
  auto waiting = show_elapsed(shared, "comparing");
  std::vector<report::Compared> rows;
  for (const std::string& name : options.names)
    rows.push_back(best_of(options.request, "compare", name, search_of(name), search));
  waiting.reset();
  emit(shared, shared.format == "json"  ? report::compared_json(rows)
               : shared.format == "csv" ? report::compared_csv(rows)
                                        : report::compared_text(rows, today(), result_width(shared)));
  if (std::none_of(rows.begin(), rows.end(), [](const auto& row) { return row.row && row.row->verdict == "meets"; }))
    shared.exit_code = ExitCode::infeasible;
}

void declare_compare(Parser command, Shared& shared) {
  auto options = std::make_shared<CompareOptions>();
  command
      .add_option(
          "names", options->names,
          "instance types, GPUs, so many of a GPU (8xV100), clouds or platform files, two or more of any of these")
      .required()
      .check(suggest("@instances @rented-gpus @providers @files"));
  command.add_option("--request", options->request.file,
                     "what to train: a ganymede.request/1 file; without it, flags say everything");
  declare_request(command, options->request);
  add_jobs(command, shared);
  add_format(command, shared, {"table", "json", "csv"});
  add_output(command, shared);
  command.callback([options, &shared] { run_compare(*options, shared); });
}

}  // namespace

Command compare_command() {
  return {
      .name = "compare",
      .summary = "one training on several instance types, GPUs or clouds: time, cost, use, side by side",
      .examples =
          "  ganymede compare p3.16xlarge p4d.24xlarge Standard_ND96asr_v4 --recipe stylegan2-ada/paper512\n"
          "  ganymede compare 8xV100 4xA100 H100 --model layers:biggan --batch 64 --images 10M --max-gpus 8\n"
          "  ganymede compare aws gcp azure --request request.json --market on-demand --format csv\n",
      .about =
          "Each row is the best of what a plan restricted to that name finds: number of GPUs, region, market. Goals\n"
          "and search are those of `plan`. Exit code 3: none of them meets the goals.",
      .declare = declare_compare};
}

}  // namespace ganymede::cli
