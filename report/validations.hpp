#pragma once
// A `ganymede.validation-result/1` as text and as CSV.

#include <string>

#include "documents/validation_result.hpp"
#include "report/table.hpp"

namespace ganymede::report {

/// A caveat: the errors of known studies do not say this; docs/model.md has the figures.
inline constexpr const char* kKnownStudies =
    "The studies that come with the program were known while the model was made. On machines held out of every fit it "
    "was about three times as far off on 2026-11-26; what has changed since was not held against unseen machines.";

/// Returns for each study its assumptions (in full only if `details`), what was fitted, its cells, claims and promises;
/// then a summary over all studies. It is fitted to `width` columns (table.hpp).
std::string validation_text(const documents::ValidationResult& result, bool details, std::size_t width = kAnyWidth);
/// Returns CSV with one line for each cell.
std::string validation_csv(const documents::ValidationResult& result);

}  // namespace ganymede::report
