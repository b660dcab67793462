#include "cli/names.hpp"

#include <algorithm>
#include <cassert>
#include <set>
#include <sstream>

#include "common/embedded.hpp"
#include "kernel/gan_step.hpp"
#include "platforms/catalog.hpp"
#include "studies/validation.hpp"

namespace ganymede::cli {
namespace {

constexpr std::string_view kPrefix = "suggest:";

/// The names that `add` collects from all catalogs, sorted.
std::vector<std::string> from_catalogs(auto&& add) {
  std::set<std::string> names;
  for (const std::string& provider : platforms::provider_names()) add(platforms::catalog(provider), names);
  return {names.begin(), names.end()};
}

std::vector<std::string> names_of(const std::string& topic) {
  if (topic == "instances")
    return from_catalogs([](const platforms::Platform& platform, std::set<std::string>& names) {
      for (const platforms::Instance& instance : platform.instances) names.insert(instance.name);
    });
  if (topic == "gpus")
    return from_catalogs([](const platforms::Platform& platform, std::set<std::string>& names) {
      for (const platforms::Gpu& gpu : platform.gpus) names.insert({gpu.name, gpu.family});
    });
  if (topic == "sheets") return listed_names("gpus");
  if (topic == "regions")
    return from_catalogs([](const platforms::Platform& platform, std::set<std::string>& names) {
      for (const platforms::Region& region : platform.regions) names.insert(region.name);
    });
  if (topic == "studies") return studies::validation_names();
  if (topic == "losses") return {std::begin(kernel::kLossNames), std::end(kernel::kLossNames)};
  if (topic == "layers") {
    std::vector<std::string> names;
    for (const EmbeddedText& list : embedded_layers()) names.emplace_back(list.name);
    return names;
  }
  auto topics = listed_topics();
  if (topic == "topics") return topics;
  assert(std::find(topics.begin(), topics.end(), topic) != topics.end());
  return listed_names(topic);
}

}  // namespace

CLI::Validator suggest(const std::string& spec) {
  return {[](std::string&) { return std::string{}; }, "", std::string(kPrefix) + spec};
}

Suggestion read_suggestion(const std::string& validator_name) {
  Suggestion suggestion;
  if (!validator_name.starts_with(kPrefix)) return suggestion;
  suggestion.any = true;
  std::istringstream words(validator_name.substr(kPrefix.size()));
  for (std::string word; words >> word;) {
    if (word == "@files") {
      suggestion.files = true;
    } else if (word == "@list") {
      suggestion.list = true;
    } else if (word.starts_with('@')) {
      const auto names = names_of(word.substr(1));
      suggestion.names.insert(suggestion.names.end(), names.begin(), names.end());
    } else {
      suggestion.names.push_back(word);
    }
  }
  return suggestion;
}

}  // namespace ganymede::cli
