#pragma once
// A table as text for a terminal, as CSV and as HTML.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ganymede::report {

// Text for a terminal of a given width. A width counts columns, one for each character of UTF-8.

/// The width of files and pipes: nothing is wrapped.
inline constexpr std::size_t kAnyWidth = SIZE_MAX;

/// The width of a text: its number of characters of UTF-8.
std::size_t columns_of(const std::string& text);

/// The pieces between which a line may be broken. A piece is a word, a number with its unit ("5 s"), "<-" with the word
/// after it, or ".." with the word before it.
std::vector<std::string> unbreakable(const std::string& text);

/// Returns lines of at most `width` columns, at least one. A piece that is wider gets a line of its own.
std::vector<std::string> wrap_words(const std::string& text, std::size_t width);

/// Returns `head` with `text` wrapped to its right.
std::string hanging(const std::string& head, const std::string& text, std::size_t width);

/// Breaks lines of `text` that are wider than `width` between words; their continuations are indented by two more
/// spaces. Lines of tables, which have two spaces between words, stay as they are, because Table::text has fitted them.
std::string wrap_prose(const std::string& text, std::size_t width);

/// Returns the text for HTML, also for the value of an attribute: & < > " ' become entities.
std::string escaped(std::string_view text);

/// The cells of a row with the names of their columns.
using NamedCells = std::vector<std::pair<std::string, std::string>>;

class Table {
 public:
  /// A name that starts with '>' heads a right-aligned column; the sign is not shown.
  explicit Table(std::vector<std::string> names);
  /// Adds a row. Precondition: one cell for each column.
  void add(std::vector<std::string> cells);
  /// Adds a horizontal line below the last row.
  void rule();

  /// Removes the columns that have the same cell in all rows, of which there must be two or more, and returns what they
  /// say: "scheme ring, policy fixed". Columns of empty cells or "-" say nothing.
  std::string take_constant_columns();

  /// Returns the table as text. If it is wider than `width` columns, headings and then words take several lines, in the
  /// widest columns first; numbers and names are never cut. If that is not enough, rows are folded: their last columns
  /// are shown below the first ones, indented. If a single column is too wide, the table is left as it is. Characters
  /// that could steer a terminal are shown as their numbers.
  std::string text(std::size_t width = kAnyWidth) const;
  /// The table below a line with what take_constant_columns() says.
  std::string text_below_constants(std::size_t width);
  std::size_t size() const { return rows_.size(); }
  /// Returns CSV (RFC 4180). A cell that a spreadsheet would take for a formula begins with an apostrophe.
  std::string csv() const;
  /// The rows of a <thead> and of a <tbody>, with all text escaped; what stands below the first line of a cell is in
  /// small type. Each row of the body has its number as an attribute; rules do not count.
  std::string html_head() const;
  std::string html_body() const;

 private:
  /// Which columns are side by side, and how wide each is.
  struct Layout {
    std::vector<std::vector<std::size_t>> lines;  ///< the columns of each line of a folded row
    std::vector<std::size_t> widths;
  };
  std::string html_row(const std::vector<std::string>& cells, const char* element, const std::string& attributes) const;
  std::string printable_text(std::size_t width) const;
  Layout layout(std::size_t width) const;
  static std::optional<Layout> fold(const std::vector<std::size_t>& wanted, const std::vector<std::size_t>& least,
                                    std::size_t width);
  std::vector<std::string> lines_of(std::size_t column, const std::string& cell, std::size_t width) const;
  std::string row_text(const std::vector<std::string>& cells, const Layout& layout, bool heading) const;

  std::vector<std::string> names_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

/// CSV with a row for each of `rows`; those of an empty row name the columns where there is none.
template <class Row>
std::string csv_of(const std::vector<Row>& rows, auto&& cells_of) {
  std::vector<std::string> names;
  for (auto& [name, cell] : cells_of(rows.empty() ? Row() : rows.front())) names.push_back(std::move(name));
  Table table(std::move(names));
  for (const Row& row : rows) {
    std::vector<std::string> cells;
    for (auto& [name, cell] : cells_of(row)) cells.push_back(std::move(cell));
    table.add(std::move(cells));
  }
  return table.csv();
}

}  // namespace ganymede::report
