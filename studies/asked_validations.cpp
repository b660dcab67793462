#include "studies/asked_validations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "common/text.hpp"
#include "sim/scenario/scenario.hpp"
#include "studies/shard_folder.hpp"

namespace ganymede::studies {
namespace {

JsonNode find_study(const std::string& name) {
  const auto& names = validation_names();
  if (std::find(names.begin(), names.end(), name) != names.end())
    return JsonNode::parse(embedded_validation(name), name);
  if (name.find('/') != std::string::npos || name.ends_with(".json") || std::filesystem::exists(name))
    return JsonNode::load(name);
  const auto near = nearest(name, names);
  throw ConfigError(fmt::format("there is no study \"{}\"{}; expected a file or {}", name,
                                near ? fmt::format(", did you mean \"{}\"?", *near) : "", list_of(names)));
}

/// Hash of a study, and of the traces and platform files that its scenarios name.
std::string hash_of_study(const JsonNode& document, const Validation& study) {
  std::string content = document.value().dump();
  for (const auto& [run, scenario] : study.runs) content += " " + sim::read_scenario(scenario).hash;
  return fmt::format("{:016x}", fnv1a(content));
}

}  // namespace

AskedValidations read_asked(const std::vector<std::string>& names) {
  AskedValidations asked;
  asked.names = names.empty() ? validation_names() : names;
  std::map<std::string, std::string> seen;  // studies by their content
  for (const std::string& name : asked.names) {
    asked.documents.push_back(find_study(name));
    if (const auto [same, is_new] = seen.emplace(asked.documents.back().value().dump(), name); !is_new)
      throw ConfigError(name == same->second
                            ? fmt::format("the study {} is named twice, expected once", name)
                            : fmt::format("{} and {} are the same study, expected one of them", same->second, name));
    asked.studies.push_back(read_validation(asked.documents.back()));
  }
  return asked;
}

ShardOutcome run_validation_shard(AskedValidations asked, const std::string& program, const Shard& shard,
                                  const std::string& folder, ShardOptions how) {
  ShardedWork work{
      .command = kValidateShards, .program = program, .name = "published measurements", .parts = {}, .seeds = {}};
  for (std::size_t i = 0; i < asked.names.size(); ++i)
    work.parts.push_back({asked.names[i], hash_of_study(asked.documents[i], asked.studies[i])});
  how.use = ChildUse::once;
  return run_shard(
      work, shard, folder,
      {.work =
           [&](std::size_t i) { return documents::validated_study_text(run_validation(std::move(asked.studies[i]))); }},
      how);
}

RehearsedLinks read_rehearsals(const std::vector<std::string>& files) {
  RehearsedLinks out;
  std::map<std::string, std::string> seen;  // files by their content
  for (const std::string& file : files) {
    const JsonNode study = JsonNode::load(file);
    if (const auto [same, is_new] = seen.emplace(study.value().dump(), file); !is_new)
      throw ConfigError(
          fmt::format("--rehearsed: {} and {} are the same rehearsal, which counts once", same->second, file));
    out.add(run_validation(read_validation(study)), file);
  }
  return out;
}

}  // namespace ganymede::studies
