#include "sim/engine/simgrid_module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "common/errors.hpp"
#include "common/module.hpp"
#include "common/printable.hpp"

namespace ganymede::sim {
namespace {

constexpr const char* kRemedy = "install the program again, with its folder lib/ganymede (docs/install.md)";

const SimGridModule& load() {
  const auto file = module_file("simgrid");
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  const void* module = handle == nullptr ? nullptr : ::dlsym(handle, kSimGridModule);
  if (module == nullptr)
    throw Failure(
        fmt::format("the module by which SimGrid simulates messages cannot be loaded: {}; {}", ::dlerror(), kRemedy));
  const auto& found = *static_cast<const SimGridModule*>(module);
  if (std::string_view(found.version) != GANYMEDE_VERSION)
    throw Failure(fmt::format("{} is of version {}, the program of {}; {}", file.native(), printable(found.version),
                              GANYMEDE_VERSION, kRemedy));
  return found;
}

}  // namespace

const SimGridModule& simgrid_module() {
  static const SimGridModule& module = load();
  return module;
}

std::unique_ptr<CommunicationEngine> open_communication_engine(const Network& fabric) {
  return simgrid_module().make_engine(fabric);
}

std::unique_ptr<LiveSimulation> open_live_simulation(const Network& network, std::size_t stores) {
  return simgrid_module().make_live(network, stores);
}

}  // namespace ganymede::sim
