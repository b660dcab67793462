#pragma once
// A table that people read in a terminal and programs read as CSV.

#include <string>
#include <string_view>
#include <vector>

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

  std::size_t size() const { return rows_.size(); }
  std::string text() const;
  /// RFC 4180, with the names as they were given.
  std::string csv() const;
  /// <tr> elements of a <thead> and a <tbody>, all text escaped; each row says its number, those after rules too.
  std::string html_rows() const;

 private:
  std::vector<std::string> names_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace ganymede
