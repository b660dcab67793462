// The sections of the page of a rehearsed life: both timelines over each other, and what is compared.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "report/holdings.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"

namespace ganymede::report {
namespace {
constexpr double kLifeWidth = 1000, kLifeLeft = 90, kLaneHeight = 60, kMarkHeight = 22, kMark = 2, kGap = 14;
constexpr std::array kMarkColors = {"#009e73", "#d55e00", "#222222", "#0072b2", "#f0e442", "#cc79a7",
                                    "#56b4e9", "#8c564b", "#7f3fbf", "#e69f00", "#888888"};

/// Events that are marked; those of requests and boots are seen in what is held.
bool is_marked(const std::string& event) { return event != "requested" && event != "provisioned"; }

/// The frame that both lives share: their longer time, the most nodes, and places for pools and for kinds of events.
struct LifeAxes {
  explicit LifeAxes(const Json& document) {
    for (const char* which : {"predicted", "measured"}) {
      const Json& run = document.at(which);
      total = std::max(total, run.at("time").at("total_s").get<double>());
      for (const Holding& holding : holdings_of(documents::result_in(run))) {
        pools.try_emplace(holding.pool, pools.size());
        most = std::max(most, holding.held + holding.asked);
      }
      for (const Json& event : run.at("events"))
        if (const auto name = event.at("event").get<std::string>(); is_marked(name))
          kinds.try_emplace(name, kinds.size());
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
std::string timelines_svg(const Json& document) {
  const LifeAxes axes(document);
  const double lanes = kLaneHeight * static_cast<double>(std::max<std::size_t>(1, axes.pools.size()));
  std::string out;
  const auto text = [&](double at, double y, const std::string& words, const char* anchor = "start") {
    out +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"12\" text-anchor={} fill=\"currentColor\">{}</text>\n",
                    at, y, anchor, escaped(words));
  };
  double top = 0;
  for (const char* which : {"predicted", "measured"}) {
    const Json& run = document.at(which);
    text(0, top + kMarkHeight - 8, which);
    for (const auto& [pool, lane] : axes.pools)
      text(0, top + kMarkHeight + kLaneHeight * (static_cast<double>(lane) + 0.5), pool.substr(pool.rfind(' ') + 1));
    for (const Holding& holding : holdings_of(documents::result_in(run))) {
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
    for (const Json& event : run.at("events")) {
      const auto kind = event.at("event").get<std::string>();
      if (!is_marked(kind)) continue;
      const double at = event.at("at_s").get<double>();
      out += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:g}\" height=\"{:.1f}\" fill=\"{}\"><title>{} at "
          "{}</title></rect>\n",
          axes.x(at), top + 4, kMark, kMarkHeight + lanes - 4, axes.color(kind), escaped(kind), clock(at));
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

std::string amount_text(const Json& row, const char* which) {
  const double value = row.at(which).get<double>();
  const auto unit = row.at("unit").get<std::string>();
  return unit == "s" ? clock(value) : unit == "USD" ? usd(value) + " USD" : fmt::format("{:.1f} {}", value, unit);
}

std::string comparison_table(const Json& document) {
  Table table({"of the life", ">predicted", ">measured", ">off by", ">share of the GPU-seconds"});
  for (const Json& row : document.at("comparison")) {
    if (row.at("predicted") == 0 && row.at("measured") == 0) continue;
    auto name = row.at("what").get<std::string>();
    std::replace(name.begin(), name.end(), '_', ' ');
    table.add({name, amount_text(row, "predicted"), amount_text(row, "measured"),
               row.at("off").is_null() ? "" : signed_percent(row.at("off").get<double>()),
               row.at("unit") == "GPU-s" ? percent(row.at("share").get<double>()) : ""});
  }
  return html_of(table, "Predicted and measured");
}

std::string events_table(const Json& run, const std::string& caption) {
  Table table({">at", "event", ">nodes", "pool", "detail"});
  for (const Json& event : run.at("events")) {
    auto what = event.at("event").get<std::string>();
    if (event.contains("times")) what += " x" + event.at("times").dump();
    table.add({clock(event.at("at_s").get<double>()), what, event.contains("nodes") ? event.at("nodes").dump() : "",
               event.value("pool", ""), event.value("detail", "")});
  }
  return html_of(table, caption);
}

std::string decisions_table(const Json& document) {
  Table table({"of", ">at", "nodes", "elastic", "paused"});
  for (const char* which : {"predicted", "measured"})
    for (const Json& decision : document.at("decisions").at(which)) {
      std::string nodes;
      for (const auto& [pool, count] : decision.at("nodes").items())
        nodes += (nodes.empty() ? "" : ", ") + count.dump() + " x " + pool;
      table.add({which, clock(decision.at("at_s").get<double>()), nodes.empty() ? "none" : nodes,
                 decision.at("elastic").get<bool>() ? "yes" : "no", decision.at("pause").get<bool>() ? "yes" : "no"});
    }
  return html_of(table, "Decisions that differ from the one before");
}

}  // namespace

std::vector<Section> rehearsal_sections(const Json& document) {
  const Json& processes = document.at("processes");
  const std::string played = fmt::format(
      "Played on {} hosts ({}) in {}: {:.3g} real seconds for one of the scenario, and a played step stands for {:g} "
      "of its steps. {} nodes were started and {} killed; {} starts of the training program played {} steps, wrote {} "
      "checkpoints and read {}.",
      document.at("hosts").dump(), escaped(document.at("network").get<std::string>()),
      clock(document.at("took_s").get<double>()), document.at("scale").get<double>(),
      document.at("steps_each").get<double>(), processes.at("nodes_started").dump(),
      processes.at("nodes_killed").dump(), processes.at("trainings_started").dump(),
      processes.at("steps_played").dump(), processes.at("checkpoints_written").dump(),
      processes.at("checkpoints_read").dump());
  return {{"comparison", "Predicted against measured", played, {}, comparison_table(document)},
          {"timelines",
           "Both timelines",
           "The predicted life above, the measured one below, on one axis. Dark: nodes held; light: nodes asked for.",
           {},
           timelines_svg(document) + events_table(document.at("predicted"), "Events, predicted") +
               events_table(document.at("measured"), "Events, measured")},
          {"decisions",
           "What the policy decided",
           document.at("decisions").at("same").get<bool>() ? "The same in both lives."
                                                           : "The policy decided differently in the two lives.",
           {},
           decisions_table(document)}};
}

}  // namespace ganymede::report
