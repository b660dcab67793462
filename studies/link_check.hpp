#pragma once
// Are measured collectives as fast as their machine should make them, and if not, why?

#include <string>

#include "documents/machine_checks.hpp"
#include "studies/logged_machine.hpp"

namespace ganymede::studies {

struct LinkCheckOptions : LogOptions, MachineHints {
  std::string log;
};

/// Predicts the log's sizes on the machine as it is described, and on the same machine with each of link_causes(), and
/// compares how well each explains what was measured. Throws ConfigError for a log that cannot be read or contradicts
/// the options, and if the machine is not known.
documents::LinkCheck check_link_log(const LinkCheckOptions& options);

}  // namespace ganymede::studies
