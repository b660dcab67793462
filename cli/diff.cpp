// ganymede diff: what differs between two results or two plans, and because of which input.

#include <memory>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/terminal.hpp"
#include "common/json_value.hpp"
#include "report/differences.hpp"

namespace ganymede::cli {
namespace {

struct DiffOptions {
  std::string before, after;
  std::vector<std::string> limits;
};

void run_diff(const DiffOptions& options, Shared& shared) {
  const auto limits = report::read_growth_limits(options.limits);
  check_output(shared);
  keep_input(shared, options.before);
  keep_input(shared, options.after);
  const auto kinds = {report::DocumentKind::result, report::DocumentKind::plan};
  const report::Document before = report::load_document(options.before, kinds);
  const report::Document after = report::load_document(options.after, kinds);
  const auto differences = report::differences_of(before, after, limits);
  emit(shared, shared.format == "json"       ? differences.dump(2) + "\n"
               : shared.format == "markdown" ? report::differences_markdown(differences)
                                             : report::differences_text(differences, result_width(shared)));
  if (!differences.at("held").get<bool>()) shared.exit_code = ExitCode::goal_missed;
}

void declare_diff(Parser command, Shared& shared) {
  auto options = std::make_shared<DiffOptions>();
  command.add_option("before", options->before, "a result or a plan, as written with --format json").required();
  command.add_option("after", options->after, "another one of the same kind").required();
  command
      .add_option("--fail-on", options->limits,
                  "exit code 4 if something grows by more: +10% for time and cost, or cost=+10%,time=+5%,carbon=+5%")
      .delimiter(',');
  add_format(command, shared, {"table", "json", "markdown"});
  add_output(command, shared);
  command.callback([options, &shared] { run_diff(*options, shared); });
}

}  // namespace

Command diff_command() {
  return {.name = "diff",
          .summary = "what differs between two results or plans, and because of which input",
          .examples =
              "  ganymede simulate scenario.json --format json -o before.json\n"
              "  ganymede simulate scenario.json --set /platform/nodes=2 --format json -o after.json\n"
              "  ganymede diff before.json after.json --fail-on +10%\n"
              "  ganymede diff before.json after.json --fail-on cost=+10%,time=+5% --format markdown\n",
          .about =
              "Compares two results of simulate, or two plans: time, cost, carbon and utilization with their\n"
              "intervals, and every field, file and price that differs. A change is within the stated error if\n"
              "the intervals overlap. Exit code 4: something grew by more than --fail-on allows.",
          .declare = declare_diff};
}

}  // namespace ganymede::cli
