#include <algorithm>

#include "policies/schedulers/scheduler.hpp"

// The register: one row for each scheduler, in the order in which they are listed; the first is the default. ROW(NAME)
// stands for the scheduler that NAME_scheduler() returns, which is defined in NAME.cpp.
// clang-format off
#define GANYMEDE_SCHEDULERS(ROW) \
  ROW(fifo_backfill) \
  ROW(shortest_remaining) \
  ROW(kueue) \
  ROW(slurm_multifactor) \
  ROW(tiresias) \
  ROW(gavel) \
  ROW(gavel_rounds) \
  ROW(pollux) \
  ROW(external)
// clang-format on

namespace ganymede::policies {

#define GANYMEDE_DECLARE(name) Scheduler name##_scheduler();
GANYMEDE_SCHEDULERS(GANYMEDE_DECLARE)
#undef GANYMEDE_DECLARE

std::span<const Scheduler> schedulers() {
#define GANYMEDE_CALL(name) name##_scheduler(),
  static const Scheduler all[] = {GANYMEDE_SCHEDULERS(GANYMEDE_CALL)};
#undef GANYMEDE_CALL
  return all;
}

const Scheduler* find_scheduler(std::string_view name) {
  const auto all = schedulers();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Scheduler& row) { return row.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> scheduler_names() {
  std::vector<std::string> names;
  for (const Scheduler& scheduler : schedulers()) names.emplace_back(scheduler.name);
  return names;
}

}  // namespace ganymede::policies
