#include "plan/candidates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "calibration/workload_model.hpp"
#include "sim/run/scenario.hpp"

namespace ganymede {
namespace {

/// Seconds of one GPU for one image, at least.
///
/// Proof. A worker's simulated step takes its phases' times, drawn together from one recorded step of its model, and
/// waiting on top (for its input, its gradients, the slowest worker, a checkpoint): so never less than the model's
/// fastest step alone, in which it trains `batch` images. A growing model spends the share s of its images in each
/// stage, each varied by seed by up to v before they are scaled to sum to 1: so at least s (1 - v) / (1 + v).
double least_gpu_seconds(const Request& request, const Platform& platform, const Instance& instance) {
  const Gpu& gpu = platform.gpu_of(instance);
  const double share = (1 - request.stage_variation) / (1 + request.stage_variation);
  double sum = 0;
  for (std::size_t i = 0; i < request.stages.size(); ++i) {
    const TraceBatch& batch = request.trace.batches[request.stages[i]];
    const WorkloadModel workload =
        workload_on(request.trace, batch, gpu, instance.host_link ? &*instance.host_link : nullptr);
    double fastest = workload.central.step_s(0);
    for (std::size_t sample = 1; sample < workload.central.samples; ++sample)
      fastest = std::min(fastest, workload.central.step_s(sample));
    sum += request.stage_shares[i] * share * fastest / batch.batch;
  }
  return sum;
}

/// Of the markets and regions that the policy may use.
double least_price(const Candidate& candidate) {
  const Policy& policy = *candidate.policy->policy;
  double least = -1;
  for (const Price& price : candidate.instance->prices) {
    const bool here = price.region == candidate.region;
    const bool now = price.market == candidate.market;
    if (!(here || policy.other_regions) || !(now || policy.other_market) || !price.zone.empty()) continue;
    double usd = static_cast<double>(price.per_hour.value) * 1e-6;
    if (price.market == Market::on_demand)
      for (const double part : candidate.instance->sustained_use)
        usd = std::min(usd, part * static_cast<double>(price.per_hour.value) * 1e-6);
    if (least < 0 || usd < least) least = usd;
  }
  return std::max(0.0, least);
}

/// Proof. So many images need at least `gpu_seconds` of one GPU each (least_gpu_seconds). A policy holds the nodes that
/// are asked for at most, and one more while it changes between markets, all of whose GPUs train at most: the time.
/// Each node that trains is paid for while it does, at the lowest of its prices or more, and its GPUs give at most
/// their number of GPU-seconds a second: the cost; what is charged besides is not below 0. Only a provider that does
/// not charge for what it takes back early lets work be done for nothing: then 0. The last step may be cut to its real
/// images, a part in a million is left to rounding. A pair of GPUs on which generator and discriminator take turns
/// trains one batch, in no less than one GPU's time; of what backup workers train, less counts.
Bounds bounds_of(const Request& request, const Candidate& candidate, double gpu_seconds) {
  constexpr double kRounding = 1 - 1e-6;
  const Policy& policy = *candidate.policy->policy;
  const double total = gpu_seconds * static_cast<double>(request.images) * kRounding;
  const int nodes = candidate.nodes + (policy.other_market || policy.other_regions ? 1 : 0);
  Bounds bounds;
  bounds.time_s = total / (nodes * candidate.instance->gpus);
  const Platform& platform = request.catalogs[candidate.catalog].platform;
  const bool spot = candidate.market == Market::spot || policy.other_market;
  if (!(spot && platform.billing.free_if_interrupted.si > 0))
    bounds.usd = least_price(candidate) * total / candidate.instance->gpus / 3600;
  return bounds;
}

bool wanted(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

class Enumeration {
 public:
  explicit Enumeration(const Request& request) : request_(request) {}

  Candidates run() {
    for (std::size_t c = 0; c < request_.catalogs.size(); ++c)
      for (const Instance& instance : request_.catalogs[c].platform.instances) consider(c, instance);
    for (const auto& [why, names] : left_out_)
      out_.left_out.push_back(
          fmt::format("{}: {}{}", why, fmt::join(names.begin(), names.begin() + shown(names), ", "),
                      names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : ""));
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kShown = 6;
  static std::ptrdiff_t shown(const std::vector<std::string>& names) {
    return static_cast<std::ptrdiff_t>(std::min(kShown, names.size()));
  }

  void consider(std::size_t catalog, const Instance& instance) {
    const Platform& platform = request_.catalogs[catalog].platform;
    const Gpu& gpu = platform.gpu_of(instance);
    if (!wanted(request_.instances, instance.name)) return;
    if (!wanted(request_.gpus, gpu.name) && !wanted(request_.gpus, gpu.family)) return;
    // A data sheet says little of how fast these train, and GPU programs do not run there.
    if (gpu.kind != Gpu::Kind::gpu && request_.gpus.empty() && request_.instances.empty())
      return leave_out("no GPU, and searched only if named", instance.name);
    if (!instance.retired.empty()) return leave_out("retired", instance.name);
    if (instance.prices.empty()) return leave_out("no price is known", instance.name);
    for (const std::size_t stage : request_.stages)
      if (gpu_memory(request_.trace.batches[stage]) > gpu.memory)
        return leave_out(
            fmt::format("a step needs {} of GPU memory", to_string(gpu_memory(request_.trace.batches[stage]))),
            instance.name);
    const double gpu_seconds = least_gpu_seconds(request_, platform, instance);
    for (int nodes = 1; nodes * instance.gpus <= request_.max_gpus; nodes *= 2) {
      if (nodes * instance.gpus < request_.min_gpus) continue;
      if (nodes > 1 && !instance.nic) break;
      if (instance.available && nodes > *instance.available) break;
      const bool alone = nodes * instance.gpus == 1;
      for (std::size_t s = 0; s < (alone ? 1 : request_.schemes.size()); ++s) {
        Candidate candidate;
        candidate.catalog = catalog;
        candidate.instance = &instance;
        candidate.nodes = nodes;
        candidate.scheme = alone ? "none" : request_.schemes[s];
        group(candidate, gpu_seconds);
      }
    }
  }

  /// All its regions, markets, policies and checkpoints.
  void group(Candidate candidate, double gpu_seconds) {
    CandidateGroup group;
    for (const std::string& region : regions_of(*candidate.instance)) {
      candidate.region = region;
      for (const Market market : request_.markets) {
        if (!find_price(*candidate.instance, region, market)) continue;
        candidate.market = market;
        for (const RequestPolicy& policy :
             market == Market::spot ? request_.spot_policies : request_.on_demand_policies) {
          candidate.policy = &policy;
          const bool may_be_lost = market == Market::spot || policy.policy->other_market;
          for (const std::string& checkpoint : intervals(candidate, may_be_lost)) {
            candidate.checkpoint = checkpoint;
            candidate.bounds = bounds_of(request_, candidate, gpu_seconds);
            group.members.push_back(out_.all.size());
            out_.all.push_back(candidate);
          }
        }
      }
    }
    if (!group.members.empty()) out_.groups.push_back(std::move(group));
  }

  std::vector<std::string> regions_of(const Instance& instance) const {
    std::set<std::string> regions;
    for (const Price& price : instance.prices)
      if (wanted(request_.regions, price.region)) regions.insert(price.region);
    return {regions.begin(), regions.end()};
  }

  /// Where nothing is lost, and nothing crashes, checkpoints only cost.
  std::vector<std::string> intervals(const Candidate& candidate, bool may_be_lost) const {
    const bool crashes = request_.common.contains("faults");
    const bool place = request_.common.contains("storage") && request_.common["storage"].contains("checkpoint");
    if (!may_be_lost && !crashes) return {""};
    if (!place && request_.catalogs[candidate.catalog].platform.storage.empty()) return {""};
    return request_.checkpoints;
  }

  void leave_out(const std::string& why, const std::string& name) { left_out_[why].push_back(name); }

  const Request& request_;
  Candidates out_;
  std::map<std::string, std::vector<std::string>> left_out_;
};

/// Where checkpoints go if the request does not say: an object store, else the first storage.
std::string checkpoint_place(const Platform& platform) {
  for (const Storage& storage : platform.storage)
    if (storage.object_store) return storage.name;
  return platform.storage.front().name;
}

}  // namespace

Candidates enumerate(const Request& request) { return Enumeration(request).run(); }

nlohmann::json scenario_of(const Request& request, const Candidate& candidate) {
  nlohmann::json scenario = request.common;
  scenario["platform"] = {{"catalog", request.catalogs[candidate.catalog].name},
                          {"region", candidate.region},
                          {"instance", candidate.instance->name},
                          {"nodes", candidate.nodes},
                          {"market", to_string(candidate.market)}};
  if (!request.regions.empty()) scenario["platform"]["allowed_regions"] = request.regions;
  scenario["synchronization"]["scheme"] = candidate.scheme == "none" ? request.schemes.front() : candidate.scheme;
  scenario["policy"] = candidate.policy->content;
  scenario["seed"] = request.seed;
  if (!candidate.checkpoint.empty()) {
    scenario["checkpoint"]["every"] = candidate.checkpoint;
    if (!scenario.contains("storage") || !scenario["storage"].contains("checkpoint"))
      scenario["storage"]["checkpoint"] = checkpoint_place(request.catalogs[candidate.catalog].platform);
  }
  if (request.deadline) scenario["deadline"] = fmt::format("{}s", request.deadline->si);
  // A scenario refuses a budget that does not pay for one hour, though a run may be shorter.
  const Price* price = find_price(*candidate.instance, candidate.region, candidate.market);
  if (request.budget && request.budget->value >= price->per_hour.value)
    scenario["budget"] = decimal(*request.budget) + "USD";
  return scenario;
}

std::string label_of(const Request& request, const Candidate& candidate) {
  return fmt::format("{} {} {}, {} x {}, {}, {}{}", request.catalogs[candidate.catalog].platform.name, candidate.region,
                     to_string(candidate.market), candidate.nodes, candidate.instance->name, candidate.scheme,
                     candidate.policy->name(),
                     candidate.checkpoint.empty() ? "" : ", checkpoint " + candidate.checkpoint);
}

}  // namespace ganymede
