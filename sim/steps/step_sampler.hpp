#pragma once
// Draws which recorded steps the workers of a run repeat.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/random.hpp"
#include "sim/steps/rare_stalls.hpp"

namespace ganymede {

/// Block bootstrap of a trace. All workers of a run draw the same block of consecutive steps, so that slow drift is
/// shared by them; inside the block each starts at a place of its own, so that fast jitter is not. Rows follow each
/// other as recorded (round the block), which keeps their correlation.
class StepSampler {
 public:
  /// Preconditions: samples, workers and block_length above zero.
  StepSampler(std::size_t samples, std::size_t workers, std::size_t block_length, std::uint64_t seed);

  /// Steps beyond the tail's threshold are drawn from the tail instead, for more workers than a block has steps.
  void use_tail(JitterTail tail);
  /// Each worker's steps may stall.
  void use_stalls(RareStalls stalls) { stalls_ = std::move(stalls); }

  std::size_t block_length() const { return block_length_; }
  /// The rows of the next step, one a worker; valid until the next call.
  std::span<const std::size_t> next();
  /// What they take besides, in seconds; empty: nothing.
  std::span<const double> extra_s() const { return extra_s_; }

 private:
  std::size_t samples_;
  std::size_t block_length_;
  std::size_t place_;  // in the block
  std::size_t first_ = 0;
  std::vector<std::size_t> offset_;  // by worker
  std::vector<std::size_t> rows_;
  std::vector<double> extra_s_;
  std::optional<JitterTail> tail_;
  RareStalls stalls_;
  RandomStream random_, tail_random_, stall_random_;
};

}  // namespace ganymede
