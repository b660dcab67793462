// ganymede compare-own: machines of one's own against rented ones.

#include <memory>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "cli/request_flags.hpp"
#include "cli/shared_options.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "plan/own_or_rent.hpp"
#include "report/own_or_rent.hpp"

namespace ganymede::cli {
namespace {

struct CompareOwnOptions {
  plan::OwnQuestion question;
  RequestFlags request;
  std::string plot;
};

void run_compare_own(const CompareOwnOptions& options, const Shared& shared) {
  check_output(shared);
  check_second_output(shared, options.plot);
  if (options.question.platform.empty())
    throw ConfigError("compare-own needs a platform, the machines to buy; `ganymede example platform` prints one");
  if (!options.request.file.empty()) keep_input(shared, options.request.file);
  plan::OwnQuestion question = options.question;
  question.request = [&options](const std::vector<JsonOverride>& more) {
    return request_of(options.request, "compare-own", more);
  };
  question.now = format_time(stated_now());
  plan::PlanOptions search;
  search.jobs = jobs(shared);
  auto waiting = show_elapsed(shared, "comparing");
  const auto answer = options.request.members.locate([&] { return plan::own_or_rent(question, search); });
  waiting.reset();
  if (!options.plot.empty()) write_file(options.plot, report::own_or_rent_svg(answer));
  emit(shared, shared.format == "json" ? documents::own_or_rent_json(answer).dump(2) + "\n"
                                       : report::own_or_rent_text(answer, result_width(shared)));
}

void declare_compare_own(Parser command, Shared& shared) {
  auto options = std::make_shared<CompareOwnOptions>();
  command
      .add_option("platform", options->question.platform,
                  "the machines to buy: a ganymede.platform/1 file whose prices state \"ownership\", or a provider")
      .check(suggest("@providers @files"));
  command.add_option("request", options->request.file,
                     "what to train: a ganymede.request/1 file; without it, flags say everything");
  declare_request(command, options->request);
  command.add_option("--instance", options->question.instance,
                     "instance type of the platform to buy; default: the one that a plan chooses");
  command.add_option("--plot", options->plot, "also draw USD a year over hours of use into this SVG file");
  add_jobs(command, shared);
  add_format(command, shared, {"table", "json"});
  add_output(command, shared);
  command.callback([options, &shared] { run_compare_own(*options, shared); });
}

}  // namespace

Command compare_own_command() {
  return {
      .name = "compare-own",
      .summary = "own or rent: from how many hours of use a year on buying is cheaper",
      .examples =
          "  ganymede example platform --like p4d.24xlarge > lab.json      what one would buy; state its price there\n"
          "  ganymede compare-own lab.json --model dcgan-64 --images 50M --min-gpus 8\n"
          "  ganymede example request > request.json\n"
          "  ganymede compare-own lab.json request.json --instance node --plot own.svg --format json\n",
      .about =
          "Compares machines that one would buy with the best ones to rent on demand, on spot and reserved,\n"
          "for the training that the request asks for. Prints from how many hours of use a year on owning is\n"
          "cheaper, and after how many months of use the price is earned back. The platform states the price\n"
          "(capital), its life, space and people a year; its region the price of electricity and the PUE.\n"
          "Flags replace what the request says. Exit code 3: the machines cannot serve the request.",
      .declare = declare_compare_own};
}

}  // namespace ganymede::cli
