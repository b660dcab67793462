#include "common/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/printable.hpp"

namespace ganymede {
namespace {

constexpr std::size_t kMaxColumns = 1000;

/// Reads the record that starts at `at`, moves `at` behind it and adds the lines it takes to `line`.
std::vector<std::string> read_record(std::string_view text, std::size_t& at, std::size_t& line,
                                     const std::string& file) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  const std::size_t start = line;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"')
        cells.back() += c;
      else if (at + 1 < text.size() && text[at + 1] == '"')
        cells.back() += text[++at];
      else
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      cells.emplace_back();
    } else if (c == '\n') {
      ++at;
      return cells;
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  if (quoted) throw ConfigError(fmt::format("{}: line {}: a quote is not closed", file, start));
  return cells;
}

}  // namespace

CsvTable CsvTable::load(const std::filesystem::path& file) { return parse(read_file(file), file.string()); }

CsvTable CsvTable::parse(std::string_view text, std::string name, std::vector<std::string>* unlike) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  CsvTable table;
  table.file_ = std::move(name);
  std::size_t at = 0, line = 1;
  while (at < text.size()) {
    const std::size_t start = line;
    std::vector<std::string> cells = read_record(text, at, line, table.file_);
    if (cells.size() == 1 && cells.front().empty()) continue;
    // Results and messages are UTF-8, so that their tables must be.
    for (const std::string& cell : cells)
      if (!is_utf8(cell)) throw ConfigError(fmt::format("{}: line {}: a cell is not UTF-8", table.file_, start));
    if (table.names_.empty()) {
      table.names_ = std::move(cells);
      if (table.names_.size() > kMaxColumns)
        throw ConfigError(fmt::format("{}: line {}: found {} columns, expected at most {}", table.file_, start,
                                      table.names_.size(), kMaxColumns));
      for (std::size_t i = 1; i < table.names_.size(); ++i)
        if (std::find(table.names_.begin(), table.names_.begin() + static_cast<std::ptrdiff_t>(i), table.names_[i]) !=
            table.names_.begin() + static_cast<std::ptrdiff_t>(i))
          throw ConfigError(
              fmt::format("{}: line {}: two columns are called \"{}\"", table.file_, start, table.names_[i]));
      continue;
    }
    if (cells.size() != table.names_.size()) {
      std::string why = fmt::format("{}: line {}: found {} cells, expected {} as in the first line", table.file_, start,
                                    cells.size(), table.names_.size());
      if (unlike == nullptr) throw ConfigError(why);
      unlike->push_back(std::move(why));
      continue;
    }
    table.rows_.push_back({start, std::move(cells)});
  }
  if (table.names_.empty())
    throw ConfigError(fmt::format("{}: is empty, expected a line of names and rows", table.file_));
  return table;
}

bool CsvTable::has(std::string_view column) const {
  return std::find(names_.begin(), names_.end(), column) != names_.end();
}

const std::string& CsvTable::at(const Row& row, std::string_view column) const {
  const auto found = std::find(names_.begin(), names_.end(), column);
  assert(found != names_.end());
  return row.cells[static_cast<std::size_t>(found - names_.begin())];
}

void CsvTable::fail(const Row& row, std::string_view column, std::string_view message) const {
  throw ConfigError(fmt::format("{}: line {}: {}: {}", file_, row.line, column, message));
}

}  // namespace ganymede
