#pragma once
// Everything that a request could rent, each with bounds that no simulation of it can beat.

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "plan/request.hpp"

namespace ganymede {

/// What a run of a candidate takes at least, whatever its seed.
struct Bounds {
  double time_s = 0, usd = 0;
  double usd_at_worst = 0;  ///< likewise, where doubtful prices are at the high ends of what they may be
};

struct PlanCandidate {
  std::size_t catalog = 0;  ///< of the request's
  const Instance* instance = nullptr;
  int nodes = 1;
  int gpus_per_node = 1;    ///< fewer than the instance has: a part of it is used, and all of it is paid
  int on_demand_nodes = 0;  ///< so many of `nodes` are rented on demand, beside the others on the spot market
  std::string region;
  Market market = Market::on_demand;
  std::size_t batch = 0;  ///< of the request's
  std::string scheme;     ///< "none" for one GPU; "any" before the fastest of several is known
  const RequestPolicy* policy = nullptr;
  std::string checkpoint;  ///< "" where none are written
  Bounds bounds;

  int gpus() const { return nodes * gpus_per_node; }
  bool part_of_instance() const { return gpus_per_node < instance->gpus; }
  /// The provider may take nodes back.
  bool at_risk() const { return market == Market::spot || policy->policy->other_market; }
};

/// Candidates that are alike but for region, market, policy and checkpoints: their steps are the same.
struct CandidateGroup {
  std::vector<std::size_t> members;
};

struct Candidates {
  /// In a fixed order: catalog, instance, nodes, batch, scheme, region, market, on-demand nodes, policy, checkpoint.
  std::vector<PlanCandidate> all;
  std::vector<CandidateGroup> groups;
  std::vector<std::string> left_out;  ///< how many of what were not considered, why, and the first of them
};

/// The request must outlive them. `each_scheme`: a candidate for each scheme, instead of one whose scheme is chosen
/// once the steps of all are known.
Candidates enumerate(const Request& request, bool each_scheme);

/// "7 instance types, retired: a, b, c, d, e, f and 1 more"
std::string left_out_line(const std::string& why, const std::set<std::string>& names);

/// Numbers of nodes from `least` to `most` to try: all up to 16, then four in each doubling (16, 20, 24, 28, 32, 40,
/// …), and both ends.
std::vector<int> node_counts(int least, int most);

/// A scenario of the candidate, whose scheme is known.
nlohmann::json scenario_of(const Request& request, const PlanCandidate& candidate);

/// What all its nodes cost an hour, as the catalog states it.
MicroUsdPerHour price_of(const PlanCandidate& candidate);
/// What of a price's doubts concerns the candidate; no doubt where it has none.
PriceDoubt doubt_of(const Request& request, const PlanCandidate& candidate);

/// "aws us-east-1 spot, 2 x p3.8xlarge, ring, spot-first, checkpoint daly"
std::string label_of(const Request& request, const PlanCandidate& candidate);

}  // namespace ganymede
