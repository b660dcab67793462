#include "studies/rehearsed_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <tuple>

#include "calibration/interval_classes.hpp"
#include "calibration/statistics.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "documents/rehearsal.hpp"

namespace ganymede::studies {
namespace {
constexpr double kDeviations90 = 1.6449;  // of the standard normal distribution, to the ends of its 90 % interval
// docs/rehearse.md, "Measured": played all-reduces from 1 MiB are 10 % off at most on 2 ranks and on 100 Mbit/s, and
// steps of which nothing is communication 2 %.
constexpr double kPlayedLinks = 0.1, kReplayedCompute = 0.02;

/// No link is measured to be so far from what any source says of it; other links than those that are stated are.
constexpr double kMostApart = 10;

/// The half-width that a class states for communication between machines.
double half_width_of_links(const std::string& links) {
  if (links == kPlayedNetwork) return kPlayedLinks;
  return calibration::half_width_of_collective(calibration::link_evidence(links), true);
}

bool is_communication(const documents::ValidatedCell& cell) {
  return cell.predicted && std::find(cell.tags.begin(), cell.tags.end(), "communication") != cell.tags.end();
}

}  // namespace

double half_width_of_rehearsal(const std::string& links, double share) {
  return calibration::in_quadrature(kReplayedCompute, share * half_width_of_links(links));
}

void RehearsedLinks::add(const documents::ValidatedStudy& study, const std::string& file) {
  if (study.links.empty())
    throw ConfigError(file + ": /links: expected what the rehearsed links come from, which rehearse --output writes");
  if (std::none_of(study.cells.begin(), study.cells.end(), is_communication))
    throw ConfigError(file +
                      ": /cells: found none with the tag \"communication\", expected one: what a rehearsal hides "
                      "behind compute, or is below 5 % of a step, says nothing about links");
  Sums& sums = kinds_[study.links];
  for (const documents::ValidatedCell& cell : study.cells) {
    if (!is_communication(cell)) continue;
    const double ratio = *cell.measured / *cell.predicted;
    if (!(ratio > 1 / kMostApart && ratio < kMostApart))
      throw ConfigError(
          fmt::format("{}: /cells: communication took {:g} times what is predicted, expected less than {:g} "
                      "times more or less: these are other links than those of the study's platform",
                      file, ratio, kMostApart));
    const double error = portable_log(ratio);
    const double deviations = kDeviations90 * error / half_width_of_links(study.links);
    ++sums.count;
    sums.errors += error;
    sums.deviations_squared += deviations * deviations;
  }
}

double RehearsedLinks::factor(const std::string& links) const {
  const auto found = kinds_.find(links);
  if (found == kinds_.end()) return 1;
  return std::sqrt((kWeight + found->second.deviations_squared) / (kWeight + found->second.count));
}

double RehearsedLinks::factor(LinkEvidence links) const {
  switch (links) {
    case LinkEvidence::measured:
    case LinkEvidence::fitted:  // both have the same width
      return factor("measured");
    case LinkEvidence::datasheet:
      return factor("datasheet");
    case LinkEvidence::assumed:
      return factor("assumed");
  }
  return 1;
}

std::vector<documents::ValidationResult::Rehearsed> RehearsedLinks::kinds() const {
  std::vector<documents::ValidationResult::Rehearsed> out;
  for (const auto& [links, sums] : kinds_)
    out.push_back({links, sums.count, portable_exp(sums.errors / sums.count) - 1, factor(links)});
  return out;
}

namespace {

/// The scenario as a study's run: with absolute paths, since the study may be in another folder, and without what a
/// rehearsal does not play.
OrderedJson scenario_of_study(const sim::Scenario& scenario) {
  OrderedJson content = OrderedJson::parse(scenario.content);
  const std::filesystem::path folder = std::filesystem::absolute(scenario.file).parent_path();
  for (const auto& [pointer, hash] : scenario.file_hashes) {
    OrderedJson& name = content[JsonPointer(pointer)];
    if (!name.is_string()) continue;  // a series, for example, which names a file in one of its members
    const std::filesystem::path path = folder / name.get<std::string>();
    if (std::filesystem::exists(path)) name = path.lexically_normal().string();
  }
  // A rehearsal replays a recorded step on every rank and slows down none of its kernels.
  content["synchronization"]["jitter"] = 0;
  content["synchronization"]["interference"] = 0;
  return content;
}

/// The source of the links of a pool's nodes, as its platform states it.
std::string links_between(const sim::ScenarioPool& pool) {
  return pool.platform->fabric_label(pool.instance(), pool.pool.nodes, pool.pool.gpus_per_node);
}

}  // namespace

OrderedJson steps_study(const sim::Scenario& scenario, const OrderedJson& result, bool is_played,
                        const std::string& name) {
  constexpr double kMatters = 0.05;  // share of a step from which a part is a cell of its own
  const auto scale = result["scale"].get<double>(), step = result["measured"]["step_s"].get<double>();
  const double steps = static_cast<double>(scenario.steps);
  OrderedJson cells = OrderedJson::array();
  const auto add = [&](const char* what, const char* key, const std::string& value, double factor) {
    OrderedJson tags = {"rehearsed"};
    if (std::string_view(key) == "exposed_communication_s") tags.push_back("communication");
    cells.push_back({{"what", what},
                     {"unit", "s"},
                     {"run", "rehearsed"},
                     {"value", value},
                     {"scale", factor},
                     {"measured", result["measured"][key].get<double>() / scale},
                     {"role", "predict"},
                     {"tags", tags}});
  };
  add("step", "step_s", "/time/step_mean_s", 1);
  for (const auto& [what, key, value] :
       {std::tuple{"exposed communication of a step", "exposed_communication_s", "/gpu_seconds/exposed_communication"},
        std::tuple{"waiting for other workers in a step", "straggler_s", "/gpu_seconds/straggler"}})
    if (result["measured"][key].get<double>() > kMatters * step) add(what, key, value, 1 / steps / scenario.workers());
  return {{"schema", "ganymede.validation/1"},
          {"name", name},
          {"title", fmt::format("{} rehearsed by {} ranks", std::filesystem::path(scenario.file).filename().string(),
                                result["ranks"].get<int>())},
          {"source", fmt::format("ganymede rehearse: {} steps, {}", result["steps"].get<int>(),
                                 result["messenger"].get<std::string>())},
          {"links", is_played ? kPlayedNetwork : links_between(scenario.pools.front())},
          {"assumptions",
           {{{"what", result["compute"] == "real" ? "compute takes the recorded times, for which ranks computed"
                                                  : "compute takes the recorded times, which were slept through"},
             {"source", "ganymede rehearse"}},
            {{"what", fmt::format("times are those of the rehearsal divided by {:g}", scale)},
             {"source", "ganymede rehearse"}}}},
          {"runs", {{"rehearsed", scenario_of_study(scenario)}}},
          {"cells", cells}};
}

OrderedJson life_study(const sim::Scenario& scenario, const OrderedJson& result, const std::string& name) {
  constexpr double kMatters = 0.05;
  const documents::Rehearsal life = documents::rehearsal_in(result);
  OrderedJson cells = OrderedJson::array();
  for (const auto& [what, unit, predicted, measured, off, share] : life.comparison) {
    if (share < kMatters) continue;
    const std::string value = what == "time"   ? "/time/total_s"
                              : what == "bill" ? "/cost/total_usd"
                                               : "/gpu_seconds/" + what;
    OrderedJson tags = {"rehearsed", "life"};
    if (what == "exposed_communication") tags.push_back("communication");
    cells.push_back({{"what", what},
                     {"unit", what == "bill" ? "USD" : "s"},
                     {"run", "rehearsed"},
                     {"value", value},
                     {"measured", measured},
                     {"role", "predict"},
                     {"tags", tags}});
  }
  return {{"schema", "ganymede.validation/1"},
          {"name", name},
          {"title", fmt::format("The life of {} rehearsed on {} hosts",
                                std::filesystem::path(scenario.file).filename().string(), life.hosts)},
          {"source", "ganymede rehearse --life"},
          {"links", kPlayedNetwork},
          {"assumptions",
           {{{"what", "compute takes the recorded times, which were slept through"}, {"source", "ganymede rehearse"}},
            {{"what", fmt::format("times are those of the rehearsal divided by {:.6g}; a played step stands for {:g}",
                                  life.scale, life.steps_each)},
             {"source", "ganymede rehearse"}}}},
          {"runs", {{"rehearsed", scenario_of_study(scenario)}}},
          {"cells", cells}};
}

}  // namespace ganymede::studies
