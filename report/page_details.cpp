// The sections of single runs: the bill, the timeline of events, and what workers do in a step.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "common/usd.hpp"
#include "report/numbers.hpp"
#include "report/page_sections.hpp"

namespace ganymede::report {
namespace {
/// A node of the tree with the sum of what stands below it.
BillRow bill_sum(int depth, const std::string& name, double sum, double total) {
  return {depth, name, "", "", "", usd(sum), total > 0 ? sum / total : 0};
}

std::string with_spaces(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

/// Adds the uses of the instance-hours below their row. It is known for the whole bill only.
void add_uses(const documents::CostByUse& cost, double total, std::vector<BillRow>& rows) {
  std::map<std::string, MicroUsd> uses = {{"idle_tail", cost.idle_tail},
                                          {"minimum_and_rounding", cost.minimum_and_rounding}};
  for (std::size_t use = 0; use < kGpuUseNames.size(); ++use)
    uses.emplace(kGpuUseNames.at(use), cost.by_gpu_use.at(use));
  for (const auto& [use, part] : uses)
    if (part.value > 0)
      rows.push_back({4, with_spaces(use), "", "", "", decimal(part), total > 0 ? usd_of(part) / total : 0});
}

void add_bill(const PageInput& page, std::vector<Section>& sections) {
  sections.push_back({"bill",
                      "Bill",
                      "<span id=bill-pick></span>Provider, pool and item, and what the instance-hours went into; bars "
                      "are shares of the total.",
                      {},
                      "<div class=scroll tabindex=0 role=region aria-label=Bill><table id=bill-table><caption>Bill"
                      "</caption>\n<thead><tr><th>what</th><th>share</th><th class=n>USD</th><th class=n></th><th "
                      "class=n>quantity</th><th>unit</th><th class=n>USD a unit</th></tr></thead><tbody>\n" +
                          bill_rows(*page.candidates[page.detailed.front()].run) + "</tbody></table></div>\n"});
}

void add_timeline(const PageInput& page, std::vector<Section>& sections) {
  sections.push_back({"timeline",
                      "What happened when",
                      "<span id=timeline-pick></span>Nodes asked for and held, by pool; interruptions, checkpoints and "
                      "changes above. Drag or use the buttons to zoom.",
                      {{"timeline", "Nodes held over time, with events"}},
                      html_of(events_of(*page.candidates[page.detailed.front()].run), "Events", "events-table")});
}

void add_steps(const PageInput& page, std::vector<Section>& sections) {
  const documents::StepSpans& spans = *page.runs.front().spans;
  constexpr std::size_t kKinds = documents::StepSpans::kKinds.size();
  std::map<int, std::array<double, kKinds>> by_worker;
  for (const documents::StepSpans::Row& row : spans.rows)
    by_worker[row.worker].at(static_cast<std::size_t>(row.kind)) += row.length.si;
  std::vector<std::string> names{">worker"};
  for (const char* kind : documents::StepSpans::kKinds) names.push_back(std::string(">") + kind);
  for (auto& name : names) std::replace(name.begin(), name.end(), '_', ' ');
  Table table(names);
  for (const auto& [worker, seconds] : by_worker) {
    std::vector<std::string> cells{std::to_string(worker)};
    for (const double one : seconds) cells.push_back(to_string(Seconds{one}));
    table.add(cells);
  }
  std::string about =
      "What each worker does in a few steps of the configuration that trained most: its own course, its collectives, "
      "its input pipeline, which works ahead: what it loads for later steps is not drawn.";
  if (spans.rows.size() > kMaxSpans)
    about += fmt::format(
        " Of {} spans neighbours are drawn together, coloured by what has most of the time; <code>ganymede export "
        "perfetto</code> has each of them.",
        spans.rows.size());
  sections.push_back({"steps",
                      "Inside a step",
                      std::move(about),
                      {{"steps", "Gantt chart of the workers' steps"}},
                      html_of(table, "Seconds of each worker in the steps shown")});
}

}  // namespace

Table events_of(const documents::Result& run) {
  Table table({">at", "event", ">nodes", "pool", "detail"});
  for (const documents::RunEvent& event : run.events)
    table.add({clock(event.at.si), event.what + (event.times > 1 ? fmt::format(" x{}", event.times) : ""),
               event.nodes > 0 ? std::to_string(event.nodes) : "", event.pool, event.detail});
  return table;
}

std::string bill_rows(const documents::Result& run) {
  std::string out;
  for (const BillRow& row : bill_tree(run))
    out += fmt::format(
        "<tr class=d{}><td>{}</td><td><svg class=bar viewBox=\"0 0 100 10\" preserveAspectRatio=none "
        "aria-hidden=true><rect width=\"{:.2f}\" height=10 /></svg></td><td class=n>{}</td><td class=n>{}</td><td "
        "class=n>{}</td><td>{}</td><td class=n>{}</td></tr>\n",
        row.depth, escaped(row.name), 100 * row.share, escaped(row.usd), row.share > 0 ? percent(row.share) : "",
        escaped(row.quantity), escaped(row.unit), escaped(row.price));
  return out;
}

std::vector<BillRow> bill_tree(const documents::Result& run) {
  using Items = std::vector<const documents::BillItem*>;
  std::map<std::string, std::map<std::string, Items>> tree;
  double total = 0;
  std::size_t hours = 0;
  for (const documents::BillItem& item : run.bill.items) {
    tree[item.provider][item.pool].push_back(&item);
    total += usd_of(item.usd);
    hours += item.item == "instance-hours" ? 1 : 0;
  }
  std::vector<BillRow> rows = {{0, "total", "", "", "", usd_cell(run.usd), 1}};
  const auto sum_of = [](const Items& items) {
    double sum = 0;
    for (const documents::BillItem* item : items) sum += usd_of(item->usd);
    return sum;
  };
  for (const auto& [provider, pools] : tree) {
    double sum = 0;
    for (const auto& [pool, items] : pools) sum += sum_of(items);
    rows.push_back(bill_sum(1, provider.empty() ? "bill" : provider, sum, total));
    for (const auto& [pool, items] : pools) {
      rows.push_back(bill_sum(2, pool, sum_of(items), total));
      for (const documents::BillItem* item : items) {
        rows.push_back({3, item->item + (item->market.empty() ? "" : ", " + item->market),
                        fmt::format("{:.4f}", item->quantity), item->unit, price_cell(decimal(item->unit_price)),
                        usd_cell(item->usd), total > 0 ? usd_of(item->usd) / total : 0});
        if (hours == 1 && item->item == "instance-hours") add_uses(run.cost_by_use, total, rows);
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
  if (page.kind == "result" && page.runs.front().spans) add_steps(page, sections);
}

// The sections on where the numbers of a page come from and which of them are doubtful, and its glossary.

namespace {

/// The text with each number as one sign.
std::string without_numbers(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool after_number = out.ends_with('#');
    if ((c >= '0' && c <= '9') || (c == '.' && after_number))
      out += after_number ? "" : "#";
    else
      out += c;
  }
  return out;
}

}  // namespace

void add_provenance(const PageInput& page, std::vector<Section>& sections) {
  Section out{"provenance", "Where the numbers come from", "", {}, ""};
  std::set<std::string> warnings;
  Table table({"what", "value"});
  std::map<std::string, std::set<std::string>> facts;
  std::set<std::uint64_t> seeds;
  for (const documents::Result& run : page.runs) {
    for (const auto& [name, fact] : {std::pair{"tool", &run.tool},
                                     {"steps", &run.step_source},
                                     {"fabric", &run.fabric_source},
                                     {"software", &run.software},
                                     {"inputs", &run.inputs},
                                     {"risk", &run.risk},
                                     {"prices_as_of", &run.prices_as_of}})
      facts[name].insert(*fact);
    warnings.insert(run.warnings.begin(), run.warnings.end());
    seeds.insert(run.seed);
  }
  if (page.kind == "result") {
    facts["scenario hash"].insert(page.runs.front().hash);
    facts["seed"].insert(std::to_string(page.runs.front().seed));
  } else if (page.kind == "sweep") {
    facts["seeds"].insert(fmt::format("{} different", seeds.size()));
  } else {
    const documents::Plan& plan = *page.plan;
    facts["tool"].insert(plan.tool);
    facts["steps"].insert(plan.request.trace);
    facts["caveat"].insert(plan.caveat);
    for (const std::string& why : plan.left_out) warnings.insert("left out: " + why);
    for (const documents::PlanRow& row : plan.simulated)
      if (!row.owned.empty())
        warnings.insert(
            fmt::format("owned: {} {} costs what it does if this holds: {}", row.provider, row.instance, row.owned));
    if (plan.chosen && plan.chosen->warnings)
      warnings.insert(plan.chosen->warnings->begin(), plan.chosen->warnings->end());
  }
  for (const auto& [name, values] : facts)
    for (const std::string& value : values) {
      std::string words = name;
      std::replace(words.begin(), words.end(), '_', ' ');
      table.add({words, value});
    }
  out.tables = html_of(table, "Provenance");
  if (!warnings.empty()) {
    out.tables += "<h3>What to beware of</h3>\n<ul class=warnings>\n";
    // The first of the warnings that differ in their numbers alone stands for all.
    std::map<std::string, std::vector<const std::string*>> alike;
    for (const std::string& warning : warnings) alike[without_numbers(warning)].push_back(&warning);
    for (const auto& [text, all] : alike)
      out.tables += "<li>" + escaped(*all.front()) +
                    (all.size() > 1 ? fmt::format(" <small>(and {} with other numbers)</small>", all.size() - 1) : "") +
                    "</li>\n";
    out.tables += "</ul>\n";
  }
  sections.push_back(std::move(out));
}

namespace {

/// Words of the report itself; each is explained if a candidate or its document has it.
const std::map<std::string, std::string>& own_words() {
  static const std::map<std::string, std::string> kWords = {
      {"kernel model",
       "how a step's time is predicted on a GPU that nobody measured it on: the times of its kernels, from the GPU's "
       "data sheet and published measurements"},
      {"transferred", "a step measured on one GPU and carried to another, whose bounds widen with the distance"},
      {"datasheet", "predicted from peak rates alone: a first look"},
      {"spot", "nodes that the provider may take back at any time, at a lower price"},
      {"reserved", "nodes that are paid for a year or three, used or not"},
      {"checkpoints", "how often the training is saved; what an interruption destroys is what was done since"},
      {"all-reduce scheme", "how the GPUs add up their gradients after each step"},
      {"policy", "what decides while training which nodes to hold"},
      {"GPU busy", "the share of the paid GPU time, boot included, in which GPUs work"},
      {"none beats", "no other candidate is both faster and cheaper; together these are the Pareto set"}};
  return kWords;
}

}  // namespace

std::string words_html(const PageInput& page) {
  std::set<std::string> used;
  const auto use = [&](const std::string& text) {
    // "fixed, checkpoints 1h" is a policy and its checkpoints.
    for (std::size_t from = 0; from < text.size();) {
      const std::size_t comma = std::min(text.find(", ", from), text.size());
      const std::string part = text.substr(from, comma - from);
      used.insert(part.starts_with("checkpoints ") ? "checkpoints" : part);
      from = comma + 2;
    }
  };
  for (const ReportCandidate& candidate : page.candidates) {
    use(candidate.scheme);
    use(candidate.policy);
    use(candidate.market.starts_with("reserved") ? "reserved" : candidate.market);
    if (!candidate.scheme.empty() && candidate.scheme != "none") used.insert("all-reduce scheme");
    if (!candidate.policy.empty() && candidate.policy != "fixed") used.insert("policy");
    if (candidate.run != nullptr) use(candidate.run->inputs);
  }
  if (page.plan != nullptr && page.plan->chosen) use(page.plan->chosen->inputs);
  if (!page.candidates.empty()) used.insert("GPU busy");
  if (page.candidates.size() > 1) used.insert("none beats");
  std::string list;
  const auto add = [&](const std::map<std::string, std::string>& words) {
    for (const auto& [word, meaning] : words)
      if (word != "none" && used.contains(word))
        list += "<dt>" + escaped(word) + "</dt><dd>" + escaped(meaning) + "</dd>\n";
  };
  add(own_words());
  add(page.words);
  return list.empty()
             ? ""
             : "<details class=words><summary>What the words mean</summary><dl>\n" + list + "</dl></details>\n";
}

}  // namespace ganymede::report
