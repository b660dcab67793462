#include "sim/engine/collective_timing.hpp"

#include <algorithm>

#include "sim/collectives/nccl_tuner.hpp"
#include "sim/engine/communication_engine.hpp"

namespace ganymede::sim {
namespace {

/// True if the curve was measured with that scheme. One that names no more than NCCL's version was measured with what
/// `nccl` chooses, whose version is that of the machine.
bool is_measured_with(const platforms::MeasuredCollective& curve, const Scheme& scheme) {
  if (curve.scheme == scheme.name()) return true;
  const Scheme measured = parse_scheme(curve.scheme);
  if (measured.row != scheme.row || !scheme.variant.empty()) return false;
  const auto options = scheme.row->by_kernels ? parse_nccl_options(measured.variant) : std::nullopt;
  return options && !options->algorithm && !options->protocol && !options->any_protocol;
}

}  // namespace

std::string_view to_string(CollectiveFidelity fidelity) {
  return fidelity == CollectiveFidelity::message ? "message" : "folded";
}

TimedJobs time_jobs(const FabricGraph& fabric, std::span<const Job> jobs, CollectiveFidelity wanted,
                    const RecordTransfer& record, double tolerance) {
  FoldedTimes folded = run_folded(fabric, jobs, true, tolerance);
  if (wanted == CollectiveFidelity::folded && !record)
    return {std::move(folded.times), CollectiveFidelity::folded, folded.bottleneck, folded.difference};
  return {open_communication_engine(fabric)->run(jobs, record), CollectiveFidelity::message, folded.bottleneck, 0};
}

Seconds time_alone(const FabricGraph& fabric, const Schedule& schedule, const std::vector<int>& members) {
  const Job job{
      {Communicator{members, {{&schedule, std::vector<Seconds>(static_cast<std::size_t>(schedule.ranks()))}}}}};
  const auto times = run_folded(fabric, {&job, 1}).times;
  return *std::max_element(times[0][0][0].done.begin(), times[0][0][0].done.end());
}

Schedule plan_on(const FabricGraph& fabric, const Scheme& scheme, std::int64_t bytes, Collective collective) {
  Schedule schedule = scheme.plan({fabric.topology(), bytes, collective, ""});
  const auto& curve = fabric.measured();
  if (!curve || schedule.rounds() == 0 || curve->collective != to_string(collective) ||
      parse_scheme(curve->scheme).row != scheme.row)
    return schedule;
  constexpr double kLeast = 0.01;  // a curve that is shorter than a launch is of another GPU
  const auto size = static_cast<double>(bytes);
  double factor = curve->ratio(size);
  const Topology& topology = fabric.topology();
  if (topology.nodes() == curve->nodes && topology.gpus_per_node == curve->gpus_per_node &&
      is_measured_with(*curve, scheme)) {
    const Seconds launch = fabric.endpoints()[0].launch, alone = time_alone(fabric, schedule);
    factor = std::max(kLeast, (curve->time(size, alone) - launch) / (alone - launch));
  }
  schedule.set_cost(schedule.cost().stretched(factor));
  return schedule;
}

}  // namespace ganymede::sim
