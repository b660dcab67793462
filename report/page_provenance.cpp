// The sections on where the numbers of a page come from and which of them are doubtful, and its glossary.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "common/json_value.hpp"
#include "report/page_sections.hpp"

namespace ganymede::report {
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
