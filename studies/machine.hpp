#pragma once
// The machine of a study's measurements, and what is known about its links.

#include <memory>
#include <optional>
#include <string>

#include "calibration/interval_classes.hpp"
#include "common/json_fwd.hpp"
#include "platforms/platform.hpp"

namespace ganymede::studies {

using calibration::LinkEvidence;

struct Machine {
  std::shared_ptr<const platforms::Platform> platform;
  std::shared_ptr<const platforms::Platform> as_shipped;  ///< the same, its NICs as the catalog or document states them
  std::string instance;
  int gpus_per_node = 0;
  std::optional<LinkEvidence> stated;  ///< by the study; unset: the labels of the platform's links say it

  /// Where the rates of the links that nodes of this machine use come from, as `simulate` sees it.
  LinkEvidence links(int nodes) const;
};

/// The member of `root`'s `section` that `name` names. Throws ConfigError with the known names if there is none.
JsonNode find_named(const JsonNode& root, const char* section, const JsonNode& name);

/// Reads one entry of "machines". Without "evidence", links of a catalog are as sure as their labels say, and those
/// of a platform that the study writes itself are assumed. NICs have their burst rate, because benchmarks take minutes,
/// unless "network" is "sustained".
Machine read_machine(const JsonNode& node);

}  // namespace ganymede::studies
