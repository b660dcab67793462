#include "studies/sweep_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/json_value.hpp"
#include "sim/run/simulate.hpp"

namespace ganymede::studies {

using OrderedRow = OrderedJson;

std::string StudySimulator::row(std::size_t index) {
  const StudyRun& run = study_.runs[index];
  sim::Scenario& scenario = copies_.try_emplace(run.base.get(), *run.base).first->second;
  sim::set_seed(scenario, run.seed);
  const OrderedRow result = documents::result_row(sim::simulate(scenario, cache_));
  return facts_line(facts_of(result)) + "\t" + result.dump();
}

ChildUse StudySimulator::use() const {
  const bool message = std::any_of(study_.runs.begin(), study_.runs.end(),
                                   [](const StudyRun& run) { return run.base->fidelity == sim::Fidelity::message; });
  return message ? ChildUse::once : ChildUse::reused;
}

FinishedRun read_row(std::string_view row) {
  FinishedRun run;
  run.facts = read_facts(row);
  run.line = row;
  return run;
}

std::string failed_row(const StudyRun& run, const ChildOutcome& outcome) {
  const OrderedRow entry = {{"run", run.label()},
                            {"policy", run.base->policy.policy->name},
                            {"seed", run.seed},
                            {"kind", outcome.kind == ChildOutcome::Kind::infeasible ? "infeasible" : "failure"},
                            {"reason", outcome.text}};
  return entry.dump();
}

SweepWriter::SweepWriter(const ContentSink& sink, const std::string& study) : sink_(sink) {
  sink_(fmt::format("{{\n  \"schema\": \"ganymede.sweep/1\",\n  \"study\": {},\n  \"runs\": [", Json(study).dump()));
}

void SweepWriter::add_result(std::string_view line) {
  sink_(results_++ == 0 ? "\n    " : ",\n    ");
  sink_(line);
}

void SweepWriter::add_failed(std::string_view line) {
  if (failed_ == 0) end_results();
  // As a whole array would be written, with two blanks for each level.
  std::string entry = OrderedRow::parse(line).dump(2);
  for (std::size_t at = 0; (at = entry.find('\n', at)) != std::string::npos; at += 3) entry.insert(at + 1, "  ");
  sink_((failed_++ == 0 ? "\n  " : ",\n  ") + entry);
}

void SweepWriter::end_results() { sink_("],\n  \"failed\": ["); }

void SweepWriter::finish(const Summary& summary) {
  if (failed_ == 0) end_results();
  sink_(fmt::format("{}],\n  \"groups\": {},\n  \"rankings\": {}\n}}\n", failed_ == 0 ? "" : "\n",
                    summary.groups.dump(2), summary.rankings.dump(2)));
}

}  // namespace ganymede::studies
