#pragma once
// Reads what a cloud has charged: FOCUS 1.0 to 1.2, AWS's Cost and Usage Report as it was (lineItem/UnblendedCost) and
// as CUR 2.0 (line_item_unblended_cost), as CSV, also gzipped.
//
// Sources of the columns: the FinOps Foundation's FOCUS specification 1.2; AWS, "Data dictionary" of the Cost and Usage
// Reports guide and of Data Exports.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "traces/bill_part.hpp"

namespace ganymede::traces {

/// Charges of one kind for one thing.
struct ChargedItem {
  std::string item;  ///< "instance-hours", "storage", "requests", "data transfer", "load balancer", "control plane",
                     ///< "commitment", "credit", "tax", "fee" or "other"
  std::string what;  ///< the instance type or the service, as the bill names it
  std::string unit;  ///< "h" where it is hours
  double quantity = 0, usd = 0;  ///< of "instance-hours" the hours of whole machines only
  double effective_usd = 0;      ///< with its part of commitments; as `usd` where the bill does not say it
  std::int64_t rows = 0;
};

struct BillFile {
  std::string file, dialect;  ///< "FOCUS", "AWS CUR" or "AWS CUR 2.0"
  std::int64_t rows = 0;
  std::vector<std::string> skipped;  ///< rows that could not be read, each with its line
  std::int64_t skipped_rows = 0;     ///< all of them; `skipped` has the first ones
  std::int64_t outside = 0;          ///< rows that do not belong to the part that was asked for
  bool by_name = false;              ///< that part is of a tag or of a resource
  std::int64_t straddling = 0;       ///< rows that do, but are charged for a time beyond the window too
  std::int64_t from = 0, to = 0;     ///< Unix times; 0: none is stated
  bool has_commitment = false;       ///< a row is of one, or of hours that one covers
  std::vector<ChargedItem> items;    ///< by item and what
};

/// The name in ChargedItem::what of fees of a savings plan, which covers instances of several types.
inline constexpr const char* kSavingsPlan = "a savings plan";

/// `instances` are instance types whose names are looked for in the rows. A row that cannot be read is skipped and
/// counted. Throws ConfigError for a file of another kind, one without rows, amounts in other currencies than dollars,
/// quantities and sums above 1e12, and a part to which no row belongs.
BillFile read_bill_file(const std::filesystem::path& file, const std::vector<std::string>& instances,
                        const BillPart& part = {});

}  // namespace ganymede::traces
