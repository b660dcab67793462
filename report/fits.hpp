#pragma once
// Which GPUs hold a training, as text and as CSV.

#include <string>

#include "documents/fits.hpp"
#include "report/wrap.hpp"

namespace ganymede::report {

/// The answer, the memory by kind, and a row for each GPU, fitted to `width` columns (table.hpp).
std::string fits_text(const documents::Fits& fits, std::size_t width = kAnyWidth);
/// One row for each GPU.
std::string fits_csv(const documents::Fits& fits);

}  // namespace ganymede::report
