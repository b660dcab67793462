#pragma once
// What is known of the terminal, if there is one: everything else (files, pipes) gets plain text of any width.

#include <cstddef>
#include <optional>

#include "cli/command.hpp"
#include "report/wrap.hpp"

namespace ganymede::cli {

/// Columns of the terminal behind the descriptor: what COLUMNS says, else the terminal. Nothing where there is none, or
/// none that knows.
std::optional<std::size_t> terminal_columns(int descriptor);
/// How wide a command's result may be: kAnyWidth unless it goes to a terminal.
std::size_t result_width(const Shared& shared);
/// The same of what goes to stderr.
std::size_t remark_width();
/// Whether escape codes may go to stdout: it is a terminal that knows them, and NO_COLOR (no-color.org) is not set.
bool may_color();

}  // namespace ganymede::cli
