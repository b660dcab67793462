#pragma once
// Work in child processes: SimGrid allows one engine a process, and a crash of one simulation must not lose the others.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace ganymede {

/// What became of one child: its text, or why there is none.
struct ChildOutcome {
  enum class Kind { ok, config_error, infeasible, failure };
  Kind kind = Kind::ok;
  std::string text;  ///< what `work` returned, or the message of what it threw
};

enum class ChildUse {
  once,   ///< a child for each piece of work: SimGrid allows one engine a process
  reused  ///< one child does many, and keeps what it learned; one that crashes loses the piece it was at
};

/// Runs work(0) … work(count - 1) in forked children, at most `jobs` (>= 1) at once, and returns what they returned, in
/// order. An exception in a child comes back as its kind and message; a crash as a failure that names the signal.
/// `finished` is called in this process after each piece with the number done, `landed` with its index and outcome. The
/// result does not depend on `jobs`.
std::vector<ChildOutcome> run_children(
    std::size_t count, int jobs, const std::function<std::string(std::size_t)>& work,
    const std::function<void(std::size_t done)>& finished = {}, ChildUse use = ChildUse::once,
    const std::function<void(std::size_t index, const ChildOutcome& outcome)>& landed = {});

/// One child; throws what it threw.
std::string run_child(const std::function<std::string()>& work);

/// Throws the exception of `outcome`'s kind, if it has one; `context` goes before the message.
void rethrow(const ChildOutcome& outcome, const std::string& context = "");

/// Usable processors: of this process's affinity mask.
int usable_cores();

}  // namespace ganymede
