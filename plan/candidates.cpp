#include "plan/candidates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "common/units.hpp"
#include "plan/bounds.hpp"
#include "plan/evaluate.hpp"
#include "plan/least_steps.hpp"

namespace ganymede::plan {
namespace {

/// True if `name` is in `names`; an empty list stands for all names.
bool is_wanted(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

/// Lists the candidates of a request, catalog by catalog and instance by instance.
class Enumeration {
 public:
  Enumeration(const Request& request, bool each_scheme, const std::set<Family>& families)
      : request_(request), each_scheme_(each_scheme), families_(families) {}

  Candidates run() {
    for (std::size_t c = 0; c < request_.catalogs.size(); ++c)
      for (const platforms::Instance& instance : request_.catalogs[c].platform->instances) add_instance(c, instance);
    for (const auto& [why, names] : left_out_) out_.left_out.push_back(left_out_line(why, names));
    return std::move(out_);
  }

 private:
  void add_instance(std::size_t catalog, const platforms::Instance& instance) {
    const platforms::Platform& platform = *request_.catalogs[catalog].platform;
    const platforms::Gpu& gpu = platform.gpu_of(instance);
    if (!is_wanted(request_.instances, instance.name)) return;
    if (!is_wanted(request_.gpu_names, gpu.name)) return;
    // TPUs and CPUs are searched only if the request names them: their data sheets say little about how fast they
    // train, and programs for GPUs do not run on them.
    if (gpu.kind != platforms::Gpu::Kind::gpu && request_.gpus.empty() && request_.instances.empty())
      return leave_out("no GPU, and searched only if named", instance.name);
    if (!instance.retired.empty()) return leave_out("retired", instance.name);
    if (instance.prices.empty()) return leave_out("no price is known", instance.name);
    if (!is_offered(instance)) return leave_out("no price in the regions and on the markets searched", instance.name);
    const std::size_t before = out_.all.size();
    bool fits = false;
    const std::vector<std::size_t> batches = shared_batches();
    for (const std::size_t batch : batches) {
      if (!holds(batch, gpu, request_.min_gpus > 1)) continue;
      fits = true;
      add_sizes(catalog, instance, batch, holds(batch, gpu, /*several_gpus=*/true) ? request_.max_gpus : 1);
    }
    if (!fits && !batches.empty())
      leave_out(no_memory(gpu, batches), instance.name);
    else if (out_.all.size() == before)
      leave_out(no_number(gpu), instance.name);
  }

  /// True if the GPU holds the upper end of what a pass of the batch needs.
  bool holds(std::size_t batch, const platforms::Gpu& gpu, bool several_gpus) const {
    return Bytes{needed_memory(request_, request_.batches[batch], gpu, several_gpus).high} <= gpu.memory;
  }

  /// Why no number of an instance type can be rented, and of a recipe which numbers of its GPUs could.
  std::string no_number(const platforms::Gpu& gpu) const {
    const std::string gpus = request_.min_gpus == request_.max_gpus
                                 ? std::to_string(request_.min_gpus)
                                 : fmt::format("{} to {}", request_.min_gpus, request_.max_gpus);
    if (request_.batches.front().gpus.empty()) return fmt::format("no number of them has {} GPUs", gpus);
    std::set<int> shared;
    for (std::size_t batch = 0; batch < request_.batches.size(); ++batch)
      if (holds(batch, gpu, request_.min_gpus > 1))
        for (const int count : request_.batches[batch].gpus)
          if (count >= request_.min_gpus && count <= request_.max_gpus) shared.insert(count);
    if (shared.empty())
      return fmt::format(
          "the recipe's batch divides evenly, in passes that fit, among no number of {} GPUs: --batch "
          "states images on each GPU",
          gpus);
    return fmt::format(
        "the recipe's batch divides evenly, in passes that fit, among {} GPUs, which no number of them "
        "has: --batch states images on each GPU",
        fmt::join(shared, ", "));
  }

  /// The batches that a number of GPUs of the request shares.
  std::vector<std::size_t> shared_batches() const {
    std::vector<std::size_t> shared;
    for (std::size_t i = 0; i < request_.batches.size(); ++i) {
      const std::vector<int>& gpus = request_.batches[i].gpus;
      if (gpus.empty() || std::any_of(gpus.begin(), gpus.end(), [&](int count) {
            return count >= request_.min_gpus && count <= request_.max_gpus;
          }))
        shared.push_back(i);
    }
    return shared;
  }

  /// Why none of these batches fits the GPU, and which would.
  std::string no_memory(const platforms::Gpu& gpu, const std::vector<std::size_t>& batches) const {
    const bool several = request_.min_gpus > 1;
    const auto pass = [&](std::size_t batch) {
      return request_.batches[batch].per_gpu / request_.batches[batch].passes;
    };
    const std::size_t least =
        *std::min_element(batches.begin(), batches.end(), [&](auto a, auto b) { return pass(a) < pass(b); });
    const int most = calibration::largest_batch(request_.trace, gpu, several, /*surely=*/true);
    const bool is_recipe = !request_.batches[least].gpus.empty();
    return fmt::format(
        "{} needs {} of GPU memory, of which a {} has {}, for {}{}{}",
        is_recipe ? fmt::format("a pass of {} images", pass(least)) : "a step",
        calibration::to_text(needed_memory(request_, request_.batches[least], gpu, several)), gpu.name,
        to_string(gpu.memory), is_recipe ? "" : "a batch of ",
        most == 0 ? "not even one" : fmt::format("at most {}", most),
        is_recipe && most > 0 ? fmt::format(": batch_per_gpu={} behind the recipe's \"?\" accumulates", most) : "");
  }

  /// True if the instance has a price in a region and on a market that are searched.
  bool is_offered(const platforms::Instance& instance) const {
    return std::any_of(instance.prices.begin(), instance.prices.end(), [&](const platforms::Price& price) {
      return price.zone.empty() && is_wanted(request_.regions, price.region) &&
             std::find(request_.markets.begin(), request_.markets.end(), price.market) != request_.markets.end();
    });
  }

  /// Adds every number of whole instances. If one more instance would have too many GPUs, also adds that number of
  /// instances with fewer GPUs used in each.
  void add_sizes(std::size_t catalog, const platforms::Instance& instance, std::size_t batch, int most) {
    PlanCandidate candidate;
    candidate.catalog = catalog;
    candidate.instance = &instance;
    candidate.batch = batch;
    const LeastSteps least(request_, request_.batches[batch], *request_.catalogs[catalog].platform, instance,
                           request_.caches->workloads);
    if (!instance.nic) most = std::min(most, instance.gpus);
    if (instance.available) most = std::min(most, *instance.available * instance.gpus);
    candidate.gpus_per_node = instance.gpus;
    const int fewest = (request_.min_gpus + instance.gpus - 1) / instance.gpus;
    for (const int nodes : node_counts(fewest, most / instance.gpus)) {
      candidate.nodes = nodes;
      add_nodes(candidate, least);
    }
    const int nodes = most / instance.gpus + 1;
    if (most % instance.gpus == 0 || (nodes > 1 && !instance.nic) ||
        (instance.available && nodes > *instance.available))
      return;
    candidate.nodes = nodes;
    candidate.gpus_per_node = most / nodes;
    if (candidate.gpus() < request_.min_gpus || candidate.gpus() <= (nodes - 1) * instance.gpus) return;
    add_nodes(candidate, least);
  }

  /// Adds the candidate with so many nodes of so many GPUs, by each scheme.
  void add_nodes(PlanCandidate& candidate, const LeastSteps& least) {
    if (!families_.empty() && !families_.contains(family_of(candidate))) return;
    candidate.work = least.work(candidate.nodes, candidate.gpus_per_node);
    add_schemes(candidate);
  }

  void add_schemes(PlanCandidate candidate) {
    const std::vector<int>& fit = request_.batches[candidate.batch].gpus;
    if (!fit.empty() && !std::binary_search(fit.begin(), fit.end(), candidate.gpus())) return;
    const bool one_gpu = candidate.gpus() == 1;
    if (!one_gpu && each_scheme_) {
      for (const std::string& scheme : request_.schemes) {
        candidate.scheme = scheme;
        add_group(candidate);
      }
      return;
    }
    candidate.scheme = one_gpu ? "none" : request_.schemes.size() == 1 ? request_.schemes.front() : "any";
    add_group(candidate);
  }

  /// Adds the candidate in all its regions, on all markets, with all policies and checkpoint intervals.
  void add_group(PlanCandidate candidate) {
    CandidateGroup group;
    const auto add = [&](const std::vector<RequestPolicy>& policies) {
      for (const RequestPolicy& policy : policies) {
        candidate.policy = &policy;
        for (const std::string& checkpoint : intervals(candidate)) {
          candidate.checkpoint = checkpoint;
          candidate.bounds = bounds_of(request_, candidate);
          group.members.push_back(out_.all.size());
          out_.all.push_back(candidate);
        }
      }
    };
    for (const std::string& region : regions_of(*candidate.instance)) {
      candidate.region = region;
      for (const platforms::Market market : request_.markets) {
        if (!platforms::find_price(*candidate.instance, region, market)) continue;
        candidate.market = market;
        add(market == platforms::Market::spot ? request_.spot_policies : request_.on_demand_policies);
        if (market != platforms::Market::spot ||
            !platforms::find_price(*candidate.instance, region, platforms::Market::on_demand))
          continue;
        for (const int on_demand : {1, candidate.nodes / 2}) {
          if (on_demand <= candidate.on_demand_nodes || on_demand >= candidate.nodes) continue;
          candidate.on_demand_nodes = on_demand;
          add(request_.mixed_policies);
        }
        candidate.on_demand_nodes = 0;
      }
    }
    if (!group.members.empty()) out_.groups.push_back(std::move(group));
  }

  std::vector<std::string> regions_of(const platforms::Instance& instance) const {
    std::set<std::string> regions;
    for (const platforms::Price& price : instance.prices)
      if (is_wanted(request_.regions, price.region)) regions.insert(price.region);
    return {regions.begin(), regions.end()};
  }

  /// Checkpoint intervals to try. If nothing can be lost, there is only "" (no checkpoints), because checkpoints would
  /// only add cost.
  std::vector<std::string> intervals(const PlanCandidate& candidate) const {
    const bool crashes = request_.common.contains("faults");
    const bool has_checkpoint_storage =
        request_.common.contains("storage") && request_.common["storage"].contains("checkpoint");
    if (!candidate.at_risk() && !crashes) return {""};
    if (!has_checkpoint_storage && request_.catalogs[candidate.catalog].platform->storage.empty()) return {""};
    return request_.checkpoints;
  }

  void leave_out(const std::string& why, const std::string& name) { left_out_[why].insert(name); }

  const Request& request_;
  const bool each_scheme_;
  const std::set<Family>& families_;
  Candidates out_;
  std::map<std::string, std::set<std::string>> left_out_;
};

}  // namespace

std::string left_out_line(const std::string& why, const std::set<std::string>& names) {
  constexpr std::size_t kNamesMax = 6;
  const auto shown = static_cast<std::ptrdiff_t>(std::min(kNamesMax, names.size()));
  return fmt::format("{} instance type{}, {}: {}{}", names.size(), names.size() == 1 ? "" : "s", why,
                     fmt::join(names.begin(), std::next(names.begin(), shown), ", "),
                     names.size() > kNamesMax ? fmt::format(" and {} more", names.size() - kNamesMax) : "");
}

std::vector<int> node_counts(int least, int most) {
  constexpr int kAllUpTo = 16;
  std::vector<int> counts;
  for (int nodes = 1, step = 1; nodes <= most; nodes += step) {
    if (nodes >= kAllUpTo && (nodes & (nodes - 1)) == 0) step = nodes / 4;
    if (nodes >= least) counts.push_back(nodes);
  }
  for (const int end : {least, most})
    if (end >= std::max(1, least) && end <= most) counts.push_back(end);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

calibration::DeviceMemory needed_memory(const Request& request, const Request::Batch& batch, const platforms::Gpu& gpu,
                                        bool several_gpus) {
  calibration::DeviceMemory most;
  for (const std::size_t stage : batch.stages) {
    calibration::DeviceMemory memory =
        calibration::device_memory(request.trace, request.trace.batches[stage], gpu, several_gpus);
    if (memory.expected >= most.expected) most = std::move(memory);
  }
  return most;
}

Family family_of(const PlanCandidate& candidate) {
  return {candidate.catalog, candidate.instance->name, candidate.nodes, candidate.gpus_per_node};
}

Candidates enumerate(const Request& request, bool each_scheme, const std::set<Family>& families) {
  return Enumeration(request, each_scheme, families).run();
}

double batch_of(const Request& request, const PlanCandidate& candidate) {
  return static_cast<double>(request.batches[candidate.batch].per_gpu) * candidate.gpus();
}

double images_of(const Request& request, const PlanCandidate& candidate) {
  if (!request.quality) return static_cast<double>(request.images);
  // Modes in which not every GPU's images count train another batch, for which other images are needed.
  if (request.common.contains("synchronization")) return 1;
  return static_cast<double>(request.quality->images(batch_of(request, candidate)));
}

MicroUsdPerHour price_of(const PlanCandidate& candidate) {
  MicroUsdPerHour sum = (candidate.nodes - candidate.on_demand_nodes) *
                        platforms::find_price(*candidate.instance, candidate.region, candidate.market)->per_hour;
  if (candidate.on_demand_nodes > 0)
    sum.value +=
        candidate.on_demand_nodes *
        platforms::find_price(*candidate.instance, candidate.region, platforms::Market::on_demand)->per_hour.value;
  return sum;
}

platforms::PriceDoubt doubt_of(const Request& request, const PlanCandidate& candidate) {
  const auto doubt = [&](platforms::Market market) {
    return platforms::price_doubt(
        *candidate.instance, *platforms::find_price(*candidate.instance, candidate.region, market), request.price_age);
  };
  const platforms::PriceDoubt first = doubt(candidate.market);
  return first.any() || candidate.on_demand_nodes == 0 ? first : doubt(platforms::Market::on_demand);
}

std::string label_of(const Request& request, const PlanCandidate& candidate) {
  const std::string part = candidate.part_of_instance()
                               ? fmt::format(" ({} of {} GPUs)", candidate.gpus_per_node, candidate.instance->gpus)
                               : "";
  const std::string sure =
      candidate.on_demand_nodes > 0 ? fmt::format(" ({} of them on demand)", candidate.on_demand_nodes) : "";
  return fmt::format("{} {} {}, {} x {}{}{}, {}, {}{}", request.catalogs[candidate.catalog].platform->name,
                     candidate.region, platforms::to_string(candidate.market), candidate.nodes,
                     candidate.instance->name, part, sure, candidate.scheme, candidate.policy->name(),
                     candidate.checkpoint.empty() ? "" : ", checkpoint " + candidate.checkpoint);
}

std::string key_of(const Request& request, PlanCandidate candidate) {
  candidate.scheme = fmt::format("batch {}", request.batches[candidate.batch].per_gpu);
  return label_of(request, candidate);
}

}  // namespace ganymede::plan
