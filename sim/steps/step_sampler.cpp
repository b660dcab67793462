#include "sim/steps/step_sampler.hpp"

#include <algorithm>
#include <cassert>

namespace ganymede::sim {

StepSampler::StepSampler(std::size_t samples, std::size_t workers, std::size_t block_length, std::uint64_t seed)
    : samples_(samples),
      block_length_(std::min(samples, block_length)),
      place_(block_length_),
      offset_(workers),
      rows_(workers),
      random_(seed, "run/step-sampler"),
      tail_random_(seed, "run/jitter-tail"),
      stall_random_(seed, "run/rare-stalls") {
  assert(samples > 0 && workers > 0 && block_length > 0);
}

void StepSampler::use_tail(JitterTail tail) {
  tail_ = std::move(tail);
  extra_s_.resize(rows_.size());
}

std::span<const std::size_t> StepSampler::next() {
  if (place_ == block_length_) {
    place_ = 0;
    first_ = random_.below(samples_ - block_length_ + 1);
    for (auto& offset : offset_) offset = random_.below(block_length_);
  }
  for (std::size_t worker = 0; worker < rows_.size(); ++worker)
    rows_[worker] = first_ + (place_ + offset_[worker]) % block_length_;
  ++place_;
  if (!stalls_.extra_s.empty()) extra_s_.resize(rows_.size());
  for (std::size_t worker = 0; worker < extra_s_.size(); ++worker) {
    extra_s_[worker] = stalls_.draw(stall_random_);
    if (!tail_ || !tail_->is_beyond[rows_[worker]]) continue;
    rows_[worker] = tail_->base_row;
    extra_s_[worker] += tail_->beyond(tail_random_);
  }
  return rows_;
}

}  // namespace ganymede::sim
