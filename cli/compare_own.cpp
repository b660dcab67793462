// ganymede compare-own: machines of one's own against rented ones.

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/names.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"
#include "common/dates.hpp"
#include "common/file.hpp"
#include "plan/own_or_rent.hpp"
#include "report/own_or_rent.hpp"

namespace ganymede::cli {
namespace {

struct CompareOwnOptions {
  plan::OwnQuestion question;
  std::string request, plot;
  std::vector<std::string> assignments;
};

void run_compare_own(CompareOwnOptions options, const Shared& shared) {
  check_output(shared);
  if (!options.plot.empty()) check_writable(options.plot);
  keep_input(shared, options.request);
  options.question.request = options.request;
  options.question.overrides = parse_assignments(options.assignments);
  options.question.now = format_time(now());
  plan::PlanOptions search;
  search.jobs = jobs(shared);
  auto waiting = show_elapsed(shared, "comparing");
  const auto answer = plan::own_or_rent(options.question, search);
  waiting.reset();
  if (!options.plot.empty()) write_file(options.plot, report::own_or_rent_svg(answer));
  emit(shared,
       shared.format == "json" ? answer.dump(2) + "\n" : report::own_or_rent_text(answer, result_width(shared)));
}

void declare_compare_own(CLI::App& command, Shared& shared) {
  auto options = std::make_shared<CompareOwnOptions>();
  command
      .add_option("platform", options->question.platform,
                  "the machines to buy: a ganymede.platform/1 file whose prices state \"ownership\", or a provider")
      ->required()
      ->check(suggest("@providers @files"));
  command.add_option("request", options->request, "what to train: a ganymede.request/1 file")->required();
  command.add_option("--instance", options->question.instance,
                     "instance type of the platform to buy; default: the one that a plan chooses");
  command.add_option("--plot", options->plot, "also draw USD a year over hours of use into this SVG file");
  add_set(command, options->assignments);
  add_jobs(command, shared);
  add_format(command, shared, {"table", "json"});
  add_output(command, shared);
  command.callback([options, &shared] { run_compare_own(*options, shared); });
}

}  // namespace

Command compare_own_command() {
  return {.name = "compare-own",
          .summary = "own or rent: from how many hours of use a year on buying is cheaper",
          .examples =
              "  ganymede example platform > lab.json && ganymede example request > request.json\n"
              "  ganymede compare-own lab.json request.json\n"
              "  ganymede compare-own lab.json request.json --instance node --plot own.svg --format json\n",
          .about =
              "Compares machines that one would buy with the best ones to rent on demand, on spot and reserved,\n"
              "for the training that the request asks for. Prints from how many hours of use a year on owning is\n"
              "cheaper, and after how many months of use the price is earned back. The platform states the price\n"
              "(capital), its life, space and people a year; its region the price of electricity and the PUE.\n"
              "--set changes the request. Exit code 3: the machines cannot serve the request.",
          .declare = declare_compare_own};
}

}  // namespace ganymede::cli
