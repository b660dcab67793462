#include "cli/rehearse_life.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/names.hpp"
#include "cli/terminal.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "kernel/parallel/communicator.hpp"
#include "plan/chosen_scenario.hpp"
#include "rehearsal/life.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"
#include "studies/rehearsed_links.hpp"

namespace ganymede::cli {
namespace {
std::string amount_of(const OrderedJson& row, const char* which) {
  const auto value = row[which].get<double>();
  const std::string unit = row["unit"];
  if (unit == "USD") return fmt::format("{:.4f} USD", value);
  return unit == "s" ? to_string(Seconds{value}) : fmt::format("{:.1f} {}", value, unit);
}

std::string compared(const OrderedJson& result, std::size_t width) {
  report::Table table({"of the life", ">predicted", ">measured", ">off by", ">share"});
  for (const OrderedJson& row : result["comparison"]) {
    if (row["predicted"] == 0 && row["measured"] == 0) continue;
    std::string name = row["what"];
    std::replace(name.begin(), name.end(), '_', ' ');
    table.add({name, amount_of(row, "predicted"), amount_of(row, "measured"),
               row["off"].is_null() ? "" : report::signed_percent(row["off"].get<double>()),
               row["unit"] == "GPU-s" ? fmt::format("{:.1f} %", 100 * row["share"].get<double>()) : ""});
  }
  return table.text(width);
}

/// What happened in both lives, by time; the measured time of what happened in both is in the same row.
std::string timeline(const OrderedJson& result, std::size_t width) {
  constexpr std::size_t kMostRows = 60;
  const auto key = [](const OrderedJson& event) {
    return event["event"].get<std::string>() + event.value("pool", "") + std::to_string(event.value("nodes", 0)) +
           event.value("detail", "");
  };
  const OrderedJson &predicted = result["predicted"]["events"], &measured = result["measured"]["events"];
  report::Table table({">predicted", ">measured", "event", ">nodes", "pool"});
  const auto add = [&](const std::string& expected, const std::string& found, const OrderedJson& event) {
    table.add({expected, found, event["event"].get<std::string>(),
               event.value("nodes", 0) > 0 ? std::to_string(event.value("nodes", 0)) : "", event.value("pool", "")});
  };
  const auto at = [](const OrderedJson& event) { return to_string(Seconds{event["at_s"].get<double>()}); };
  std::vector<bool> used(measured.size(), false);
  std::size_t from = 0, rows = 0;
  for (const OrderedJson& event : predicted) {
    if (++rows > kMostRows) break;
    std::size_t match = from;
    while (match < measured.size() && (used[match] || key(measured[match]) != key(event))) ++match;
    if (match == measured.size()) {
      add(at(event), "-", event);
      continue;
    }
    used[match] = true;
    while (from < measured.size() && used[from]) ++from;
    add(at(event), at(measured[match]), event);
  }
  for (std::size_t i = 0; i < measured.size(); ++i)
    if (!used[i] && ++rows <= kMostRows) add("-", at(measured[i]), measured[i]);
  return table.text(width) + (rows > kMostRows ? "Further events are in --format json.\n" : "");
}

std::string text_of_life(const OrderedJson& result, std::size_t width) {
  const OrderedJson &processes = result["processes"], &decisions = result["decisions"];
  std::string out = fmt::format(
      "A life on {} hosts ({}), played in {}: {:.3g} real seconds for one of the scenario, and a played step stands "
      "for "
      "{:g} of its steps.\n\n",
      result["hosts"].get<int>(), result["network"].get<std::string>(),
      to_string(Seconds{result["took_s"].get<double>()}), result["scale"].get<double>(),
      result["steps_each"].get<double>());
  out += timeline(result, width) + "\n" + compared(result, width) + "\n";
  const std::size_t changes = decisions["predicted"].size();
  out += decisions["same"].get<bool>()
             ? fmt::format("The policy took the same decisions in both; they changed {} times.\n", changes - 1)
             : fmt::format("The policy decided differently: {} changes predicted, {} played.\n", changes - 1,
                           decisions["measured"].size() - 1);
  out += fmt::format(
      "Processes: {} nodes were started and {} killed, {} heard of a notice (SIGTERM); {} starts of the training "
      "program "
      "played {} steps, wrote {} checkpoints and read {}.\n",
      processes["nodes_started"].get<int>(), processes["nodes_killed"].get<int>(),
      processes["notices_heard"].get<int>(), processes["trainings_started"].get<int>(),
      processes["steps_played"].get<int>(), processes["checkpoints_written"].get<int>(),
      processes["checkpoints_read"].get<int>());
  return out;
}

/// A study for `ganymede validate`: the time, each use of the GPUs above a twentieth of it, and the bill.
void write_life_study(const sim::Scenario& scenario, const OrderedJson& result, const std::string& file) {
  constexpr double kMatters = 0.05;
  OrderedJson cells = OrderedJson::array();
  for (const OrderedJson& row : result["comparison"]) {
    if (row["share"].get<double>() < kMatters) continue;
    const std::string what = row["what"];
    const std::string value = what == "time"   ? "/time/total_s"
                              : what == "bill" ? "/cost/total_usd"
                                               : "/gpu_seconds/" + what;
    OrderedJson tags = {"rehearsed", "life"};
    if (what == "exposed_communication") tags.push_back("communication");
    cells.push_back({{"what", what},
                     {"unit", what == "bill" ? "USD" : "s"},
                     {"run", "rehearsed"},
                     {"value", value},
                     {"measured", row["measured"]},
                     {"role", "predict"},
                     {"tags", tags}});
  }
  const OrderedJson study = {
      {"schema", "ganymede.validation/1"},
      {"name", std::filesystem::path(file).stem().string()},
      {"title", fmt::format("The life of {} rehearsed on {} hosts",
                            std::filesystem::path(scenario.file).filename().string(), result["hosts"].get<int>())},
      {"source", "ganymede rehearse --life"},
      {"links", studies::kPlayedNetwork},
      {"assumptions",
       {{{"what", "compute takes the recorded times, which were slept through"}, {"source", "ganymede rehearse"}},
        {{"what", fmt::format("times are those of the rehearsal divided by {:.6g}; a played step stands for {:g}",
                              result["scale"].get<double>(), result["steps_each"].get<double>())},
         {"source", "ganymede rehearse"}}}},
      {"runs", {{"rehearsed", scenario_of_study(scenario)}}},
      {"cells", cells}};
  write_file(file, study.dump(1) + "\n");
}

}  // namespace

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

void run_life(const LifeOptions& options, const Shared& shared) {
  if (kernel::launched_processes() > 1)
    throw ConfigError("--hosts: found several processes, expected one, which starts the others");
  std::vector<std::string> assignments = options.assignments;
  // A rehearsal replays a recorded step on every rank and slows down none of its kernels.
  for (const char* unplayed : {"/synchronization/jitter=0", "/synchronization/interference=0"})
    assignments.emplace_back(unplayed);
  const sim::Scenario scenario = plan::load_scenario_or_plan(options.scenario, parse_assignments(assignments));
  refuse_mpirun(options.hosts);
  const int hosts = options.hosts.hosts;
  if (scenario.workers() > hosts)
    throw ConfigError(fmt::format("{}: /platform: found {} GPUs, expected at most {}, as many as there are --hosts",
                                  scenario.file, scenario.workers(), hosts));
  const rehearsal::Ping network = rehearsal::network_of_life(scenario);
  const rehearsal::LifeRequest request{hosts, options.hosts.scale, options.length,
                                       choose_name_spaces(options.hosts, shared), options.hosts.loss};
  const OrderedJson result = rehearsal::rehearse_life(scenario, request, slowest_scale(network.rate, hosts));
  Shared to_stdout = shared;
  to_stdout.output.clear();
  emit(to_stdout, shared.format == "json" ? result.dump(2) + "\n" : text_of_life(result, result_width(shared)));
  if (!shared.output.empty()) write_life_study(scenario, result, shared.output);
}

}  // namespace ganymede::cli
