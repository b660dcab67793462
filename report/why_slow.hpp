#pragma once
// Why several GPUs are slow, as text.

#include <string>

#include "documents/why_slow.hpp"
#include "report/wrap.hpp"

namespace ganymede::report {

/// The answer, the parts of a step, and the causes with what mending them brings.
std::string why_slow_text(const documents::WhySlow& answer, std::size_t width = kAnyWidth);

}  // namespace ganymede::report
