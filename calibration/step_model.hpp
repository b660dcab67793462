#pragma once
// One worker's training step as data: the phases in order, how long each takes in each of a number of
// sampled steps, and when which gradients are ready. Calibration makes it from a trace; sim/steps simulates it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ganymede::calibration {

enum class Stream {
  compute,  ///< Work on the device, one phase after the other.
  input,    ///< A stage of the input pipeline (read and decode, copy to the device), which works ahead of the step.
};

/// A phase of the step. Times have one entry for each sampled step; entry i of every phase is of the same step, so that
/// a draw keeps their correlation.
struct StepPhase {
  std::string name;
  std::string network;  ///< The network that the phase works on; "" for none.
  Stream stream = Stream::compute;
  std::vector<double> gap_s;     ///< Seconds that the device is idle before the phase.
  std::vector<double> device_s;  ///< Seconds on the device, or in the stage of the input pipeline.
  std::vector<double> host_s;    ///< Seconds of the host process that drives the phase, while it runs.
  double flops = 0;
};

/// A bucket: gradients that are reduced together.
struct StepBucket {
  std::string network;
  std::int64_t bytes = 0;
  std::size_t phase = 0;      ///< Index of the phase that produces the gradients.
  double ready_fraction = 1;  ///< Share of that phase after which they are ready.
  /// Index of the phase that needs the reduced gradients; none: the first phase of the network after its last bucket.
  std::optional<std::size_t> needed_by = std::nullopt;
};

struct StepModel {
  std::vector<StepPhase> phases;
  std::vector<StepBucket> buckets;  ///< In the order in which they become ready.
  std::vector<double> tail_s;       ///< Seconds from the last phase's end to the step's end, by sample.
  std::size_t samples = 0;
  /// True: one host process drives all workers of a node, and its work for them queues. False: each worker has a
  /// process of its own.
  bool serial_host = false;

  /// Seconds of a sampled step without communication, with input always ready.
  double step_s(std::size_t sample) const;
  /// The mean of step_s() over the samples.
  double mean_s() const;
};

}  // namespace ganymede::calibration
