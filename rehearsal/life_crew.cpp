#include "rehearsal/life_crew.hpp"

#include <fmt/format.h>
#include <time.h>

#include "common/units.hpp"
#include "rehearsal/clock.hpp"

namespace ganymede::rehearsal {
namespace {

/// Returns once `holds` does; a worker looks often, because an order is a moment of the life.
template <class Condition>
void look_until(const Condition& holds) {
  constexpr timespec kLook{0, 100'000};
  while (!holds()) ::clock_nanosleep(CLOCK_MONOTONIC, 0, &kLook, nullptr);
}

}  // namespace

Crew::Crew(const CrewRequest& request, const WakePipe& pipe, LifeCheckpoint& checkpoint)
    : request_(request),
      board_(static_cast<int>(request.hosts.size()), request.steps->plan.schedules.size(), request.most_steps),
      wait_before_(sim::phases_that_wait(request.steps->plan.model, request.steps->plan.options.overlap)),
      connections_(request.hosts, request.spaces) {
  board_.orders().rate_bytes_per_s = request.shaping.rate.si;
  for (std::size_t rank = 0; rank < request_.hosts.size(); ++rank)
    workers_.push_back(start_process(
        request_.nodes[rank], [this, rank, &pipe, &checkpoint] { work(rank, pipe, checkpoint); },
        [this, rank](const std::string& why) { board_.fail(static_cast<int>(rank), why); }));
  // From here on a connection ends when one of its two workers does.
  for (std::size_t rank = 0; rank < request_.hosts.size(); ++rank) connections_.close_rank(rank);
}

Crew::~Crew() {
  for (const pid_t worker : workers_) kill_and_bury(worker, false);
}

std::string Crew::fault() const {
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    const std::optional<std::string> end = how_it_ended(workers_[rank]);
    if (!end || *end == "exit status 0") continue;
    const std::string why = board_.fault(static_cast<int>(rank));
    return fmt::format("rank {}: {}", rank, why.empty() ? *end : why);
  }
  return "";
}

void Crew::work(std::size_t rank, const WakePipe& pipe, LifeCheckpoint& checkpoint) {
  if (request_.spaces != nullptr) request_.spaces->enter(request_.hosts[rank]);
  SocketMessenger messenger(static_cast<int>(rank), connections_.take(rank), request_.shaping);
  Group group(messenger);
  StepPlayer player(request_.steps->plan, group, group.now());
  start(group, checkpoint);
  if (board_.is_last_ready()) pipe.send({Wake::Kind::crew_ready, number()});
  look_until([&] { return board_.orders().go.load(); });
  train(group, player, messenger, checkpoint);
  if (board_.is_last_ended()) pipe.send({Wake::Kind::crew_ended, number()});
}

void Crew::start(Group& group, LifeCheckpoint& checkpoint) const {
  group.sleep_until(request_.loading_from);
  if (request_.begins_at > request_.loading_from && group.is_first()) checkpoint.read(request_.begins_at);
  group.sleep_until(request_.begins_at);
  // Nobody begins before the checkpoint is read.
  if (request_.begins_at > request_.loading_from) group.barrier();
}

void Crew::train(Group& group, StepPlayer& player, SocketMessenger& messenger, LifeCheckpoint& checkpoint) {
  const int rank = group.rank();
  player.start_at(group.now());
  for (std::int64_t number = 1;; ++number) {
    const std::optional<StepBegin> begin = board_.begin(number);
    if (!begin) return;
    if (begin->checkpoint_first) {
      save(group, number - 1, checkpoint);
      player.start_at(group.now());
    }
    player.slow_down(board_.slow_factor(rank));
    if (request_.shaping.is_paced) messenger.set_rate(BytesPerSecond{board_.orders().rate_bytes_per_s});
    const auto& rows = request_.steps->rows;
    const auto row = (request_.first_row + static_cast<std::size_t>(number - 1)) % rows.size();
    board_.finish(rank, player.play(rows[row][static_cast<std::size_t>(rank)]));
  }
}

void Crew::save(Group& group, std::int64_t after_step, LifeCheckpoint& checkpoint) {
  const std::int64_t before = board_.saved().count;
  group.barrier();
  if (group.is_first()) {
    const double now = machine_time();
    board_.begin_saving(now);
    checkpoint.write(now + board_.orders().checkpoint_s);
    board_.end_saving(after_step, machine_time());
  }
  // Writing may take longer than a worker waits patiently for a message.
  look_until([&] { return board_.saved().count > before; });
}

}  // namespace ganymede::rehearsal
