#pragma once
// The documents that are described here, by the names that `ganymede schema` has for them.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/embedded.hpp"
#include "common/json_value.hpp"

namespace ganymede::documents {

// JSON Schemas as `ganymede schema` prints them. The files of docs/schemas refer to definitions that several of them
// share, docs/schemas/common, and name the lists of `ganymede list` instead of repeating what is in them.

/// The names of a topic of `ganymede list`.
using ListNames = std::function<std::vector<std::string>(std::string_view topic)>;

/// One self-contained schema: { "$ref": "common/run.json#/definitions/policy" } becomes "#/definitions/policy", whose
/// content is copied from the file "run" of `common` with all that it refers to, and { "x-list": "policies" } becomes
/// an "enum" of the names of that topic. Throws Failure if a reference leads nowhere or two definitions have the same
/// name.
std::string bundled_schema(std::string_view schema, std::span<const EmbeddedText> common, const ListNames& names);

struct DescribedDocument {
  std::string_view name;   ///< "result"
  std::string_view title;  ///< "ganymede.result/1"
  std::string_view says;   ///< what it is, and which command prints it
  bool strict;             ///< its schema allows no further members
  OrderedJson (*describe_schema)(const DescribedDocument&);

  OrderedJson schema() const { return describe_schema(*this); }  ///< its JSON Schema
};

/// Sorted by name.
std::span<const DescribedDocument> described_documents();

}  // namespace ganymede::documents
