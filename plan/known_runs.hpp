#pragma once
// What the runs of some seeds, or those of another candidate, say of a candidate before all its seeds are simulated.

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "plan/candidates.hpp"

namespace ganymede::plan {

/// Node-hours that a bill charges at list prices, by market.
using ListHours = std::map<platforms::Market, double>;

/// Times and costs, with doubtful prices at their highest values, of the runs of a candidate that finish.
struct KnownRuns {
  std::vector<double> time_s, usd_at_worst;
};

/// Bounds of a candidate's medians over so many runs, by those that are known and by the bounds `least`. Those hold for
/// each run, but with an FID as the goal only for the median one.
Bounds least_medians(const Request& request, const KnownRuns& known, int runs, const Bounds& least);

/// The runs of candidates that share their steps, by what tells them apart but for the region.
class RegionTwins {
 public:
  /// `request` must outlive this.
  explicit RegionTwins(const Request& request) : request_(request) {}

  /// Keeps the times of all runs of a candidate that finish, with the hours that each of them is charged for.
  void keep(const PlanCandidate& candidate, std::vector<double> time_s, std::vector<ListHours> hours);
  /// Bounds of the candidate's medians by the runs of one that differs in its region alone; `least` if none is kept.
  Bounds least_medians(const PlanCandidate& candidate, int runs, const Bounds& least) const;

 private:
  /// Market, nodes on demand, policy, checkpoint interval, how often spot nodes are taken back, and whether nodes are
  /// sold on demand.
  using Key = std::tuple<platforms::Market, int, const RequestPolicy*, std::string, std::optional<double>, bool>;
  struct Twin {
    std::vector<double> time_s;
    std::vector<ListHours> hours;
  };

  bool applies_to(const PlanCandidate& candidate) const;
  static Key key_of(const PlanCandidate& candidate);

  const Request& request_;
  std::map<Key, Twin> known_;
};

}  // namespace ganymede::plan
