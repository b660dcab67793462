#pragma once
// Steps of several workers, one after the other, however they keep in step with each other.

#include <span>
#include <string>
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

/// What a worker does for a while, for pictures of single steps. Of one worker those of kind communication are on a
/// track of their own, likewise those of kind input; all others follow each other.
struct StepSpan {
  enum class Kind {
    compute,        ///< a phase, on the device
    host,           ///< the gap that the host leaves before a phase, and the end of the step
    communication,  ///< a collective, from when the worker may enter it to its end
    exposed,        ///< waiting for communication
    straggler,      ///< waiting for other workers
    input,          ///< a stage of the input pipeline: read, decode, copy
    input_stall,    ///< waiting for the next batch
    lost,           ///< work that nobody waited for
  };
  std::size_t worker = 0;
  Kind kind = Kind::compute;
  std::string name;  ///< of the phase; of a collective its network
  Seconds start, end;
};

class StepProcess {
 public:
  virtual ~StepProcess() = default;
  /// From now on the spans of all steps are added to `spans`, which must outlive that; nullptr: no longer.
  virtual void record(std::vector<StepSpan>* spans) { spans_ = spans; }
  /// Simulates the next step; worker w does what sample rows[w] recorded, and takes extra_s[w] seconds more (none if
  /// empty).
  virtual StepOutcome next(std::span<const std::size_t> rows, std::span<const double> extra_s = {}) = 0;
  /// Steps after which the same comes round again: local steps between two averagings, or one.
  virtual int cycle() const { return 1; }
  /// Updates by others between a worker's reading of the weights and its own update, on average so far.
  virtual double staleness() const { return 0; }

 protected:
  /// Spans without length are left out.
  void show(std::size_t worker, StepSpan::Kind kind, const std::string& name, Seconds start, Seconds end) const {
    if (spans_ && end > start) spans_->push_back({worker, kind, name, start, end});
  }

  std::vector<StepSpan>* spans_ = nullptr;
};

}  // namespace ganymede
