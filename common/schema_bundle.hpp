#pragma once
// JSON Schemas as `ganymede schema` prints them. The files of docs/schemas refer to definitions that several of them
// share, docs/schemas/common, and name the lists of `ganymede list` instead of repeating what is in them.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/embedded.hpp"

namespace ganymede {

/// The names of a topic of `ganymede list`.
using ListNames = std::function<std::vector<std::string>(std::string_view topic)>;

/// One self-contained schema: { "$ref": "common/run.json#/definitions/policy" } becomes "#/definitions/policy", whose
/// content is copied from the file "run" of `common` with all that it refers to, and { "x-list": "policies" } becomes
/// an "enum" of the names of that topic. Throws Failure if a reference leads nowhere or two definitions have the same
/// name.
std::string bundled_schema(std::string_view schema, std::span<const EmbeddedText> common, const ListNames& names);

}  // namespace ganymede
