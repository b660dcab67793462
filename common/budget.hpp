#pragma once
// The bounds of one command: its memory, and the events that it simulates. Beyond them the command is refused by
// BudgetExceeded, which names the option that allows more, in place of taking the machine down.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "common/units.hpp"

namespace ganymede {

/// The command would take more than its bounds; the message names the option that allows more. It is no Infeasible, so
/// that nothing takes it for a run that never finishes: it ends the command.
struct BudgetExceeded : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Half of the memory of the machine, or of the container if that has less.
Bytes half_of_memory();

/// The bound that --max-memory sets; zero: the default, of 2 GiB for simulations and half_of_memory() for trainings.
void set_memory_budget(Bytes most);
/// From here on every allocation fails that would take this process beyond its bound; children that it starts have the
/// same bound each. A training is bounded by what it is predicted to take instead, because the libraries of GPUs
/// reserve much that they never use.
void begin_memory_budget(bool trains);
Bytes memory_budget();
/// Throws BudgetExceeded if what begins now would take more: `asker`, as "a.json: reading it".
void check_memory(Bytes needed, std::string_view asker);
/// Leaves room for what is about to be reserved and hardly used, such as the stack of an actor: it does not count.
void reserve_beyond_budget(Bytes more);
/// The reason of a failed allocation: "more than 2 GiB of memory would be needed; --max-memory allows more". Empty if
/// the machine has less than the bound, which then is not the reason.
std::string memory_budget_exceeded();

/// The bound that --max-work sets: the events that one simulation of a run, a cluster or a service lives through, and
/// the messages that one simulates singly. It is 50 million by default, of which the slowest take some minutes.
void set_work_budget(std::int64_t most);
/// Throws BudgetExceeded if what is about to be simulated, `units` of an "event" or "message", is more. `asker`: what
/// asks for them, as "a.json: /fidelity/mode: of 100 steps"; `instead`: what would take less.
void check_work(double units, std::string_view what, std::string_view asker, std::string_view instead);

/// Counts the events of one simulation.
class Work {
 public:
  /// Counts one, or as many as it takes the work of. Throws BudgetExceeded beyond the bound, with the file and the key
  /// that asks for events such as this one.
  void spend(std::string_view file, std::string_view key, std::int64_t events = 1) {
    spent_ += events;
    if (spent_ > bound_) refuse(file, key);
  }

 private:
  [[noreturn]] void refuse(std::string_view file, std::string_view key) const;
  static std::int64_t bound_;
  friend void set_work_budget(std::int64_t most);
  friend void check_work(double units, std::string_view what, std::string_view asker, std::string_view instead);
  std::int64_t spent_ = 0;
};

/// Keeps a mebibyte aside for the first allocation by `new` that fails, so that code which may not throw, such as the
/// destructors of the JSON library, which take memory themselves, can go on, and what comes next can end in order.
/// Where memory is lacking after that and nothing may be thrown, the program says so, removes the files that it was
/// writing and ends with exit code 1 instead of a signal. Further calls fill the reserve again if it was used.
void keep_memory_reserve();

}  // namespace ganymede
