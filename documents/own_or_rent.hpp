#pragma once
// From how many hours of use a year on buying machines is cheaper than renting them, `ganymede.own-or-rent/1`.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "documents/plan.hpp"
#include "documents/walk.hpp"

namespace ganymede::documents {

inline constexpr std::string_view kOwnOrRentSchema = "ganymede.own-or-rent/1";

/// Machines of one's own, and a training on them.
struct OwnMachines {
  struct Year {
    double write_off = 0, space = 0, people = 0, idle_electricity = 0, total = 0;
  };
  struct Training {
    Measure hours;
    double usd = 0;  ///< what it adds, of which:
    double electricity_usd = 0, staff_usd = 0;
    std::optional<double> kwh;  ///< at the meter
    std::string inputs;
  };
  std::string machines, instance, gpu, region;
  int nodes = 1, gpus = 1;
  double capital_usd = 0, life_years = 0;
  Year usd_a_year;
  Training training;
  double pue = 1;
  std::optional<MicroUsd> usd_per_kwh;
};

/// From where on owning is cheaper. No number: never.
struct OwnBreakEven {
  std::string owning_is_cheaper;  ///< "from", "always" or "never"
  std::optional<double> trainings_a_year, hours_a_year, utilization, months_of_use;
  Interval hours_interval;  ///< an end that is not finite: never
};

/// The best offer of a market.
struct RentOffer {
  struct Price {
    MicroUsdPerHour usd_per_hour;
    std::string as_of, source;
    std::optional<std::string> doubt;
  };
  std::string market;
  std::optional<std::string> offer;  ///< none: there is none, and `reason` says why; then nothing below is there
  std::string reason;
  int gpus = 1;
  std::string gpu;
  Measure hours, usd;                 ///< of a training
  double committed_usd_a_year = 0;    ///< of reserved machines
  std::optional<double> usd_besides;  ///< of a training on them
  Price price;
  OwnBreakEven break_even;
};

struct OwnOrRent {
  std::string model;
  std::optional<std::int64_t> images;
  double hours_of_a_year = 0;
  std::string prices_aged_to;
  OwnMachines own;
  std::vector<RentOffer> offers;  ///< one for each market
  std::vector<std::string> warnings;
  std::string tool, platform;
  JsonText request;
};

void describe(Walk& walk, OwnOrRent& answer);
OrderedJson own_or_rent_json(const OwnOrRent& answer);
OwnOrRent own_or_rent_in(const Json& value);

}  // namespace ganymede::documents
