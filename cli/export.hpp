#pragma once
// An exporter of exports/ as a subcommand of `ganymede export`.

#include <functional>
#include <initializer_list>
#include <string>

#include "cli/command.hpp"
#include "exports/exporter.hpp"
#include "report/documents.hpp"

namespace ganymede::cli {

// From a document to a text, for the report and for most exports.

/// Reads the document, makes the text and writes it to --output. Returns the text's size in bytes. Throws ConfigError
/// for a document of another kind, and if `make` does not find what it needs in the document.
std::size_t export_document(const std::string& file, const Shared& shared,
                            const std::function<std::string(const report::Document&)>& make,
                            std::initializer_list<report::DocumentKind> kinds = {
                                report::DocumentKind::result, report::DocumentKind::sweep, report::DocumentKind::plan,
                                report::DocumentKind::study, report::DocumentKind::cluster,
                                report::DocumentKind::rehearsal, report::DocumentKind::service});

/// `exporter` must outlive the command.
Command exporter_command(const exports::Exporter& exporter);

}  // namespace ganymede::cli
