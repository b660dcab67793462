#pragma once
// From a result to a text: what report and most exports do.

#include <functional>
#include <initializer_list>
#include <string>

#include "cli/command.hpp"
#include "report/documents.hpp"

namespace ganymede::cli {

/// Reads the document, makes the text and writes it; its size in bytes. What `make` misses in the document, or cannot
/// read, is the user's to mend: ConfigError.
std::size_t export_document(const std::string& file, const Shared& shared,
                            const std::function<std::string(const Document&)>& make,
                            std::initializer_list<DocumentKind> kinds = {DocumentKind::result, DocumentKind::sweep,
                                                                         DocumentKind::plan});

}  // namespace ganymede::cli
