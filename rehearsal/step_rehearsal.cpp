#include "rehearsal/step_rehearsal.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/errors.hpp"
#include "common/statistics.hpp"
#include "rehearsal/clock.hpp"
#include "rehearsal/step_player.hpp"

namespace ganymede::rehearsal {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kChecked = 2;  // steps before and after those that are timed, whose sums are checked
constexpr std::size_t kMinSteps = 5, kMaxSteps = 2000;

/// Seconds of a mean step, over steps and ranks; all but `step` sum to it.
struct StepParts {
  double step = 0, compute = 0, exposed = 0, straggler = 0, input_stall = 0;
};

Json json_of(const StepParts& parts) {
  return {{"step_s", parts.step},
          {"compute_s", parts.compute},
          {"exposed_communication_s", parts.exposed},
          {"straggler_s", parts.straggler},
          {"input_stall_s", parts.input_stall}};
}

StepParts parts_of(const std::vector<sim::StepOutcome>& steps) {
  StepParts out;
  const auto n = static_cast<double>(steps.size());
  for (const sim::StepOutcome& step : steps) {
    const double share = 1 / (n * static_cast<double>(step.workers.size()));
    out.step += step.duration.si / n;
    for (const sim::WorkerStep& worker : step.workers) {
      out.compute += worker.compute.si * share;
      out.exposed += worker.exposed_communication.si * share;
      out.straggler += worker.straggler.si * share;
      out.input_stall += worker.input_stall.si * share;
    }
  }
  return out;
}

/// The numbers that a rank sends of each step: PlayedStep in a fixed order.
void append(const PlayedStep& step, std::vector<double>& numbers) {
  numbers.insert(numbers.end(), {step.begin, step.end, step.input_stall, step.late});
  for (const auto* by_bucket : {&step.issued, &step.wait_begin, &step.wait_end})
    numbers.insert(numbers.end(), by_bucket->begin(), by_bucket->end());
}
PlayedStep step_at(const std::vector<double>& numbers, std::size_t index, std::size_t buckets) {
  const double* from = numbers.data() + index * (4 + 3 * buckets);
  PlayedStep step{.begin = from[0], .end = from[1], .input_stall = from[2], .late = from[3]};
  const auto take = [&](std::size_t list) {
    return std::vector<double>(from + 4 + list * buckets, from + 4 + (list + 1) * buckets);
  };
  step.issued = take(0);
  step.wait_begin = take(1);
  step.wait_end = take(2);
  return step;
}

/// All ranks' steps, as rank 0 knows them.
class Played {
 public:
  Played(const std::vector<std::vector<double>>& numbers, std::size_t steps, std::vector<std::size_t> wait_before)
      : wait_before_(std::move(wait_before)) {
    for (std::size_t step = 0; step < steps; ++step) {
      steps_.emplace_back();
      for (const auto& rank : numbers) steps_.back().push_back(step_at(rank, step, wait_before_.size()));
    }
  }

  /// Time from the last rank's end of a step to the last rank's end of the next.
  std::vector<double> durations() const {
    std::vector<double> out;
    double before = last(steps_.front(), &PlayedStep::begin);
    for (const auto& ranks : steps_) {
      const double end = last(ranks, &PlayedStep::end);
      out.push_back(end - before);
      before = end;
    }
    return out;
  }

  StepParts parts() const {
    StepParts out;
    const auto all = durations();
    for (const double duration : all) out.step += duration / static_cast<double>(all.size());
    for (const auto& ranks : steps_) add_step(ranks, out);
    out.compute = out.step - out.exposed - out.straggler - out.input_stall;
    return out;
  }

  double median_late() const {
    std::vector<double> late;
    for (const auto& ranks : steps_)
      for (const PlayedStep& step : ranks) late.push_back(step.late);
    std::sort(late.begin(), late.end());
    return quantile(late, 0.5);
  }

 private:
  static double last(const std::vector<PlayedStep>& ranks, double PlayedStep::*moment) {
    double out = ranks.front().*moment;
    for (const PlayedStep& step : ranks) out = std::max(out, step.*moment);
    return out;
  }

  /// Splits waiting as SynchronousStep does: until the last rank has issued what is waited for, a rank waits for that
  /// rank, and then for communication.
  void add_step(const std::vector<PlayedStep>& ranks, StepParts& out) const {
    const double share = 1 / static_cast<double>(ranks.size() * steps_.size());
    for (const PlayedStep& step : ranks) out.input_stall += step.input_stall * share;
    std::vector<std::size_t> phases = wait_before_;
    std::sort(phases.begin(), phases.end());
    phases.erase(std::unique(phases.begin(), phases.end()), phases.end());
    for (const std::size_t phase : phases) {
      double last_issued = 0;
      std::size_t any = 0;
      for (std::size_t bucket = 0; bucket < wait_before_.size(); ++bucket) {
        if (wait_before_[bucket] != phase) continue;
        any = bucket;
        for (const PlayedStep& step : ranks) last_issued = std::max(last_issued, step.issued[bucket]);
      }
      for (const PlayedStep& step : ranks) {
        const double wait = step.wait_end[any] - step.wait_begin[any];
        const double straggler = std::clamp(last_issued - step.wait_begin[any], 0.0, wait);
        out.straggler += straggler * share;
        out.exposed += (wait - straggler) * share;
      }
    }
  }

  std::vector<std::size_t> wait_before_;
  std::vector<std::vector<PlayedStep>> steps_;  // by step and rank
};

/// 95 % interval of the mean, from the steps' standard error.
std::array<double, 2> interval_of_mean(const std::vector<double>& values, double mean) {
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto n = static_cast<double>(values.size());
  const double half = 1.96 * std::sqrt(squares / (n - 1) / n);
  return {mean - half, mean + half};
}

/// As many steps as last `length` if all last as long as the one that rank 0 has just played.
std::size_t number_of_steps(Seconds length, double step_s, Group& group) {
  double steps = std::clamp(std::round(length.si / step_s), double{kMinSteps}, double{kMaxSteps});
  group.broadcast({&steps, 1});
  return static_cast<std::size_t>(steps);
}

/// A moment in the near future, the same for all ranks.
double agreed_begin(Group& group) {
  constexpr double kSoon = 0.05;  // seconds
  double begin = group.now() + kSoon;
  group.broadcast({&begin, 1});
  return begin;
}

Json network_json(const Ping& ping) {
  return {{"rate_bytes_per_s", ping.rate.si}, {"latency_s", ping.latency.si}, {"adding_bytes_per_s", ping.adding.si}};
}

}  // namespace

Json rehearse_steps(const RehearsalRequest& request, Group& group) {
  const StepPlan& plan = *request.plan;
  const Ping ping = measure_ping(group);
  const auto rows = plan.rows(kMaxSteps + 2 * kChecked);
  const auto row = [&](std::size_t step) { return rows[step][static_cast<std::size_t>(group.rank())]; };
  StepPlayer player(plan, group, agreed_begin(group));
  std::string fault;
  double before = 0;
  const auto check = [&](std::size_t step) {
    before = group.now();
    const std::string found = player.check(row(step));
    if (fault.empty()) fault = found;
  };
  for (std::size_t step = 0; step < kChecked; ++step) check(step);
  const std::size_t steps = number_of_steps(request.length, group.now() - before, group);
  player.start_at(agreed_begin(group));
  std::vector<double> numbers;
  double processor = processor_time();
  for (std::size_t step = kChecked; step < kChecked + steps; ++step) append(player.play(row(step)), numbers);
  processor = (processor_time() - processor) / static_cast<double>(steps);
  for (std::size_t step = kChecked + steps; step < 2 * kChecked + steps; ++step) check(step);
  if (const std::string found = group.first_of(fault); !found.empty()) throw Failure("a sum is wrong: " + found);
  const auto all = group.gather(numbers);
  const auto processors = group.gather({&processor, 1});
  if (!group.is_first()) return nullptr;

  const Played played(all, steps, player.waiting_phases());
  const StepParts measured = played.parts();
  const std::vector<std::vector<std::size_t>> timed(rows.begin() + kChecked,
                                                    rows.begin() + kChecked + static_cast<std::ptrdiff_t>(steps));
  double processor_s = 0;
  for (const auto& rank : processors) processor_s += rank[0] / group.ranks();
  Json out = {{"ranks", group.ranks()},
              {"steps", steps},
              {"messenger", group.messenger().name()},
              {"network", {{"stated", nullptr}, {"measured", network_json(ping)}}},
              {"measured", json_of(measured)},
              {"predicted", json_of(parts_of(predict_steps(plan, *request.fabric, timed)))}};
  out["measured"]["interval_s"] = interval_of_mean(played.durations(), measured.step);
  if (plan.topology.nodes() == group.ranks()) {
    out["network"]["stated"] = network_json(stated_ping(*request.fabric));
    const PlainFabric plain(group.ranks(), ping);
    out["predicted_from_ping"] = json_of(parts_of(predict_steps(plan, plain.graph(), timed)));
  }
  out["noise"] = {{"late_s", played.median_late()},
                  {"clock_error_s", group.clock().error_s},
                  {"processor_s", processor_s},
                  {"more_ranks_than_processors", group.is_crowded()}};
  return out;
}

}  // namespace ganymede::rehearsal
