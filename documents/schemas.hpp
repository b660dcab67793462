#pragma once
// The documents that are described here, by the names that `ganymede schema` has for them.

#include <span>
#include <string_view>

#include "common/json_fwd.hpp"

namespace ganymede::documents {

struct DescribedDocument {
  std::string_view name;    ///< "result"
  OrderedJson (*schema)();  ///< its JSON Schema
};

/// Sorted by name.
std::span<const DescribedDocument> described_documents();

}  // namespace ganymede::documents
