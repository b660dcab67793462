#include "plan/watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibration/workload_model.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "common/usd.hpp"
#include "plan/chosen_scenario.hpp"
#include "plan/forecast.hpp"
#include "sim/run/controller.hpp"
#include "sim/run/decisions.hpp"
#include "sim/run/node_supply.hpp"
#include "sim/run/run_clock.hpp"

namespace ganymede::plan {
namespace {
constexpr double kHour = 3600;
/// How far a measured step may be from the planned one before a warning says so.
constexpr double kSlower = 1.1;

/// The nodes of each pool that the plan asks for.
std::vector<int> requested(const sim::Scenario& scenario) {
  std::vector<int> nodes;
  for (const sim::ScenarioPool& pool : scenario.pools) nodes.push_back(pool.pool.nodes);
  return nodes;
}

/// The time from the request of nodes to the first step, when all goes as usual.
double setup_s(const sim::Scenario& scenario) {
  const platforms::Provisioning& times = scenario.provisioning;
  const sim::ScenarioPool& first = scenario.pools[0];
  const Seconds boot = scenario.boot_given ? times.boot.median : first.platform->boot(first.instance()).median;
  return (times.queue.median + times.image_pull.median + boot + sim::program_start(scenario, requested(scenario))).si;
}

/// How long the steps of each stage of a growing model take; nothing for other models.
std::vector<StageWork> stage_work(const sim::Scenario& scenario) {
  std::vector<StageWork> out;
  if (scenario.stages.size() < 2) return out;
  const sim::ScenarioPool& pool = scenario.pools[0];
  const auto& link = pool.instance().host_link;
  for (std::size_t i = 0; i < scenario.stages.size(); ++i) {
    const traces::TraceBatch& batch = scenario.trace->batches[scenario.stages[i]];
    const calibration::StepModel step =
        calibration::workload_on(*scenario.trace, batch, pool.gpu(), link ? &*link : nullptr).central;
    double sum = 0;
    for (std::size_t sample = 0; sample < step.samples; ++sample) sum += step.step_s(sample);
    out.push_back({scenario.stage_shares[i], sum / static_cast<double>(step.samples)});
  }
  return out;
}

/// The scenario's pauses in a training of `steps` steps of `batch` images on so many GPUs, which takes `seconds` with
/// them.
PlannedPauses planned_pauses(const sim::Scenario& scenario, double steps, double batch, int gpus, double seconds) {
  const double epoch = static_cast<double>(scenario.dataset.images) / batch;
  const auto steps_in = [&](double interval_s) { return seconds > 0 ? steps * interval_s / seconds : 0; };
  PlannedPauses out;
  if (const auto& evaluation = scenario.evaluation) {
    using Every = sim::Evaluation::Every;
    const double pause_s = evaluation->pause(gpus).si;
    out["evaluation"] = {evaluation->every == Every::steps    ? evaluation->count
                         : evaluation->every == Every::images ? evaluation->count / batch
                         : evaluation->every == Every::epochs ? evaluation->count * epoch
                                                              : steps_in(evaluation->interval.si + pause_s),
                         pause_s};
  }
  const sim::Checkpoints& checkpoints = scenario.checkpoints;
  if (checkpoints.every == sim::Checkpoints::Every::interval) out["checkpoint"] = {steps_in(checkpoints.interval.si)};
  if (checkpoints.every == sim::Checkpoints::Every::images) out["checkpoint"] = {checkpoints.count / batch};
  if (checkpoints.every == sim::Checkpoints::Every::epochs) out["checkpoint"] = {checkpoints.count * epoch};
  return out;
}

/// Images of the training that the plan was made for.
double planned_images(const WatchedPlan& plan) {
  return static_cast<double>(plan.scenario.images > 0 ? plan.scenario.images : plan.scenario.steps * plan.batch);
}

/// The plan's time for a step, in a run of so many; none if nothing says it.
std::optional<StepPrior> step_prior(const WatchedPlan& plan, double steps, double setup, const PlannedPauses& pauses) {
  double training = plan.time_s.median - setup;
  for (const auto& [what, pause] : pauses)
    if (pause.every > 0) training -= std::floor(steps / pause.every) * pause.seconds;
  // Short trainings whose nodes start sooner than in the median would take no time.
  const double images = planned_images(plan);
  training = std::max(training, plan.images_per_s > 0 ? images / plan.images_per_s : plan.least_s - setup);
  PlanMeasure stated = plan.time_s;
  // On spot that time also holds waits for nodes and work that is lost with them, and its interval their luck.
  if (plan.at_risk && plan.images_per_s > 0 && images > 0) {
    training = images / plan.images_per_s;
    if (plan.step_s.median > 0) stated = plan.step_s;
  }
  if (training <= 0) return {};
  const double step_s = training / steps;
  return StepPrior{{step_s, step_s * stated.low / stated.median, step_s * stated.high / stated.median}};
}

documents::Measure measure(double median, double low, double high) { return {median, {low, high}}; }
documents::Measure measure(const PlanMeasure& value) { return measure(value.median, value.low, value.high); }

/// What the plan's policy sees if all requested nodes are there.
policies::Observation observation_of(const WatchedPlan& plan, const RunLog& log, const RunForecast& now, double setup,
                                     double spent_usd) {
  const sim::Scenario& scenario = plan.scenario;
  const bool images = scenario.target == sim::Target::images;
  policies::Observation seen;
  seen.now = Seconds{setup + now.elapsed_s};
  seen.training = log.end.empty();
  const double unit = images ? static_cast<double>(log.batch) : 1;
  seen.done = static_cast<double>(log.done()) * unit;
  seen.left = static_cast<double>(log.planned - log.done()) * unit;
  seen.rate = now.step_s > 0 ? unit / now.step_s : 0;
  seen.training_gpus = log.gpus;
  seen.step_s = now.step_s;
  seen.boot = Seconds{setup};
  seen.restart = sim::longest_program_start(scenario, requested(scenario));
  seen.spent_usd = spent_usd;
  seen.deadline = scenario.deadline;
  if (scenario.budget) seen.budget_usd = static_cast<double>(scenario.budget->value) * 1e-6;
  for (const sim::ScenarioPool& pool : scenario.pools) {
    policies::PoolView& view = seen.pools.emplace_back();
    view.market = pool.pool.market;
    view.gpus_per_node = pool.pool.gpus_per_node;
    view.requested = view.ready = pool.pool.nodes;
    view.most = pool.max_nodes;
    view.usd_per_hour = sim::price_at(pool, sim::to_nanoseconds(seen.now));
    if (pool.gpu().peak) view.gpu_watts = pool.gpu().peak->si * pool.instance().gpus;
  }
  return seen;
}

documents::WatchedDecision decision_of(const WatchedPlan& plan, const policies::Observation& seen) {
  const policies::Decision decision = sim::make_controller(plan.scenario)->decide(seen);
  documents::WatchedDecision out{plan.policy, false, decision.pause, {}};
  for (std::size_t p = 0; p < seen.pools.size(); ++p) {
    if (decision.nodes[p] != seen.pools[p].ready) out.changes = true;
    if (decision.nodes[p] == 0 && seen.pools[p].ready == 0) continue;
    out.pools.push_back({plan.scenario.pools[p].name, decision.nodes[p], seen.pools[p].ready});
  }
  return out;
}

/// The bill of a run that goes on for `run_s` after its first line.
struct RunBill {
  double usd_per_hour = 0, setup_s = 0, other_usd = 0;
  double operator()(double run_s) const { return usd_per_hour * (setup_s + run_s) / kHour + other_usd; }
};

/// Where the run's FID goes, by what it has measured: when it gets to the plan's, and what that costs.
documents::WatchedQuality quality_of(const calibration::QualityGoal& goal, const RunLog& log, const RunForecast& now,
                                     const RunBill& bill, const std::string& log_file) try {
  const auto batch = static_cast<double>(log.batch);
  std::vector<calibration::RecordedRun::Point> points;
  for (const LoggedFid& at : log.fids)
    if (at.step > 0) points.push_back({static_cast<double>(at.step) * batch, at.fid});
  const calibration::QualityOutlook outlook = goal.given(points, log.reference, batch, 0);
  const calibration::TargetOutlook& target = outlook.targets[0];
  const double done = static_cast<double>(log.done()) * batch;
  const double image_s = (now.step_s + now.pause_s) / batch;
  const auto run_s = [&](double images) { return now.elapsed_s + std::max(0.0, images - done) * image_s; };
  const auto of = [&](auto&& value) -> std::optional<documents::Measure> {
    if (target.reached || !(target.images.median > 0) || !(image_s > 0)) return {};
    return measure(value(target.images.median), value(target.images.low), value(target.images.high));
  };
  documents::WatchedQuality out;
  out.fid = goal.fid();
  out.points = static_cast<std::int64_t>(points.size());
  out.reached = target.reached;
  if (outlook.best_seen > 0) out.best_seen = outlook.best_seen;
  out.probability = target.probability;
  if (target.images.median > 0) out.images = measure(target.images.median, target.images.low, target.images.high);
  out.time_s = of([&](double images) { return bill.setup_s + run_s(images); });
  out.usd = of([&](double images) { return bill(run_s(images)); });
  for (const calibration::OutlookPoint& point : outlook.curve)
    out.curve.push_back(
        {point.images, bill(run_s(point.images)), measure(point.best.median, point.best.low, point.best.high)});
  out.notes = outlook.notes;
  return out;
} catch (const ConfigError& error) {
  throw ConfigError(fmt::format("{}: {}", log_file, error.what()));
}

void check_same_run(const WatchedPlan& plan, const RunLog& log, const std::string& log_file) {
  if (log.batch == 0)
    throw ConfigError(fmt::format("{}: no line yet, expected the header of a ganymede.run-log/1", log_file));
  if (!log.model.empty() && !plan.model.empty() && log.model != plan.model)
    throw ConfigError(fmt::format("{}: a run of \"{}\", expected one of \"{}\", for which {} was made", log_file,
                                  log.model, plan.model, plan.file));
}

void add_warnings(const WatchedPlan& plan, const RunLog& log, const RunForecast& now, documents::Forecast& out) {
  std::vector<std::string>& warnings = out.warnings;
  if (!log.run.empty()) warnings.push_back(fmt::format("the log is of several runs: the first is taken, {}", log.run));
  if (log.gpus != plan.gpus)
    warnings.push_back(fmt::format("the run has {} GPU(s), the plan rents {}: the bill is that of the plan's nodes",
                                   log.gpus, plan.gpus));
  const double images = static_cast<double>(log.planned) * static_cast<double>(log.batch);
  const double planned = planned_images(plan);
  if (planned > 0 && std::abs(images / planned - 1) > 0.01)
    warnings.push_back(fmt::format("the run trains {:.0f} images, the plan was made for {:.0f}", images, planned));
  if (now.observed && now.step_s > 0 && out.plan_step_s) {
    const double factor = now.step_s / *out.plan_step_s;
    if (factor > kSlower) warnings.push_back(fmt::format("a step takes {:.2f} times what was planned", factor));
  }
  if (endangers_deadline(out))
    warnings.push_back(fmt::format("the deadline is met with a probability of {:.0f} %, the plan asked for {:.0f} %",
                                   100 * *out.deadline.probability, 100 * plan.certainty));
  if (log.end.empty())
    for (const std::string& what : now.lone_pauses)
      warnings.push_back(fmt::format(
          "the run has paused at one step alone for \"{}\": how often it will again is not known, so that the "
          "forecast has no more of these pauses",
          what));
  if (log.end == "finished" && log.done() < log.planned)
    warnings.push_back(fmt::format("the run ended after {} of its {} steps", log.done(), log.planned));
  if (plan.at_risk && log.end.empty())
    warnings.push_back(fmt::format(
        "its nodes may be taken back: the forecast counts no time for that, and the plan counts {} beside training",
        to_string(
            Seconds{std::max(0.0, plan.time_s.median - out.setup_s - planned / std::max(plan.images_per_s, 1e-9))})));
  if (log.end == "stopped") warnings.emplace_back("the run was stopped before its end");
}

}  // namespace

PlannedTraining planned_training(const WatchedPlan& plan) { return {plan.batch, planned_images(plan), plan.gpus}; }

WatchedPlan load_watched_plan(const std::filesystem::path& file) {
  const JsonNode node = JsonNode::load(file);
  JsonObject in(node);
  check_schema(in, documents::kPlanSchema);
  const documents::Plan document = documents::read_plan(node);
  const JsonNode chosen = in.required("chosen");
  if (!document.chosen) chosen.fail("this plan has chosen nothing, so that no run can follow it");
  const documents::PlanRow& row = *document.chosen;
  if (!row.batch_per_gpu || !row.usd_per_hour || !row.simulated())
    chosen.fail("is not whole; plan again, with `ganymede plan --save`");
  WatchedPlan plan;
  plan.file = file.string();
  plan.model = document.request.model;
  plan.certainty = document.request.certainty;
  plan.instance = row.instance;
  plan.gpu = row.gpu;
  plan.policy = row.policy;
  plan.nodes = row.nodes;
  plan.gpus = row.gpus;
  plan.batch = plan.gpus * std::int64_t{*row.batch_per_gpu};
  plan.usd_per_hour = usd_of(*row.usd_per_hour);
  plan.time_s = {row.time_s.median, row.time_s.interval.low, row.time_s.interval.high};
  plan.usd = {row.usd.median, row.usd.interval.low, row.usd.interval.high};
  plan.least_s = row.bounds.low;
  plan.images_per_s = row.images_per_s.value_or(0);
  plan.at_risk = row.risk != "none";
  for (const documents::PlanStep& step : document.steps)
    if (step.gpu == plan.gpu && plan.gpus * std::int64_t{step.batch_per_gpu} == plan.batch)
      plan.step_s = {step.seconds, step.interval_s.low, step.interval_s.high};
  plan.scenario = load_scenario_or_plan(file);
  if (plan.scenario.quality)
    plan.quality = calibration::QualityGoal::read(chosen.child("scenario").child("workload").child("quality"),
                                                  plan.scenario.trace->model);
  return plan;
}

documents::Forecast watched(const WatchedPlan& plan, const RunLog& log, const std::string& log_file) {
  check_same_run(plan, log, log_file);
  const double setup = setup_s(plan.scenario);
  const double all = static_cast<double>(log.planned - log.begin_step);
  // The plan's time for an image, so that a run of fewer images or of other batches has a step of its own length.
  const double same_images = planned_images(plan) / static_cast<double>(log.batch);
  const double steps = same_images > 0 ? same_images : static_cast<double>(log.planned);
  const PlannedPauses pauses =
      planned_pauses(plan.scenario, steps, static_cast<double>(log.batch), plan.gpus, plan.time_s.median - setup);
  const auto prior = all > 0 ? step_prior(plan, steps, setup, pauses) : std::nullopt;
  const RunForecast now = forecast(log, prior, stage_work(plan.scenario), pauses);
  // Storage, network and other items that hours of nodes do not explain are billed as the plan had them.
  const double other_usd = std::max(0.0, plan.usd.median - plan.usd_per_hour * plan.time_s.median / kHour);
  const RunBill bill{plan.usd_per_hour, setup, other_usd};

  documents::Forecast out;
  out.log = log_file;
  out.plan = plan.file;
  out.model = log.model.empty() ? plan.model : log.model;
  out.instance = plan.instance;
  out.nodes = plan.nodes;
  out.gpus = log.gpus;
  out.state = log.end.empty() ? "running" : log.end;
  out.resumptions = log.resumptions;
  out.cut_lines = log.cut_lines;
  out.steps_done = log.done(), out.steps = log.planned;
  out.done_share = log.planned > 0 ? static_cast<double>(log.done()) / static_cast<double>(log.planned) : 1;
  out.last_line_unix_s = log.last_unix_s;
  out.setup_s = setup;
  out.elapsed_s = setup + now.elapsed_s;
  out.paused_s = now.paused_s;
  if (now.step_s > 0) out.step_s = now.step_s;
  out.step_is_measured = now.observed;
  if (prior) out.plan_step_s = prior->seconds.median;
  out.time_s = measure(setup + now.total_s.median, setup + now.total_s.low, setup + now.total_s.high);
  out.plan_time_s = measure(plan.time_s);
  out.ends_at = format_time(static_cast<std::int64_t>(std::llround(log.begin_unix_s + now.total_s.median)));
  out.usd_per_hour = plan.usd_per_hour;
  out.spent_usd = plan.usd_per_hour * (setup + now.elapsed_s) / kHour;
  out.usd = measure(bill(now.total_s.median), bill(now.total_s.low), bill(now.total_s.high));
  out.plan_usd = measure(plan.usd);
  if (plan.quality) out.quality = quality_of(*plan.quality, log, now, bill, log_file);
  out.deadline.certainty = plan.certainty;
  if (plan.scenario.deadline) {
    out.deadline.seconds = plan.scenario.deadline->si;
    out.deadline.probability = now.chance_within(plan.scenario.deadline->si - setup);
  }
  if (log.end != "finished") out.decision = decision_of(plan, observation_of(plan, log, now, setup, out.spent_usd));
  add_warnings(plan, log, now, out);
  return out;
}

bool endangers_deadline(const documents::Forecast& forecast) {
  return forecast.deadline.probability && *forecast.deadline.probability < forecast.deadline.certainty;
}

std::optional<double> silent_seconds(const RunLog& log, double now_unix_s) {
  const double silent_s = now_unix_s - log.last_unix_s;
  const double usual_s =
      (log.last_unix_s - log.begin_unix_s) / static_cast<double>(std::max<std::size_t>(1, log.steps.size()));
  if (!log.end.empty() || silent_s <= std::max(60.0, 20 * usual_s)) return std::nullopt;
  return silent_s;
}

}  // namespace ganymede::plan
