#include "plan/outcome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/json.hpp"
#include "common/json_value.hpp"

namespace ganymede::plan {
namespace {

constexpr double kMostAmount = 1e300;
constexpr int kMostRuns = 1'000'000;

/// Visits each figure of a simulated run by its key, with the most that it can be.
template <class Run, class Visit>
void each_figure(Run& run, const Visit& visit) {
  visit("time", run.time_s, kMostAmount);
  visit("usd", run.usd, kMostAmount);
  visit("kg", run.kg_co2e, kMostAmount);
  visit("usd_at_worst", run.usd_at_worst, kMostAmount);
  visit("usd_expected", run.usd_expected, kMostAmount);
  visit("usd_worst_tenth", run.usd_worst_tenth, kMostAmount);
  visit("images_per_s", run.images_per_s, kMostAmount);
  visit("losses", run.losses, kMostAmount);
  visit("lost_s", run.lost_s, kMostAmount);
  visit("saved_every_s", run.saved_every_s, kMostAmount);
  visit("busy", run.gpu_busy, 1);
  visit("met", run.met_share, 1);
  visit("probability", run.probability, 1);
  visit("seeds", run.seeds, kMostRuns);
  visit("never_finish", run.never_finish, kMostRuns);
  visit("risk", run.risk, 0);
  visit("inputs", run.inputs, 0);
  visit("carbon_known", run.carbon_known, 0);
  visit("warnings", run.warnings, 0);
}

Json json_of(const RunsAtLeast& least) { return {least.time_s, least.usd_at_worst}; }
Json json_of(const PlanMeasure& measure) { return {measure.median, measure.low, measure.high}; }
Json json_of(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }
template <class Value>
Json json_of(const Value& value) {
  return value;
}

void read(const JsonNode& node, RunsAtLeast& least, double most) {
  const std::vector<double> numbers = node.as_numbers(0, most);
  if (numbers.size() != 2) node.expected("a least time and a least cost");
  least = {numbers[0], numbers[1]};
}
void read(const JsonNode& node, PlanMeasure& measure, double most) {
  const std::vector<double> numbers = node.as_numbers(0, most);
  if (numbers.size() != 3) node.expected("a median and the two ends of its interval");
  measure = {numbers[0], numbers[1], numbers[2]};
}
void read(const JsonNode& node, std::optional<double>& value, double most) {
  if (!node.value().is_null()) value = node.as_number(0, most);
}
void read(const JsonNode& node, double& value, double most) { value = node.as_number(0, most); }
void read(const JsonNode& node, int& value, double most) {
  value = static_cast<int>(node.as_integer(0, static_cast<std::int64_t>(most)));
}
void read(const JsonNode& node, bool& value, double /*most*/) { value = node.as_bool(); }
void read(const JsonNode& node, std::string& value, double /*most*/) { value = node.as_string(); }
void read(const JsonNode& node, std::vector<std::string>& value, double /*most*/) {
  for (const JsonNode& text : node.as_array()) value.push_back(text.as_string());
}

Json run_json(const PlannedRun& run) {
  Json out = {{"at_least", json_of(run.at_least)}};
  if (run.verdict == Verdict::beaten) out["beaten"] = true;
  if (run.verdict == Verdict::impossible) out[run.invalid ? "invalid" : "impossible"] = run.reason;
  if (run.verdict == Verdict::too_slow) out["too_slow"] = run.reason;
  if (run.verdict == Verdict::too_dear) out["too_dear"] = run.reason;
  if (!run.simulated()) return out;
  each_figure(run, [&](const char* key, const auto& value, double /*most*/) { out[key] = json_of(value); });
  if (run.usd_per_image > 0) out["usd_per_image"] = run.usd_per_image;
  return out;
}

PlannedRun read_planned_run(const JsonNode& node) {
  JsonObject in(node);
  PlannedRun run;
  read(in.required("at_least"), run.at_least, kMostAmount);
  constexpr std::pair<const char*, Verdict> kReasons[] = {{"impossible", Verdict::impossible},
                                                          {"invalid", Verdict::impossible},
                                                          {"too_slow", Verdict::too_slow},
                                                          {"too_dear", Verdict::too_dear}};
  for (const auto& [key, verdict] : kReasons)
    if (const auto reason = in.optional(key)) {
      run.verdict = verdict;
      run.reason = reason->as_string();
      run.invalid = std::string_view(key) == "invalid";
    }
  if (run.verdict == Verdict::beaten && !in.optional("beaten")) {
    run.verdict = Verdict::misses;
    each_figure(run, [&](const char* key, auto& value, double most) { read(in.required(key), value, most); });
    if (const auto slope = in.optional("usd_per_image")) read(*slope, run.usd_per_image, kMostAmount);
  }
  in.finish();
  return run;
}

}  // namespace

Json outcome_json(const UnitOutcome& outcome) {
  Json out = {{"answers", Json::array()}};
  for (const PlannedRun& run : outcome.runs) out["answers"].push_back(run_json(run));
  if (outcome.scheme.empty()) return out;
  out["scheme"] = outcome.scheme;
  out["mean_s"] = outcome.mean_s;
  out["images"] = outcome.images;
  return out;
}

UnitOutcome read_outcome(const JsonNode& node, std::size_t members) {
  JsonObject in(node);
  UnitOutcome outcome;
  const JsonNode answers = in.required("answers");
  for (const JsonNode& answer : answers.as_array()) outcome.runs.push_back(read_planned_run(answer));
  if (outcome.runs.size() != members) answers.expected(fmt::format("an answer for each of {} candidates", members));
  const bool beaten = std::all_of(outcome.runs.begin(), outcome.runs.end(),
                                  [](const PlannedRun& run) { return run.verdict == Verdict::beaten; });
  if (!beaten || in.optional("scheme")) {
    outcome.scheme = in.required("scheme").as_string();
    outcome.mean_s = in.required("mean_s").as_numbers(0, kMostAmount);
    outcome.images = in.required("images").as_number(0, kMostAmount);
  }
  in.finish();
  return outcome;
}

}  // namespace ganymede::plan
