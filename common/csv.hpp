#pragma once
// Tables as CSV (RFC 4180): quoted cells may hold commas, quotes (doubled) and line breaks.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ganymede {

class CsvTable {
 public:
  struct Row {
    std::size_t line;  ///< where it starts in the file, from 1
    std::vector<std::string> cells;
  };

  /// A first line of names, then rows with as many cells. A row with fewer or more, an open quote, no line at all, two
  /// columns of one name: ConfigError with file and line. Empty lines are left out.
  static CsvTable load(const std::filesystem::path& file);
  static CsvTable parse(std::string_view text, std::string name);

  const std::string& file() const { return file_; }
  const std::vector<Row>& rows() const { return rows_; }
  bool has(std::string_view column) const;
  /// The cell of a column that is there.
  const std::string& at(const Row& row, std::string_view column) const;
  /// ConfigError "file: line N: column: message".
  [[noreturn]] void fail(const Row& row, std::string_view column, std::string_view message) const;

 private:
  std::string file_;
  std::vector<std::string> names_;
  std::vector<Row> rows_;
};

}  // namespace ganymede
