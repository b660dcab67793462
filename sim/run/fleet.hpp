#pragma once
// The nodes of a run, from request to release.

#include <cstddef>
#include <vector>

#include "sim/run/run_clock.hpp"

namespace ganymede::sim {

struct Node {
  enum class State {
    queued,   ///< requested; the provider has not answered yet
    waiting,  ///< requested; the provider has none
    booting,  ///< granted; paid for from here on
    ready,
    gone,
  };
  std::size_t pool = 0;
  State state = State::queued;
  bool member = false;       ///< trains, or is starting to
  bool joined = false;       ///< has been a member
  bool noticed = false;      ///< will be taken back by the provider
  bool warned = false;       ///< the provider announced this before it takes the node back
  bool interrupted = false;  ///< was taken back by the provider
  Nanoseconds requested = 0, granted = kNever, readied = kNever, gone = kNever;
  Nanoseconds runs = kNever;    ///< end of the host's boot, when the pull of the container image begins
  Nanoseconds leaves = kNever;  ///< when the provider takes it back; kNever: not known

  bool held() const { return state == State::booting || state == State::ready; }
};

/// Nodes of one pool, counted by state. Nodes under notice are in `noticed` only.
struct PoolCount {
  int queued = 0, waiting = 0, booting = 0, ready = 0;
  int noticed = 0;
  int lost = 0;                        ///< so far
  int members = 0;                     ///< among `ready`
  Nanoseconds waiting_since = kNever;  ///< the oldest request without an answer
};

/// All nodes that a run has ever requested. A node keeps its index.
class Fleet {
 public:
  explicit Fleet(std::size_t pools);

  std::size_t size() const { return nodes_.size(); }
  const Node& operator[](std::size_t index) const { return nodes_[index]; }
  const std::vector<Node>& nodes() const { return nodes_; }
  /// Indices of the nodes that are not gone, in the order of their requests.
  const std::vector<std::size_t>& alive() const { return alive_; }

  // Changes of one node's state.

  /// Requests a node; returns its index.
  std::size_t add(std::size_t pool, Nanoseconds now);
  /// The provider has no node for this request.
  void wait(std::size_t index);
  /// The node is held from now on; its host boots for `boot`.
  void grant(std::size_t index, Nanoseconds now, Nanoseconds boot);
  /// The node has booted and pulled its image, and may train.
  void make_ready(std::size_t index, Nanoseconds now);
  /// The provider takes the node back at `leaves`. `warned`: it says so before.
  void notice(std::size_t index, Nanoseconds leaves, bool warned);
  /// Makes a ready node a member of the training, or no longer one.
  void set_member(std::size_t index, bool member);
  /// Removes a node that is released, lost (`lost`) or was never granted.
  void remove(std::size_t index, Nanoseconds now, bool lost);

  // Counts, kept up to date by the changes above.

  /// Nodes of all pools that are queued or booting.
  int on_the_way() const { return on_the_way_; }
  /// Nodes of a pool that are held: granted and not gone.
  int held(std::size_t pool) const { return held_[pool]; }
  /// Nodes of a pool that are held and have never been members.
  int fresh(std::size_t pool) const { return fresh_[pool]; }
  /// Members of each pool.
  const std::vector<int>& members() const { return members_; }
  PoolCount count(std::size_t pool) const;

 private:
  std::vector<Node> nodes_;
  std::vector<std::size_t> alive_;
  std::vector<int> lost_, held_, fresh_, members_;  // by pool
  int on_the_way_ = 0;
};

}  // namespace ganymede::sim
