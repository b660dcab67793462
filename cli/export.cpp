// ganymede export: results in the forms that other tools read. A format is a subcommand; those with files of their own:
// export_launch.cpp, export_mlflow.cpp.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/export_document.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "report/focus.hpp"
#include "report/plans.hpp"
#include "report/run_timeline.hpp"
#include "report/runs.hpp"

namespace ganymede::cli {
namespace {

constexpr const char* kResult = "what simulate, sweep or plan wrote with --format json";

void add_export_focus(CLI::App& exports, Shared& shared) {
  struct Options {
    std::string result, start, account = "estimate";
  };
  auto options = std::make_shared<Options>();
  auto* command = exports.add_subcommand(
      "focus",
      "the bill's items as FOCUS 1.2 (FinOps Open Cost and Usage Specification)\n"
      "Example:\n"
      "  ganymede export focus result.json --start 2026-12-01T09:00:00Z -o bill.csv\n"
      "\n"
      "The bill's items as FOCUS 1.2, each marked as an estimate. Of a result, or of every run of a sweep.");
  command->add_option("result", options->result, "what simulate or sweep wrote with --format json")->required();
  command->add_option("--start", options->start, "when the run starts; default: today at 00:00 UTC");
  command->add_option("--account", options->account, "BillingAccountId")->capture_default_str();
  add_output(*command, shared);
  command->callback([options, &shared] {
    const auto start =
        options->start.empty() ? std::optional<std::int64_t>(now() / 86400 * 86400) : parse_time(options->start);
    if (!start)
      throw ConfigError(
          fmt::format("--start {}: expected a time with its zone, such as 2026-12-01T09:00:00Z", options->start));
    export_document(options->result, shared, [&](const Document& document) {
      if (document.kind == DocumentKind::plan)
        throw ConfigError(
            fmt::format("{}: is a plan, which has no bill; simulate it and export the result", options->result));
      if (options->start.empty())
        remark(shared, "the run is taken to start at " + format_time(*start) + "; --start says when");
      return focus_csv(document.json(), {.start = *start, .account = options->account});
    });
  });
}

void add_export_csv(CLI::App& exports, Shared& shared) {
  auto file = std::make_shared<std::string>();
  auto* command = exports.add_subcommand("csv",
                                         "a row a run, or of a plan a row a candidate\n"
                                         "Example:\n"
                                         "  ganymede export csv result.json\n");
  command->add_option("result", *file, kResult)->required();
  add_output(*command, shared);
  command->callback([file, &shared] {
    export_document(*file, shared, [](const Document& document) {
      switch (document.kind) {
        case DocumentKind::plan:
          return plan_csv(document.json());
        case DocumentKind::sweep:
          return sweep_csv(document.json());
        case DocumentKind::result:
        case DocumentKind::validation:  // not asked for here
          break;
      }
      return run_csv(document.json());
    });
  });
}

void add_export_perfetto(CLI::App& exports, Shared& shared) {
  auto file = std::make_shared<std::string>();
  auto* command = exports.add_subcommand(
      "perfetto",
      "a run's cluster and steps as a Chrome trace, for ui.perfetto.dev\n"
      "Example:\n"
      "  ganymede simulate scenario.json --format json -o result.json\n"
      "  ganymede export perfetto result.json -o timeline.json\n"
      "\n"
      "A Chrome trace, which ui.perfetto.dev opens: nodes asked for and held by pool, what happened to them, and what\n"
      "each worker does in the steps that the result keeps (simulate --show-steps), from where training begins.");
  command->add_option("result", *file, "what simulate wrote with --format json")->required();
  add_output(*command, shared);
  command->callback([file, &shared] {
    export_document(*file, shared, [&](const Document& document) {
      if (document.kind != DocumentKind::result)
        throw ConfigError(fmt::format("{}: expected one run, as simulate --format json writes it", *file));
      return run_trace(document.json());
    });
  });
}

}  // namespace

void add_export(CLI::App& app, Shared& shared) {
  auto* command = app.add_subcommand("export",
                                     "results in the forms that other tools read\n"
                                     "Examples:\n"
                                     "  ganymede simulate scenario.json --format json -o result.json\n"
                                     "  ganymede export focus result.json --start 2026-12-01T09:00:00Z -o bill.csv\n"
                                     "  ganymede export csv result.json\n"
                                     "  ganymede export skypilot plan.json -o task.yaml\n"
                                     "  ganymede export kubernetes plan.json --image registry/ganymede -o job.yaml\n"
                                     "  ganymede export mlflow result.json --tracking-uri http://localhost:5000\n"
                                     "\n"
                                     "Results in the forms that other tools read. docs/exports.md has more.");
  command->require_subcommand(1);
  add_export_focus(*command, shared);
  add_export_csv(*command, shared);
  add_export_perfetto(*command, shared);
  add_export_launch(*command, shared);
  add_export_mlflow(*command, shared);
}

}  // namespace ganymede::cli
