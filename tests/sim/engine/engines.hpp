#pragma once
// Runs either engine by the same call, for tests that expect the same of both.

#include <algorithm>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "common/process.hpp"
#include "sim/engine/communication_engine.hpp"
#include "sim/engine/folded_engine.hpp"
#include "sim/engine/simgrid_module.hpp"

namespace ganymede::sim {

enum class Engine { message, folded };
inline std::string name_of(Engine engine) { return engine == Engine::message ? "message" : "folded"; }

/// Runs `work` in a child process, because SimGrid allows one engine a process, and returns its numbers. Expectations
/// belong in the parent; those of a child would be lost.
inline std::vector<double> in_child(const std::function<std::vector<double>()>& work) {
  simgrid_module();  // which takes longer to load than most of these simulations, once for all children
  std::istringstream text(run_child([&] {
    std::string line;
    for (const double value : work()) line += fmt::format("{:.17g} ", value);
    return line;
  }));
  return {std::istream_iterator<double>(text), {}};
}

/// The times at which ranks are done, ordered by call, then by communicator.
inline std::vector<double> done_times(Engine engine, const FabricGraph& fabric, const Job& job) {
  const auto flat = [](const JobTimes& times) {
    std::vector<double> all;
    for (const auto& communicator : times[0])
      for (const auto& call : communicator)
        for (const Seconds done : call.done) all.push_back(done.si);
    return all;
  };
  if (engine == Engine::folded) return flat(run_folded(fabric, {&job, 1}).times);
  return in_child([&] { return flat(open_communication_engine(fabric)->run({&job, 1})); });
}

inline Job job_of(const Schedule& schedule, std::vector<Seconds> arrivals = {}) {
  arrivals.resize(static_cast<std::size_t>(schedule.ranks()));
  return Job{{Communicator{{}, {{&schedule, std::move(arrivals)}}}}};
}

inline double finish(Engine engine, const FabricGraph& fabric, const Schedule& schedule,
                     std::vector<Seconds> arrivals = {}) {
  const auto done = done_times(engine, fabric, job_of(schedule, std::move(arrivals)));
  return *std::max_element(done.begin(), done.end());
}

}  // namespace ganymede::sim
