#pragma once
// What a provider charges for besides its instances' hours, and how it meters them: rules as data.

#include <optional>
#include <string>
#include <vector>

#include "common/units.hpp"

namespace ganymede {

/// Where a fact came from. A catalog's entries carry it; a user's file may leave it out.
struct Origin {
  std::string source;       ///< who published it and when, or "assumption: ..."
  std::string unconfirmed;  ///< not empty: why the value must not be trusted yet; a result repeats it as a warning
  std::string notes;        ///< anything else worth knowing
};

/// Default: each second is billed, from the first, once an instance is granted.
struct Billing {
  enum class Start {
    request,  ///< from the request on, a provider's queue included
    boot,     ///< from the grant on
    ready,    ///< once the host runs: its boot is not metered, the pull of the container image is
  };
  Seconds granularity{1};
  Seconds minimum{0};
  Start start = Start::boot;
  /// A spot instance that the provider takes back within so long is not charged. 0: all are.
  Seconds free_if_interrupted{0};
  Origin origin;
};

/// What data is priced by: a GB of 1e9 bytes, or a GiB of 2^30. Providers write "GB" for either.
enum class VolumeUnit { gb, gib };
constexpr double bytes_of(VolumeUnit unit) { return unit == VolumeUnit::gib ? 1073741824.0 : 1e9; }
constexpr const char* unit_name(VolumeUnit unit) { return unit == VolumeUnit::gib ? "GiB" : "GB"; }

/// A price for volume: it holds for the units from the last tier's end up to `up_to`, none: for all that follow.
struct PriceTier {
  std::optional<double> up_to;  ///< units a month
  MicroUsd price;               ///< for one unit
};

/// Data that leaves a place, for each 1e9 bytes where nothing else is said. Absent: not known, which a result says
/// where it is used.
struct EgressPrices {
  std::optional<MicroUsd> zone;  ///< between zones of one region, in one direction
  /// The zone that receives is charged as well as the zone that sends: what crosses costs twice `zone`.
  bool zone_charged_at_both_ends = true;
  std::optional<MicroUsd> region;  ///< to another region of the provider
  std::vector<PriceTier> internet;
  VolumeUnit internet_unit = VolumeUnit::gb;  ///< of the tiers
  double free_gb_month = 0;                   ///< to the internet, where a scenario counts free tiers; 1e9 bytes each
  Origin origin;
};

/// Around the instances.
struct Services {
  std::optional<MicroUsdPerHour> control_plane;  ///< of a managed Kubernetes cluster
  Seconds control_plane_free{0};                 ///< a month, where a scenario counts free tiers
  std::optional<MicroUsdPerHour> load_balancer;
  Origin origin;
};

/// What a private cloud's machine costs whoever owns it: its price is worked out from this, without electricity, which
/// a run pays for as it is used.
struct Ownership {
  MicroUsd capital;        ///< bought for
  double life_years = 1;   ///< written off over, at 8766 h each
  double utilization = 1;  ///< share of that life in which somebody uses it
  double overcommit = 1;   ///< instances sold on hardware for one
  MicroUsdPerHour staff;   ///< share of the people who run it

  /// capital / (life x utilization x overcommit) + staff / overcommit, of an hour in use, to the nearest micro-dollar.
  MicroUsdPerHour per_hour() const;
  /// "12000 USD over 4 years at 60 % use, staff 0.35 USD/h": what `per_hour` assumes.
  std::string terms() const;
};

}  // namespace ganymede
