#pragma once
// Finds the types that the text of a C++ file defines and that the linker sees: those at namespace scope, by their
// whole name.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ganymede {

struct TypeDefinition {
  std::string name;      ///< "ganymede::serve::Verdict", "std::hash<Name>"
  std::size_t line = 0;  ///< from 1
};

/// Classes, structures, unions and enumerations with a body, except those in unnamed namespaces, functions or other
/// types. The function only reads tokens: macros count as names, and code that the preprocessor would leave out counts
/// too.
std::vector<TypeDefinition> types_defined_in(std::string_view text);

struct TypeFile {
  std::string path, text;
};

/// A line for each name that two files of one program define: "NAME is defined in A:1 and in B:2". The folders of
/// `tests/` and the files of `bench/` are programs of their own, with the rest of the tree; `tests/support` is in all.
std::vector<std::string> types_defined_twice(const std::vector<TypeFile>& files);

}  // namespace ganymede
