#pragma once
// The common interface of the synchronization modes: simulates steps of several workers, one after the other.

#include <span>
#include <string>
#include <vector>

#include "common/units.hpp"

namespace ganymede::sim {

/// Where one worker's time in a step went. All but `device` sum to the step's duration.
struct WorkerStep {
  Seconds compute;                ///< Its phases and the gaps that its host leaves between them.
  Seconds exposed_communication;  ///< Waiting for a reduction that all workers have issued.
  Seconds straggler;              ///< Waiting for other workers to issue it, or to end their step.
  Seconds input_stall;            ///< Waiting for the next batch.
  Seconds lost;                   ///< Work of a worker that the step did not wait for.
  Seconds device;                 ///< Part of `compute`: the device's own work, without gaps or waiting for the host.
};

struct StepOutcome {
  Seconds duration;  ///< Until the slowest worker has ended.
  std::vector<WorkerStep> workers;
};

/// A worker's work from `start` to `end`, for pictures of single steps. A worker has three tracks: the spans of kind
/// communication, those of kind input, and all others, which follow each other.
struct StepSpan {
  enum class Kind {
    compute,        ///< A phase on the device.
    host,           ///< The gap that the host leaves before a phase, and the end of the step.
    communication,  ///< A collective, from when the worker may enter it to its end.
    exposed,        ///< Waiting for communication.
    straggler,      ///< Waiting for other workers.
    input,          ///< A stage of the input pipeline: read, decode, copy.
    input_stall,    ///< Waiting for the next batch.
    lost,           ///< Work of a worker that the step did not wait for.
  };
  std::size_t worker = 0;
  Kind kind = Kind::compute;
  std::string name;  ///< The phase, or what is waited for or communicated.
  Seconds start, end;
};

/// A synchronization mode that simulates one step after the other.
class StepProcess {
 public:
  virtual ~StepProcess() = default;
  /// Adds the spans of all further steps to `spans`, which must live until this is called again; null stops recording.
  virtual void record(std::vector<StepSpan>* spans) { spans_ = spans; }
  /// Simulates the next step. Worker w repeats the recorded step rows[w] and takes extra_s[w] seconds more (empty:
  /// none).
  virtual StepOutcome next(std::span<const std::size_t> rows, std::span<const double> extra_s = {}) = 0;
  /// Number of steps after which the pattern repeats: the local steps between two averagings, or 1.
  virtual int cycle() const { return 1; }
  /// Mean number of updates by others between a worker's reading of the weights and its own update; 0 if synchronous.
  virtual double staleness() const { return 0; }

 protected:
  /// Adds a span if spans are recorded; spans without length are left out.
  void show(std::size_t worker, StepSpan::Kind kind, const std::string& name, Seconds start, Seconds end) const {
    if (spans_ && end > start) spans_->push_back({worker, kind, name, start, end});
  }

  std::vector<StepSpan>* spans_ = nullptr;
};

}  // namespace ganymede::sim
