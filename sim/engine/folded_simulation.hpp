#pragma once
// Simulates a quotient (symmetry.hpp) flow by flow, by the rules of schedule.hpp with classes instead of ranks. In a
// stage of like rounds it looks for a state that repeats (transfer_progress.hpp), and then skips the repetitions.

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/engine/symmetry.hpp"

namespace ganymede::sim {

class FoldedSimulation {
 public:
  /// Runs the simulation. Throws Failure if a rank waits for ever. `quotient` must outlive the object.
  explicit FoldedSimulation(const Quotient& quotient);
  ~FoldedSimulation();
  FoldedSimulation(const FoldedSimulation&) = delete;
  FoldedSimulation& operator=(const FoldedSimulation&) = delete;

  /// When a class of ranks ended each of its calls, in seconds on the clock of the arrivals.
  const std::vector<double>& done(std::size_t rank_class) const;
  std::int64_t flows() const;           ///< number of simulated flows
  std::int64_t rounds_skipped() const;  ///< summed over classes

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace ganymede::sim
