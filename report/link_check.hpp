#pragma once
// Whether measured collectives are normal, as text and as CSV.

#include <string>

#include "documents/link_check.hpp"
#include "report/wrap.hpp"

namespace ganymede::report {

/// The verdict, the curve beside the expected one, and the causes.
std::string link_check_text(const documents::LinkCheck& check, std::size_t width = kAnyWidth);
/// One row for each size.
std::string link_check_csv(const documents::LinkCheck& check);

}  // namespace ganymede::report
