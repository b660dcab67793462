#pragma once
// Own or rent: the training of a request on machines that one would buy, against the best rented ones on each market.

#include <functional>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "documents/own_or_rent.hpp"
#include "plan/planner.hpp"

namespace ganymede::plan {

struct OwnQuestion {
  std::string platform;  ///< file of the machines that one would buy, or a provider's name
  std::string instance;  ///< which of its instance types; empty: any that states what owning it costs
  /// The request with these replacements, which come last.
  std::function<JsonNode(const std::vector<JsonOverride>&)> request;
  std::string now;  ///< UTC time from which a deadline that is a time counts
};

/// The machines to buy are what a plan over `platform` chooses
/// for the request without its budget; those to rent are what plans over the request's catalogs choose, one for each
/// market. Throws ConfigError for bad input, and Infeasible if the platform cannot serve the request.
documents::OwnOrRent own_or_rent(const OwnQuestion& question, const PlanOptions& options);

}  // namespace ganymede::plan
