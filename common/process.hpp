#pragma once
// Work in child processes. SimGrid allows one engine per process, and a simulation that crashes must not take others
// with it.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace ganymede {

/// The result of one piece of work: its text, or why there is none.
struct ChildOutcome {
  enum class Kind { ok, config_error, infeasible, budget_exceeded, failure };
  Kind kind = Kind::ok;
  std::string text;  ///< what `work` returned, or the message of the exception that it threw
};

enum class ChildUse {
  once,   ///< a new child for each piece of work, as SimGrid needs
  reused  ///< a child does many pieces and keeps its caches; if it crashes, the piece at hand fails
};

/// Runs work(0) … work(count - 1) in forked children, at most `jobs` (>= 1) at once, and returns their outcomes in
/// order of the index. An exception in a child becomes an outcome of its kind with its message; a crash becomes a
/// failure that names the signal. After each piece this process calls `finished` with the number of pieces done so far
/// and `landed` with the piece's index and outcome, of which it may take the text. Once `stopped` returns true, no
/// further piece is begun: those in work are waited for, and all others have no outcome that counts. A signal or half a
/// second makes it ask again. The result does not depend on `jobs`.
std::vector<ChildOutcome> run_children(std::size_t count, int jobs, const std::function<std::string(std::size_t)>& work,
                                       const std::function<void(std::size_t done)>& finished = {},
                                       ChildUse use = ChildUse::once,
                                       const std::function<void(std::size_t index, ChildOutcome& outcome)>& landed = {},
                                       const std::function<bool()>& stopped = {});

/// Runs `work` in one child and returns its text, or throws the exception that it threw.
std::string run_child(const std::function<std::string()>& work);

/// Throws the exception that the outcome stands for, with `context` before its message; does nothing if it is ok.
void rethrow(const ChildOutcome& outcome, const std::string& context = "");

/// Number of processors that this process may use, by its affinity mask.
int usable_cores();

}  // namespace ganymede
