// ganymede why: what the choice of a plan hangs on.

#include "plan/why.hpp"

#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "common/json.hpp"
#include "report/plan_answer.hpp"

namespace ganymede::cli {
namespace {

void run_why(const std::string& file, const Shared& shared) {
  check_output(shared);
  keep_input(shared, file);
  const JsonNode document = JsonNode::load(file);
  const plan::KnownPlan known = plan::read_plan(document);
  const auto bar = progress_bar(shared, std::size(plan::kAssumptions), "questions");
  const auto answers = plan::why(known, jobs(shared), bar);
  const std::string json = plan::why_json(known, answers, document.value());
  emit(shared,
       shared.format == "json" ? json : highlighted(shared, report::why_text(Json::parse(json), result_width(shared))));
}

void declare_why(Parser command, Shared& shared) {
  auto file = std::make_shared<std::string>();
  command.add_option("plan", *file, "a ganymede.plan/1 file, as `ganymede plan --save` writes it").required();
  add_jobs(command, shared);
  add_result(command, shared, {"table", "json"});
  command.callback([file, &shared] { run_why(*file, shared); });
}

}  // namespace

Command why_command() {
  return {.name = "why",
          .summary = "what the choice of a plan hangs on, and what would change it",
          .examples =
              "  ganymede plan --model dcgan-64 --images 50000000 --deadline 60h --budget 500USD --save plan.json\n"
              "  ganymede why plan.json\n",
          .about =
              "Says how far the price of the chosen nodes, the step time of their GPU, interruptions and the time\n"
              "to boot must rise until a plan would rent something else, and what. Each threshold is found by\n"
              "simulating the plan's candidates again.",
          .declare = declare_why};
}

}  // namespace ganymede::cli
