#pragma once
// Electricity and carbon of a finished run: GPUs draw power by how busy they were, hosts by how busy their processors
// were.

#include <optional>
#include <string>
#include <vector>

#include "sim/ledger/energy.hpp"
#include "sim/run/run_record.hpp"

namespace ganymede::sim {

struct RunEnergy {
  /// By pool of the scenario; none for a pool that was not used or whose power is not stated.
  std::vector<std::optional<Energy>> pools;
  std::optional<Energy> total;       ///< none unless power and carbon of every pool used are known
  double gpu_kwh = 0, host_kwh = 0;  ///< parts of the total; 0 for hosts whose power is not stated
  Interval kwh, kg_co2e;             ///< of the total, at the bounds of the run's time
  std::string grid;                  ///< sources of the carbon intensities
  std::vector<std::string> warnings;
};

/// Computes the energy of a finished run. `cpu`: by pool, the mean share of the hosts' processors that was busy;
/// nullopt: taken to be as busy as the GPUs that train there. GPUs of a node that nobody uses draw their idle power and
/// do not make its host any less busy. `time_s`: bounds of the run's time in seconds; a longer run holds its nodes
/// longer at the same power.
RunEnergy energy_of(const Scenario& scenario, const RunRecord& record, const std::vector<PoolAccount>& accounts,
                    const std::vector<std::optional<double>>& cpu, const Interval& time_s);

}  // namespace ganymede::sim
