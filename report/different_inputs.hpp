#pragma once
// The inputs in which two results or two plans differ.

#include "common/json_fwd.hpp"
#include "report/documents.hpp"

namespace ganymede::report {

/// Returns an array of { "kind", "pointer", "name", "before", "after" } in the order of kinds and pointers:
/// "field" of the scenario or request, "file" (the content of a file that both name, as a hash), "option" of the
/// command, "price" in dollars, and "program". A value that one side does not have is null.
OrderedJson different_inputs(const Document& before, const Document& after);

/// True if the document holds its scenario or request in full. Earlier programs did not write it; then "field" compares
/// what the document says of them.
bool records_inputs(const Document& document);

}  // namespace ganymede::report
