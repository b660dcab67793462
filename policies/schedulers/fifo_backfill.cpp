#include "policies/schedulers/scheduler_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kFifoSettings[] = {
    {"depth", 100, 0, 100'000,
     "waiting jobs that are looked at behind the first that does not fit; 0: strictly in order"}};

JobSchedule decide_fifo(const SchedulerCall& call) {
  return {.run = backfill(call.view, WaitingWalk(*call.view.waiting), static_cast<int>(call.settings[0]))};
}

}  // namespace

Scheduler fifo_backfill_scheduler() {
  return {.name = "fifo-backfill",
          .summary = "by priority, then arrival; later jobs fill gaps if they delay nothing; never preempts",
          .source = "EASY backfill: Lifka, \"The ANL/IBM SP scheduling system\", JSSPP 1995",
          .settings = kFifoSettings,
          .rank = by_priority,
          .decide = decide_fifo};
}

}  // namespace ganymede::policies
