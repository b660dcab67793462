#include "report/rehearsals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {

std::string seconds_text(const OrderedJson& value) { return to_string(Seconds{value.get<double>()}); }

std::string network_text(const OrderedJson& network) {
  return fmt::format("{} and {}", to_string(BytesPerSecond{network["rate_bytes_per_s"].get<double>()}),
                     seconds_text(network["latency_s"]));
}

/// Names the part of the step that was predicted worst, if that matters: by 1 % of the step or more.
std::string what_is_off(const OrderedJson& measured, const OrderedJson& predicted) {
  constexpr double kMatters = 0.01;
  const auto step = measured["step_s"].get<double>();
  std::string out;
  double worst = kMatters;
  for (const auto& [key, value] : measured.items()) {
    if (key == "step_s" || !value.is_number()) continue;
    const double off = (predicted[key].get<double>() - value.get<double>()) / step;
    if (std::abs(off) < worst) continue;
    worst = std::abs(off);
    std::string name = key.substr(0, key.size() - 2);
    std::replace(name.begin(), name.end(), '_', ' ');
    out = fmt::format("Most is off in {}: predicted {:.1f} % of the step too {}.", name, 100 * worst,
                      off > 0 ? "long" : "short");
  }
  return out.empty() ? "No part of the step is off by 1 % of it or more." : out;
}

std::string amount_of(const OrderedJson& row, const char* which) {
  const auto value = row[which].get<double>();
  const std::string unit = row["unit"];
  if (unit == "USD") return fmt::format("{:.4f} USD", value);
  return unit == "s" ? to_string(Seconds{value}) : fmt::format("{:.1f} {}", value, unit);
}

std::string compared(const OrderedJson& result, std::size_t width) {
  Table table({"of the life", ">predicted", ">measured", ">off by", ">share"});
  for (const OrderedJson& row : result["comparison"]) {
    if (row["predicted"] == 0 && row["measured"] == 0) continue;
    std::string name = row["what"];
    std::replace(name.begin(), name.end(), '_', ' ');
    table.add({name, amount_of(row, "predicted"), amount_of(row, "measured"),
               row["off"].is_null() ? "" : signed_percent(row["off"].get<double>()),
               row["unit"] == "GPU-s" ? fmt::format("{:.1f} %", 100 * row["share"].get<double>()) : ""});
  }
  return table.text(width);
}

/// The events of both lives, by time; the measured time of what happened in both is in the same row.
std::string timeline(const OrderedJson& result, std::size_t width) {
  constexpr std::size_t kMostRows = 60;
  const auto key = [](const OrderedJson& event) {
    return event["event"].get<std::string>() + event.value("pool", "") + std::to_string(event.value("nodes", 0)) +
           event.value("detail", "");
  };
  const OrderedJson &predicted = result["predicted"]["events"], &measured = result["measured"]["events"];
  Table table({">predicted", ">measured", "event", ">nodes", "pool"});
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

}  // namespace

std::string rehearsed_steps_text(const OrderedJson& result, std::size_t width) {
  const OrderedJson &measured = result["measured"], &noise = result["noise"];
  std::string out = fmt::format(
      "{} ranks, {} steps, {}{}\n", result["ranks"].get<int>(), result["steps"].get<int>(),
      result["messenger"].get<std::string>(),
      result["scale"] == 1
          ? ""
          : fmt::format("; everything takes {:g} times as long as in the scenario", result["scale"].get<double>()));
  if (!result["network"]["stated"].is_null())
    out += fmt::format("The scenario states links of {}; a ping between two ranks found {}.\n",
                       network_text(result["network"]["stated"]), network_text(result["network"]["measured"]));
  const bool has_ping = result.contains("predicted_from_ping");
  std::vector<std::string> head = {"of a mean step", ">measured", ">predicted", ">off by"};
  if (has_ping) head.insert(head.end(), {">from the ping", ">off by"});
  Table table(head);
  for (const auto& [key, value] : measured.items()) {
    if (!value.is_number()) continue;
    std::string name = key.substr(0, key.size() - 2);
    std::replace(name.begin(), name.end(), '_', ' ');
    std::vector<std::string> cells = {name, seconds_text(value)};
    for (const char* by : {"predicted", "predicted_from_ping"}) {
      if (!result.contains(by)) continue;
      const auto predicted = result[by][key].get<double>();
      cells.push_back(to_string(Seconds{predicted}));
      cells.push_back(signed_percent((predicted - value.get<double>()) / measured["step_s"].get<double>()));
    }
    table.add(cells);
  }
  out += "\n" + table.text(width) + "\n";
  out += fmt::format("Shares are of the measured step, whose 95 % interval is {} to {}. {}\n",
                     seconds_text(measured["interval_s"][0]), seconds_text(measured["interval_s"][1]),
                     what_is_off(measured, result[has_ping ? "predicted_from_ping" : "predicted"]));
  out += fmt::format(
      "Noise: a rank came up to {} late to a moment of its step (median); {} took {} of processor "
      "time a step and rank; clocks agree within {}.{}\n",
      seconds_text(noise["late_s"]), result["compute"] == "real" ? "computing and communication" : "communication",
      seconds_text(noise["processor_s"]), seconds_text(noise["clock_error_s"]),
      noise["more_ranks_than_processors"].get<bool>()
          ? " Compute is slept through: there are more ranks than processors."
          : "");
  return out;
}

std::string rehearsed_life_text(const OrderedJson& result, std::size_t width) {
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

}  // namespace ganymede::report
