#pragma once
// Own or rent, from `ganymede.own-or-rent/1`, for a terminal and as a picture.

#include <string>

#include "documents/own_or_rent.hpp"
#include "report/table.hpp"

namespace ganymede::report {

/// The answer as tables and sentences that fit `width` columns.
std::string own_or_rent_text(const documents::OwnOrRent& answer, std::size_t width = kAnyWidth);

/// A picture (SVG): dollars a year against hours of use a year, one line for owning and one for each offer, with a mark
/// where owning becomes cheaper.
std::string own_or_rent_svg(const documents::OwnOrRent& answer);

}  // namespace ganymede::report
