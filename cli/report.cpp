// ganymede report: a result as one HTML page.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/export.hpp"
#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/json_value.hpp"
#include "policies/policy.hpp"
#include "report/differences.hpp"
#include "report/page.hpp"
#include "sim/collectives/allreduce.hpp"

namespace ganymede::cli {
namespace {

/// The summaries of schemes and policies, by their names.
std::map<std::string, std::string> words() {
  std::map<std::string, std::string> out;
  for (const auto& scheme : sim::allreduce_schemes()) out.emplace(scheme.name, scheme.summary);
  for (const auto& policy : policies::policies()) out.emplace(policy.name, policy.summary);
  return out;
}

void run_report(const std::string& file, const Shared& shared) {
  const std::size_t bytes = export_document(
      file, shared,
      [&](const report::Document& document) {
        const JsonPointer date("/provenance/prices_as_of");
        if (document.json().contains(date)) remark_price_age(shared, document.json().at(date).as_string());
        return report::report_page(document.json(), words());
      },
      {report::DocumentKind::result, report::DocumentKind::sweep, report::DocumentKind::plan,
       report::DocumentKind::validation, report::DocumentKind::cluster, report::DocumentKind::rehearsal});
  if (!shared.output.empty())
    remark(shared, fmt::format("{}: {:.1f} MB; open it in a browser", shared.output, static_cast<double>(bytes) / 1e6));
}

void declare_report(Parser command, Shared& shared) {
  auto file = std::make_shared<std::string>();
  command
      .add_option("result", *file, "what simulate, sweep, plan, validate or rehearse --life wrote with --format json")
      .required();
  add_output(command, shared);
  command.callback([file, &shared] { run_report(*file, shared); });
}

}  // namespace

Command report_command() {
  return {
      .name = "report",
      .summary = "a result as one page to look at, offline",
      .examples =
          "  ganymede simulate scenario.json --format json -o result.json && ganymede report result.json -o "
          "report.html\n"
          "  ganymede sweep studies/spot-deadline.json --format json -o sweep.json && ganymede report sweep.json -o "
          "report.html\n"
          "  ganymede plan --model dcgan-64 --images 50000000 --deadline 60h --budget 500USD --format json -o "
          "plan.json\n"
          "  ganymede report plan.json -o report.html\n"
          "  ganymede validate --format json -o validation.json && ganymede report validation.json -o report.html\n",
      .about =
          "Writes one self-contained page of what simulate, sweep, plan, validate or rehearse --life wrote: time "
          "against cost,\n"
          "scaling, where GPU time and money went, what happened when, what workers do in a step, policies over\n"
          "seeds, energy, provenance; with filters, and what-ifs on prices. It needs no network, can be printed,\n"
          "and can be read without JavaScript.",
      .declare = declare_report};
}

// ganymede diff: what differs between two results or two plans, and because of which input.

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
  emit(shared, shared.format == "json"       ? documents::difference_json(differences).dump(2) + "\n"
               : shared.format == "markdown" ? report::differences_markdown(differences)
                                             : report::differences_text(differences, result_width(shared)));
  if (!differences.held) shared.exit_code = ExitCode::goal_missed;
}

void declare_diff(Parser command, Shared& shared) {
  auto options = std::make_shared<DiffOptions>();
  command.add_option("before", options->before, "a result or a plan, as written with --format json").required();
  command.add_option("after", options->after, "another one of the same kind").required();
  command
      .add_option("--fail-on", options->limits,
                  "exit code 4 if something grows by more: +10% for time and cost, or cost=+10%,time=+5%,carbon=+5%")
      .delimiter(',');
  add_result(command, shared, {"table", "json", "markdown"});
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
