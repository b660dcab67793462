#pragma once
// How a provider meters the hours of instances, and what else it charges for, as data.

#include <optional>
#include <string>
#include <vector>

#include "common/units.hpp"

namespace ganymede::platforms {

/// Where a fact comes from. Every entry of a catalog states it; a user's file may leave it out.
struct Origin {
  std::string source;       ///< who published it and when, or "assumption: ..."
  std::string unconfirmed;  ///< not empty: why the value is not confirmed; results repeat it as a warning
  std::string notes;        ///< further remarks, for people
  bool operator==(const Origin&) const = default;
};

/// How instances are metered. The default bills each second from the grant on.
struct Billing {
  enum class Start {
    request,  ///< from the request on, the provider's queue included
    boot,     ///< from the grant on
    ready,    ///< from the moment at which the host runs: its boot is not metered, the pull of the container image is
  };
  Seconds granularity{1};  ///< metered time is rounded up to a multiple of this
  Seconds minimum{0};      ///< shorter uses are billed as this long
  Start start = Start::boot;
  /// A spot instance that is taken back within this time is not charged. 0: all are charged.
  Seconds free_if_interrupted{0};
  Origin origin;
};

/// The unit in which data is priced: a GB of 1e9 bytes or a GiB of 2^30. Providers write "GB" for both.
enum class VolumeUnit { gb, gib };
constexpr double bytes_of(VolumeUnit unit) { return unit == VolumeUnit::gib ? 1073741824.0 : 1e9; }
constexpr const char* unit_name(VolumeUnit unit) { return unit == VolumeUnit::gib ? "GiB" : "GB"; }

/// One tier of a price: it holds from the end of the tier before up to `up_to`, or for all units beyond if `up_to` is
/// absent.
struct PriceTier {
  std::optional<double> up_to;  ///< units per month
  MicroUsd price;               ///< for one unit
};

/// Prices of data that leaves a zone, a region or the provider, for each 1e9 bytes unless another unit is stated. An
/// absent price is not known; a result that would need it says so.
struct EgressPrices {
  std::optional<MicroUsd> zone;  ///< between zones of one region, in one direction
  /// True if the receiving zone is charged as well as the sending one, so that transferred data costs twice `zone`.
  bool zone_charged_at_both_ends = true;
  std::optional<MicroUsd> region;  ///< to another region of the provider
  std::vector<PriceTier> internet;
  VolumeUnit internet_unit = VolumeUnit::gb;  ///< of the tiers
  double free_gb_month = 0;  ///< to the internet, counted if a scenario asks for free tiers; 1e9 bytes each
  Origin origin;
};

/// Prices of services around the instances.
struct Services {
  std::optional<MicroUsdPerHour> control_plane;  ///< price of a managed Kubernetes cluster
  Seconds control_plane_free{0};                 ///< free time per month, counted if a scenario asks for free tiers
  std::optional<MicroUsdPerHour> load_balancer;
  Origin origin;
};

/// The costs of a machine to its owner. Its price follows from this, without electricity, which a run pays for as it
/// uses it.
struct Ownership {
  MicroUsd capital;               ///< price at which it was bought
  double life_years = 1;          ///< years over which it is written off, 8766 h each
  double utilization = 1;         ///< share of its life in which it is used
  double overcommit = 1;          ///< instances that share the hardware of one
  MicroUsdPerHour staff;          ///< its share of the cost of operators, for each hour in use
  MicroUsd space_per_year = {};   ///< its room, rack and cooling, used or not
  MicroUsd people_per_year = {};  ///< its operators, if they are paid by the year and not by `staff`
  /// True if it draws idle power when it does not train. Only `compare-own` charges that.
  bool always_on = false;

  /// Price of an hour in use, to the nearest micro-dollar: (capital / life + space + people) / (hours of a year x
  /// utilization x overcommit) + staff / overcommit.
  MicroUsdPerHour per_hour() const;
  /// The assumptions of `per_hour`: "12000 USD over 4 years at 60 % use, staff 0.35 USD/h".
  std::string terms() const;
};

}  // namespace ganymede::platforms
