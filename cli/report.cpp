// ganymede report: a result as one HTML page.

#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "cli/export_document.hpp"
#include "cli/price_age.hpp"
#include "common/json_value.hpp"
#include "policies/policy.hpp"
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

}  // namespace ganymede::cli
