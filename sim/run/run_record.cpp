#include "sim/run/run_record.hpp"

#include <algorithm>
#include <utility>

#include "sim/ledger/ledger.hpp"

namespace ganymede::sim {

Seconds to_seconds(NodeNanoseconds time) { return Seconds{static_cast<double>(time) / kNanosecondsPerSecond}; }

NodeNanoseconds held_time(const RunRecord& record, std::size_t pool, const Stretch& stretch) {
  NodeNanoseconds sum = 0;
  for (const Node& node : record.nodes) {
    if (node.pool != pool || node.granted == kNever) continue;
    const Nanoseconds to = std::min(node.gone, record.end);
    sum += stretch.at(to) - stretch.start(node.granted, std::min(node.readied, to));
  }
  return sum;
}

int held_at_end(const RunRecord& record, std::size_t pool) {
  return static_cast<int>(std::count_if(record.nodes.begin(), record.nodes.end(), [&](const Node& node) {
    return node.pool == pool && node.granted != kNever && node.gone >= record.end;
  }));
}

NodeNanoseconds held_with_tail(const Scenario& scenario, const RunRecord& record, std::size_t pool,
                               const Stretch& stretch) {
  const NodeNanoseconds tail = to_nanoseconds(scenario.charges.idle_tail);
  return held_time(record, pool, stretch) + tail * held_at_end(record, pool);
}

double held_ratio(const Scenario& scenario, const RunRecord& record, std::size_t pool, const Stretch& stretch) {
  const NodeNanoseconds held = held_with_tail(scenario, record, pool);
  if (held == 0) return 1;
  return static_cast<double>(held_with_tail(scenario, record, pool, stretch)) / static_cast<double>(held);
}

int most_held(const RunRecord& record) {
  std::vector<std::pair<Nanoseconds, int>> changes;  // at equal times removals count before additions
  for (const Node& node : record.nodes) {
    if (node.granted == kNever || node.gone <= node.granted) continue;
    changes.emplace_back(node.granted, 1);
    changes.emplace_back(node.gone, -1);
  }
  std::sort(changes.begin(), changes.end());
  int held = 0, most = 0;
  for (const auto& [when, change] : changes) most = std::max(most, held += change);
  return most;
}

std::vector<Rental> rentals_of(const Scenario& scenario, const RunRecord& record, std::size_t pool,
                               const Stretch& stretch) {
  const platforms::Billing& billing = scenario.pools[pool].platform->billing;
  const Nanoseconds tail = to_nanoseconds(scenario.charges.idle_tail);
  std::vector<Rental> rentals;
  for (const Node& node : record.nodes) {
    if (node.pool != pool || node.granted == kNever) continue;
    const Nanoseconds from = billing.start == platforms::Billing::Start::request ? node.requested
                             : billing.start == platforms::Billing::Start::boot  ? node.granted
                                                                                 : node.runs;
    const Nanoseconds to = std::min(node.gone, record.end);
    if (from > record.end || (from >= to && node.gone < record.end)) continue;  // never on the meter
    rentals.push_back({stretch.start(from, std::min(node.readied, to)),
                       stretch.at(to) + (node.gone < record.end ? 0 : tail), node.interrupted});
  }
  return rentals;
}

std::vector<PoolAccount> close_accounts(const Scenario& scenario, const RunRecord& record) {
  std::vector<PoolAccount> accounts;
  for (std::size_t p = 0; p < scenario.pools.size(); ++p) {
    const NodeNanoseconds held = held_with_tail(scenario, record, p);
    if (held == 0) continue;
    Ledger ledger = record.ledgers[p];
    ledger.hold(scenario.pools[p].instance().gpus, held);
    accounts.push_back({p, held, ledger.close()});
  }
  return accounts;
}

void EventLog::append(RunEvent entry) {
  if (events_.size() == kMaxListedEvents) events_.push_back({entry.at, "further events are not listed", "", 0, "", 1});
  if (truncated()) return;
  if (!events_.empty()) {
    RunEvent& last = events_.back();
    if (last.at == entry.at && last.what == entry.what && last.pool == entry.pool && last.detail == entry.detail) {
      last.nodes += entry.nodes;
      return;
    }
  }
  events_.push_back(std::move(entry));
}

}  // namespace ganymede::sim
