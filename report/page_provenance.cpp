// The sections on where the numbers of a page come from and which of them are doubtful.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

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

}  // namespace ganymede::report
