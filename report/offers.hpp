#pragma once
// The rows of catalogs as tables and CSV, from platforms::selected_offers() and platforms::findings_in().

#include <string>

#include "common/json_fwd.hpp"
#include "report/table.hpp"

namespace ganymede::report {

/// How rows of a catalog are put into a table.
struct OffersLayout {
  bool sorted = false;      ///< by the least price of an instance and place, in place of the rows' order
  bool per_gpu = false;     ///< that price is of one GPU, and has a column
  bool with_zones = false;  ///< zones with prices of their own have rows
};

/// A table with one row for each instance and place, and its markets side by side. It is fitted to `width` columns.
std::string offers_table(const OrderedJson& rows, const OffersLayout& layout, std::size_t width = kAnyWidth);
std::string offers_csv(const OrderedJson& rows);

/// The findings, and a summary for each provider.
std::string findings_text(const OrderedJson& found, std::size_t width = kAnyWidth);
std::string findings_csv(const OrderedJson& found);

}  // namespace ganymede::report
