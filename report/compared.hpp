#pragma once
// One training on several machines, side by side.

#include <optional>
#include <string>
#include <vector>

#include "documents/plan.hpp"
#include "report/table.hpp"

namespace ganymede::report {

struct Compared {
  std::string name;                       ///< as it was asked for
  std::optional<documents::PlanRow> row;  ///< the best of its candidates; none: `reason` says why
  std::string reason;
};

/// A row for each name, cheapest first, with 90 % intervals, and the age of its price on the day `today`.
std::string compared_text(const std::vector<Compared>& all, const std::string& today, std::size_t width = kAnyWidth);
std::string compared_csv(const std::vector<Compared>& all);
/// `ganymede.compare/1`: {"rows": [{"name", "row" as in a plan, or "reason"}]}, in the order that was asked for.
std::string compared_json(const std::vector<Compared>& all);

}  // namespace ganymede::report
