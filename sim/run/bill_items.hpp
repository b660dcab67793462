#pragma once
// The items of the bill of a run or a cluster. Each function adds the lines of one kind; bill_of calls them in the
// order of the bill.

#include <utility>

#include "sim/run/run_bill.hpp"

namespace ganymede::sim {

/// A bill under construction, and the inputs from which its items are computed.
struct BillDraft {
  const Scenario& scenario;
  const RunRecord& record;
  const RunEnergy& energy;
  Stretch stretch;  ///< stretches the run to the length that is billed
  RunBill out = {};

  /// Nanoseconds from the request to the end of the stretched run, idle tail included.
  Nanoseconds end() const { return stretch.at(record.end) + to_nanoseconds(scenario.charges.idle_tail); }
  double hours() const;
  double months() const;  ///< a month has 730 h
  /// The pool whose platform charges for what belongs to no single pool.
  const ScenarioPool& first() const { return scenario.pools.front(); }

  void add(BillItem item, const ScenarioPool& from, bool with_market = false);
  /// Warns that a storage class has no price, unless the machines are the user's own.
  void warn_no_price(const platforms::Storage& storage, const ScenarioPool& from);
};

inline constexpr double kHoursPerMonth = 730;

// bill_nodes.cpp
void add_instance_hours(BillDraft& draft, std::size_t pool);
void add_parameter_servers(BillDraft& draft, const RentedServers& rented);
/// The unused rest of the terms of reserved nodes. The draft must already contain the instance hours.
void add_commitments(BillDraft& draft);

// bill_storage.cpp
void add_boot_disks(BillDraft& draft);
void add_volume(BillDraft& draft, const StoredData& data);
void add_storage_requests(BillDraft& draft, const StoredData& data);

// bill_services.cpp
void add_data_transfer(BillDraft& draft);
void add_services(BillDraft& draft);
/// Electricity, if the price of the nodes does not contain it.
void add_electricity(BillDraft& draft);

}  // namespace ganymede::sim
