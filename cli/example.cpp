#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/names.hpp"
#include "common/embedded.hpp"
#include "common/errors.hpp"
#include "platforms/own_machines.hpp"

namespace ganymede::cli {
namespace {

/// The example of that kind; a policy's is the program that the studies run (studies/policies/external.py).
std::string_view example_of(const std::string& kind) {
  for (const EmbeddedText& example : embedded_examples())
    if (example.name == (kind == "policy" ? "external" : kind)) return example.text;
  return {};
}

void declare_example(Parser command, Shared& shared) {
  auto what = std::make_shared<std::string>(), like = std::make_shared<std::string>();
  command
      .add_option("what", *what,
                  "scenario, study, request, platform, layers, recipe, cluster, service or policy (a program for the "
                  "policy external)")
      .required()
      .check(one_of({"scenario", "study", "request", "platform", "layers", "recipe", "cluster", "service", "policy"}));
  command
      .add_option("--like", *like,
                  "platform: machines of your own that are built like this instance type of the catalogs")
      .check(suggest("@instances"))
      .check(not_empty);
  add_output(command, shared);
  command.callback([what, like, &shared] {
    if (!like->empty()) {
      if (*what != "platform") throw ConfigError(fmt::format("--like is for platforms, not for an example {}", *what));
      return emit(shared, platforms::machines_like(*like));
    }
    emit(shared, std::string(example_of(*what)));
  });
}

}  // namespace

Command example_command() {
  return {
      .name = "example",
      .summary = "print a commented, valid file to start from",
      .examples =
          "  ganymede example scenario > scenario.json && ganymede simulate scenario.json\n"
          "  ganymede example study -o study.json\n"
          "  ganymede example platform -o lab.json\n"
          "  ganymede example platform --like p4d.24xlarge > own.json && ganymede compare-own own.json request.json\n"
          "  ganymede example layers -o model.json && ganymede import layers model.json --batch 64 -o trace.json\n"
          "  ganymede example recipe -o mine.json && ganymede plan --recipe mine.json --deadline 60h\n"
          "  ganymede example cluster -o cluster.json && ganymede simulate cluster.json\n"
          "  ganymede example service -o service.json && ganymede simulate service.json\n"
          "  ganymede example policy -o policy.py\n",
      .about = "Print a commented, valid file to start from.",
      .declare = declare_example};
}

}  // namespace ganymede::cli
