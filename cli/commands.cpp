#include <vector>

#include "cli/command.hpp"

// One row for each command, in the order of the overview. NAME in a row stands for the function NAME_command(), which
// has a file of its own.
// clang-format off
#define GANYMEDE_COMMANDS(ROW) \
  ROW(train) \
  ROW(generate) \
  ROW(calibrate) \
  ROW(simulate) \
  ROW(rehearse) \
  ROW(sweep) \
  ROW(merge) \
  ROW(validate) \
  ROW(plan) \
  ROW(why) \
  ROW(fits) \
  ROW(watch) \
  ROW(quality) \
  ROW(compare_own) \
  ROW(learn) \
  ROW(allreduce) \
  ROW(kernels) \
  ROW(import) \
  ROW(diff) \
  ROW(report) \
  ROW(export) \
  ROW(doctor) \
  ROW(catalog) \
  ROW(list) \
  ROW(schema) \
  ROW(example) \
  ROW(serve) \
  ROW(completion) \
  ROW(man)
// clang-format on

namespace ganymede::cli {

#define GANYMEDE_DECLARE(name) Command name##_command();
GANYMEDE_COMMANDS(GANYMEDE_DECLARE)
#undef GANYMEDE_DECLARE

std::span<const Command> commands() {
#define GANYMEDE_CALL(name) name##_command(),
  static const std::vector<Command> table = {GANYMEDE_COMMANDS(GANYMEDE_CALL)};
#undef GANYMEDE_CALL
  return table;
}

}  // namespace ganymede::cli
