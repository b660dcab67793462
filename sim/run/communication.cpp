#include "sim/run/communication.hpp"

#include <algorithm>
#include <cmath>

#include "sim/engine/folded_engine.hpp"

namespace ganymede {

namespace {

/// Some seconds a step.
constexpr double kFlowsOfAStep = 4e6;

Seconds time_of(const FabricGraph& fabric, const Schedule& schedule) {
  const Job job{{Communicator{{}, {{&schedule, std::vector<Seconds>(static_cast<std::size_t>(schedule.ranks()))}}}}};
  const auto times = run_folded(fabric, {&job, 1}).times;
  return *std::max_element(times[0][0][0].done.begin(), times[0][0][0].done.end());
}

}  // namespace

Communication::Communication(const Scenario& scenario, const StepModel& model)
    : fabric_(scenario.platform, scenario.instance(), scenario.pool.nodes, scenario.pool.gpus_per_node) {
  for (const auto& bucket : model.buckets)
    schedules_.push_back(scenario.scheme.plan({fabric_.topology(), bucket.bytes, Collective::all_reduce, ""}));
  measure_load();
  if (scenario.fidelity == Fidelity::message) {
    engine_ = std::make_unique<CommunicationEngine>(fabric_);
    return;
  }
  std::vector<Seconds> proved;
  for (const Schedule& schedule : schedules_) {
    if (schedule.rounds() == 0) {
      proved.push_back(scenario.gpu().launch);
    } else if (const auto time = time_after_last_arrival(fabric_, schedule)) {
      proved.push_back(*time);
    }
  }
  if (proved.size() == schedules_.size()) {
    after_last_ = std::move(proved);
  } else if (model.samples > 1 && messages_ > kFlowsOfAStep) {
    late_ = true;
    for (const Schedule& schedule : schedules_) after_last_.push_back(time_of(fabric_, schedule));
  }
}

/// Calls run in issue order: one starts when the one before has ended and the last rank has arrived.
std::vector<std::vector<Seconds>> Communication::from_last_arrival(std::span<const Reduction> reductions) const {
  std::vector<std::vector<Seconds>> done;
  for (const auto& reduction : reductions) {
    Seconds start = *std::max_element(reduction.arrivals.begin(), reduction.arrivals.end());
    if (!done.empty()) start = std::max(start, done.back().front());
    done.emplace_back(reduction.arrivals.size(), start + after_last_[reduction.bucket]);
  }
  return done;
}

std::vector<std::vector<Seconds>> Communication::reduce(std::span<const Reduction> reductions, bool remember) {
  if (!after_last_.empty()) return from_last_arrival(reductions);
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
  Job job{{Communicator{}}};
  for (const auto& reduction : reductions)
    job.communicators[0].calls.push_back({&schedules_[reduction.bucket], reduction.arrivals});
  JobTimes times = engine_ ? engine_->run({&job, 1}) : run_folded(fabric_, {&job, 1}).times;
  std::vector<std::vector<Seconds>> done;
  for (auto& call : times[0][0]) done.push_back(std::move(call.done));
  return done;
}

/// Rounds of a stage load links alike, but for which of a ring's chunks they carry, all equal.
void Communication::measure_load() {
  std::vector<double> bytes(fabric_.links().size());
  std::vector<Transfer> transfers;
  std::vector<Path> paths;
  for (const auto& schedule : schedules_) {
    for (const Stage& stage : schedule.stages()) {
      transfers.clear();
      stage.expand(0, transfers);
      const auto rounds = static_cast<double>(stage.rounds);
      messages_ += rounds * static_cast<double>(transfers.size());
      for (const auto& transfer : transfers) {
        fabric_.paths(transfer.source, transfer.destination, paths);
        for (const Path& path : paths)
          for (const int link : path.links)
            bytes[static_cast<std::size_t>(link)] +=
                rounds * path.share * static_cast<double>(transfer.length) * schedule.cost().wire;
      }
    }
  }
  for (std::size_t link = 0; link < bytes.size(); ++link)
    busiest_link_ = std::max(busiest_link_, Bytes{bytes[link]} / fabric_.links()[link].bandwidth);
}

}  // namespace ganymede
