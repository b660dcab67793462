// How fast the jobs of a cluster go beside each other: links, stores, and GPUs that two of them share.

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/cluster/job_steps.hpp"
#include "sim/ledger/ledger.hpp"
#include "sim/run/run_configuration.hpp"

namespace ganymede::sim {
namespace {

/// The mean step of a job while no other runs.
double step_alone(const RunningJob& running) {
  return running.reads ? running.speed->reading.step_s : running.speed->step_s;
}

double packed_factor(const Cluster& cluster, const RunningJob& running) {
  if (!running.partner) return 1;
  const auto& family = cluster.pools[running.pool].gpu().family;
  return cluster.throughputs->together(family, model_of(cluster, running.job), model_of(cluster, *running.partner))
      ->first;
}

/// The share of the step under way that is done, in parts of which there are few, so that beats are few.
double phase_of(const ClusterState& state, const RunningJob& running) {
  constexpr double kParts = 16;
  const TrainingProgress& training = state.jobs[running.job].training;
  double steps = training.steps() - running.steps_before;
  if (training.under_way()) steps += training.segment().at(std::max(state.now, training.segment().start)).steps;
  return std::floor(kParts * (steps - std::floor(steps))) / kParts;
}

/// The mean step of each running job, with what the others put on links and read from stores.
std::vector<SharedStep> steps_beside_others(const ClusterContext& context, ClusterState& state) {
  std::vector<const TalkingJob*> talking;
  for (RunningJob& running : state.running) {
    running.talk.phase = phase_of(state, running);
    talking.push_back(running.talk.uses.empty() ? nullptr : &running.talk);
  }
  const Contention::Beat ask = [&](const std::vector<std::size_t>& members) {
    std::vector<const RunningJob*> jobs;
    for (const std::size_t member : members) jobs.push_back(&state.running[member]);
    return beat(context, jobs, state.beat_messages_left);
  };
  std::vector<SharedStep> steps =
      state.contention.steps(talking, context.cluster.beat_messages > 0 ? ask : Contention::Beat());
  std::vector<Reader> readers;
  std::vector<std::size_t> reads;
  for (std::size_t i = 0; i < state.running.size(); ++i) {
    if (talking[i] == nullptr) steps[i].step_s = step_alone(state.running[i]);
    if (!state.running[i].reads) continue;
    readers.push_back({steps[i].step_s, &state.running[i].speed->reading});
    reads.push_back(i);
  }
  const std::vector<double> longer = steps_of_readers(readers);
  for (std::size_t k = 0; k < reads.size(); ++k) steps[reads[k]].step_s = longer[k];
  return steps;
}

/// Steps until the caches of the job's nodes have its images; infinity: they never do.
double steps_to_read(const RunningJob& running, const TrainingProgress& training) {
  const double here = training.steps() - running.steps_before;
  return steps_to_whole(here, running.speed->reading.images / running.speed->step_images - here);
}

/// The moment at which that many steps are done; after the longest life for what is later.
Nanoseconds time_of(const Segment& segment, double steps) {
  const double writes_ns = segment.checkpoint_every > 0 ? segment.checkpoint_ns / segment.checkpoint_every : 0;
  const double length_ns = steps * (segment.step_ns + writes_ns);
  const bool ends = static_cast<double>(segment.start) + length_ns < static_cast<double>(kLongestLife);
  return ends ? segment.time_of(steps) : kLongestLife + 1;
}

/// Begins a segment whose mean step takes `step_s`, and says when it ends.
void begin_segment(const ClusterContext& context, ClusterState& state, RunningJob& running, double step_s) {
  TrainingProgress& training = state.jobs[running.job].training;
  const JobSpeed& speed = *running.speed;
  const bool from_store = running.reads && context.runner == nullptr;
  Segment segment;
  segment.start = std::max(state.now, running.begins);
  segment.steps = from_store ? speed.reading.steps : speed.steps;
  segment.step_ns = step_s * kNanosecondsPerSecond;
  segment.per_step = speed.step_work * running.efficiency;
  const Nanoseconds write = speed.writes_checkpoints() ? checkpoint_write_time(speed.scenario->checkpoints) : 0;
  segment.checkpoint_ns = static_cast<double>(write);
  if (speed.writes_checkpoints())
    segment.checkpoint_every =
        steps_between_checkpoints(*speed.scenario, *segment.steps, Seconds{step_s}, to_seconds(write), 0);
  const double more = (state.record.jobs[running.job].work - training.done(state.now)) / segment.per_step;
  const double left = speed.scenario ? steps_to_whole(training.steps(), more) : std::max(more, 0.0);
  training.begin_segment(segment, std::exchange(running.begun, true));
  const Nanoseconds trained = time_of(training.segment(), left);
  if (context.runner != nullptr) return context.runner->begin(running, training.segment(), left, trained);
  running.trained = trained;
  running.ends = running.trained + write;
  running.cached = kNever;
  if (!running.reads) return;
  if (const double to_read = steps_to_read(running, training); to_read < left)
    running.cached = time_of(training.segment(), to_read);
}

/// The moment up to which the job's segment has come. What a runner has measured of it is noted first.
Nanoseconds reached(const ClusterContext& context, ClusterState& state, const RunningJob& running) {
  TrainingProgress& training = state.jobs[running.job].training;
  const Segment& segment = training.segment();
  if (context.runner != nullptr) {
    const SegmentProgress progress = context.runner->progress(running.job);
    training.measure({progress, progress.steps}, *segment.steps, segment.checkpoint_ns);
  }
  return std::clamp(state.now, segment.start, std::max(segment.start, running.trained));
}

}  // namespace

TalkingJob talk_of(const ClusterContext& context, const RunningJob& running) {
  if (!running.speed->traffic) return {};
  const std::vector<int> members = members_of(running.slots, context.cluster.pools[running.pool].pool.gpus_per_node);
  return talking_job(*context.fabrics[running.pool], *running.speed->traffic, step_alone(running), members,
                     context.first_link[running.pool]);
}

void end_reading(const ClusterContext& context, ClusterState& state) {
  for (RunningJob& running : state.running) {
    if (running.cached > state.now) continue;
    end_segment(context, state, running);
    running.reads = false;
    running.cached = kNever;
    running.talk = talk_of(context, running);
  }
}

double work_done(const ClusterContext& context, ClusterState& state, const RunningJob& running) {
  const TrainingProgress& training = state.jobs[running.job].training;
  return training.done(training.under_way() ? reached(context, state, running) : state.now);
}

void end_segment(const ClusterContext& context, ClusterState& state, const RunningJob& running) {
  TrainingProgress& training = state.jobs[running.job].training;
  if (!training.under_way()) return;
  const Nanoseconds until = reached(context, state, running);
  const Segment segment = training.segment();
  const double steps = segment.at(until).steps;
  const ScenarioPool& pool = context.cluster.pools[running.pool];
  double busy_gpu_s = 0;
  if (running.partner)  // a GPU with two jobs is taken to be busy all the time
    busy_gpu_s = to_seconds(until - segment.start).si * running.gpus();
  else
    for (const PoolStep& part : segment.steps->pools) busy_gpu_s += part.device.si * steps;
  state.record.jobs[running.job].busy_gpu_s += busy_gpu_s;
  state.record.busy_gpu_s[running.pool] += busy_gpu_s;
  // Where nothing says what a job's hosts do, they are as busy as its GPUs.
  state.record.host_s[running.pool] += running.speed->scenario
                                           ? steps * segment.steps->host.si
                                           : busy_gpu_s / pool.pool.gpus_per_node * pool.instance().vcpus;
  const double trained_s = steps * segment.step_ns / kNanosecondsPerSecond;
  state.record.jobs[running.job].shorter_s += trained_s * (1 - running.beside.low);
  state.record.jobs[running.job].longer_s += trained_s * (running.beside.high - 1);
  if (running.reads) {
    const double read = context.runner == nullptr ? steps : std::min(steps, steps_to_read(running, training));
    state.record.jobs[running.job].stays.back().reads += read * running.speed->reading.requests;
  }
  training.end_segment(until, false, 0);
}

void update_paces(const ClusterContext& context, ClusterState& state) {
  std::vector<SharedStep> steps;
  if (context.runner == nullptr) steps = steps_beside_others(context, state);
  for (std::size_t i = 0; i < state.running.size(); ++i) {
    RunningJob& running = state.running[i];
    const TrainingProgress& training = state.jobs[running.job].training;
    if (context.runner != nullptr && running.begun) continue;
    const double step_s =
        context.runner != nullptr ? running.speed->step_s : steps[i].step_s / packed_factor(context.cluster, running);
    // A job whose pace stays keeps its segment, and its end to the last bit.
    if (training.under_way() && step_s * kNanosecondsPerSecond == training.segment().step_ns) continue;
    end_segment(context, state, running);
    if (context.runner == nullptr) {
      running.beside = steps[i];
      running.beside.low *= 1 - running.speed->borrowed_error;
      running.beside.high *= 1 + running.speed->borrowed_error;
    }
    begin_segment(context, state, running, step_s);
  }
}

}  // namespace ganymede::sim
