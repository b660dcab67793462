#pragma once
// What one worker does in one training step, as data: the phases in order, how long each takes in each of a number of
// sampled steps, and which gradients become ready when. Calibration makes it from a trace; sim/steps walks it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ganymede {

enum class Stream {
  compute,  ///< on the device, one after the other
  input,    ///< a stage of the input pipeline (read and decode, copy to the device), worked ahead of the step
};

/// Times are in seconds, one entry a sample; samples of all phases are index-aligned, so that a draw keeps their
/// correlation.
struct StepPhase {
  std::string name;
  std::string network;  ///< whose phase it is; "" for none
  Stream stream = Stream::compute;
  std::vector<double> gap_s;     ///< idle before it, after the phase before
  std::vector<double> device_s;  ///< on its own resource
  std::vector<double> host_s;    ///< of the host process that drives it, while it runs
  double flops = 0;
};

/// Gradients that are reduced together.
struct StepBucket {
  std::string network;
  std::int64_t bytes = 0;
  std::size_t phase = 0;      ///< index of the phase that produces it
  double ready_fraction = 1;  ///< of that phase
  /// Index of the phase that needs it reduced; none: the first of its network after its last bucket.
  std::optional<std::size_t> needed_by = std::nullopt;
};

struct StepModel {
  std::vector<StepPhase> phases;
  std::vector<StepBucket> buckets;  ///< in the order in which they become ready
  std::vector<double> tail_s;       ///< from the last phase's end to the step's end, one a sample
  std::size_t samples = 0;
  /// One host process drives all workers of a node and its work for them queues; else each worker has a process of its
  /// own.
  bool serial_host = false;

  /// Without communication and with input always ready: the mean over the samples.
  double mean_s() const;
  double step_s(std::size_t sample) const;
};

}  // namespace ganymede
