#pragma once
// The bill of a finished run: what the provider meters for nodes, storage and services.

#include <set>
#include <string>

#include "sim/ledger/bill.hpp"
#include "sim/run/run_energy.hpp"
#include "sim/run/run_record.hpp"

namespace ganymede::sim {

struct RunBill {
  Bill bill;
  std::set<std::string> warnings;  ///< what the bill leaves out
};

/// Returns the bill of the run as if it had taken `longer` nanoseconds more (negative: less): training is stretched,
/// waits and boots keep their length. `energy` is that of the run as it was. Throws Failure if an amount does not fit
/// into 64 bits.
RunBill bill_of(const Scenario& scenario, const RunRecord& record, const RunEnergy& energy, Nanoseconds longer = 0);

/// How a provider meters the nodes of a pool.
BillingRule billing_rule_of(const ScenarioPool& pool);

/// The total of `bill` in dollars.
double total_usd(const Bill& bill);

}  // namespace ganymede::sim
