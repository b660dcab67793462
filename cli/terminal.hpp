#pragma once
// The width and colours of the terminal, if there is one. Files and pipes get plain text that is not wrapped.

#include <cstddef>
#include <optional>

#include "cli/command.hpp"
#include "report/wrap.hpp"

namespace ganymede::cli {

/// The columns of the terminal behind a descriptor: the value of COLUMNS, or what the terminal says. Returns nullopt if
/// the descriptor is no terminal, or one that does not know its width.
std::optional<std::size_t> terminal_columns(int descriptor);
/// The width to which a command's result is fitted: kAnyWidth unless it goes to a terminal.
std::size_t result_width(const Shared& shared);
/// The width to which text on stderr is fitted: kAnyWidth unless stderr is a terminal.
std::size_t remark_width();
/// The text without characters that could steer a terminal, which may stand in files that somebody else wrote, and with
/// its marked lines coloured, if it goes to a terminal that shows colours: those that begin with "-> " or hold "<- ",
/// which are chosen, in green, and "-> MISSED" in red.
std::string highlighted(const Shared& shared, const std::string& text);
/// True if stdout is a terminal that supports colours and NO_COLOR (no-color.org) is not set.
bool may_color();

}  // namespace ganymede::cli
