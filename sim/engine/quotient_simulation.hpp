#pragma once
// Simulates a quotient flow by flow, and of rounds that repeat only so many as it takes until the state repeats too:
// the rules are those of schedule.hpp, for classes instead of ranks.

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/engine/symmetry.hpp"

namespace ganymede {

class QuotientSimulation {
 public:
  /// Runs it. Failure if a rank waits for ever. `quotient` must outlive it.
  explicit QuotientSimulation(const Quotient& quotient);
  ~QuotientSimulation();
  QuotientSimulation(const QuotientSimulation&) = delete;
  QuotientSimulation& operator=(const QuotientSimulation&) = delete;

  /// When a class ended each of its calls, in seconds on the clock of the arrivals.
  const std::vector<double>& done(std::size_t rank) const;
  std::int64_t flows() const;           ///< simulated
  std::int64_t rounds_skipped() const;  ///< of all classes

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace ganymede
