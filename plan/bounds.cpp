#include "plan/bounds.hpp"

#include <algorithm>

#include "calibration/workload_model.hpp"

namespace ganymede {
namespace {

/// The last step may be cut to its real images, and times are rounded to nanoseconds: a part in a million is left to
/// that.
constexpr double kRounding = 1 - 1e-6;

/// Where a provider does not charge for a spot node that it takes back within so long, work can be done for nothing.
/// Nodes live for M on average (exponentially); of all their time those that live for less than t have the share
/// 1 - (1 + t/M) exp(-t/M): half at M = 0.6 t. Measured spot nodes live longer than that even where they are taken back
/// most often (0.7 h, where AWS forgives the first hour), and what such a short life has trained is lost back to its
/// last checkpoint besides: at least half of the work is paid for.
constexpr double kPaid = 0.5;

/// A growing model spends the share s of its images in each stage, each varied by seed by up to v before they are
/// scaled to sum to 1: so at least this times s.
double least_share(const Request& request) { return (1 - request.stage_variation) / (1 + request.stage_variation); }

struct LeastPrice {
  double usd = 0, at_worst = 0;  ///< an hour of one node
};

LeastPrice price_of_one(const Request& request, const Instance& instance, const Price& price) {
  double usd = static_cast<double>(price.per_hour.value) * 1e-6;
  const double worst = price_doubt(instance, price, request.price_age).high;
  double part = 1;
  if (price.market == Market::on_demand)
    for (const double share : instance.sustained_use) part = std::min(part, share);
  usd *= part;
  return {usd, usd * worst};
}

/// The lowest price among the markets and regions that the policy may use.
LeastPrice least_price(const Request& request, const PlanCandidate& candidate) {
  const Policy& policy = *candidate.policy->policy;
  LeastPrice least;
  bool any = false;
  for (const Price& price : candidate.instance->prices) {
    const bool here = price.region == candidate.region;
    const bool now = price.market == candidate.market ||
                     (candidate.on_demand_nodes > 0 && here && price.market == Market::on_demand);
    if (!(here || policy.other_regions) || !(now || policy.other_market) || !price.zone.empty()) continue;
    const LeastPrice one = price_of_one(request, *candidate.instance, price);
    least = any ? LeastPrice{std::min(least.usd, one.usd), std::min(least.at_worst, one.at_worst)} : one;
    any = true;
  }
  return least;
}

double paid_share(const Request& request, const PlanCandidate& candidate) {
  const Platform& platform = request.catalogs[candidate.catalog].platform;
  return candidate.at_risk() && platform.billing.free_if_interrupted.si > 0 ? kPaid : 1;
}

}  // namespace

// Proof. A worker's simulated step takes its phases' times, drawn together from one recorded step of its model, and
// waiting on top (for its input, its gradients, the slowest worker, a checkpoint): so never less than the model's
// fastest step alone, in which it trains `batch` images. Where nodes train together step by step, each of them needs
// the sum of all gradients before a step ends. Whatever the scheme, it receives at least one number for each of them, a
// sum or a part of one, over its NICs: a step takes at least the gradients' bytes over their rate.
LeastWork least_work(const Request& request, const Request::Batch& choice, const Platform& platform,
                     const Instance& instance) {
  const Gpu& gpu = platform.gpu_of(instance);
  LeastWork work;
  for (std::size_t i = 0; i < choice.stages.size(); ++i) {
    const TraceBatch& batch = request.trace.batches[choice.stages[i]];
    const WorkloadModel workload =
        workload_on(request.trace, batch, gpu, instance.host_link ? &*instance.host_link : nullptr);
    double fastest = workload.central.step_s(0);
    for (std::size_t sample = 1; sample < workload.central.samples; ++sample)
      fastest = std::min(fastest, workload.central.step_s(sample));
    double bytes = 0;
    for (const TraceBucket& bucket : batch.buckets) bytes += static_cast<double>(bucket.bytes);
    const bool each_step = !request.common.contains("synchronization") && instance.nic;
    const double exchange = each_step ? bytes / (instance.nic->bandwidth.si * instance.nic->count) : 0;
    const double images = request.stage_shares[i] * least_share(request) / batch.batch;
    work.alone_s += images * fastest;
    work.joined_s += images * std::max(fastest, exchange);
  }
  return work;
}

// Proof. So many images need at least least_work() of one GPU each. A policy holds the nodes that are asked for at
// most, and one more while it changes between markets, all of whose GPUs train at most; `fixed` trains with all that
// are asked for, others may train with a single one: the time. Each node that trains is paid for while it does, at the
// lowest of its prices or more, and its GPUs give at most their number of GPU-seconds a second: the cost; what is
// charged besides is not below 0. Only a provider that does not charge for what it takes back early lets work be done
// for nothing (kPaid). A pair of GPUs on which generator and discriminator take turns trains one batch, in no less than
// one GPU's time; of what backup workers train, less counts.
Bounds bounds_of(const Request& request, const PlanCandidate& candidate, const LeastWork& work) {
  const Policy& policy = *candidate.policy->policy;
  const double images = static_cast<double>(request.images) * kRounding;
  const int nodes = candidate.nodes + (policy.other_market || policy.other_regions ? 1 : 0);
  const double each = candidate.gpus_per_node;
  const bool joined = policy.never_changes && candidate.nodes > 1;
  Bounds bounds;
  bounds.time_s = joined      ? work.joined_s / (nodes * each)
                  : nodes > 1 ? std::min(work.alone_s / each, work.joined_s / (nodes * each))
                              : work.alone_s / each;
  bounds.time_s *= images;
  const double node_hours =
      (joined ? work.joined_s : work.alone_s) * images / each / 3600 * paid_share(request, candidate);
  const LeastPrice price = least_price(request, candidate);
  bounds.usd = price.usd * node_hours;
  bounds.usd_at_worst = price.at_worst * node_hours;
  return bounds;
}

// Proof. `fixed` trains with all of its nodes or not at all, and every segment of its training takes the mean step of
// that allocation for each of its steps, whatever the seed, region and market. All nodes are held while it trains.
std::optional<Bounds> bounds_by_steps(const Request& request, const PlanCandidate& candidate,
                                      std::span<const double> step_s, double images) {
  const auto has = [&](const char* pointer) { return request.common.contains(nlohmann::json::json_pointer(pointer)); };
  // A straggler or a slow network is another configuration, whose mean step is sampled by itself.
  if (!candidate.policy->policy->never_changes || has("/faults") || has("/storage/dataset") || has("/fidelity"))
    return {};
  double seconds = 0;
  for (std::size_t i = 0; i < step_s.size(); ++i)
    seconds += request.stage_shares[i] * least_share(request) * step_s[i] / images;
  seconds *= static_cast<double>(request.images) * kRounding;
  PlanCandidate part = candidate;
  Bounds bounds{seconds, 0, 0};
  const auto add = [&](Market market, int nodes) {
    part.market = market;
    part.on_demand_nodes = 0;
    const LeastPrice price = least_price(request, part);
    const double hours = nodes * seconds / 3600 * paid_share(request, part);
    bounds.usd += price.usd * hours;
    bounds.usd_at_worst += price.at_worst * hours;
  };
  add(candidate.market, candidate.nodes - candidate.on_demand_nodes);
  if (candidate.on_demand_nodes > 0) add(Market::on_demand, candidate.on_demand_nodes);
  return bounds;
}

}  // namespace ganymede
