#pragma once
// Max-min fair rates of flows that share links, over time. It is independent of SimGrid, so that it can serve a class
// of symmetric flows at the cost of one, and so that SimGrid can be checked against it.

#include <deque>
#include <limits>
#include <utility>
#include <vector>

namespace ganymede::sim {

/// A link that a flow crosses, and how many flows of its class cross it there.
struct LinkUse {
  int link = 0;
  double weight = 1;
};

/// Finds max-min fair rates: each flow has its limit, or crosses a full link on which no other flow is faster. On each
/// link the sum of weight x rate is at most the bandwidth (Bertsekas and Gallager, "Data Networks", 6.5.2). For example
/// on a link of 10 with two flows, one limited to 2, the rates are 2 and 8.
///
/// Every full link has a level, the rate of its fastest flows: with each flow at the least of its limit, the levels of
/// its other links and this level, the link is just full. A link that is not full has no level. The rates are max-min
/// fair when the levels of all links fit one another. A change of flows is propagated only as far as it changes levels
/// (switches find fair rates in this manner: Charny, Clark, Jain, "Congestion control with explicit rate indication",
/// 1995).
class MaxMinSolver {
 public:
  /// Bandwidths are in bytes per second.
  explicit MaxMinSolver(std::vector<double> link_bandwidths);

  /// Starts a flow at time `now` and returns its number, which may be reused after its end. `limit` is in bytes per
  /// second. `uses` must not be empty, name each link once, and live until the flow is finished.
  int start(double now, double bytes, double limit, const std::vector<LinkUse>& uses);
  /// Removes a flow from its links.
  void finish(double now, int flow);

  /// Gives all flows the rates that follow from the flows started and finished so far. Must be called before time
  /// proceeds.
  void update_rates(double now);
  /// The flows whose rates update_rates() changed since the caller last cleared this list.
  std::vector<int>& changed_flows() { return changed_; }

  double rate(int flow) const;                         ///< bytes per second
  double remaining_bytes(double now, int flow) const;  ///< at its rate since the last change
  double end_time(int flow) const;                     ///< when the flow ends if its rate does not change

 private:
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  struct Flow {
    double remaining = 0;  // bytes at time `since`
    double since = 0;
    double rate = 0;
    double limit = kUnbounded;
    const std::vector<LinkUse>* uses = nullptr;
    bool touched = false;  // its rate may have to change
  };
  struct LinkState {
    double bandwidth = 0;
    double level = kUnbounded;
    std::vector<std::pair<int, double>> flows;  // and the weight of each on this link
    bool queued = false;                        // in queue_
  };

  void enqueue(int link);
  /// The least of the flow's limit and the levels of its links, except two.
  double rate_bound(const Flow& flow, int except, int and_except) const;
  double fair_level(int link);
  void propagate(int link, double level_before);
  void set_rate(double now, int flow);

  std::vector<LinkState> links_;
  std::vector<Flow> flows_;
  std::vector<int> free_;  // numbers that can be reused
  std::vector<int> changed_, touched_;
  std::deque<int> queue_;                           // links whose level may no longer fit
  std::vector<std::pair<double, double>> demands_;  // scratch of fair_level(): bound and weight of each flow
};

}  // namespace ganymede::sim
