#include "rehearsal/prediction.hpp"

#include <algorithm>

#include "common/units.hpp"
#include "sim/engine/folded_engine.hpp"

namespace ganymede::rehearsal {

Seconds predicted_time(const sim::FabricGraph& fabric, const sim::Schedule& schedule) {
  const sim::Job job{
      {sim::Communicator{{}, {{&schedule, std::vector<Seconds>(static_cast<std::size_t>(schedule.ranks()))}}}}};
  const sim::FoldedTimes times = sim::run_folded(fabric, {&job, 1});
  const auto& done = times.times[0][0][0].done;
  return *std::max_element(done.begin(), done.end());
}

}  // namespace ganymede::rehearsal
