// The glossary of a page: schemes and policies as the program names them, and what the report says of
// predictions.

#include <algorithm>
#include <set>

#include "common/json_value.hpp"
#include "report/page_sections.hpp"

namespace ganymede::report {
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
