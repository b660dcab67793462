#include "common/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <fstream>

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
  CsvTable table;
  table.file_ = std::move(name);
  table.add(text, 1, unlike);
  table.check_named();
  return table;
}

void CsvTable::load_pieces(const std::filesystem::path& file, const std::function<void(const CsvTable&)>& take,
                           const std::function<bool(const std::string&)>& before) {
  constexpr std::size_t kPiece = std::size_t{4} << 20U;
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file)) (void)read_file(file);  // which says why it cannot
  CsvTable table;
  table.file_ = file.string();
  std::string line, piece;
  std::size_t first = 1, next = 1;  // lines: of the piece, and behind what was read
  bool quoted = false;              // the piece ends in a quoted cell
  const auto hand_over = [&] {
    table.rows_.clear();
    table.add(piece, first, nullptr);
    if (!table.names_.empty()) take(table);
    piece.clear();
    first = next;
  };
  while (std::getline(in, line)) {
    ++next;
    if (before && table.names_.empty() && piece.empty() && before(line)) {
      first = next;
      continue;
    }
    if (std::count(line.begin(), line.end(), '"') % 2 == 1) quoted = !quoted;
    piece += line + '\n';
    if (piece.size() >= kPiece && !quoted) hand_over();
  }
  hand_over();
  if (!before) table.check_named();
}

void CsvTable::add(std::string_view text, std::size_t line, std::vector<std::string>* unlike) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t start = line;
    std::vector<std::string> cells = read_record(text, at, line, file_);
    if (cells.size() == 1 && cells.front().empty()) continue;
    // Results and messages are UTF-8, so that their tables must be.
    for (const std::string& cell : cells)
      if (!is_utf8(cell)) throw ConfigError(fmt::format("{}: line {}: a cell is not UTF-8", file_, start));
    if (names_.empty()) {
      names_ = std::move(cells);
      if (names_.size() > kMaxColumns)
        throw ConfigError(fmt::format("{}: line {}: found {} columns, expected at most {}", file_, start, names_.size(),
                                      kMaxColumns));
      for (std::size_t i = 1; i < names_.size(); ++i)
        if (std::find(names_.begin(), names_.begin() + static_cast<std::ptrdiff_t>(i), names_[i]) !=
            names_.begin() + static_cast<std::ptrdiff_t>(i))
          throw ConfigError(fmt::format("{}: line {}: two columns are called \"{}\"", file_, start, names_[i]));
      continue;
    }
    if (cells.size() != names_.size()) {
      std::string why = fmt::format("{}: line {}: found {} cells, expected {} as in the first line", file_, start,
                                    cells.size(), names_.size());
      if (unlike == nullptr) throw ConfigError(why);
      unlike->push_back(std::move(why));
      continue;
    }
    rows_.push_back({start, std::move(cells)});
  }
}

void CsvTable::check_named() const {
  if (names_.empty()) throw ConfigError(fmt::format("{}: is empty, expected a line of names and rows", file_));
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
