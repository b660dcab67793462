#include "sim/steps/gradient_passes.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace ganymede::sim {
namespace {

using calibration::StepBucket;
using calibration::StepModel;
using calibration::StepPhase;

/// True if both buckets hold gradients of one network for the same update.
bool belong_together(const StepBucket& a, const StepBucket& b) {
  return a.network == b.network && a.needed_by == b.needed_by;
}

/// The phase that completes the gradients to which a bucket belongs.
std::size_t last_phase(const StepModel& model, const StepBucket& bucket) {
  std::size_t last = bucket.phase;
  for (const StepBucket& other : model.buckets)
    if (belong_together(bucket, other)) last = std::max(last, other.phase);
  return last;
}

/// The phase as it was in the `shift`-th recorded step after each.
StepPhase later(const StepPhase& phase, std::size_t shift) {
  StepPhase out = phase;
  for (auto* times : {&out.gap_s, &out.device_s, &out.host_s})
    std::rotate(times->begin(), times->begin() + static_cast<std::ptrdiff_t>(shift % times->size()), times->end());
  return out;
}

StepPhase for_all_passes(StepPhase input, int passes) {
  for (auto* times : {&input.device_s, &input.host_s})
    for (double& time : *times) time *= passes;
  return input;
}

/// Writes the phases of a step with several passes and remembers where each phase of one pass begins and ends up.
class PassWriter {
 public:
  PassWriter(const StepModel& pass, int passes)
      : pass_(pass), passes_(passes), first_(pass.phases.size()), last_(pass.phases.size()) {
    out_.tail_s = pass.tail_s;
    out_.samples = pass.samples;
    out_.serial_host = pass.serial_host;
  }

  void add(std::size_t phase, int number) {
    const bool input = pass_.phases[phase].stream == calibration::Stream::input;
    last_[phase] = out_.phases.size();
    if (number == 0) first_[phase] = out_.phases.size();
    out_.phases.push_back(input ? for_all_passes(pass_.phases[phase], passes_)
                                : later(pass_.phases[phase], static_cast<std::size_t>(number)));
  }
  /// Repeats the phases [begin, end) of which the first pass is written; updates and input happen once.
  void repeat(std::size_t begin, std::size_t end) {
    for (int number = 1; number < passes_; ++number)
      for (std::size_t phase = begin; phase < end; ++phase)
        if (pass_.phases[phase].stream == calibration::Stream::compute && !is_update(pass_.phases[phase].name))
          add(phase, number);
  }
  StepModel finish() {
    for (StepBucket bucket : pass_.buckets) {
      bucket.phase = last_[bucket.phase];
      if (bucket.needed_by) bucket.needed_by = first_[*bucket.needed_by];
      out_.buckets.push_back(bucket);
    }
    return std::move(out_);
  }

 private:
  const StepModel& pass_;
  int passes_;
  std::vector<std::size_t> first_, last_;  // by phase of one pass
  StepModel out_;
};

}  // namespace

bool is_update(std::string_view phase) {
  const std::size_t at = phase.find("update");
  return at != std::string_view::npos && (at == 0 || phase[at - 1] == '.');
}

StepModel accumulate(const StepModel& pass, int passes) {
  if (passes == 1) return pass;
  const std::size_t count = pass.phases.size();
  std::vector<bool> completes(count, false);
  for (const StepBucket& bucket : pass.buckets) completes[last_phase(pass, bucket)] = true;
  const bool no_gradients = pass.buckets.empty();
  PassWriter writer(pass, passes);
  std::size_t begin = 0;
  for (std::size_t phase = 0; phase < count; ++phase) {
    writer.add(phase, 0);
    if (!completes[phase] && !(no_gradients && phase + 1 == count)) continue;
    writer.repeat(begin, phase + 1);
    begin = phase + 1;
  }
  return writer.finish();
}

StepModel flatten(StepModel model) {
  std::vector<StepBucket> flat;
  for (const StepBucket& bucket : model.buckets) {
    const auto known =
        std::find_if(flat.begin(), flat.end(), [&](const StepBucket& other) { return belong_together(other, bucket); });
    if (known != flat.end()) {
      known->bytes += bucket.bytes;
      continue;
    }
    flat.push_back(bucket);
    flat.back().phase = last_phase(model, bucket);
    flat.back().ready_fraction = 1;
  }
  std::stable_sort(flat.begin(), flat.end(),
                   [](const StepBucket& a, const StepBucket& b) { return a.phase < b.phase; });
  model.buckets = std::move(flat);
  return model;
}

calibration::WorkloadModel in_passes(calibration::WorkloadModel workload, const Scenario& scenario) {
  for (StepModel* model : {&workload.central, &workload.low, &workload.high}) {
    *model = accumulate(*model, scenario.accumulation_steps);
    if (scenario.synchronization.flat_reduction) *model = flatten(std::move(*model));
  }
  return workload;
}

}  // namespace ganymede::sim
