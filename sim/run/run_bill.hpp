#pragma once
// The bill of a finished run: the provider's meters, and what it rents besides nodes.

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

/// The bill if the run had taken `longer` more (less if negative): its training is stretched, waits and boots keep
/// their length. `energy` is that of the run as it was. Failure when an amount does not fit.
RunBill bill_of(const Scenario& scenario, const RunRecord& record, const RunEnergy& energy, Nanoseconds longer = 0);

/// How a provider meters the nodes of a pool.
BillingRule billing_rule_of(const ScenarioPool& pool);

/// Dollars that `bill` comes to.
double total_usd(const Bill& bill);

}  // namespace ganymede::sim
