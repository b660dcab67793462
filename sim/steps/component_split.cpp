#include "sim/steps/component_split.hpp"

#include <algorithm>
#include <cassert>

#include "common/units.hpp"

namespace ganymede::sim {

ComponentSplit::ComponentSplit(std::vector<const calibration::StepModel*> models, int prefetch_depth, Seconds crossing,
                               std::vector<Seconds> reduce_s)
    : models_(std::move(models)), crossing_(crossing), reduce_s_(std::move(reduce_s)) {
  assert(models_.size() >= 2);
  const calibration::StepModel& model = *models_.front();
  // "generator.forward_through_discriminator" walks the discriminator's layers.
  for (const auto& phase : model.phases)
    on_generator_.push_back(phase.network == "generator" && phase.name.find("discriminator") == std::string::npos);
  for (const auto& bucket : model.buckets) {
    std::size_t wait = bucket.needed_by.value_or(model.phases.size());
    for (std::size_t phase = bucket.phase + 1; !bucket.needed_by && phase < model.phases.size(); ++phase)
      if (model.phases[phase].network == bucket.network && model.phases[phase].name.ends_with("update")) {
        wait = phase;
        break;
      }
    wait_before_.push_back(wait);
  }
  stage_free_.resize(models_.size() / 2, std::vector<Seconds>(model.phases.size()));
  taken_.resize(models_.size() / 2, std::vector<Seconds>(static_cast<std::size_t>(std::max(1, prefetch_depth))));
}

/// Returns when the pair has its next batch and can start its step.
Seconds ComponentSplit::next_batch(std::size_t pair, std::size_t row) {
  const calibration::StepModel& model = *models_[2 * pair];
  Seconds& slot = taken_[pair][steps_ % taken_[pair].size()];
  Seconds batch = slot;
  for (std::size_t i = 0; i < model.phases.size(); ++i) {
    if (model.phases[i].stream != calibration::Stream::input) continue;
    const Seconds begin = std::max(batch, stage_free_[pair][i]);
    batch = begin + Seconds{model.phases[i].device_s[row]};
    stage_free_[pair][i] = batch;
    show(2 * pair, StepSpan::Kind::input, model.phases[i].name, begin, batch);
  }
  slot = std::max(now_, batch);
  return slot;
}

/// Runs a phase of each pair on the GPU of its network, after images or gradients have crossed to it and the buckets
/// that the phase waits for are reduced.
void ComponentSplit::run_phase(std::size_t index, std::span<const std::size_t> rows, std::span<const double> extra_s,
                               StepOutcome& step) {
  const Seconds reduced = reduce_before(index, now_);
  const bool generator = on_generator_[index];
  for (std::size_t pair = 0; pair < chain_.size(); ++pair) {
    const std::size_t worker = 2 * pair + (generator ? 1 : 0);
    const calibration::StepPhase& phase = models_[worker]->phases[index];
    const std::size_t row = rows[2 * pair];
    WorkerStep& parts = step.workers[worker];
    Seconds& clock = chain_[pair];
    if (generator != at_generator_[pair]) {
      show(worker, StepSpan::Kind::communication, "images or gradients cross", clock, clock + crossing_);
      clock += crossing_;
      parts.exposed_communication += crossing_;
      at_generator_[pair] = generator;
    }
    if (reduced > clock) {
      show(worker, StepSpan::Kind::exposed, "waits for communication", clock, reduced);
      parts.exposed_communication += reduced - clock;
      clock = reduced;
    }
    const double stall_s = extra_s.empty() || index != 0 ? 0 : extra_s[worker];
    const Seconds time{phase.gap_s[row] + std::max(phase.device_s[row], phase.host_s[row]) + stall_s};
    show(worker, StepSpan::Kind::compute, phase.name, clock, clock + time);
    clock += time;
    parts.compute += time;
    parts.device += Seconds{phase.device_s[row]};
    for (std::size_t bucket = 0; bucket < ready_.size(); ++bucket)
      if (models_.front()->buckets[bucket].phase == index) ready_[bucket] = std::max(ready_[bucket], clock);
  }
}

/// Returns when all buckets that the phase waits for are reduced, one after the other; not before `earliest`.
Seconds ComponentSplit::reduce_before(std::size_t phase, Seconds earliest) const {
  for (std::size_t bucket = 0; bucket < ready_.size(); ++bucket)
    if (wait_before_[bucket] == phase) earliest = std::max(earliest, ready_[bucket]) + reduce_s_[bucket];
  return earliest;
}

StepOutcome ComponentSplit::next(std::span<const std::size_t> rows, std::span<const double> extra_s) {
  const std::size_t pairs = models_.size() / 2;
  const calibration::StepModel& structure = *models_.front();
  StepOutcome step;
  step.workers.resize(models_.size());
  chain_.assign(pairs, now_);
  at_generator_.assign(pairs, false);
  ready_.assign(structure.buckets.size(), now_);
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    chain_[pair] = next_batch(pair, rows[2 * pair]);
    step.workers[2 * pair].input_stall += chain_[pair] - now_;
    show(2 * pair, StepSpan::Kind::input_stall, "waits for a batch", now_, chain_[pair]);
  }
  for (std::size_t index = 0; index < structure.phases.size(); ++index)
    if (structure.phases[index].stream == calibration::Stream::compute) run_phase(index, rows, extra_s, step);
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const Seconds tail{models_[2 * pair]->tail_s[rows[2 * pair]]};
    chain_[pair] += tail;
    step.workers[2 * pair].compute += tail;
  }
  const Seconds end = reduce_before(structure.phases.size(), *std::max_element(chain_.begin(), chain_.end()));
  step.duration = end - now_;
  // While the GPU of one network works, that of the other waits for it.
  for (WorkerStep& parts : step.workers)
    parts.straggler +=
        step.duration - (parts.compute + parts.exposed_communication + parts.straggler + parts.input_stall);
  now_ = end;
  ++steps_;
  return step;
}

}  // namespace ganymede::sim
