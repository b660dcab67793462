#pragma once
// The bill of a finished run: what the provider meters for nodes, storage and services.

#include <set>
#include <string>

#include "sim/ledger/bill.hpp"
#include "sim/run/run_energy.hpp"
#include "sim/run/run_record.hpp"

namespace ganymede::sim {

/// As clouds count months of storage and IOPS.
inline constexpr double kHoursPerMonth = 730;

struct RunBill {
  Bill bill;
  std::set<std::string> warnings;  ///< what the bill leaves out
};

/// Data that a store keeps, and the requests to it.
struct StoredData {
  platforms::Storage storage;
  Volume volume;
  std::string what;              ///< "dataset"
  double bytes = 0;              ///< at least; a volume is charged by its size
  double months = 0;             ///< of 730 h, for which it is kept, summed over its copies
  double reads = 0, writes = 0;  ///< requests
  std::size_t pool = 0;          ///< whose region it is in
};

/// Dedicated parameter servers, rented on demand.
struct RentedServers {
  ServerNodes servers;
  std::vector<Rental> rentals;
  std::size_t pool = 0;  ///< whose platform rents them out
};

/// The uses that are billed beside the nodes of the pools.
struct OtherUse {
  std::vector<StoredData> stored;
  std::vector<RentedServers> servers;
};

/// Requests with which so many checkpoints of this size are written to an object store.
double write_requests(Bytes checkpoint, double checkpoints);

/// Returns the bill for the nodes of `record`, priced by the pools and charges of `scenario`, and for `other`. What
/// else the scenario says is not used, so that it may stand for a cluster with many jobs. Throws Failure if an amount
/// does not fit into 64 bits.
RunBill bill_of(const Scenario& scenario, const RunRecord& record, const RunEnergy& energy, const OtherUse& other);

/// Returns the bill of the run as if it had taken `longer` nanoseconds more (negative: less): training is stretched,
/// waits and boots keep their length. `energy` is that of the run as it was. Throws Failure if an amount does not fit
/// into 64 bits.
RunBill bill_of(const Scenario& scenario, const RunRecord& record, const RunEnergy& energy, Nanoseconds longer = 0);

/// How a provider meters the nodes of a pool.
BillingRule billing_rule_of(const ScenarioPool& pool);

/// The total of `bill` in dollars.
double total_usd(const Bill& bill);

}  // namespace ganymede::sim
