#include <vector>

#include "cli/command.hpp"

// One row for each command, in the order of the overview, below what one wants to know. NAME in a row stands for the
// function NAME_command(), which has a file of its own.
// clang-format off
#define GANYMEDE_COMMANDS(GROUP, ROW) \
  GROUP("What to rent, and what it costs") \
  ROW(plan) \
  ROW(compare) \
  ROW(why) \
  ROW(fits) \
  ROW(watch) \
  ROW(compare_own) \
  ROW(catalog) \
  GROUP("How long, how busy, how much") \
  ROW(simulate) \
  ROW(rehearse) \
  ROW(sweep) \
  ROW(merge) \
  ROW(quality) \
  ROW(learn) \
  ROW(allreduce) \
  ROW(kernels) \
  ROW(validate) \
  GROUP("Is it normal, and why is it slow") \
  ROW(check) \
  ROW(why_slow) \
  GROUP("Train, record, take over measurements") \
  ROW(train) \
  ROW(generate) \
  ROW(calibrate) \
  ROW(import) \
  GROUP("Look at results") \
  ROW(diff) \
  ROW(report) \
  ROW(export) \
  ROW(serve) \
  GROUP("Look things up") \
  ROW(doctor) \
  ROW(list) \
  ROW(schema) \
  ROW(example) \
  ROW(completion) \
  ROW(man)
// clang-format on

namespace ganymede::cli {

#define GANYMEDE_NOTHING(title)
#define GANYMEDE_DECLARE(name) Command name##_command();
GANYMEDE_COMMANDS(GANYMEDE_NOTHING, GANYMEDE_DECLARE)
#undef GANYMEDE_DECLARE
#undef GANYMEDE_NOTHING

std::span<const Command> commands() {
  static const std::vector<Command> table = [] {
    std::vector<Command> all;
    std::string group;
    const auto add = [&](Command command) {
      command.group = group;
      all.push_back(std::move(command));
    };
#define GANYMEDE_GROUP(title) group = title;
#define GANYMEDE_ADD(name) add(name##_command());
    GANYMEDE_COMMANDS(GANYMEDE_GROUP, GANYMEDE_ADD)
#undef GANYMEDE_ADD
#undef GANYMEDE_GROUP
    return all;
  }();
  return table;
}

}  // namespace ganymede::cli
