#include "report/documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "documents/cluster_result.hpp"
#include "documents/plan.hpp"
#include "documents/rehearsal.hpp"
#include "documents/result.hpp"
#include "documents/schemas.hpp"
#include "documents/validation_result.hpp"

namespace ganymede::report {
namespace {

/// In the order of DocumentKind.
constexpr KindFacts kFacts[] = {{"ganymede.result/1", "result", "simulate"},
                                {"ganymede.sweep/1", "sweep", "sweep"},
                                {"ganymede.plan/1", "plan", "plan"},
                                {"ganymede.validation-result/1", "validation", "validate"},
                                {"ganymede.study/1", "study", ""},
                                {"ganymede.cluster-result/1", "cluster's result", "simulate of a cluster"},
                                {"ganymede.rehearsal/1", "rehearsed life", "rehearse --life"},
                                {"ganymede.service/1", "service", ""}};

DocumentKind kind_of(const JsonNode& schema, std::initializer_list<DocumentKind> kinds) {
  std::vector<std::string> names;
  for (const DocumentKind kind : kinds) names.emplace_back(facts_of(kind).schema);
  if (schema.is_string()) {
    const std::string found = schema.as_string();
    for (const std::string& name : names) {
      const std::string stem = name.substr(0, name.size() - 1);
      const std::string version = found.starts_with(stem) ? found.substr(stem.size()) : "";
      const bool number = !version.empty() && version.find_first_not_of("0123456789") == std::string::npos;
      if (number && found != name)
        schema.fail(fmt::format("{} is of a newer ganymede; this one reads {}: use that one", found, name));
    }
  }
  for (const documents::DescribedDocument& other : documents::described_documents())
    if (schema.value() == Json(other.title) && std::find(names.begin(), names.end(), other.title) == names.end())
      schema.fail(fmt::format("found {}, {}, which this command cannot take; expected {}", other.title,
                              std::string(other.says), list_of(names)));
  const std::string found = schema.as_choice(names);
  return *(kinds.begin() + (std::find(names.begin(), names.end(), found) - names.begin()));
}

}  // namespace

const KindFacts& facts_of(DocumentKind kind) { return kFacts[static_cast<std::size_t>(kind)]; }

Document load_document(const std::filesystem::path& file, std::initializer_list<DocumentKind> kinds) {
  const JsonNode node = JsonNode::load(file);
  const DocumentKind kind = kind_of(JsonObject(node).required("schema"), kinds);
  switch (kind) {
    case DocumentKind::result:
      (void)documents::read_result(node);
      break;
    case DocumentKind::sweep:
      if (!node.value().contains("runs"))
        node.fail("is no whole result of this version, \"runs\" is missing; sweep again with --format json");
      for (const JsonNode& run : node.child("runs").as_array()) (void)documents::read_result(run);
      if (node.value().contains("study")) (void)node.child("study").as_string();
      break;
    case DocumentKind::plan:
      (void)documents::read_plan(node);
      break;
    case DocumentKind::validation:
      (void)documents::read_validation_result(node);
      break;
    case DocumentKind::study:  // whoever simulates or exports it reads its members
    case DocumentKind::service:
      break;
    case DocumentKind::cluster:
      (void)documents::read_cluster_result(node);
      break;
    case DocumentKind::rehearsal:
      (void)documents::read_rehearsal(node);
      break;
  }
  return {node, kind};
}

}  // namespace ganymede::report
