#pragma once
// Tables as CSV (RFC 4180): quoted cells may hold commas, quotes (doubled) and line breaks.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ganymede {

class CsvTable {
 public:
  struct Row {
    std::size_t line;  ///< number of the row's first line in the file, from 1
    std::vector<std::string> cells;
  };

  /// Reads a table whose first line names the columns. Every other line must have as many cells; empty lines are
  /// skipped. Throws ConfigError with file and line for a row with fewer or more cells, a quote that is not closed, a
  /// cell that is not UTF-8, an empty file, two columns of the same name, or more than 1,000 columns.
  static CsvTable load(const std::filesystem::path& file);
  /// The same for text in memory; messages call it `name`. With `unlike`, rows with fewer or more cells are left out,
  /// and what would have been said of them is added there.
  static CsvTable parse(std::string_view text, std::string name, std::vector<std::string>* unlike = nullptr);
  /// Reads a table that may be larger than the memory: `take` gets some megabytes of its rows at a time. Lines for
  /// which `before` returns true stand before the table, which may then be missing.
  static void load_pieces(const std::filesystem::path& file, const std::function<void(const CsvTable& piece)>& take,
                          const std::function<bool(const std::string& line)>& before = nullptr);

  const std::string& file() const { return file_; }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<std::string>& names() const { return names_; }  ///< of the columns
  bool has(std::string_view column) const;
  /// The row's cell in `column`, which must be one of the table's columns.
  const std::string& at(const Row& row, std::string_view column) const;
  /// Throws ConfigError "file: line N: column: message".
  [[noreturn]] void fail(const Row& row, std::string_view column, std::string_view message) const;

 private:
  /// Adds the rows of text that starts in that line of the file; the first row names the columns.
  void add(std::string_view text, std::size_t line, std::vector<std::string>* unlike);
  void check_named() const;

  std::string file_;
  std::vector<std::string> names_;
  std::vector<Row> rows_;
};

}  // namespace ganymede
