#pragma once
// The documents that simulate, sweep, plan, validate and rehearse write with --format json, as reports and exports read
// them; and studies, which some exports turn into jobs.

#include <filesystem>
#include <initializer_list>

#include "common/json.hpp"

namespace ganymede::report {

enum class DocumentKind { result, sweep, plan, validation, study, cluster, rehearsal, service };

/// The program's word for a kind of document, and the command that writes it ("": people do).
struct KindFacts {
  const char *schema, *name, *writer;
};
const KindFacts& facts_of(DocumentKind kind);

struct Document {
  JsonNode node;
  DocumentKind kind;

  const Json& json() const { return node.value(); }
};

/// Reads a document of one of these kinds. Throws ConfigError for another schema, for a newer version of a schema, and
/// if members are missing because an earlier program wrote the file.
Document load_document(const std::filesystem::path& file,
                       std::initializer_list<DocumentKind> kinds = {DocumentKind::result, DocumentKind::sweep,
                                                                    DocumentKind::plan});

}  // namespace ganymede::report
