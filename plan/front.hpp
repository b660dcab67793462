#pragma once
// What the candidates that were simulated and meet the goals rule out.

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "plan/candidates.hpp"
#include "plan/outcome.hpp"

namespace ganymede::plan {

/// The lower bound of what the request minimizes, from bounds that hold for the median of a candidate's runs. Carbon
/// has none: there it is the cost, by which the search is then ordered.
double least_objective(const Request& request, const Bounds& bounds);

/// The runs that meet the goals and that no other one beats in both time and cost.
class Front {
 public:
  /// `exhaustive`: it beats nothing. With `at_most` only the best candidate is wanted, or all of them, if the objective
  /// is at most this. `request` must outlive the front.
  Front(const Request& request, bool exhaustive, std::optional<double> at_most, bool all_at_most)
      : request_(&request), exhaustive_(exhaustive), at_most_(at_most), all_at_most_(all_at_most), least_(at_most) {}

  bool exhaustive() const { return exhaustive_; }
  /// Adds a run of the candidate, which meets the goals.
  void take_in(const PlanCandidate& candidate, const PlannedRun& run);
  /// True if no candidate whose median run takes and costs at least `bounds` can be part of the answer: another one is
  /// at least as fast and as cheap, and better in one of them. It must also be worse than the best one of its provider
  /// and market, and, if its nodes cannot be taken back, than that of known risk: the plan names those too. What is
  /// beaten stays so when more runs are added.
  bool beats(const PlanCandidate& candidate, const Bounds& bounds) const;

 private:
  struct Point {
    double time_s = 0, usd = 0;
    bool operator<=(const Point& other) const { return time_s <= other.time_s && usd <= other.usd; }
    bool operator==(const Point& other) const = default;
  };
  /// Catalog, market, and whether there are nodes on demand beside those on spot.
  using Offer = std::tuple<std::size_t, platforms::Market, bool>;
  static Offer offer_of(const PlanCandidate& candidate) {
    return {candidate.catalog, candidate.market, candidate.on_demand_nodes > 0};
  }
  const Request* request_;
  bool exhaustive_;
  std::optional<double> at_most_;
  bool all_at_most_;
  std::vector<Point> points_;
  std::optional<double> least_;                // the lowest objective, or what the best may have at most
  std::optional<double> least_of_known_risk_;  // the lowest objective among runs of known risk
  std::map<Offer, double> least_of_each_;
};

}  // namespace ganymede::plan
