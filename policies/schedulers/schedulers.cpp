#include "common/text.hpp"
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

const Scheduler* find_scheduler(std::string_view name) { return find_named(schedulers(), name); }

std::vector<std::string> scheduler_names() { return names_of(schedulers()); }

}  // namespace ganymede::policies
