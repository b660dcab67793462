#pragma once
// The life of a service, event by event: requests wait in one queue, replicas take batches from it, and replicas are
// added, ended and taken back.

#include <cstdint>
#include <span>
#include <vector>

#include "sim/ledger/bill.hpp"
#include "sim/service/service.hpp"

namespace ganymede::sim {

/// What happened.
struct ServiceRecord {
  std::vector<double> latencies_s;  ///< of the requests that were served, in the order of their ends
  std::int64_t arrived = 0;
  std::int64_t refused = 0;    ///< for which the queue was full
  std::int64_t timed_out = 0;  ///< that waited too long
  std::int64_t lost = 0;       ///< whose replica was taken back under them
  std::int64_t batches = 0;
  double busy_s = 0, ready_s = 0;                   ///< of GPUs, of which `busy_s` is a part: within the duration
  double replica_s = 0;                             ///< of replicas that are ready
  int most_replicas = 0, starts = 0, reclaims = 0;  ///< `starts` beyond the first replicas
  std::vector<Rental> rentals;
};

/// Simulates the service with these times of a batch (`times[b - 1]` seconds for b images). The same arrivals, lives
/// and delays are drawn whatever the times.
///
/// A batch begins when a GPU is free and either `largest_batch` requests wait or the first has waited for `window`.
/// Replicas start with the delays of the platform: queue, boot, pull of the image, start of the framework; then `load`.
/// A replica that is no longer wanted finishes its batches; a replica with a notice takes no further batch. Those that
/// are taken back are asked for again at once, and come once the zone has capacity.
ServiceRecord simulate_service(const Service& service, std::span<const double> times);

}  // namespace ganymede::sim
