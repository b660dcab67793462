#pragma once
// Pools: nodes of one instance type at one price, how their spot capacity behaves, and the links between pools.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "platforms/platform.hpp"
#include "platforms/spot.hpp"
#include "sim/scenario/series.hpp"

namespace ganymede::sim {

/// How long a rented node stays before the provider takes it back.
struct Lifetimes {
  enum class Kind {
    exponential,  ///< A constant hazard with the mean `mean`.
    /// Many nodes die young and the rest at the end of `longest`, as Kadupitiya et al. (HPDC 2020) measured on
    /// preemptible GPUs of Google Cloud: F(t) = A (1 - exp(-t / t1) + exp((t - b) / t2)) with A 0.475, t1 1 h,
    /// t2 0.8 h and b = `longest`.
    bathtub,
  };
  Kind kind = Kind::exponential;
  Seconds mean{0};        ///< For Kind::exponential.
  Seconds longest{0};     ///< For Kind::bathtub: the longest time.
  Seconds back_after{0};  ///< Mean time after which the pool has nodes again; 0: at once.
  std::string source;     ///< Says in messages who states it: "the scenario".
};

/// Decides when the nodes of a pool can be rented and when they are taken back.
enum class Spot {
  none,           ///< The nodes are not on the spot market and are never taken back.
  uninterrupted,  ///< The scenario or the user's platform says that they are never taken back.
  stated,         ///< `lifetimes` of the scenario or of the user's platform.
  recorded,       ///< The recording `capacity`.
  calm,           ///< The model of measured zones, with a zone that is better than nine in ten.
  typical,        ///< The same model, with the median zone.
  harsh,          ///< The same model, with a zone that is worse than nine in ten.
  drawn,          ///< The same model, with a zone that the seed draws; the default if nothing is stated.
  past,           ///< The same, of the zones that one with the recorded past `past` may be.
};
constexpr bool is_modelled(Spot spot) { return spot >= Spot::calm; }
/// How certain the risk of losing nodes is known: "none", "stated", "measured", "preset" or "assumed".
std::string_view risk_of(Spot spot);
/// Returns the less certain of two risks; "" is more certain than any other.
std::string less_sure(std::string_view a, std::string_view b);

/// A scenario's member "spot".
struct SpotChoice {
  Spot spot = Spot::drawn;
  std::optional<Series> capacity;  ///< Nodes that can be rented, if they were recorded.
  std::optional<platforms::SpotPast> past;
};

/// Nodes that may be rented: those that the scenario asks for, or others that its policy may use.
struct ScenarioPool {
  std::string name;  ///< "p3.8xlarge us-east-1 spot", or the user's own name.
  std::string catalog;
  std::shared_ptr<const platforms::Platform> platform;
  std::uint64_t platform_hash = 0;  ///< Of the texts from which `platform` was read.
  std::string zone;                 ///< Empty: any zone of the region, which counts as one place.
  policies::Pool pool;     ///< `nodes` is what the scenario asks for: 0 for pools that only the policy may use.
  int max_nodes = 0;       ///< Largest number of nodes held at once.
  platforms::Price price;  ///< Price of one node.
  Spot spot = Spot::none;
  std::optional<SpotChoice> spot_choice;    ///< Also applies to other spot pools that the policy may use.
  std::optional<Lifetimes> lifetimes;       ///< Set for Spot::stated.
  Seconds notice{0};                        ///< Time between the notice and the loss of a spot node.
  std::optional<Series> capacity;           ///< Nodes that can be rented; set for Spot::recorded.
  std::optional<platforms::SpotPast> past;  ///< Set for Spot::past.
  std::optional<Series> prices;             ///< USD per hour for one node.
  std::optional<Series> carbon;             ///< Grams of CO2e per kWh.
  // For questions of the kind "what if"; a scenario's file cannot state them.
  double step_factor = 1;  ///< A worker's own work in a step takes so many times as long.
  double kept_factor = 1;  ///< With a modelled capacity, nodes are kept for so many times as long.

  /// The instance type that `pool` names.
  const platforms::Instance& instance() const { return platform->instance(pool.instance); }
  const platforms::Gpu& gpu() const { return platform->gpu_of(instance()); }
};

/// A link that joins two pools of different places.
struct PoolLink {
  std::size_t a = 0, b = 0;     ///< Indices of the pools.
  BytesPerSecond bandwidth{0};  ///< 0: not stated; a policy only moves runs over the link.
  Seconds latency{0};
  double usd_per_gb = 0;  ///< For each 1e9 bytes that cross it.
  enum class Between { zones, regions, clouds } between = Between::regions;
  /// True: each end pays what it sends by its provider's tiers to the internet; `usd_per_gb` is the mean of the first.
  bool by_tiers = false;
};

/// True if both pools are of the same catalog and in the same region and zone; pools without a zone count as one place.
bool same_place(const ScenarioPool& a, const ScenarioPool& b);
/// True if the nodes of both pools are of one instance type, with as many GPUs that train at the same pace.
bool same_nodes(const ScenarioPool& a, const ScenarioPool& b);
/// The distance between two pools in different places: zones of a region, regions of a provider, or clouds.
PoolLink::Between between_places(const ScenarioPool& a, const ScenarioPool& b);
/// USD for each 1e9 bytes from one pool's place to the other's, by the catalog; nullopt if the catalog does not say.
std::optional<double> transfer_price(const ScenarioPool& from, const ScenarioPool& to, PoolLink::Between between);

}  // namespace ganymede::sim
