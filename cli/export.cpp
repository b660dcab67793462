// ganymede export: results in the forms that other tools read.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/result_file.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "report/focus.hpp"
#include "report/plans.hpp"
#include "report/run_timeline.hpp"
#include "report/runs.hpp"

namespace ganymede::cli {
namespace {

struct ExportOptions {
  std::string format, result, start, account = "estimate";
};

void export_command(const ExportOptions& options, Shared& shared) {
  check_output(shared);
  keep_input(shared, options.result);
  const auto start =
      options.start.empty() ? std::optional<std::int64_t>(now() / 86400 * 86400) : parse_time(options.start);
  if (!start)
    throw ConfigError(
        fmt::format("--start {}: expected a time with its zone, such as 2026-12-01T09:00:00Z", options.start));
  const nlohmann::json result =
      load_result(options.result, {"ganymede.result/1", "ganymede.sweep/1", "ganymede.plan/1"});
  const auto schema = result["schema"].get<std::string>();
  try {
    if (options.format == "csv") {
      emit(shared, schema == "ganymede.plan/1"    ? plan_csv(result)
                   : schema == "ganymede.sweep/1" ? sweep_csv(result)
                                                  : run_csv(result));
      return;
    }
    if (options.format == "perfetto") {
      if (schema != "ganymede.result/1")
        throw ConfigError(fmt::format("{}: expected one run, as simulate --format json writes it", options.result));
      emit(shared, run_trace(result));
      return;
    }
    if (schema == "ganymede.plan/1")
      throw ConfigError(
          fmt::format("{}: is a plan, which has no bill; simulate it and export the result", options.result));
    FocusOptions focus;
    focus.account = options.account;
    focus.start = *start;
    if (options.start.empty())
      remark(shared, "the run is taken to start at " + format_time(focus.start) + "; --start says when");
    emit(shared, focus_csv(result, focus));
  } catch (const nlohmann::json::exception&) {
    throw ConfigError(
        fmt::format("{}: is no whole result of this version; simulate again with --format json", options.result));
  }
}

}  // namespace

void add_export(CLI::App& app, Shared& shared) {
  auto options = std::make_shared<ExportOptions>();
  auto* command = app.add_subcommand(
      "export",
      "results in the forms that other tools read\n"
      "Examples:\n"
      "  ganymede simulate scenario.json --format json -o result.json\n"
      "  ganymede export focus result.json --start 2026-12-01T09:00:00Z -o bill.csv\n"
      "  ganymede export csv result.json\n"
      "\n"
      "Results in the forms that other tools read.\n"
      "  focus  the bill's items as FOCUS 1.2 (FinOps Open Cost and Usage Specification), each marked as an estimate\n"
      "  csv    a row a run, or of a plan a row a candidate");
  command->add_option("format", options->format, "focus or csv")
      ->required()
      ->check(CLI::IsMember({"focus", "csv", "perfetto"}));
  command->add_option("result", options->result, "what simulate, sweep or plan wrote with --format json")->required();
  command->add_option("--start", options->start, "when the run starts; default: today at 00:00 UTC");
  command->add_option("--account", options->account, "BillingAccountId")->capture_default_str();
  add_output(*command, shared);
  command->callback([options, &shared] { export_command(*options, shared); });
}

}  // namespace ganymede::cli
