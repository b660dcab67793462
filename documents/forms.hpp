#pragma once
// The forms that follow from a document's description (walk.hpp): its text, a reader of that text, and its JSON Schema,
// of which tools/document_types.py makes the table of members in the documentation and the types of the Python package.

#include <functional>
#include <string_view>

#include "common/json_fwd.hpp"
#include "documents/walk.hpp"

namespace ganymede::documents {

/// A description of one document, ready for a walk.
using Description = std::function<void(Walk&)>;
template <class Document>
Description described(const Document& document) {
  // A walk that reads changes the document, and is given one that may be changed.
  return [&document](Walk& walk) { walk.visit(const_cast<Document&>(document), {}); };
}

/// The document as JSON, its members in the order of the description.
OrderedJson written(const Description& description);

/// How a document is read.
struct Reading {
  bool strict = true;           ///< an unknown member is an error; a newer program's result may have more members
  std::string_view again = {};  ///< what to do if a required member is missing: "simulate again with --format json"
};
/// Fills the described struct from `node`. Throws ConfigError, located, for a required member that is missing and for a
/// value of another type or out of range; a member that is absent otherwise keeps the value that the struct has.
void read(const JsonNode& node, const Description& description, const Reading& how = {});

/// The JSON Schema (draft 7) of a document, with this title. Objects that have a type's name are definitions.
OrderedJson schema_of(const Description& description, std::string_view title, std::string_view says, bool strict);

}  // namespace ganymede::documents
