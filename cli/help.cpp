#include "cli/help.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "cli/progress.hpp"
#include "report/table.hpp"

namespace ganymede::cli {
namespace {

/// Lines that are indented further than this continue a second column.
constexpr std::size_t kSecondColumn = 8;
/// Columns that a second column needs at least beside the first.
constexpr std::size_t kTextColumnsMin = 24;

/// The words of one column, below each other; lines after the first are indented by `hanging`.
std::string wrapped_column(const std::string& words, std::size_t indent, std::size_t hanging, std::size_t width) {
  std::string out;
  for (const std::string& line : report::wrap_words(words, width - hanging))
    out += std::string(out.empty() ? indent : hanging, ' ') + line + "\n";
  return out;
}

std::string wrapped_line(const std::string& line, std::size_t width) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  if (report::columns_of(line) <= width || indent + kTextColumnsMin > width) return line + "\n";
  const std::size_t gap = line.find("  ", indent);
  if (gap == std::string::npos)
    return wrapped_column(line.substr(indent), indent, indent > kSecondColumn ? indent : indent + 2, width);
  const std::size_t second = line.find_first_not_of(' ', gap);
  const std::string head = line.substr(0, gap), text = line.substr(second);
  if (second + kTextColumnsMin <= width) return report::hanging(line.substr(0, second), text, width);
  return wrapped_line(head, width) + wrapped_column(text, indent + 4, indent + 4, width);
}

}  // namespace

std::string wrapped_help(const std::string& text, std::size_t width) {
  std::istringstream lines(text);
  std::string out, paragraph, as_it_is;
  std::size_t widest = 0;
  const auto end_paragraph = [&] {
    out += widest > width ? wrapped_column(paragraph, 0, 0, width) : as_it_is;
    paragraph.clear();
    as_it_is.clear();
    widest = 0;
  };
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with(' ') || line.find("  ") != std::string::npos) {
      end_paragraph();
      out += wrapped_line(line, width);
      continue;
    }
    paragraph += (paragraph.empty() ? "" : " ") + line;
    as_it_is += line + "\n";
    widest = std::max(widest, report::columns_of(line));
  }
  end_paragraph();
  return out;
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  const Command& words = dynamic_cast<const CommandApp&>(*app).words;
  if (app->get_parent() == nullptr) return words.summary + "\n\n" + words.examples + "\n";
  return "Examples:\n" + words.examples + (words.about.empty() ? "" : "\n" + words.about) + "\n\n";
}

std::string HelpFormatter::make_subcommand(const CLI::App* sub) const {
  return fmt::format("  {:<13}{}\n", sub->get_name(), sub->get_description());
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  return wrapped_help(CLI::Formatter::make_help(app, std::move(name), mode),
                      terminal_columns(STDOUT_FILENO).value_or(report::kAnyWidth));
}

}  // namespace ganymede::cli
