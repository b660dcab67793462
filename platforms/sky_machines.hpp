#pragma once
// The machines of one of SkyPilot's lists, and the platform file that they become.

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "common/json_value.hpp"
#include "platforms/platform.hpp"
#include "platforms/sky_gpus.hpp"
#include "platforms/sky_platform.hpp"

namespace ganymede::platforms {

constexpr std::array kSkyMarkets = {Market::on_demand, Market::spot};

struct SkyZonePrice {
  double usd = 0;  ///< an hour
  std::size_t line = 0;
};

struct SkyMachine {
  std::string gpu;  ///< by its name in platforms
  int gpus = 1;
  double vcpus = 0, memory_gib = 0;  ///< 0: not stated
  std::string notes;
  /// By region and the market's place in kSkyMarkets, then by zone.
  std::map<std::pair<std::string, std::size_t>, std::map<std::string, SkyZonePrice>> prices;
};

struct SkyMachines {
  std::map<std::string, SkyMachine> machines;  ///< by instance type; those without a price are left out of the text
  std::map<std::string, SkyGpu> gpus;          ///< of the machines, by name; a catalog's own GPUs may be missing
  OrderedJson base;                            ///< the cloud's catalog; null: the program has none
};

/// The `ganymede.platform/1` of these machines.
std::string platform_text(const SkyMachines& made, const SkyListOptions& options);

}  // namespace ganymede::platforms
