#include "studies/rehearsed_study.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <tuple>

#include "common/json_value.hpp"
#include "documents/rehearsal.hpp"
#include "studies/rehearsed_links.hpp"

namespace ganymede::studies {
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
