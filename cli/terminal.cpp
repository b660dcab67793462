#include "cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

#include "common/printable.hpp"

namespace ganymede::cli {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

constexpr std::string_view kGreen = "\033[1;32m", kRed = "\033[1;31m", kPlain = "\033[0m";

std::string_view color_of(std::string_view line) {
  if (line.starts_with("-> MISSED")) return kRed;
  return line.starts_with("-> ") || line.find("<- ") != std::string_view::npos ? kGreen : "";
}

}  // namespace

std::string highlighted(const Shared& shared, const std::string& text) {
  const std::string safe = printable(text, "\n");
  if (!shared.color || !shared.output.empty()) return safe;
  std::istringstream lines(safe);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    const std::string_view color = color_of(line);
    out += color.empty() ? line + "\n" : std::string(color) + line + std::string(kPlain) + "\n";
  }
  return out;
}

std::optional<std::size_t> terminal_columns(int descriptor) {
  if (::isatty(descriptor) == 0) return std::nullopt;
  const std::string_view said = variable("COLUMNS");
  std::size_t columns = 0;
  const auto [end, error] = std::from_chars(said.data(), said.data() + said.size(), columns);
  if (error == std::errc{} && end == said.data() + said.size() && columns > 0) return columns;
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return std::nullopt;
}

std::size_t result_width(const Shared& shared) {
  return shared.output.empty() ? terminal_columns(STDOUT_FILENO).value_or(report::kAnyWidth) : report::kAnyWidth;
}

std::size_t remark_width() { return terminal_columns(STDERR_FILENO).value_or(report::kAnyWidth); }

bool may_color() { return variable("NO_COLOR").empty() && variable("TERM") != "dumb" && ::isatty(STDOUT_FILENO) != 0; }

}  // namespace ganymede::cli
