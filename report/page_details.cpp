// The sections of single runs: the bill, the timeline of events, and what workers do in a step.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"

namespace ganymede::report {
namespace {
double dollars_of(const Json& item) { return item.contains("usd") ? amount(item.at("usd")) : std::nan(""); }

/// A node of the tree with the sum of what stands below it. Items without a price count as nothing.
BillRow bill_sum(int depth, const std::string& name, double sum, double total) {
  return {depth, name, "", "", "", usd(sum), total > 0 ? sum / total : 0};
}

std::string with_spaces(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

/// What the instance-hours went into, below their row. It is known for the whole bill only.
void add_uses(const Json& cost, double total, std::vector<BillRow>& rows) {
  if (!cost.contains("instance_hours_by_use")) return;
  for (const auto& [use, value] : cost.at("instance_hours_by_use").items())
    if (const double part = amount(value); part > 0)
      rows.push_back({4, with_spaces(use), "", "", "", value.get<std::string>(), total > 0 ? part / total : 0});
}

void add_bill(const PageInput& page, std::vector<Section>& sections) {
  const ReportCandidate& of = page.candidates[page.detailed.front()];
  std::string body;
  for (const BillRow& row : bill_tree(*of.run))
    body += fmt::format(
        "<tr class=d{}><td>{}</td><td><svg class=bar viewBox=\"0 0 100 10\" preserveAspectRatio=none "
        "aria-hidden=true><rect width=\"{:.2f}\" height=10 /></svg></td><td class=n>{}</td><td class=n>{}</td><td "
        "class=n>{}</td><td>{}</td><td class=n>{}</td></tr>\n",
        row.depth, escaped(row.name), 100 * row.share, escaped(row.usd), row.share > 0 ? percent(row.share) : "",
        escaped(row.quantity), escaped(row.unit), escaped(row.price));
  sections.push_back({"bill",
                      "Bill",
                      "<span id=bill-pick></span>Provider, pool and item, and what the instance-hours went into; bars "
                      "are shares of the total.",
                      {},
                      "<div class=scroll tabindex=0 role=region aria-label=Bill><table id=bill-table><caption>Bill"
                      "</caption>\n<thead><tr><th>what</th><th>share</th><th class=n>USD</th><th class=n></th><th "
                      "class=n>quantity</th><th>unit</th><th class=n>USD a unit</th></tr></thead><tbody>\n" +
                          body + "</tbody></table></div>\n"});
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
    auto& seconds = by_worker[index_of(row.at(0))];
    seconds.resize(kinds);
    seconds.at(index_of(row.at(1))) += row.at(4).get<double>();
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

std::vector<BillRow> bill_tree(const Json& run) {
  const Json& cost = run.at("cost");
  std::map<std::string, std::map<std::string, std::vector<const Json*>>> tree;
  double total = 0;
  std::size_t hours = 0;
  for (const Json& item : cost.at("items")) {
    tree[item.value("provider", "")][item.value("pool", "")].push_back(&item);
    if (const double value = dollars_of(item); std::isfinite(value)) total += value;
    hours += item.value("item", "") == "instance-hours" ? 1 : 0;
  }
  const Json& all = cost.at("total_usd");
  std::vector<BillRow> rows = {{0, "total", "", "", "", std::isfinite(amount(all)) ? usd_cell(all) : "no price", 1}};
  const auto sum_of = [](const std::vector<const Json*>& items) {
    double sum = 0;
    for (const Json* item : items)
      if (const double value = dollars_of(*item); std::isfinite(value)) sum += value;
    return sum;
  };
  for (const auto& [provider, pools] : tree) {
    double sum = 0;
    for (const auto& [pool, items] : pools) sum += sum_of(items);
    rows.push_back(bill_sum(1, provider.empty() ? "bill" : provider, sum, total));
    for (const auto& [pool, items] : pools) {
      rows.push_back(bill_sum(2, pool, sum_of(items), total));
      for (const Json* item : items) {
        const double value = dollars_of(*item);
        const std::string market = item->value("market", "");
        rows.push_back({3, item->value("item", "") + (market.empty() ? "" : ", " + market),
                        fmt::format("{:.4f}", item->at("quantity").get<double>()), item->value("unit", ""),
                        item->contains("unit_price_usd") ? price_cell(item->at("unit_price_usd")) : "no price",
                        std::isfinite(value) ? usd_cell(item->at("usd")) : "no price",
                        total > 0 && std::isfinite(value) ? value / total : 0});
        if (hours == 1 && item->value("item", "") == "instance-hours") add_uses(cost, total, rows);
      }
    }
  }
  return rows;
}

void add_details(const PageInput& page, std::vector<Section>& sections) {
  if (!page.detailed.empty()) {
    add_bill(page, sections);
    add_timeline(page, sections);
  }
  if (page.document.contains("step_spans")) add_steps(page, sections);
}

}  // namespace ganymede::report
