#pragma once
// Which rows of a bill are those of one training: by a tag, a resource and a window of time.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/csv.hpp"

namespace ganymede::traces {

/// What of an account's bill counts; without any of it all rows do.
struct BillPart {
  std::string tag = {};                   ///< "KEY=VALUE", or "KEY": with any value
  std::string resource = {};              ///< an identifier, or its last part: "i-0abc" of an ARN
  std::optional<std::int64_t> from = {};  ///< Unix times: what is charged for a period within, or for one that overlaps
  std::optional<std::int64_t> to = {};

  bool is_all() const { return tag.empty() && resource.empty() && !from && !to; }
};

/// Tells the rows of a part from others, table by table of one bill.
class BillRows {
 public:
  explicit BillRows(const BillPart& part);

  /// Finds the columns of tags and resources. Throws ConfigError if the table has none of what the part names.
  void begin(const CsvTable& table);
  /// `begin` and `end` are those of the row's period, where it states them.
  bool has(const CsvTable::Row& row, std::optional<std::int64_t> begin, std::optional<std::int64_t> end);

  std::int64_t outside() const { return outside_; }        ///< rows that do not belong to it
  std::int64_t straddling() const { return straddling_; }  ///< those that do, of periods beyond the window
  /// What to say if no row belongs to it: the values that the tag has.
  std::string seen() const;

 private:
  bool has_tag(const CsvTable::Row& row);

  BillPart part_;
  std::string key_, value_;
  std::vector<std::size_t> tag_columns_;  // whose cells are the value
  std::optional<std::size_t> tags_, resource_;
  std::set<std::string> values_;
  std::int64_t outside_ = 0, straddling_ = 0;
};

}  // namespace ganymede::traces
