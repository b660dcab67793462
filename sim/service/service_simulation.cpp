#include "sim/service/service_simulation.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <queue>
#include <set>

#include "common/budget.hpp"
#include "common/random.hpp"
#include "sim/run/capacity.hpp"

namespace ganymede::sim {
namespace {

constexpr double kNeverS = std::numeric_limits<double>::infinity();

enum class Kind { arrival, window, done, ready, notice, reclaim, sync };

struct Event {
  double at_s;
  std::uint64_t order;  // of creation, which decides between events of one moment
  Kind kind;
  std::size_t of;  // the replica, or the GPU
  bool operator>(const Event& other) const { return at_s != other.at_s ? at_s > other.at_s : order > other.order; }
};

struct Replica {
  double billed_from_s = 0, ready_s = 0;
  double notice_s = kNeverS, reclaim_s = kNeverS;
  double end_s = kNeverS;  // it is not there from then on
  bool ready = false, leaving = false, reclaimed = false;
};

struct Gpu {
  std::vector<double> batch = {};  // arrival times of the requests that it serves
  double since_s = 0;              // when that batch began
  double busy_s = 0;               // since the last look of the autoscaler, but for the current batch
};

class ServiceSimulation {
 public:
  ServiceSimulation(const Service& service, std::span<const double> times)
      : service_(service),
        pool_(service.scenario.pools.front()),
        gpus_a_replica_(static_cast<std::size_t>(pool_.pool.gpus_per_node)),
        times_(times),
        end_s_(service.duration.si),
        arrivals_(service.scenario.seed, "service/arrivals"),
        delays_(service.scenario.seed, "service/delays"),
        lives_(service.scenario.seed, "service/lives") {
    if (is_modelled(pool_.spot)) zone_ = spot_zone(service.scenario, pool_);
  }

  ServiceRecord run() {
    for (int i = 0; i < pool_.pool.nodes; ++i) add_replica(0, /*at_once=*/true);
    add_arrival(0);
    if (service_.autoscaling) add(service_.autoscaling->every.si, Kind::sync, 0);
    Work work;
    while (!events_.empty()) {
      work.spend(service_.scenario.file, "/arrivals");
      const Event event = events_.top();
      events_.pop();
      // What is still in the queue at the end is served, on the replicas that are there.
      if (event.at_s > end_s_ && (event.kind != Kind::done && event.kind != Kind::window)) continue;
      now_s_ = event.at_s;
      handle(event);
      begin_batches();
    }
    record_.timed_out += static_cast<std::int64_t>(waiting_.size());  // for which no replica was left
    close();
    return std::move(record_);
  }

 private:
  void add(double at_s, Kind kind, std::size_t of) { events_.push({at_s, ++order_, kind, of}); }

  void handle(const Event& event) {
    switch (event.kind) {
      case Kind::arrival:
        return arrive();
      case Kind::window:
        return;
      case Kind::done:
        return finish(event.of);
      case Kind::ready:
        return become_ready(event.of);
      case Kind::notice:
        return leave(event.of, /*again=*/true);
      case Kind::reclaim:
        return take_back(event.of);
      case Kind::sync:
        return scale();
    }
  }

  // ---- requests ----

  void add_arrival(double after_s) {
    const Arrivals& of = service_.arrivals;
    if (!of.recorded_s.empty()) {
      if (next_recorded_ < of.recorded_s.size()) add(of.recorded_s[next_recorded_++], Kind::arrival, 0);
      return;
    }
    double at_s = after_s;
    if (of.even) {
      at_s = static_cast<double>(++even_) / of.per_second;
    } else {
      // Thinning (Lewis and Shedler 1979): arrivals at the highest rate, each kept with the share of the rate of then.
      do at_s += arrivals_.exponential() / (of.per_second * (1 + of.swing));
      while (of.swing > 0 && at_s <= end_s_ && arrivals_.uniform() * (1 + of.swing) > 1 + of.swing * wave(at_s));
    }
    if (at_s < end_s_) add(at_s, Kind::arrival, 0);
  }

  /// From -1 at the beginning of a day to 1 at its middle and back, on straight lines: functions of libm differ between
  /// systems.
  double wave(double at_s) const {
    const double days = at_s / service_.arrivals.period.si;
    return 1 - 4 * std::abs(days - std::floor(days) - 0.5);
  }

  void arrive() {
    ++record_.arrived;
    add_arrival(now_s_);
    if (waiting_.size() >= static_cast<std::size_t>(service_.queue) && !(waiting_.empty() && has_free_gpu())) {
      ++record_.refused;
      return;
    }
    waiting_.push_back(now_s_);
    if (service_.window.si > 0) add(now_s_ + service_.window.si, Kind::window, 0);
  }

  bool has_free_gpu() const { return !free_.empty(); }

  void begin_batches() {
    const auto largest = static_cast<std::size_t>(service_.largest_batch);
    for (;;) {
      while (!waiting_.empty() && now_s_ - waiting_.front() > service_.timeout.si) {
        ++record_.timed_out;
        waiting_.pop_front();
      }
      if (waiting_.empty() || free_.empty()) return;
      if (waiting_.size() < largest && now_s_ < waiting_.front() + service_.window.si && now_s_ <= end_s_) return;
      const std::size_t gpu = *free_.begin();
      free_.erase(free_.begin());
      Gpu& of = gpus_[gpu];
      const auto count = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), largest));
      of.batch.assign(waiting_.begin(), waiting_.begin() + count);
      waiting_.erase(waiting_.begin(), waiting_.begin() + count);
      of.since_s = now_s_;
      ++record_.batches;
      add(now_s_ + times_[of.batch.size() - 1], Kind::done, gpu);
    }
  }

  void finish(std::size_t gpu) {
    Gpu& of = gpus_[gpu];
    if (of.batch.empty()) return;  // its replica was taken back meanwhile
    note_busy(of);
    for (const double arrived_s : of.batch) record_.latencies_s.push_back(now_s_ - arrived_s + service_.overhead.si);
    of.batch.clear();
    Replica& replica = replicas_[gpu / gpus_a_replica_];
    if (!replica.leaving)
      free_.insert(gpu);
    else if (!replica.reclaimed && is_idle(gpu / gpus_a_replica_))
      replica.end_s = std::min(replica.end_s, now_s_);
  }

  /// Counts the batch that ends now.
  void note_busy(Gpu& gpu) {
    gpu.busy_s += now_s_ - std::max(gpu.since_s, looked_s_);
    record_.busy_s += std::max(0.0, std::min(now_s_, end_s_) - gpu.since_s);
  }

  bool is_idle(std::size_t replica) const {
    for (std::size_t i = 0; i < gpus_a_replica_; ++i)
      if (!gpus_[replica * gpus_a_replica_ + i].batch.empty()) return false;
    return true;
  }

  // ---- replicas ----

  /// Asks for a replica at `at_s`. `at_once`: it is ready then.
  void add_replica(double at_s, bool at_once) {
    const std::size_t index = replicas_.size();
    Replica replica;
    const platforms::Provisioning& delays = pool_.platform->provisioning;
    const auto drawn = [&](const platforms::Delay& delay) { return to_seconds(draw(delay, delays_)).si; };
    const double queue_s = drawn(delays.queue), boot_s = drawn(pool_.platform->boot(pool_.instance()));
    const double program_s = drawn(delays.image_pull) + drawn(delays.framework_start) + service_.load.si;
    const double granted_s = at_s + (at_once ? 0 : queue_s), running_s = granted_s + (at_once ? 0 : boot_s);
    replica.billed_from_s = pool_.platform->billing.start == platforms::Billing::Start::request ? at_s
                            : pool_.platform->billing.start == platforms::Billing::Start::boot  ? granted_s
                                                                                                : running_s;
    replica.ready_s = running_s + (at_once ? 0 : program_s);
    replica.reclaim_s = granted_s + life_s();
    replica.notice_s = std::max(granted_s, replica.reclaim_s - pool_.notice.si);
    replicas_.push_back(replica);
    gpus_.resize(gpus_.size() + gpus_a_replica_);
    if (!at_once) ++record_.starts;
    if (at_once)
      become_ready(index);
    else
      add(replica.ready_s, Kind::ready, index);
    if (replica.notice_s < end_s_) add(replica.notice_s, Kind::notice, index);
    if (replica.reclaim_s < end_s_) add(replica.reclaim_s, Kind::reclaim, index);
  }

  double life_s() {
    if (pool_.lifetimes) {
      const Nanoseconds life = draw(*pool_.lifetimes, lives_);
      return life == kNever ? kNeverS : to_seconds(life).si;
    }
    if (!is_modelled(pool_.spot)) return kNeverS;
    return platforms::draw_duration(zone_.mean_up, platforms::spot_model().up_spread, lives_).si;
  }

  /// How long the pool has no node after one was taken back.
  double back_after_s() {
    if (pool_.lifetimes) return pool_.lifetimes->back_after.si * lives_.exponential();
    return platforms::draw_duration(zone_.mean_down, platforms::spot_model().down_spread, lives_).si;
  }

  void become_ready(std::size_t index) {
    Replica& replica = replicas_[index];
    if (replica.leaving) return;
    replica.ready = true;
    for (std::size_t i = 0; i < gpus_a_replica_; ++i) free_.insert(index * gpus_a_replica_ + i);
    record_.most_replicas = std::max(record_.most_replicas, count([](const Replica& one) { return one.ready; }));
  }

  /// It takes no further batch. `again`: another one is asked for in its place.
  void leave(std::size_t index, bool again) {
    Replica& replica = replicas_[index];
    if (replica.leaving) return;
    replica.leaving = true;
    for (std::size_t i = 0; i < gpus_a_replica_; ++i) free_.erase(index * gpus_a_replica_ + i);
    if (again) {
      ++record_.reclaims;
      replica.end_s = replica.reclaim_s;  // the provider ends it, and it is paid for until then
      replica.reclaimed = true;
      constexpr double kLeast_s = 1;  // so that nodes whose notice comes when they are granted do not follow at once
      add_replica(now_s_ + std::max(kLeast_s, back_after_s()), false);
    } else if (is_idle(index)) {
      replica.end_s = std::min(replica.end_s, now_s_);
    }
  }

  void take_back(std::size_t index) {
    for (std::size_t i = 0; i < gpus_a_replica_; ++i) {
      Gpu& gpu = gpus_[index * gpus_a_replica_ + i];
      if (gpu.batch.empty()) continue;
      note_busy(gpu);
      record_.lost += static_cast<std::int64_t>(gpu.batch.size());
      gpu.batch.clear();
    }
    replicas_[index].end_s = std::min(replicas_[index].end_s, now_s_);
  }

  template <class Which>
  int count(const Which& which) const {
    return static_cast<int>(std::count_if(replicas_.begin(), replicas_.end(),
                                          [&](const Replica& one) { return !one.leaving && which(one); }));
  }

  // ---- the autoscaler ----

  /// The replicas that the metric asks for.
  int wanted(int current, int ready) {
    const Autoscaling& scaling = *service_.autoscaling;
    double ratio = 0, with_starting = 0;  // of metric and target, over the ready ones, and over all
    if (scaling.metric == Autoscaling::Metric::queue) {
      ratio = with_starting = static_cast<double>(waiting_.size()) / (scaling.target * std::max(1, current));
    } else {
      double busy_s = 0, ready_s = 0;
      for (std::size_t i = 0; i < gpus_.size(); ++i) {
        Gpu& gpu = gpus_[i];
        const Replica& replica = replicas_[i / gpus_a_replica_];
        if (!replica.leaving && replica.ready) {
          busy_s += gpu.busy_s + (gpu.batch.empty() ? 0 : now_s_ - std::max(gpu.since_s, looked_s_));
          ready_s += now_s_ - std::max(replica.ready_s, looked_s_);
        }
        gpu.busy_s = 0;
      }
      ratio = ready_s > 0 ? busy_s / ready_s / scaling.target : 1;
      with_starting = ratio * ready / std::max(1, current);
    }
    looked_s_ = now_s_;
    // Replicas that are not ready count as idle where more are wanted, and must not turn that into the contrary.
    if (ratio > 1) ratio = std::max(1.0, with_starting);
    if (std::abs(ratio - 1) <= scaling.tolerance) return current;
    return static_cast<int>(std::min(1e6, std::ceil((ratio > 1 ? current : ready) * ratio * (1 - 1e-12))));
  }

  void scale() {
    const Autoscaling& scaling = *service_.autoscaling;
    const int current = count([](const Replica&) { return true; });
    const int ready = count([](const Replica& one) { return one.ready; });
    if (recommended_.empty()) recommended_.emplace_back(now_s_, current);  // as the controller does at its first look
    int least = wanted(current, ready), most = least;
    recommended_.emplace_back(now_s_, least);
    const double oldest_s = now_s_ - std::max(scaling.up_window.si, scaling.down_window.si);
    while (recommended_.front().first < oldest_s) recommended_.pop_front();
    for (const auto& [at_s, replicas] : recommended_) {
      if (at_s > now_s_ - scaling.up_window.si) least = std::min(least, replicas);
      if (at_s > now_s_ - scaling.down_window.si) most = std::max(most, replicas);
    }
    int next = current < least ? least : current > most ? most : current;
    next = std::clamp(std::min(next, std::max(2 * current, current + 4)), scaling.least, scaling.most);
    for (int i = current; i < next; ++i) add_replica(now_s_, false);
    for (int i = next; i < current; ++i) leave(least_needed(), /*again=*/false);
    add(now_s_ + scaling.every.si, Kind::sync, 0);
  }

  /// The replica that is ended first, as a ReplicaSet does: one that is not ready, else the youngest.
  std::size_t least_needed() const {
    std::size_t found = replicas_.size();
    for (std::size_t i = 0; i < replicas_.size(); ++i)
      if (!replicas_[i].leaving && (found == replicas_.size() || !replicas_[i].ready || replicas_[found].ready))
        found = i;
    return found;
  }

  void close() {
    for (const Replica& replica : replicas_) {
      const double end_s = std::min(replica.end_s, end_s_);
      if (replica.ready) {
        record_.replica_s += std::max(0.0, end_s - replica.ready_s);
        record_.ready_s += static_cast<double>(gpus_a_replica_) * std::max(0.0, end_s - replica.ready_s);
      }
      if (replica.billed_from_s < end_s)
        record_.rentals.push_back({to_nanoseconds(Seconds{replica.billed_from_s}), to_nanoseconds(Seconds{end_s}),
                                   replica.reclaimed && replica.end_s <= end_s_});
    }
  }

  const Service& service_;
  const ScenarioPool& pool_;
  std::size_t gpus_a_replica_;
  std::span<const double> times_;
  double end_s_;
  RandomStream arrivals_, delays_, lives_;
  platforms::SpotZone zone_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0, even_ = 0;
  std::size_t next_recorded_ = 0;
  double now_s_ = 0;
  std::deque<double> waiting_;  // arrival times
  std::vector<Replica> replicas_;
  std::vector<Gpu> gpus_;       // those of replica i from i times gpus_a_replica_ on
  std::set<std::size_t> free_;  // GPUs of ready replicas without a batch
  double looked_s_ = 0;         // when the autoscaler last looked
  std::deque<std::pair<double, int>> recommended_;
  ServiceRecord record_;
};

}  // namespace

ServiceRecord simulate_service(const Service& service, std::span<const double> times) {
  return ServiceSimulation(service, times).run();
}

}  // namespace ganymede::sim
