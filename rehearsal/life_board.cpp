#include "rehearsal/life_board.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <new>

#include "common/errors.hpp"

namespace ganymede::rehearsal {

LifeBoard::LifeBoard(int ranks, std::size_t buckets, std::int64_t most_steps)
    : ranks_(ranks), buckets_(buckets), numbers_(numbers_of_step(buckets)), most_steps_(most_steps) {
  const std::size_t heads = sizeof(Head) + sizeof(Rank) * static_cast<std::size_t>(ranks);
  size_ = heads + sizeof(double) * numbers_ * static_cast<std::size_t>(ranks) * static_cast<std::size_t>(most_steps);
  // Pages take memory only once steps are written into them.
  memory_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory_ == MAP_FAILED) throw Failure("cannot share memory with the workers of a rehearsal");
  auto* const bytes = static_cast<std::byte*>(memory_);
  head_ = new (bytes) Head;
  ranks_head_ = reinterpret_cast<Rank*>(bytes + sizeof(Head));
  for (int rank = 0; rank < ranks; ++rank) new (ranks_head_ + rank) Rank;
  rows_ = reinterpret_cast<double*>(bytes + heads);
}

LifeBoard::~LifeBoard() { ::munmap(memory_, size_); }

// A worker that has read the number before finds that `begun` is not what it has seen, and reads again.
bool LifeBoard::set_last(std::int64_t last) {
  head_->last = last;
  return (head_->begun.fetch_add(std::uint64_t{1} << kSettings) & kStop) == 0;
}

std::optional<StepBegin> LifeBoard::begin(std::int64_t number) {
  constexpr std::uint64_t kStepMask = (std::uint64_t{1} << kSettings) - 1;
  std::uint64_t seen = head_->begun;
  while (true) {
    const auto latest = static_cast<std::int64_t>((seen & kStepMask) >> kFlags);
    // Nobody is two steps ahead, because every step waits for all ranks: the flag belongs to this step.
    if (latest >= number) return StepBegin{(seen & kCheckpoint) != 0};
    if ((seen & kStop) != 0) return std::nullopt;
    if (number > head_->last) {
      head_->begun.compare_exchange_strong(seen, seen | kStop);
      continue;
    }
    const std::int64_t due = head_->orders.due;
    const bool checkpoint = due >= 0 && number - 1 >= due;
    const std::uint64_t next =
        (seen & ~kStepMask) | (static_cast<std::uint64_t>(number) << kFlags) | (checkpoint ? kCheckpoint : 0);
    if (head_->begun.compare_exchange_strong(seen, next)) return StepBegin{checkpoint};
  }
}

double* LifeBoard::numbers_of(int rank, std::int64_t step) const {
  assert(step < most_steps_);
  return rows_ +
         (static_cast<std::size_t>(rank) * static_cast<std::size_t>(most_steps_) + static_cast<std::size_t>(step)) *
             numbers_;
}

void LifeBoard::finish(int rank, const PlayedStep& step) {
  std::vector<double> numbers;
  append_numbers(step, numbers);
  const std::int64_t done = rank_of(rank).finished;
  std::copy(numbers.begin(), numbers.end(), numbers_of(rank, done));
  rank_of(rank).finished = done + 1;
}

void LifeBoard::fail(int rank, const std::string& why) {
  char* const fault = rank_of(rank).fault;
  fault[why.copy(fault, sizeof(Rank::fault) - 1)] = '\0';
}

void LifeBoard::end_saving(std::int64_t after_step, double now) {
  const std::int64_t every = head_->orders.every;
  head_->orders.due = every > 0 ? after_step + every : -1;
  head_->saving_s = head_->saving_s + (now - head_->saving_since);
  head_->saved_after = after_step;
  head_->saving_since = 0;
  head_->saved = head_->saved + 1;
}

LifeBoard::Saved LifeBoard::saved() const {
  Saved out{.count = head_->saved};
  out.after_step = head_->saved_after;
  out.seconds = head_->saving_s;
  out.since = head_->saving_since;
  return out;
}

std::int64_t LifeBoard::finished() const {
  std::int64_t least = rank_of(0).finished;
  for (int rank = 1; rank < ranks_; ++rank) least = std::min<std::int64_t>(least, rank_of(rank).finished);
  return least;
}

std::vector<std::vector<PlayedStep>> LifeBoard::played(std::int64_t first, std::int64_t end) const {
  std::vector<std::vector<PlayedStep>> out;
  for (std::int64_t step = first; step < end; ++step) {
    out.emplace_back();
    for (int rank = 0; rank < ranks_; ++rank) out.back().push_back(step_of_numbers(numbers_of(rank, step), buckets_));
  }
  return out;
}

std::string LifeBoard::fault(int rank) const { return rank_of(rank).fault; }

}  // namespace ganymede::rehearsal
