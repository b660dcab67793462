#pragma once
// Flows that share links max-min fairly, over time: our own, so that it can serve symmetric classes of flows at the
// cost of one, and so that SimGrid has something to be checked against.

#include <deque>
#include <limits>
#include <utility>
#include <vector>

namespace ganymede {

/// How often a flow (of a class of like flows) counts on a link.
struct LinkUse {
  int link = 0;
  double weight = 1;
};

/// Each flow's rate is the greatest that its limit and its links allow when all flows of a link are raised alike: on
/// link l, the sum of weight x rate is at most the link's bandwidth (Bertsekas and Gallager, "Data Networks", 6.5.2).
///
/// Found by levels: a full link has the level at which cutting off its flows' rates fills it, given what their other
/// links leave them; a link that is not full has none. Where each link's level fits the others', every flow has a full
/// link on which no flow is faster, and that is what defines the shares. A change goes on only as far as it changes
/// levels (as switches find fair rates for themselves: Charny, Clark, Jain, "Congestion control with explicit rate
/// indication", 1995).
class Fluid {
 public:
  /// In bytes a second.
  explicit Fluid(std::vector<double> link_bandwidths);

  /// Starts `bytes` now; the flow's number is reused after its end. `uses` must live until then.
  int start(double now, double bytes, double limit, const std::vector<LinkUse>& uses);
  /// Takes a flow off its links.
  void finish(double now, int flow);

  /// Gives all flows on links that changed their new rates. To be called before time goes on.
  void settle(double now);
  /// Flows whose rate was set by the last settle() that changed anything; cleared by the caller.
  std::vector<int>& changed() { return changed_; }

  double remaining(double now, int flow) const;
  /// When the flow will end at its rate.
  double end(int flow) const;

 private:
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  struct Flow {
    double remaining = 0;  // at `since`
    double since = 0;
    double rate = 0;
    double limit = kNone;
    const std::vector<LinkUse>* uses = nullptr;
    bool touched = false;
  };
  struct LinkState {
    double bandwidth = 0;
    double level = kNone;
    std::vector<int> flows;
    bool queued = false;
  };

  void queue(int link);
  /// The least that the flow's limit and its links but for two allow.
  double bound(const Flow& flow, int without, int nor) const;
  double weight_on(const Flow& flow, int link) const;
  double level_of(int link);
  void pass_on(int link, double before);
  void set_rate(double now, int flow);

  std::vector<LinkState> links_;
  std::vector<Flow> flows_;
  std::vector<int> free_, changed_, touched_;
  std::deque<int> queue_;  // of links whose level may not fit
  std::vector<std::pair<double, double>> demands_;
};

}  // namespace ganymede
