#pragma once
// All use of SimGrid is in a module of its own, which the program loads when it first needs it: with its own libraries
// SimGrid takes 60 ms to load, and most commands simulate no message.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "sim/engine/communication_engine.hpp"
#include "sim/engine/platform_xml.hpp"
#include "sim/engine/simgrid_platform.hpp"

namespace ganymede::sim {

/// The functions of the module, as its symbol of the name kSimGridModule.
struct SimGridModule {
  const char* version;  ///< the program's: classes of C++ pass between the two
  std::unique_ptr<CommunicationEngine> (*make_engine)(const Network& fabric);
  std::unique_ptr<LiveSimulation> (*make_live)(const Network& network, std::size_t stores);
  SimGridPlatform (*read_platform)(const PlatformXml& xml, const std::string& file,
                                   const std::function<void(SimGridPlatform&)>& choose);
};

inline constexpr const char* kSimGridModule = "ganymede_simgrid_module";

/// Loads the module in the first call. A process whose children need it calls this before it makes them, so that it is
/// loaded once. Throws Failure if the module is not there.
const SimGridModule& simgrid_module();

/// In the module: lets SimGrid load `file`, which holds the text of `xml`, and reads its hosts and the routes between
/// those that `choose` leaves.
SimGridPlatform read_simgrid_platform(const PlatformXml& xml, const std::string& file,
                                      const std::function<void(SimGridPlatform&)>& choose);

}  // namespace ganymede::sim
