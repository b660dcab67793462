#pragma once
// What simulate, sweep and plan write with --format json, as exports read it.

#include <filesystem>
#include <initializer_list>

#include "common/json.hpp"

namespace ganymede {

enum class DocumentKind { result, sweep, plan, validation };

struct Document {
  JsonNode node;
  DocumentKind kind;

  const nlohmann::json& json() const { return node.value(); }
};

/// ConfigError for anything but these kinds: another schema, a newer version of one, members that an earlier program
/// did not write.
Document load_document(const std::filesystem::path& file,
                       std::initializer_list<DocumentKind> kinds = {DocumentKind::result, DocumentKind::sweep,
                                                                    DocumentKind::plan});

}  // namespace ganymede
