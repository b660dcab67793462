#include "plan/service_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "common/json_value.hpp"
#include "common/usd.hpp"
#include "platforms/catalog.hpp"
#include "sim/scenario/parts.hpp"
#include "sim/scenario/sections.hpp"
#include "sim/service/service_result.hpp"
#include "sim/service/service_simulation.hpp"

namespace ganymede::plan {
namespace {

constexpr int kLargestBatch = 64;
constexpr int kMostNodes = 4096;

bool wanted(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

/// An instance type at its cheapest price on a market, with a batch.
struct Offer {
  std::string catalog;
  const platforms::Platform* platform;
  const platforms::Instance* instance;
  const platforms::Price* price;
  int largest_batch, least_nodes;
  double usd_per_hour() const { return usd_of(price->per_hour); }
  double least_usd() const { return least_nodes * usd_per_hour(); }
};

class Search {
 public:
  explicit Search(const ServiceQuestion& question) : question_(question) {
    constexpr double kRequests = 50'000;
    plan_.per_second = question.per_second, plan_.p95 = question.p95.si;
    plan_.simulated_s = std::clamp(kRequests / question.per_second, 60.0, 3600.0);
  }

  documents::ServicePlan run() {
    std::map<std::string, std::vector<Offer>> offers;  // by GPU
    std::vector<std::string> catalogs = question_.catalogs.empty() ? platforms::provider_names() : question_.catalogs;
    for (const std::string& name : catalogs) {
      const auto& platform =
          *platforms_.emplace_back(std::make_shared<const platforms::Platform>(platforms::load_catalog(name, ".")));
      for (const platforms::Instance& instance : platform.instances) add_offers(name, platform, instance, offers);
    }
    if (offers.empty() && plan_.offers_searched == 0)
      throw ConfigError("no catalog has such a GPU at such a price: see --catalog, --gpu, --region and --market");
    for (auto& [gpu, all] : offers) search(all);
    auto& found = plan_.offers;
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.usd_per_hour < b.usd_per_hour; });
    if (!found.empty()) note_chosen(found.front());
    return std::move(plan_);
  }

 private:
  void add_offers(const std::string& catalog, const platforms::Platform& platform, const platforms::Instance& instance,
                  std::map<std::string, std::vector<Offer>>& offers) {
    const platforms::Gpu& gpu = platform.gpu_of(instance);
    if (gpu.kind != platforms::Gpu::Kind::gpu || !instance.retired.empty() ||
        !wanted(question_.instances, instance.name) ||
        !(wanted(question_.gpus, gpu.name) || wanted(question_.gpus, gpu.family)))
      return;
    for (const platforms::Market market : question_.markets) {
      const platforms::Price* cheapest = nullptr;
      for (const platforms::Price& price : instance.prices)
        if (price.market == market && !price.ownership && price.zone.empty() &&
            wanted(question_.regions, price.region) && (cheapest == nullptr || price.per_hour < cheapest->per_hour))
          cheapest = &price;
      if (cheapest == nullptr) continue;
      ++plan_.offers_searched;
      const sim::GeneratorTimes& times = times_on(platform, instance);
      for (int batch = 1; batch <= kLargestBatch; batch *= 2) {
        const double seconds = times.high_s[static_cast<std::size_t>(batch) - 1];
        if (seconds > question_.p95.si) continue;
        const double busy = question_.per_second * seconds / batch / instance.gpus;
        if (busy < kMostNodes && (!instance.available || busy < *instance.available))
          offers[gpu.name].push_back({catalog, &platform, &instance, cheapest, batch, static_cast<int>(busy) + 1});
      }
    }
  }

  /// Times on the GPU, whichever instance type has it: a pass copies nothing from the host.
  const sim::GeneratorTimes& times_on(const platforms::Platform& platform, const platforms::Instance& instance) {
    const platforms::Gpu& gpu = platform.gpu_of(instance);
    const auto [place, is_new] = times_.try_emplace(gpu.name);
    if (is_new) place->second = sim::read_generator(question_.generator, gpu, nullptr, kLargestBatch);
    return place->second;
  }

  sim::Service service_of(const Offer& offer, int nodes) {
    sim::Service service;
    service.scenario.seed = question_.seed;
    sim::RentedNodes rented{offer.catalog, 0, platform_of(*offer.platform), {}, ""};
    rented.pool.instance = offer.instance->name, rented.pool.region = offer.price->region;
    rented.pool.market = offer.price->market, rented.pool.nodes = nodes;
    rented.pool.gpus_per_node = offer.instance->gpus;
    service.scenario.pools = {sim::pool_of(rented)};
    service.times = times_on(*offer.platform, *offer.instance);
    service.largest_batch = offer.largest_batch;
    service.arrivals.per_second = question_.per_second;
    service.duration = Seconds{plan_.simulated_s};
    return service;
  }

  std::shared_ptr<const platforms::Platform> platform_of(const platforms::Platform& platform) const {
    return *std::find_if(platforms_.begin(), platforms_.end(), [&](const auto& one) { return one.get() == &platform; });
  }

  bool holds(const sim::ServiceRecord& record) const {
    if (record.arrived == 0) return true;
    const auto failed = static_cast<double>(record.refused + record.timed_out + record.lost);
    if (failed > kMostFailed * static_cast<double>(record.arrived)) return false;
    const auto late = std::count_if(record.latencies_s.begin(), record.latencies_s.end(),
                                    [&](double latency) { return latency > question_.p95.si; });
    return static_cast<double>(late) <= 0.05 * static_cast<double>(record.latencies_s.size());
  }

  /// Adds the cheapest of the offers that holds the goal, if one does.
  void search(std::vector<Offer>& offers) {
    std::stable_sort(offers.begin(), offers.end(),
                     [](const Offer& a, const Offer& b) { return a.least_usd() < b.least_usd(); });
    const Offer* best = nullptr;
    int best_nodes = 0;
    double best_usd = std::numeric_limits<double>::infinity();
    for (const Offer& offer : offers) {
      if (offer.least_usd() >= best_usd) break;
      const int most = std::min(kMostNodes, 2 * offer.least_nodes + 4);
      for (int nodes = offer.least_nodes; nodes <= most && nodes * offer.usd_per_hour() < best_usd; ++nodes) {
        if (offer.instance->available && nodes > *offer.instance->available) break;
        ++plan_.simulated;
        const sim::Service service = service_of(offer, nodes);
        if (!holds(simulate_service(service, service.times.high_s))) continue;
        best = &offer, best_nodes = nodes, best_usd = nodes * offer.usd_per_hour();
        break;
      }
    }
    if (best == nullptr) return;
    const sim::Service service = service_of(*best, best_nodes);
    const documents::ServiceResult result = sim::serve(service);
    plan_.offers.push_back({result.gpu, result.provider, result.region, result.market, result.instance,
                            best->price->as_of, best_nodes, best->largest_batch, best_usd,
                            best_usd / (3.6 * question_.per_second), result.latency.p95, result.utilization,
                            result.latency.p95_interval});
    chosen_.emplace(result.gpu, std::pair(*best, service.times.how));
  }

  void note_chosen(const documents::ServiceOffer& first) {
    const auto& [offer, how] = chosen_.at(first.gpu);
    plan_.generator = how;
    Json document = {{"schema", std::string(sim::kServiceSchema)},
                     {"generator", question_.generator.value()},
                     {"platform",
                      {{"catalog", offer.catalog},
                       {"region", first.region},
                       {"instance", first.instance},
                       {"market", first.market},
                       {"nodes", first.nodes}}},
                     {"arrivals", {{"per_second", question_.per_second}}},
                     {"batching", {{"largest", first.largest_batch}}},
                     {"goals", {{"p95", fmt::format("{}s", question_.p95.si)}, {"failed", kMostFailed}}},
                     {"duration", fmt::format("{}s", plan_.simulated_s)},
                     {"seed", question_.seed}};
    plan_.service.text = document.dump();
    plan_.notes.emplace_back(
        "latency is that of queue and GPU; the network, decoding and encoding come on top; whether weights and "
        "activations fit in the GPU's memory was not looked at");
    if (first.market == "spot")
      plan_.notes.push_back(fmt::format(
          "{:.0f} s were simulated, in which spot nodes are hardly taken back; simulate the service for days",
          plan_.simulated_s));
    if (first.nodes == 1) plan_.notes.emplace_back("one node: nothing serves while it is replaced");
  }

  const ServiceQuestion& question_;
  documents::ServicePlan plan_;
  std::vector<std::shared_ptr<const platforms::Platform>> platforms_;
  std::map<std::string, sim::GeneratorTimes> times_;             // by GPU
  std::map<std::string, std::pair<Offer, std::string>> chosen_;  // by GPU
};

}  // namespace

documents::ServicePlan plan_service(const ServiceQuestion& question) { return Search(question).run(); }

}  // namespace ganymede::plan
