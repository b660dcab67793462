#pragma once
// A table that people read in a terminal and programs read as CSV.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/wrap.hpp"

namespace ganymede {

/// As HTML text or as an attribute's value: & < > " ' are written as entities.
std::string escaped(std::string_view text);

class Table {
 public:
  /// A name that starts with '>' heads a right-aligned column (the sign is not shown).
  explicit Table(std::vector<std::string> names);
  /// Precondition: one cell a column.
  void add(std::vector<std::string> cells);
  /// A line between the rows above and below it.
  void rule();

  /// A table that is wider than `width` columns gets headings and then words of text on several lines, the widest
  /// columns first; numbers and names are never cut. Where that is not enough a row is folded: its further columns
  /// stand below the first ones, indented. Where one column alone is too wide, nothing is changed.
  std::string text(std::size_t width = kAnyWidth) const;
  std::size_t size() const { return rows_.size(); }
  /// RFC 4180, with the names as they were given.
  std::string csv() const;
  /// <tr> elements of a <thead> and a <tbody>, all text escaped; each row says its number, those after rules too.
  std::string html_rows() const;

 private:
  /// Columns side by side, and how wide each is.
  struct Layout {
    std::vector<std::vector<std::size_t>> lines;  ///< columns of each line that a row takes
    std::vector<std::size_t> widths;
  };
  Layout layout(std::size_t width) const;
  static std::optional<Layout> fold(const std::vector<std::size_t>& wanted, const std::vector<std::size_t>& least,
                                    std::size_t width);
  std::vector<std::string> lines_of(std::size_t column, const std::string& cell, std::size_t width) const;
  std::string row_text(const std::vector<std::string>& cells, const Layout& layout, bool heading) const;

  std::vector<std::string> names_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace ganymede
