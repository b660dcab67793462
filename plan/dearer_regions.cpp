#include "plan/dearer_regions.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "common/units.hpp"
#include "plan/bounds.hpp"

namespace ganymede::plan {
namespace {

bool same_or_cheaper(const std::optional<MicroUsd>& a, const std::optional<MicroUsd>& b) {
  return a.has_value() == b.has_value() && (!a || a->value <= b->value);
}

bool same_or_cheaper(const platforms::StorageRates& a, const platforms::StorageRates& b) {
  return a.unit == b.unit && a.rate_in_mib == b.rate_in_mib && same_or_cheaper(a.per_month, b.per_month) &&
         same_or_cheaper(a.per_iops_month, b.per_iops_month) && same_or_cheaper(a.per_rate_month, b.per_rate_month) &&
         same_or_cheaper(a.per_1000_put, b.per_1000_put) && same_or_cheaper(a.per_1000_get, b.per_1000_get);
}

/// True if nodes on a market cost as much in `a` as in `b` or less, at the stated price and at both ends of what it may
/// be, and if the same is stated about interruptions. Also true if the market is sold in neither.
bool same_or_cheaper(const Request& request, const platforms::Instance& instance, const std::string& a,
                     const std::string& b, platforms::Market market) {
  const platforms::Price *here = platforms::find_price(instance, a, market),
                         *there = platforms::find_price(instance, b, market);
  if (here == nullptr || there == nullptr) return here == there;
  const platforms::PriceRange doubt = platforms::price_range(instance, *here, request.price_age),
                              other = platforms::price_range(instance, *there, request.price_age);
  const auto usd = static_cast<double>(here->per_hour.value), most = static_cast<double>(there->per_hour.value);
  return usd <= most && usd * doubt.low <= most * other.low && usd * doubt.high <= most * other.high &&
         here->interrupted_per_month == there->interrupted_per_month;
}

bool charges_electricity(const platforms::Platform& platform, const std::string& region) {
  const platforms::Region* known = platform.region(region);
  return known != nullptr && known->per_kwh.has_value();
}

/// True if `a` costs as much as `b`, which differs only in its region, or less.
bool same_or_cheaper(const Request& request, const PlanCandidate& a, const PlanCandidate& b) {
  const platforms::Platform& platform = *request.catalogs[a.catalog].platform;
  if (charges_electricity(platform, a.region) || charges_electricity(platform, b.region)) return false;
  for (const platforms::Storage& storage : platform.storage)
    if (!same_or_cheaper(storage.rates_in(a.region), storage.rates_in(b.region))) return false;
  for (const platforms::Market market : {platforms::Market::on_demand, platforms::Market::spot})
    if ((market == a.market || a.on_demand_nodes > 0 || a.policy->policy->other_market) &&
        !same_or_cheaper(request, *a.instance, a.region, b.region, market))
      return false;
  return same_or_cheaper(request, *a.instance, a.region, b.region, a.market);
}

}  // namespace

std::vector<bool> in_dearer_region(const Request& request, const Candidates& candidates,
                                   const std::function<bool(const PlanCandidate&)>& searched) {
  std::vector<bool> out(candidates.all.size(), false);
  if (request.objective == Objective::carbon || !request.what_if.region.empty()) return out;
  for (const CandidateGroup& group : candidates.groups) {
    // The candidates that are kept so far, by everything that members of a group differ in but the region.
    std::map<std::tuple<platforms::Market, int, const RequestPolicy*, std::string>, std::vector<std::size_t>> kept;
    for (const std::size_t i : group.members) {
      const PlanCandidate& one = candidates.all[i];
      if (!one.policy->policy->price_blind || one.policy->policy->other_regions) continue;
      if (searched && !searched(one)) continue;
      auto& others = kept[{one.market, one.on_demand_nodes, one.policy, one.checkpoint}];
      const auto beats_one = [&](std::size_t k) { return same_or_cheaper(request, candidates.all[k], one); };
      out[i] = std::any_of(others.begin(), others.end(), beats_one);
      if (out[i]) continue;
      std::erase_if(others, [&](std::size_t k) {
        out[k] = same_or_cheaper(request, one, candidates.all[k]);
        return out[k];
      });
      others.push_back(i);
    }
  }
  return out;
}

namespace {

/// True if with the same luck `slower` costs as much as `faster` or more, up to a step. Where nodes that are taken back
/// early are free, the slower one may get more of them; and the mean and the worst of runs at risk depend on errors.
bool costs_as_much(const Request& request, const PlanCandidate& slower, const PlanCandidate& faster) {
  if (!slower.at_risk()) return true;
  const bool median_counts = request.objective == Objective::cost || request.objective == Objective::time;
  return median_counts && slower.work.alone_s * least_paid_share(request, slower) > faster.work.alone_s;
}

}  // namespace

std::vector<bool> with_slower_batch(const Request& request, const Candidates& candidates,
                                    const std::function<bool(const PlanCandidate&)>& searched) {
  std::vector<bool> out(candidates.all.size(), false);
  if (request.objective == Objective::carbon || request.quality || request.checks ||
      request.common.contains("faults") || request.common.contains("synchronization"))
    return out;
  std::map<std::tuple<std::size_t, const platforms::Instance*, int, int>, std::vector<const CandidateGroup*>> families;
  for (const CandidateGroup& group : candidates.groups) {
    const PlanCandidate& first = candidates.all[group.members.front()];
    families[{first.catalog, first.instance, first.nodes, first.gpus_per_node}].push_back(&group);
  }
  const auto batch = [&](const PlanCandidate& one) { return request.batches[one.batch].per_gpu; };
  for (const auto& [nodes, groups] : families)
    for (const CandidateGroup* group : groups)
      for (const CandidateGroup* other : groups)
        for (std::size_t k = 0; k < group->members.size(); ++k) {  // both have the same members but for the batch
          const PlanCandidate &one = candidates.all[group->members[k]], &better = candidates.all[other->members[k]];
          if (batch(one) < batch(better) && one.work.alone_s > better.work.alone_s &&
              costs_as_much(request, one, better) && one.policy->policy->price_blind && (!searched || searched(better)))
            out[group->members[k]] = true;
        }
  return out;
}

}  // namespace ganymede::plan
