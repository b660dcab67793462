#include "sim/run/communication.hpp"

#include <algorithm>
#include <cmath>

namespace ganymede {

Communication::Communication(const Scenario& scenario, const StepModel& model)
    : fabric_(scenario.platform, scenario.instance(), scenario.pool.nodes, scenario.pool.gpus_per_node),
      engine_(fabric_, {scenario.gpu().memory_bandwidth, scenario.gpu().launch}) {
  for (const auto& bucket : model.buckets)
    schedules_.push_back(scenario.scheme->plan(fabric_.topology(), bucket.bytes));
  measure_load();
}

std::vector<std::vector<Seconds>> Communication::reduce(std::span<const Reduction> reductions, bool remember) {
  if (!remember) return simulate(reductions);
  const Seconds first = reductions.front().arrivals.front();
  std::vector<std::int64_t> pattern;  // picoseconds, below which the clock's rounding would tell steps apart
  for (const auto& reduction : reductions) {
    pattern.push_back(static_cast<std::int64_t>(reduction.bucket));
    for (const Seconds arrival : reduction.arrivals) pattern.push_back(std::llround((arrival - first).si * 1e12));
  }
  const auto [known, is_new] = known_.try_emplace(std::move(pattern));
  if (is_new) {
    known->second = simulate(reductions);
    for (auto& times : known->second)
      for (auto& done : times) done -= first;
  }
  auto done = known->second;
  for (auto& times : done)
    for (auto& time : times) time += first;
  return done;
}

std::vector<std::vector<Seconds>> Communication::simulate(std::span<const Reduction> reductions) {
  std::vector<CollectiveCall> calls;
  for (const auto& reduction : reductions) calls.push_back({&schedules_[reduction.bucket], reduction.arrivals});
  std::vector<std::vector<Seconds>> done;
  for (auto& times : engine_.run(calls)) done.push_back(std::move(times.done));
  return done;
}

void Communication::measure_load() {
  std::vector<double> bytes(fabric_.links().size());
  std::vector<Transfer> transfers;
  for (const auto& schedule : schedules_) {
    for (std::int64_t round = 0; round < schedule.rounds(); ++round) {
      schedule.round(round, transfers);
      messages_ += static_cast<double>(transfers.size());
      for (const auto& transfer : transfers)
        for (const int link : fabric_.route(transfer.source, transfer.destination).links)
          bytes[static_cast<std::size_t>(link)] += static_cast<double>(transfer.length);
    }
  }
  for (std::size_t link = 0; link < bytes.size(); ++link)
    busiest_link_ = std::max(busiest_link_, Bytes{bytes[link]} / fabric_.links()[link].bandwidth);
}

}  // namespace ganymede
