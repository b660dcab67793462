#include "plan/known_runs.hpp"

#include <algorithm>
#include <utility>

#include "common/statistics.hpp"
#include "policies/policy.hpp"

namespace ganymede::plan {
namespace {

/// More dollars than those by which rounding to micro-dollars changes a bill.
constexpr double kRoundedUsd = 1e-5;

/// A lower bound of the median of so many values, of which all but the `known` are at least `least`.
double least_median(std::vector<double> known, int count, double least) {
  known.resize(static_cast<std::size_t>(count), least);
  std::sort(known.begin(), known.end());
  return quantile(known, 0.5);
}

}  // namespace

Bounds least_medians(const Request& request, const KnownRuns& known, int runs, const Bounds& least) {
  const double share = request.quality ? 0 : 1;
  const double time_s = least_median(known.time_s, runs, share * least.time_s),
               usd_at_worst = least_median(known.usd_at_worst, runs, share * least.usd_at_worst);
  return {std::max(least.time_s, time_s), least.usd, std::max(least.usd_at_worst, usd_at_worst)};
}

void RegionTwins::keep(const PlanCandidate& candidate, std::vector<double> time_s, std::vector<ListHours> hours) {
  if (applies_to(candidate)) known_[key_of(candidate)] = {std::move(time_s), std::move(hours)};
}

// Proof. If their nodes are taken back as often and sold on the same markets, and the policy looks at no price, two
// candidates that differ in their region have the same events: all random numbers come from the seed and the names of
// pools, which are alike (CandidateScenarios), but for nodes on demand beside spot nodes, for which a number is drawn
// only where hosts crash. So both take the same time and are charged for the same hours on each market, and all else in
// a bill costs 0 or more. A candidate over the budget may get fewer seeds (evaluate.cpp), so with a budget the bound is
// that of the first seeds, whatever their number.
Bounds RegionTwins::least_medians(const PlanCandidate& candidate, int runs, const Bounds& least) const {
  const auto known = applies_to(candidate) ? known_.find(key_of(candidate)) : known_.end();
  if (known == known_.end()) return least;
  const Twin& twin = known->second;
  KnownRuns first;
  Bounds out = least;
  const std::size_t from =
      request_.budget ? std::min(static_cast<std::size_t>(request_.seeds), twin.hours.size()) : twin.hours.size();
  for (std::size_t i = 0; i < twin.hours.size(); ++i) {
    double usd = -kRoundedUsd;
    for (const auto& [market, count] : twin.hours[i]) {
      const platforms::Price& price = *platforms::find_price(*candidate.instance, candidate.region, market);
      usd += count * static_cast<double>(price.per_hour.value) * 1e-6 *
             platforms::price_doubt(*candidate.instance, price, request_.price_age).high;
    }
    first.time_s.push_back(twin.time_s[i]);
    first.usd_at_worst.push_back(usd);
    if (i + 1 < from) continue;
    const Bounds those =
        plan::least_medians(request_, first, i + 1 < twin.hours.size() ? static_cast<int>(i) + 1 : runs, least);
    if (i + 1 == from)
      out = those;
    else
      out = {std::min(out.time_s, those.time_s), out.usd, std::min(out.usd_at_worst, those.usd_at_worst)};
  }
  return out;
}

bool RegionTwins::applies_to(const PlanCandidate& candidate) const {
  const policies::Policy& policy = *candidate.policy->policy;
  return policy.price_blind && !policy.other_regions && request_.what_if.region.empty() &&
         !request_.common.contains("faults");
}

RegionTwins::Key RegionTwins::key_of(const PlanCandidate& candidate) {
  const auto price = [&](platforms::Market market) {
    return platforms::find_price(*candidate.instance, candidate.region, market);
  };
  const platforms::Price* spot = price(platforms::Market::spot);
  return {candidate.market,
          candidate.on_demand_nodes,
          candidate.policy,
          candidate.checkpoint,
          spot != nullptr ? spot->interrupted_per_month : std::nullopt,
          price(platforms::Market::on_demand) != nullptr};
}

}  // namespace ganymede::plan
