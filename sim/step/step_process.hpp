#pragma once
// Steps of several workers, one after the other, however they keep in step with each other.

#include <span>
#include <vector>

#include "common/units.hpp"

namespace ganymede {

/// Where one worker's part of a step went. All but `device` sum to the step's duration.
struct WorkerStep {
  Seconds compute;                ///< its phases and the gaps that its host leaves between them
  Seconds exposed_communication;  ///< waiting for a reduction that all workers have issued
  Seconds straggler;              ///< waiting for other workers to issue it, or to end their step
  Seconds input_stall;            ///< waiting for the next batch
  Seconds lost;                   ///< work that nobody waited for
  Seconds device;  ///< part of compute: the device's own work, without gaps and without queueing for the host
};

struct StepOutcome {
  Seconds duration;  ///< until the slowest worker has ended
  std::vector<WorkerStep> workers;
};

class StepProcess {
 public:
  virtual ~StepProcess() = default;
  /// Simulates the next step; worker w does what sample rows[w] recorded, and takes extra_s[w] seconds more (none if
  /// empty).
  virtual StepOutcome next(std::span<const std::size_t> rows, std::span<const double> extra_s = {}) = 0;
  /// Steps after which the same comes round again: local steps between two averagings, or one.
  virtual int cycle() const { return 1; }
  /// Updates by others between a worker's reading of the weights and its own update, on average so far.
  virtual double staleness() const { return 0; }
};

}  // namespace ganymede
