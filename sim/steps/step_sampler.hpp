#pragma once
// Draws which recorded steps the workers of a run repeat.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/random.hpp"
#include "sim/steps/rare_stalls.hpp"

namespace ganymede::sim {

/// Block bootstrap of a trace. All workers draw the same block of consecutive steps, so that they share slow drift;
/// inside the block each starts at a place of its own, so that they do not share fast jitter. Rows follow each other as
/// recorded, and after the block's end comes its start, which keeps their correlation. For example, with a block of
/// rows 40 to 64 one worker repeats 43, 44, …, 64, 40, 41, 42 and another 60, …, 64, 40, …, 59.
class StepSampler {
 public:
  /// Preconditions: samples, workers and block_length above zero.
  StepSampler(std::size_t samples, std::size_t workers, std::size_t block_length, std::uint64_t seed);

  /// Draws steps beyond the tail's threshold from the tail; needed with more workers than a block has steps.
  void use_tail(JitterTail tail);
  /// Lets each worker's steps stall.
  void use_stalls(RareStalls stalls) { stalls_ = std::move(stalls); }

  std::size_t block_length() const { return block_length_; }
  /// The rows of the next step, one for each worker; valid until the next call.
  std::span<const std::size_t> next();
  /// Seconds that each worker's step takes beyond its row; empty: none.
  std::span<const double> extra_s() const { return extra_s_; }

 private:
  std::size_t samples_;
  std::size_t block_length_;
  std::size_t place_;                // in the block
  std::size_t first_ = 0;            // row of the block
  std::vector<std::size_t> offset_;  // by worker
  std::vector<std::size_t> rows_;
  std::vector<double> extra_s_;
  std::optional<JitterTail> tail_;
  RareStalls stalls_;
  RandomStream random_, tail_random_, stall_random_;
};

}  // namespace ganymede::sim
