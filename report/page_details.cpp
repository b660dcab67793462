// The sections of single runs: the bill, the timeline of events, and what workers do in a step.

#include <fmt/format.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "common/units.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"

namespace ganymede::report {
namespace {

using Json = nlohmann::json;

void add_bill(const PageInput& page, std::vector<Section>& sections) {
  const ReportCandidate& of = page.candidates[page.detailed.front()];
  const Json& cost = (*of.run).at("cost");
  Table table({"provider", "pool", "item", "market", ">quantity", "unit", ">USD a unit", ">USD"});
  for (const Json& item : cost.at("items"))
    table.add({item.value("provider", ""), item.value("pool", ""), item.value("item", ""), item.value("market", ""),
               fmt::format("{:.4f}", item.at("quantity").get<double>()), item.value("unit", ""),
               item.value("unit_price_usd", "no price"), item.value("usd", "no price")});
  table.rule();
  table.add({"total", "", "", "", "", "", "",
             cost.at("total_usd").is_string() ? cost.at("total_usd").get<std::string>() : "no price"});
  std::string tables = html_of(table, "Bill", "bill-table");
  if (cost.contains("instance_hours_by_use")) {
    Table uses({"of the instance-hours", ">USD"});
    for (const auto& [use, usd] : cost.at("instance_hours_by_use").items())
      if (amount(usd) != 0) {
        std::string name = use;
        std::replace(name.begin(), name.end(), '_', ' ');
        uses.add({name, usd.get<std::string>()});
      }
    tables += html_of(uses, "What the instance-hours were paid for", "uses-table");
  }
  sections.push_back({"bill",
                      "Bill",
                      "<span id=bill-pick></span>Provider, pool and item; areas are dollars.",
                      {{"bill", "The bill as nested areas"}},
                      std::move(tables)});
}

void add_timeline(const PageInput& page, std::vector<Section>& sections) {
  const ReportCandidate& of = page.candidates[page.detailed.front()];
  Table table({">at", "event", ">nodes", "pool", "detail"});
  for (const Json& event : (*of.run).at("events")) {
    std::string what = event.at("event").get<std::string>();
    if (event.contains("times")) what += " x" + event.at("times").dump();
    table.add({clock(event.at("at_s").get<double>()), what, event.contains("nodes") ? event.at("nodes").dump() : "",
               event.value("pool", ""), event.value("detail", "")});
  }
  sections.push_back({"timeline",
                      "What happened when",
                      "<span id=timeline-pick></span>Nodes asked for and held, by pool; interruptions, checkpoints and "
                      "changes above. Drag or use the buttons to zoom.",
                      {{"timeline", "Nodes held over time, with events"}},
                      html_of(table, "Events", "events-table")});
}

void add_steps(const PageInput& page, std::vector<Section>& sections) {
  const Json& spans = page.document.at("step_spans");
  std::map<std::size_t, std::vector<double>> by_worker;
  const std::size_t kinds = spans.at("kinds").size();
  for (const Json& row : spans.at("rows")) {
    auto& seconds = by_worker[row.at(0).get<std::size_t>()];
    seconds.resize(kinds);
    seconds.at(row.at(1).get<std::size_t>()) += row.at(4).get<double>();
  }
  std::vector<std::string> names{">worker"};
  for (const Json& kind : spans.at("kinds")) names.push_back(">" + kind.get<std::string>());
  for (auto& name : names) std::replace(name.begin(), name.end(), '_', ' ');
  Table table(names);
  for (const auto& [worker, seconds] : by_worker) {
    std::vector<std::string> cells{std::to_string(worker)};
    for (const double of : seconds) cells.push_back(to_string(Seconds{of}));
    table.add(cells);
  }
  std::string about =
      "What each worker does in a few steps of the configuration that trained most: its own course, its collectives, "
      "its input pipeline, which works ahead: what it loads for later steps is not drawn.";
  if (spans.at("rows").size() > kMaxSpans)
    about += fmt::format(
        " Of {} spans neighbours are drawn together, coloured by what has most of the time; <code>ganymede export "
        "perfetto</code> has each of them.",
        spans.at("rows").size());
  sections.push_back({"steps",
                      "Inside a step",
                      std::move(about),
                      {{"steps", "Gantt chart of the workers' steps"}},
                      html_of(table, "Seconds of each worker in the steps shown")});
}

}  // namespace

void add_details(const PageInput& page, std::vector<Section>& sections) {
  if (!page.detailed.empty()) {
    add_bill(page, sections);
    add_timeline(page, sections);
  }
  if (page.document.contains("step_spans")) add_steps(page, sections);
}

}  // namespace ganymede::report
