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

// The cost of a described job as it asks, and of cheaper ones, as text, CSV and JSON.

struct LikeOffer {
  std::string provider, region, market, instance, gpu;
  int nodes = 1, gpus = 0;  ///< of all nodes
  double usd_per_hour = 0;  ///< of all nodes
  std::string as_of;
  bool asked = false;  ///< it is what the file asks for
};

struct LikeAnswer {
  std::string format, gpu;
  int gpus_per_node = 0, nodes = 1;
  bool spot = false;
  double hours = 0;               ///< that the job may take; 0: it does not say
  std::vector<LikeOffer> offers;  ///< cheaper ones first, then those that are asked for
  std::vector<std::string> notes;
};

/// With the age of the prices on the day `today`.
std::string like_text(const LikeAnswer& answer, const std::string& today, std::size_t width = kAnyWidth);
std::string like_csv(const LikeAnswer& answer);
/// `ganymede.like/1`.
std::string like_json(const LikeAnswer& answer);

}  // namespace ganymede::report
