#pragma once
// The documents that are described here, by the names that `ganymede schema` has for them.

#include <span>
#include <string_view>

#include "common/json_value.hpp"

namespace ganymede::documents {

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
