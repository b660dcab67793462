#include "cli/result_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/errors.hpp"
#include "common/json.hpp"

namespace ganymede::cli {
namespace {

/// "ganymede.result" and 2 of "ganymede.result/2"; 0: no version.
std::pair<std::string, int> split(const std::string& schema) {
  const std::size_t slash = schema.find('/');
  int version = 0;
  if (slash != std::string::npos) std::from_chars(schema.data() + slash + 1, schema.data() + schema.size(), version);
  return {schema.substr(0, slash), version};
}

void check_version(const JsonNode& node, const std::string& schema, const std::vector<std::string>& known) {
  const auto [name, version] = split(schema);
  for (const std::string& other : known)
    if (const auto [known_name, known_version] = split(other); name == known_name && version > known_version)
      node.fail(fmt::format("was written by a newer version of the program: found \"{}\", this one reads \"{}\"",
                            schema, other));
}

}  // namespace

nlohmann::json load_result(const std::string& file, const std::vector<std::string>& schemas) {
  const JsonNode node = JsonNode::load(file);
  if (!node.value().is_object() || !node.value().contains("schema"))
    node.fail("is no result: expected what simulate, sweep or plan writes with --format json");
  JsonObject in(node);
  const JsonNode schema = in.required("schema");
  if (schema.value().is_string()) check_version(schema, schema.value().get<std::string>(), schemas);
  const std::string kind = schema.as_choice(schemas);
  const auto has = [&](const nlohmann::json& of, std::initializer_list<const char*> members) {
    for (const char* member : members)
      if (!of.is_object() || !of.contains(member))
        node.fail(fmt::format(
            "is no whole result of this version, \"{}\" is missing; simulate again with --format json", member));
  };
  const auto check_run = [&](const nlohmann::json& run) {
    has(run, {"run", "time", "utilization", "gpu_seconds", "cost", "life", "goals", "provenance"});
  };
  if (kind == "ganymede.plan/1") has(node.value(), {"request", "searched", "simulated"});
  if (kind == "ganymede.validation-result/1") has(node.value(), {"studies", "summary"});
  if (kind == "ganymede.result/1") check_run(node.value());
  if (kind == "ganymede.sweep/1") {
    has(node.value(), {"runs"});
    for (const nlohmann::json& run : node.value()["runs"]) check_run(run);
  }
  return node.value();
}

}  // namespace ganymede::cli
