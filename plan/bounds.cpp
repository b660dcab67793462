#include "plan/bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "common/units.hpp"
#include "common/usd.hpp"
#include "plan/least_steps.hpp"
#include "platforms/catalog.hpp"

namespace ganymede::plan {
namespace {

/// Factor on bounds of time that allows for rounding: the last step may count with fewer images than the others, and
/// times are rounded to nanoseconds.
constexpr double kRounding = 1 - 1e-6;

/// Least share of the work that is paid for if the provider does not charge for spot nodes that it takes back within a
/// time t of at most kFreeMax, and takes them back as was measured. If nodes live for M on average (exponentially),
/// those that live for less than t have the share 1 - (1 + t/M) exp(-t/M) of the time of all nodes, which is a half at
/// M = 0.6 t. Measured spot nodes live longer than that even in the zones that lose most (0.7 h on average, where the
/// first hour is free on AWS). Moreover, the work of such a node since its last checkpoint is lost. So at least half of
/// the work is paid for.
constexpr double kPaidShareMin = 0.5;
constexpr double kFreeMax_s = 3600;

/// Standard deviations below its median (of the logarithm) that each delay of a start is taken to be. With the spreads
/// of the catalogs, all delays of a node together are that short in 9 of 10,000 draws, or in none of 200,000 drawn, and
/// the second counts where the first of several nodes may train alone. More than half of the runs do not start so.
constexpr double kFastStart = 2, kFastestStart = 3;

/// The images that a candidate trains at least, whole steps apart: a stage of a growing model ends with a step, whose
/// images are then trained before the next, slower one.
double least_images(const Request& request, const PlanCandidate& candidate) {
  const auto borders = static_cast<double>(request.stage_shares.size() - 1);
  return std::max(0.0, images_of(request, candidate) - borders * batch_of(request, candidate)) * kRounding;
}

/// Lower bounds of the dollars that an hour of one node costs.
struct LeastPrice {
  double usd = 0;       ///< at the stated price
  double at_worst = 0;  ///< at the highest value that a doubtful price may have
};

LeastPrice least_price_of(const Request& request, const platforms::Instance& instance, const platforms::Price& price) {
  double usd = static_cast<double>(price.per_hour.value) * 1e-6;
  const double worst = platforms::price_range(instance, price, request.price_age).high;
  double discount = 1;  // the lowest price of sustained use, as a share of the list price
  if (price.market == platforms::Market::on_demand)
    for (const double share : instance.sustained_use) discount = std::min(discount, share);
  usd *= discount;
  return {usd, usd * worst};
}

/// The lowest price among the markets and regions that the policy may use.
LeastPrice least_price(const Request& request, const PlanCandidate& candidate) {
  const policies::Policy& policy = *candidate.policy->policy;
  LeastPrice least;
  bool any = false;
  for (const platforms::Price& price : candidate.instance->prices) {
    const bool here = price.region == candidate.region;
    const bool now = price.market == candidate.market ||
                     (candidate.on_demand_nodes > 0 && here && price.market == platforms::Market::on_demand);
    if (!(here || policy.other_regions) || !(now || policy.other_market) || !price.zone.empty()) continue;
    const LeastPrice one = least_price_of(request, *candidate.instance, price);
    least = any ? LeastPrice{std::min(least.usd, one.usd), std::min(least.at_worst, one.at_worst)} : one;
    any = true;
  }
  return least;
}

/// Where `deviations` below their medians end the delays from the grant of a node to its first step.
double start_from_grant(const platforms::Provisioning& delays, double deviations) {
  double sum = 0;
  for (const platforms::Delay* delay : {&delays.boot, &delays.image_pull, &delays.framework_start})
    sum += delay->median.si * portable_exp(-deviations * delay->spread);
  return sum;
}

/// The delays of the request, or the platform's where it states none.
platforms::Provisioning delays_of(const Request& request, const platforms::Platform& platform,
                                  const platforms::Instance& instance) {
  platforms::Provisioning delays = platform.provisioning;
  delays.boot = platform.boot(instance);
  if (!request.common.contains("provisioning")) return delays;
  JsonObject stated(JsonNode::wrap(request.common["provisioning"], request.file, ""));
  if (const auto boot = stated.optional("boot")) delays.boot = platforms::read_delay(*boot);
  platforms::read_delays(stated, delays);
  return delays;
}

/// Adds what the candidate must do once before its first step.
void add_start(const PlanCandidate& candidate, bool joined, Bounds& bounds, double usd, double usd_at_worst) {
  const LeastWork& work = candidate.work;
  const double start_s = joined || candidate.nodes == 1 ? work.start_s : work.first_start_s;
  bounds.time_s += start_s;
  if (!work.start_is_paid) return;
  bounds.usd += start_s / 3600 * usd;
  bounds.usd_at_worst += start_s / 3600 * usd_at_worst;
}

/// Rules out a run of which fewer get to the FID than must meet the goals: it is the share that its seeds have at best.
void rule_out_if_rare(const Request& request, const calibration::QualityGoal& goal, double batch, PlannedRun& run) {
  try {
    const double share = goal.at(batch).probability;
    if (share >= request.certainty - 1e-6) return;
    run.verdict = Verdict::too_rare;
    run.probability = share;
    run.reason = fmt::format("{:.0f} % of trainings with a batch of {:g} get to an FID of {:g}, asked are {:g} %",
                             std::floor(100 * share), batch, goal.fid(), 100 * request.certainty);
  } catch (const Infeasible&) {  // hardly any gets there, which its simulation says
  }
}

}  // namespace

double least_paid_share(const Request& request, const PlanCandidate& candidate) {
  const Request::Catalog& catalog = request.catalogs[candidate.catalog];
  const double free_s = catalog.platform->billing.free_if_interrupted.si;
  if (!candidate.at_risk() || free_s <= 0) return 1;
  const bool as_measured = platforms::is_provider(catalog.name) && request.what_if.loss_factor <= 1;
  return as_measured && free_s <= kFreeMax_s ? kPaidShareMin : 0;
}

LeastWork least_start(const Request& request, const platforms::Platform& platform,
                      const platforms::Instance& instance) {
  LeastWork work;
  const platforms::Provisioning delays = delays_of(request, platform, instance);
  work.start_s = start_from_grant(delays, kFastStart);
  work.first_start_s = start_from_grant(delays, kFastestStart);
  work.start_is_paid = platform.billing.start != platforms::Billing::Start::ready;
  return work;
}

// Proof. Each image needs at least the GPU-seconds of LeastSteps::work().
//
// Time: a policy holds at most the nodes that are asked for, and one more while it changes between markets, and at most
// all of their GPUs train. `fixed` trains with all nodes that are asked for; other policies may train with a single
// one.
//
// Cost: each node that trains is paid for while it does, at the lowest of its prices or more, and gives at most as many
// GPU-seconds a second as it has GPUs. Nothing else that is charged is below 0. Only a provider that does not charge
// for nodes that it takes back early lets work be done for free (least_paid_share()).
//
// Start: before a node trains its host boots, pulls the image and starts the program, and is paid for from its grant on
// where the provider charges for that. `fixed` waits for all nodes; others train once the first one is there.
//
// Other modes: a pair of GPUs on which generator and discriminator take turns trains one batch, in no less than one
// GPU's time. With backup workers, only a part of the images that are trained counts.
Bounds bounds_of(const Request& request, const PlanCandidate& candidate) {
  const LeastWork& work = candidate.work;
  const policies::Policy& policy = *candidate.policy->policy;
  const double images = least_images(request, candidate);
  const int nodes = candidate.nodes + (policy.other_market || policy.other_regions ? 1 : 0);
  const double each = candidate.gpus_per_node;
  const bool joined = policy.never_changes && candidate.nodes > 1;
  Bounds bounds;
  bounds.time_s = joined      ? work.joined_s / (nodes * each)
                  : nodes > 1 ? std::min(work.alone_s / each, work.joined_s / (nodes * each))
                              : work.alone_s / each;
  bounds.time_s *= images;
  const double node_hours =
      (joined ? work.joined_s : work.alone_s) * images / each / 3600 * least_paid_share(request, candidate);
  const LeastPrice price = least_price(request, candidate);
  bounds.usd = price.usd * node_hours;
  bounds.usd_at_worst = price.at_worst * node_hours;
  const double started = least_paid_share(request, candidate) * (joined ? candidate.nodes : 1);
  add_start(candidate, joined, bounds, price.usd * started, price.at_worst * started);
  return bounds;
}

// Proof. `fixed` trains with all of its nodes or not at all. In every segment of its training, each step takes the mean
// step of that allocation, whatever the seed, region and market. All nodes are held while it trains.
std::optional<Bounds> bounds_by_steps(const Request& request, const PlanCandidate& candidate,
                                      std::span<const double> step_s, double images) {
  const auto has = [&](const char* pointer) { return request.common.contains(JsonPointer(pointer)); };
  // With a straggler or a slow network, steps are sampled separately and may differ from `step_s`.
  if (!candidate.policy->policy->never_changes || has("/faults") || has("/storage/dataset") || has("/fidelity"))
    return {};
  const double seconds = least_over_seeds(request, step_s) / images * least_images(request, candidate);
  PlanCandidate on_one_market = candidate;
  Bounds bounds{seconds, 0, 0};
  double usd = 0, usd_at_worst = 0;  // of all nodes for an hour
  const auto add = [&](platforms::Market market, int nodes) {
    on_one_market.market = market;
    on_one_market.on_demand_nodes = 0;
    const LeastPrice price = least_price(request, on_one_market);
    const double hours = nodes * seconds / 3600 * least_paid_share(request, on_one_market);
    bounds.usd += price.usd * hours;
    bounds.usd_at_worst += price.at_worst * hours;
    const double started = least_paid_share(request, on_one_market) * nodes;
    usd += price.usd * started;
    usd_at_worst += price.at_worst * started;
  };
  add(candidate.market, candidate.nodes - candidate.on_demand_nodes);
  if (candidate.on_demand_nodes > 0) add(platforms::Market::on_demand, candidate.on_demand_nodes);
  add_start(candidate, /*joined=*/true, bounds, usd, usd_at_worst);
  return bounds;
}

// Proof. Both bounds are a start and the images that are trained at least, times what each takes and costs at least.
Bounds bounds_for_images(const Request& request, const PlanCandidate& candidate, const Bounds& median,
                         std::int64_t images) {
  if (request.common.contains("synchronization")) return {};
  const double lost = (static_cast<double>(request.stage_shares.size()) - 1) * batch_of(request, candidate);
  const double of_median = images_of(request, candidate) - lost, of_run = static_cast<double>(images) - lost;
  const double share = of_median > 0 ? std::max(0.0, of_run / of_median) : 0, part = std::min(1.0, share);
  const double training_s = std::max(0.0, median.time_s - candidate.work.start_s);
  return {candidate.work.first_start_s + share * training_s, part * median.usd, part * median.usd_at_worst};
}

// Proof. `fixed` holds its nodes on demand from the request to the end, and asks again for each spot node that it
// lacks: it holds as many as there are. A node that is taken back early is free for the stated time at most.
void add_waits(const Request& request, const PlanCandidate& candidate, double end_s, double spot_node_s,
               double interrupted, Bounds& run) {
  if (!candidate.work.start_is_paid) return;
  const double free_s = request.catalogs[candidate.catalog].platform->billing.free_if_interrupted.si;
  PlanCandidate on_one_market = candidate;
  on_one_market.on_demand_nodes = 0;
  const LeastPrice spot = least_price(request, on_one_market);
  const double spot_hours = std::max(0.0, spot_node_s - interrupted * free_s) / 3600 * kRounding;
  double usd = spot.usd * spot_hours, at_worst = spot.at_worst * spot_hours;
  if (candidate.on_demand_nodes > 0) {
    on_one_market.market = platforms::Market::on_demand;
    const LeastPrice sure = least_price(request, on_one_market);
    const double sure_hours = candidate.on_demand_nodes * end_s / 3600 * kRounding;
    usd += sure.usd * sure_hours;
    at_worst += sure.at_worst * sure_hours;
  }
  run.usd = std::max(run.usd, usd);
  run.usd_at_worst = std::max(run.usd_at_worst, at_worst);
}

// Proof. A node is on the meter from its grant on, or from when its host runs, and what is charged beside its hours is
// not below 0. It is free only if it is taken back early enough, as one that is still held may be.
Bounds bounds_of_unfinished(const Request& request, const sim::Scenario& scenario, sim::Nanoseconds now,
                            const std::vector<sim::Node>& nodes) {
  std::vector<double> hours(scenario.pools.size());
  for (const sim::Node& node : nodes) {
    const platforms::Billing& billing = scenario.pools[node.pool].platform->billing;
    const sim::Nanoseconds from = billing.start == platforms::Billing::Start::ready ? node.runs : node.granted;
    const double seconds = from < now ? sim::to_seconds(std::min(node.gone, now) - from).si : 0;
    const bool spot = scenario.pools[node.pool].pool.market == platforms::Market::spot;
    const bool may_be_free = spot && (node.interrupted || node.gone > now) && seconds < billing.free_if_interrupted.si;
    if (seconds > 0 && !may_be_free) hours[node.pool] += seconds / 3600 * kRounding;
  }
  Bounds least{sim::to_seconds(now).si, 0, 0};
  for (std::size_t p = 0; p < hours.size(); ++p) {
    if (scenario.pools[p].prices) continue;
    const LeastPrice price = least_price_of(request, scenario.pools[p].instance(), scenario.pools[p].price);
    least.usd += price.usd * hours[p];
    least.usd_at_worst += price.at_worst * hours[p];
  }
  return least;
}

// A bound beyond a goal: the runs of all seeds miss it in the median, so that at least half of what the stated errors
// allow misses it too. Cost has two independent errors, time and price; each is as likely to raise the cost as to lower
// it, and with both raised it is missed, which leaves at most three quarters. The images to an FID are one more such
// error, which runs are drawn from: of those that need more than the median, more than half, even the upper ends miss
// it.
void rule_out(const Request& request, const Candidates& candidates, const calibration::QualityGoal* goal,
              const std::vector<bool>& open, std::vector<PlannedRun>& runs) {
  const double half = request.quality ? 0.75 : 0.5;
  const bool surely = request.sure && (!request.quality || request.certainty > 0.5);
  const bool by_time = request.certainty > half || surely, by_cost = request.certainty > (1 + half) / 2 || surely;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Bounds& bounds = candidates.all[i].bounds;
    PlannedRun& run = runs[i];
    if (goal) {
      const double batch = batch_of(request, candidates.all[i]);
      (void)goal->images(batch);  // for the processes that simulate: it takes about as long as a simulation
      if (open[i]) rule_out_if_rare(request, *goal, batch, run);
    }
    if (!open[i] || run.verdict == Verdict::too_rare) continue;
    if (by_time && request.deadline && bounds.time_s > request.deadline->si) {
      run.verdict = Verdict::too_slow;
      run.reason = fmt::format("needs at least {} on so many GPUs", to_string(Seconds{bounds.time_s}));
    } else if (by_cost && request.budget && bounds.usd > usd_of(*request.budget)) {
      run.verdict = Verdict::too_dear;
      run.reason = fmt::format("costs at least {:.2f} USD", bounds.usd);
    }
  }
}

}  // namespace ganymede::plan
