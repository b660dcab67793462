#include "report/rehearsals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "documents/rehearsal.hpp"
#include "report/candidates.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {
using documents::Rehearsal;

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

std::string amount_of(const std::string& unit, double value) {
  if (unit == "USD") return fmt::format("{:.4f} USD", value);
  return unit == "s" ? to_string(Seconds{value}) : fmt::format("{:.1f} {}", value, unit);
}

Table comparison_of(const Rehearsal& life) {
  Table table({"of the life", ">predicted", ">measured", ">off by", ">share"});
  for (const Rehearsal::Figure& row : life.comparison) {
    if (row.predicted == 0 && row.measured == 0) continue;
    std::string name = row.what;
    std::replace(name.begin(), name.end(), '_', ' ');
    table.add({name, amount_of(row.unit, row.predicted), amount_of(row.unit, row.measured),
               row.off ? signed_percent(*row.off) : "", row.unit == "GPU-s" ? percent(row.share) : ""});
  }
  return table;
}

/// The events of both lives, by time; the measured time of what happened in both is in the same row.
std::string timeline(const Rehearsal& life, std::size_t width) {
  constexpr std::size_t kMostRows = 60;
  using Event = documents::RunEvent;
  const auto same = [](const Event& a, const Event& b) {
    return std::tie(a.what, a.pool, a.nodes, a.detail) == std::tie(b.what, b.pool, b.nodes, b.detail);
  };
  const std::vector<Event>&predicted = life.predicted.events, &measured = life.measured.events;
  Table table({">predicted", ">measured", "event", ">nodes", "pool"});
  const auto add = [&](const std::string& expected, const std::string& found, const Event& event) {
    table.add({expected, found, event.what, event.nodes > 0 ? std::to_string(event.nodes) : "", event.pool});
  };
  std::vector<bool> used(measured.size(), false);
  std::size_t from = 0, rows = 0;
  for (const Event& event : predicted) {
    if (++rows > kMostRows) break;
    std::size_t match = from;
    while (match < measured.size() && (used[match] || !same(measured[match], event))) ++match;
    if (match == measured.size()) {
      add(to_string(event.at), "-", event);
      continue;
    }
    used[match] = true;
    while (from < measured.size() && used[from]) ++from;
    add(to_string(event.at), to_string(measured[match].at), event);
  }
  for (std::size_t i = 0; i < measured.size(); ++i)
    if (!used[i] && ++rows <= kMostRows) add("-", to_string(measured[i].at), measured[i]);
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
  const Rehearsal life = documents::rehearsal_in(result);
  const Rehearsal::Processes& processes = life.processes;
  std::string out = fmt::format(
      "A life on {} hosts ({}), played in {}: {:.3g} real seconds for one of the scenario, and a played step stands "
      "for {:g} of its steps.\n\n",
      life.hosts, life.network, to_string(Seconds{life.took_s}), life.scale, life.steps_each);
  out += timeline(life, width) + "\n" + comparison_of(life).text(width) + "\n";
  const std::size_t changes = life.predicted_decisions.size();
  out += life.same_decisions
             ? fmt::format("The policy took the same decisions in both; they changed {} times.\n", changes - 1)
             : fmt::format("The policy decided differently: {} changes predicted, {} played.\n", changes - 1,
                           life.measured_decisions.size() - 1);
  out += fmt::format(
      "Processes: {} nodes were started and {} killed, {} heard of a notice (SIGTERM); {} starts of the training "
      "program played {} steps, wrote {} checkpoints and read {}.\n",
      processes.nodes_started, processes.nodes_killed, processes.notices_heard, processes.trainings_started,
      processes.steps_played, processes.checkpoints_written, processes.checkpoints_read);
  return out;
}

namespace {
constexpr double kLifeWidth = 1000, kLifeLeft = 90, kLaneHeight = 60, kMarkHeight = 22, kMark = 2, kGap = 14;
constexpr std::array kMarkColors = {"#009e73", "#d55e00", "#222222", "#0072b2", "#f0e442", "#cc79a7",
                                    "#56b4e9", "#8c564b", "#7f3fbf", "#e69f00", "#888888"};

/// Events that are marked; those of requests and boots are seen in what is held.
bool is_marked(const std::string& event) { return event != "requested" && event != "provisioned"; }

/// The frame that both lives share: their longer time, the most nodes, and places for pools and for kinds of events.
struct LifeAxes {
  explicit LifeAxes(const Rehearsal& rehearsal) {
    for (const Rehearsal::Life& run : {std::cref(rehearsal.predicted), std::cref(rehearsal.measured)}) {
      total = std::max(total, run.total.si);
      for (const Holding& holding : holdings_of(run)) {
        pools.try_emplace(holding.pool, pools.size());
        most = std::max(most, holding.held + holding.asked);
      }
      for (const documents::RunEvent& event : run.events)
        if (is_marked(event.what)) kinds.try_emplace(event.what, kinds.size());
    }
  }
  double x(double seconds) const { return kLifeLeft + (kLifeWidth - kLifeLeft) * seconds / total; }
  const char* color(const std::string& kind) const { return kMarkColors[kinds.at(kind) % kMarkColors.size()]; }

  double total = 1e-9;
  int most = 1;
  std::map<std::string, std::size_t> pools, kinds;
};

/// Both lives on one axis: the nodes of each pool as areas, held ones dark and requested ones light, and above them a
/// mark for each event.
std::string timelines_svg(const Rehearsal& rehearsal) {
  const LifeAxes axes(rehearsal);
  const double lanes = kLaneHeight * static_cast<double>(std::max<std::size_t>(1, axes.pools.size()));
  std::string out;
  const auto text = [&](double at, double y, const std::string& words, const char* anchor = "start") {
    out +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"12\" text-anchor={} fill=\"currentColor\">{}</text>\n",
                    at, y, anchor, escaped(words));
  };
  double top = 0;
  for (const auto& [which, life] : {std::pair("predicted", &rehearsal.predicted), {"measured", &rehearsal.measured}}) {
    const documents::Result& run = *life;
    text(0, top + kMarkHeight - 8, which);
    for (const auto& [pool, lane] : axes.pools)
      text(0, top + kMarkHeight + kLaneHeight * (static_cast<double>(lane) + 0.5), pool.substr(pool.rfind(' ') + 1));
    for (const Holding& holding : holdings_of(run)) {
      const double base = top + kMarkHeight + kLaneHeight * static_cast<double>(axes.pools.at(holding.pool) + 1);
      const auto area = [&](int nodes, const char* opacity) {
        const double height = (kLaneHeight - 6) * nodes / axes.most;
        out += fmt::format(
            "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"#0072b2\" opacity=\"{}\"><title>"
            "{}: {} held, {} asked for, {} to {}</title></rect>\n",
            axes.x(holding.from_s), base - height, axes.x(holding.to_s) - axes.x(holding.from_s), height, opacity,
            escaped(holding.pool), holding.held, holding.asked, clock(holding.from_s), clock(holding.to_s));
      };
      area(holding.held + holding.asked, "0.25");
      area(holding.held, "0.6");
    }
    for (const documents::RunEvent& event : run.events) {
      if (!is_marked(event.what)) continue;
      out += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:g}\" height=\"{:.1f}\" fill=\"{}\"><title>{} at "
          "{}</title></rect>\n",
          axes.x(event.at.si), top + 4, kMark, kMarkHeight + lanes - 4, axes.color(event.what), escaped(event.what),
          clock(event.at.si));
    }
    top += kMarkHeight + lanes + kGap;
  }
  text(kLifeLeft, top + 6, "0");
  text(kLifeWidth, top + 6, clock(axes.total), "end");
  std::vector<std::pair<std::string, std::string>> key;
  for (const auto& [kind, index] : axes.kinds) key.emplace_back(kind, axes.color(kind));
  return fmt::format(
             "<div class=scroll tabindex=0 role=region aria-label=Timelines><svg class=picture viewBox=\"0 0 {:.0f} "
             "{:.0f}\" role=img aria-label=\"The predicted life over the measured one\">\n{}</svg></div>\n",
             kLifeWidth + kMark, top + 12, out) +
         key_html(key);
}

Table decisions_of(const Rehearsal& rehearsal) {
  Table table({"of", ">at", "nodes", "elastic", "paused"});
  for (const auto& [which, decisions] :
       {std::pair("predicted", &rehearsal.predicted_decisions), {"measured", &rehearsal.measured_decisions}})
    for (const Rehearsal::Decision& decision : *decisions) {
      std::string nodes;
      const OrderedJson counts = OrderedJson::parse(decision.nodes.text);
      for (const auto& [pool, count] : counts.items())
        nodes += (nodes.empty() ? "" : ", ") + count.dump() + " x " + pool;
      table.add({which, clock(decision.at_s), nodes.empty() ? "none" : nodes, decision.elastic ? "yes" : "no",
                 decision.pause ? "yes" : "no"});
    }
  return table;
}

}  // namespace

std::vector<Section> rehearsal_sections(const documents::Rehearsal& rehearsal) {
  const Rehearsal::Processes& processes = rehearsal.processes;
  const std::string played = fmt::format(
      "Played on {} hosts ({}) in {}: {:.3g} real seconds for one of the scenario, and a played step stands for {:g} "
      "of its steps. {} nodes were started and {} killed; {} starts of the training program played {} steps, wrote {} "
      "checkpoints and read {}.",
      rehearsal.hosts, escaped(rehearsal.network), clock(rehearsal.took_s), rehearsal.scale, rehearsal.steps_each,
      processes.nodes_started, processes.nodes_killed, processes.trainings_started, processes.steps_played,
      processes.checkpoints_written, processes.checkpoints_read);
  return {{"comparison",
           "Predicted against measured",
           played,
           {},
           html_of(comparison_of(rehearsal), "Predicted and measured; shares are of the GPU-seconds")},
          {"timelines",
           "Both timelines",
           "The predicted life above, the measured one below, on one axis. Dark: nodes held; light: nodes asked for.",
           {},
           timelines_svg(rehearsal) + html_of(events_of(rehearsal.predicted), "Events, predicted") +
               html_of(events_of(rehearsal.measured), "Events, measured")},
          {"decisions",
           "What the policy decided",
           rehearsal.same_decisions ? "The same in both lives." : "The policy decided differently in the two lives.",
           {},
           html_of(decisions_of(rehearsal), "Decisions that differ from the one before")}};
}

}  // namespace ganymede::report
