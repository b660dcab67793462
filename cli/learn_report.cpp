#include "cli/learn_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/terminal.hpp"
#include "common/units.hpp"
#include "report/table.hpp"

namespace ganymede::cli {

std::string judgement_text(const plan::LearnedTable& learned, const plan::LearnOptions& options) {
  report::Table table({"policy", ">runs finished", ">mean time", ">mean USD", ">with waiting", ">against q-learning"});
  const plan::JudgedPolicy& own = learned.judged.front();
  for (const plan::JudgedPolicy& one : learned.judged)
    table.add({one.policy, fmt::format("{} of {}", one.finished, options.held_out),
               to_string(Seconds{one.hours * 3600}), fmt::format("{:.2f}", one.usd),
               fmt::format("{:.2f}", one.cost_usd),
               &one == &own ? "" : fmt::format("{:+.1f} %", 100 * (one.cost_usd / own.cost_usd - 1))});
  const auto fixed = std::find_if(learned.judged.begin(), learned.judged.end(),
                                  [](const plan::JudgedPolicy& one) { return one.policy == "fixed"; });
  const plan::JudgedPolicy& rival = learned.judged[1];
  std::string verdict;
  if (own.finished < rival.finished)
    verdict = fmt::format("The table does not finish every run, {} does: train for more --episodes.", rival.policy);
  else if (rival.cost_usd < own.cost_usd)
    verdict = fmt::format("The table costs {:.1f} % more than {}, the best of the others.",
                          100 * (own.cost_usd / rival.cost_usd - 1), rival.policy);
  else
    verdict = fmt::format("The table costs {:.1f} % less than {}, the best of the others.",
                          100 * (1 - own.cost_usd / rival.cost_usd), rival.policy);
  if (fixed != learned.judged.end() && rival.policy != "fixed")
    verdict += fmt::format(" It costs {:.1f} % {} than fixed.", 100 * std::abs(own.cost_usd / fixed->cost_usd - 1),
                           own.cost_usd > fixed->cost_usd ? "more" : "less");
  return fmt::format(
      "On {} seeds from {} on, none of which it was trained on, an hour of waiting counted as {:g} USD:\n\n{}\n{}\n",
      options.held_out, learned.held_out_first, options.usd_per_hour_waited, table.text(remark_width()), verdict);
}

}  // namespace ganymede::cli
