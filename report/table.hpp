#pragma once
// A table that people read in a terminal and programs read as CSV.

#include <string>
#include <vector>

namespace ganymede {

class Table {
 public:
  /// A name that starts with '>' heads a right-aligned column (the sign is not shown).
  explicit Table(std::vector<std::string> names);
  /// Precondition: one cell a column.
  void add(std::vector<std::string> cells);
  /// A line between the rows above and below it.
  void rule();

  std::string text() const;
  /// RFC 4180, with the names as they were given.
  std::string csv() const;

 private:
  std::vector<std::string> names_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace ganymede
