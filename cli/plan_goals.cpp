#include "cli/plan_goals.hpp"

#include <fmt/format.h>

#include "cli/progress.hpp"

namespace ganymede::cli {

void report_goals(const plan::Request& request, const plan::Plan& plan, Shared& shared) {
  if (plan.best) return;
  std::string nearest = "nothing that was searched can run it: ";
  for (const std::string& why : plan.candidates.left_out) nearest += why + "; ";
  for (const plan::PlannedRun& run : plan.runs)
    if (run.verdict == plan::Verdict::impossible) {
      nearest += run.reason + "; ";
      break;
    }
  if (nearest.ends_with("; ")) nearest.resize(nearest.size() - 2);
  if (!plan.best && !plan.near_misses.empty())
    nearest =
        fmt::format("the nearest is {}: {}", plan::label_of(request, plan.candidates.all[plan.near_misses.front()]),
                    plan.runs[plan.near_misses.front()].reason);
  say(fmt::format("ganymede: nothing meets the goals; {}\n", nearest));
  shared.exit_code = ExitCode::infeasible;
}

}  // namespace ganymede::cli
