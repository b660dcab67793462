#include <algorithm>

#include "policies/policy_helpers.hpp"

namespace ganymede::policies {
namespace {

constexpr PolicySetting kDeadlineSettings[] = {kMarginSetting};

/// By how much the time of the work left may differ from what the last interval's rate says, besides evaluations: some
/// steps more or fewer, and checkpoints.
constexpr double kRateError = 0.01;

/// Mean speed by data sheet of the GPUs that trained last, relative to the first pool's; 1 before any did.
double trained_speed(const PolicyCall& call) {
  double gpus = 0, speed = 0;
  for (const PoolView& pool : call.observation.pools) {
    gpus += pool.ready * pool.gpus_per_node;
    speed += pool.ready * pool.gpus_per_node * pool.speed;
  }
  double& last = call.memory.try_emplace("speed", 1).first->second;
  if (call.observation.training && gpus > 0) last = speed / gpus;
  return last;
}

/// A decision rests on these, once a rate is known.
class Forecast {
 public:
  explicit Forecast(const PolicyCall& call)
      : call_(call),
        seen_(call.observation),
        left_s_((*seen_.deadline - seen_.now).si),
        change_s_(std::max(seen_.save, seen_.boot).si + seen_.restart.si),
        slower_(trained_speed(call)) {
    const double gpus = total_requested_nodes(seen_) * seen_.pools[0].gpus_per_node;
    slower_ *= growth(call, predicted_rate(call.memory, gpus));
  }

  /// Seconds until the work is done and saved on so many nodes that train already.
  double rest_s(int pool, int nodes) const {
    const PoolView& view = view_of(pool);
    return predicted_seconds(call_, nodes * view.gpus_per_node) * slower_ / view.speed + seen_.save.si;
  }

  /// The fewest nodes that meet the deadline, margin included; those that are done first if none do. More than are
  /// known to be faster are tried where those may be late, or if there is time to find out that they are slower and to
  /// come back.
  int fewest(int pool) const {
    const int known = known_nodes(pool);
    const double known_s = rest_s(pool, known) + (train(pool, known) ? 0 : change_s_);
    // How many evaluations are due is hardly known from one interval: the shortest rest has none, and where there are
    // some nothing is tried.
    const double shortest_s = seconds_left(seen_, predicted_rate(call_.memory, known)) * slower_ / view_of(pool).speed;
    const bool may_be_in_time = shortest_s * (1 - kRateError) <= left_s_;
    const bool time_to_try =
        seen_.evaluation.si == 0 && known_s * (1 + kRateError) + seen_.every.si + 2 * change_s_ <= left_s_;
    int best = may_be_in_time && !time_to_try ? known : view_of(pool).most;
    double least_s = rest_with_change_s(pool, best);
    for (int nodes = 1, most = best; nodes < most; ++nodes) {
      const double seconds = rest_with_change_s(pool, nodes);
      if (seconds <= left_s_) return nodes;
      if (seconds < least_s) best = nodes, least_s = seconds;
    }
    return best;
  }

  /// Seconds to spare if spot is used until the next decision, and all that it does until then is lost, with what is
  /// not durable by then: then the rest, with its margin, still ends in time on demand. A change is counted twice,
  /// because boots and starts may take longer than their medians.
  double slack_s(int spot, int sure) const {
    const bool on_spot = seen_.training && view_of(spot).ready > 0;
    const double exposed_s = on_spot ? std::min(seen_.every.si, seconds_left(seen_, seen_.rate)) : seen_.every.si;
    // A change to spot begins with a checkpoint, if there is a storage for it.
    const double at_risk_s = on_spot || seen_.save.si == 0 ? seen_.since_durable.si : 0;
    return left_s_ - exposed_s - at_risk_s - with_margin(rest_s(sure, known_nodes(sure))) - 2 * change_s_;
  }

  /// True if spot nodes train that will be done in time if they are kept, while on-demand nodes could no more.
  bool only_spot_is_in_time(int spot, int sure) const {
    const PoolView& view = view_of(sure);
    return seen_.training && view_of(spot).ready > 0 && view.held() + view.waiting == 0 &&
           rest_s(sure, view.most) + change_s_ > left_s_ && rest_s(spot, view_of(spot).ready) <= left_s_;
  }

  double change_s() const { return change_s_; }

 private:
  const PoolView& view_of(int pool) const { return seen_.pools[static_cast<std::size_t>(pool)]; }
  double with_margin(double seconds) const { return seconds * (1 + call_.settings[0]); }
  bool train(int pool, int nodes) const {
    return seen_.training && view_of(pool).ready == nodes && view_of(pool).starting == 0;
  }
  double rest_with_change_s(int pool, int nodes) const {
    return with_margin(rest_s(pool, nodes)) + (train(pool, nodes) ? 0 : change_s_);
  }
  /// The most nodes of whose speed something is known: one, while a single GPU has trained, which waits for no other.
  int known_nodes(int pool) const {
    const auto& memory = call_.memory;
    const bool alone = memory.at("rate/gpus") <= 1 && memory.at("rate/overhead_s") == 0;
    return alone ? 1 : view_of(pool).most;
  }

  const PolicyCall& call_;
  const Observation& seen_;
  double left_s_, change_s_;
  double slower_;  ///< how many times as long the rest takes on GPUs of speed 1 as at the present rate
};

/// The pool in which nodes are rented, once a rate is known.
int choose_pool(const PolicyCall& call, const Forecast& forecast, int spot, int sure) {
  if (spot < 0 || sure < 0) return std::max(spot, sure);
  const double slack_s = forecast.slack_s(spot, sure);
  // Once on demand, it returns to spot only if there is time for the way there and back.
  if (slack_s <= 0) call.memory["sure"] = 1;
  if (slack_s > 2 * forecast.change_s()) call.memory.erase("sure");
  const bool refused = refused_recently(call, spot);
  if (!call.memory.contains("sure")) return refused ? sure : spot;
  return forecast.only_spot_is_in_time(spot, sure) ? spot : sure;
}

// Rents the fewest nodes that meet the deadline by the measured rate, on spot as long as on-demand nodes could still
// meet it after the worst that may happen before the next decision.
Decision decide_deadline(const PolicyCall& call) {
  const Observation& observation = call.observation;
  learn_rate(observation, call.memory);
  const int sure = cheapest_pool(observation, false);
  const int spot = cheapest_pool(observation, true);
  if (!observation.deadline)
    return rent_in_one_pool(observation, sure < 0 ? spot : sure, total_requested_nodes(observation));
  if (!call.memory.contains("rate/rate")) {
    // How long the work takes is measured on demand: spot might refuse, or take nodes back, until it is too late.
    call.memory["sure"] = 1;
    const bool measure = sure >= 0 && observation.left > 0;
    return rent_in_one_pool(observation, measure || spot < 0 ? sure : spot, total_requested_nodes(observation));
  }
  const Forecast forecast(call);
  const int pool = choose_pool(call, forecast, spot, sure);
  const int now = current_nodes(observation)[static_cast<std::size_t>(pool)];
  const int need = forecast.fewest(pool);
  // A few nodes too many are kept, because giving them back costs a restart; nodes are given back only if at most half
  // of them are needed.
  const bool keep = now > 0 && need <= now && need > now / 2;
  Decision decision = rent_in_one_pool(observation, pool, keep ? now : need);
  // Nodes of the other market go on until all nodes of this one are ready.
  const int other = pool == spot ? sure : spot;
  const auto from = static_cast<std::size_t>(pool), to = static_cast<std::size_t>(other);
  if (other >= 0 && observation.pools[from].ready < decision.nodes[from])
    decision.nodes[to] = observation.pools[to].ready;
  return decision;
}

}  // namespace

Policy deadline_policy() {
  return {.name = "deadline",
          .summary = "the fewest nodes that meet the deadline, on spot while there is time to fall back",
          .source = "our own",
          .settings = kDeadlineSettings,
          .other_market = true,
          .needs_deadline = true,
          .decide = decide_deadline};
}

}  // namespace ganymede::policies
