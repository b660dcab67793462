#pragma once
// The nodes of a run, from request to release.

#include <cstddef>
#include <vector>

#include "sim/run/hazards.hpp"

namespace ganymede {

struct Node {
  enum class State {
    queued,   ///< asked for, the provider takes its time
    waiting,  ///< asked for, there is none to be had
    booting,  ///< granted; from here on it is paid for
    ready,
    gone,
  };
  std::size_t pool = 0;
  State state = State::queued;
  bool member = false;       ///< of what trains
  bool joined = false;       ///< has trained
  bool noticed = false;      ///< will be taken back
  bool warned = false;       ///< and has been told some time before
  bool interrupted = false;  ///< taken back by the provider
  Nanoseconds requested = 0, granted = kNever, readied = kNever, gone = kNever;
  Nanoseconds runs = kNever;    ///< when its host has booted, if it lives so long; the container image is pulled then
  Nanoseconds leaves = kNever;  ///< when it will be taken back, as far as anybody knows

  bool held() const { return state == State::booting || state == State::ready; }
};

/// Nodes of one pool, counted.
struct PoolCount {
  int queued = 0, waiting = 0, booting = 0, ready = 0;  ///< those under notice left out
  int noticed = 0, lost = 0;
  int members = 0;  ///< of `ready`
  Nanoseconds waiting_since = kNever;
};

/// All nodes that a run has ever asked for, and what they cost. Nodes keep their index.
class Fleet {
 public:
  explicit Fleet(const Scenario& scenario);

  std::size_t add(std::size_t pool, Nanoseconds now);
  const Node& operator[](std::size_t index) const { return nodes_[index]; }
  std::size_t size() const { return nodes_.size(); }
  /// Indices of the nodes that are not gone, oldest first.
  const std::vector<std::size_t>& alive() const { return alive_; }

  // A node's life; each keeps the counts below.
  void wait(std::size_t index);
  void grant(std::size_t index, Nanoseconds now, Nanoseconds boot);
  void make_ready(std::size_t index, Nanoseconds now);
  /// It will be taken back at `leaves`; `warned`: it is told before.
  void notice(std::size_t index, Nanoseconds leaves, bool warned);
  /// It trains, or no longer does.
  void set_member(std::size_t index, bool member);

  /// Nodes of any pool that are queued or booting.
  int on_the_way() const { return on_the_way_; }
  /// Nodes held that have not trained yet, and nodes that train.
  int fresh(std::size_t pool) const { return fresh_[pool]; }
  int training(std::size_t pool) const { return members_[pool]; }

  PoolCount count(std::size_t pool) const;
  /// Takes a node away: released, lost or never granted.
  void remove(std::size_t index, Nanoseconds now, bool lost);
  /// Nodes of each pool that train.
  const std::vector<int>& members() const { return members_; }

  /// Dollars an hour of one node.
  double price(std::size_t pool, Nanoseconds now) const;
  /// Gone nodes' cost and that of the others up to `now`, without rounding of the time: what a controller can add up.
  double spent_usd(Nanoseconds now) const;

 private:
  const Scenario& scenario_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> alive_;
  std::vector<int> lost_, fresh_, members_;  // by pool
  int on_the_way_ = 0;
  double spent_ = 0;  // of nodes that are gone
};

}  // namespace ganymede
