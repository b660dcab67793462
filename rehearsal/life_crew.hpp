#pragma once
// A crew: the workers of one start of the training program, one process on each node that trains.

#include <memory>
#include <string>
#include <vector>

#include "rehearsal/host_connections.hpp"
#include "rehearsal/life_board.hpp"
#include "rehearsal/life_checkpoint.hpp"
#include "rehearsal/life_processes.hpp"
#include "rehearsal/socket_messenger.hpp"
#include "rehearsal/step_plan.hpp"

namespace ganymede::rehearsal {

/// The steps of a number of workers, and which recorded steps they repeat.
struct CrewSteps {
  StepPlan plan;
  std::vector<std::vector<std::size_t>> rows;  ///< by step and rank; begins anew after the last
};

struct CrewRequest {
  std::uint64_t number = 0;  ///< of the crew
  const CrewSteps* steps = nullptr;
  std::size_t first_row = 0;  ///< index into its rows, for the first step
  Shaping shaping = {};
  const NameSpaces* spaces = nullptr;
  std::vector<int> hosts = {};    ///< by rank
  std::vector<pid_t> nodes = {};  ///< by rank: the process of the node
  double loading_from = 0;        ///< the program starts until then, in seconds of the machine's clock,
  double begins_at = 0;           ///< and reads a checkpoint until then; the same: it reads none
  std::int64_t most_steps = 0;
};

class Crew {
 public:
  /// Starts the workers, which get ready and then wait for Orders::go. `pipe` and `checkpoint` must outlive the crew.
  Crew(const CrewRequest& request, const WakePipe& pipe, LifeCheckpoint& checkpoint);
  /// Kills those that still run.
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  std::uint64_t number() const { return request_.number; }
  const CrewRequest& request() const { return request_; }
  LifeBoard& board() { return board_; }
  const std::vector<std::size_t>& waiting_phases() const { return wait_before_; }
  /// The first worker that ended otherwise than after its last step: "rank 1: signal 9 (Killed)"; "": none did.
  std::string fault() const;

 private:
  void work(std::size_t rank, const WakePipe& pipe, LifeCheckpoint& checkpoint);
  void start(Group& group, LifeCheckpoint& checkpoint) const;
  void train(Group& group, StepPlayer& player, SocketMessenger& messenger, LifeCheckpoint& checkpoint);
  void save(Group& group, std::int64_t after_step, LifeCheckpoint& checkpoint);

  CrewRequest request_;
  LifeBoard board_;
  std::vector<std::size_t> wait_before_;
  HostConnections connections_;
  std::vector<pid_t> workers_;  // by rank
};

}  // namespace ganymede::rehearsal
