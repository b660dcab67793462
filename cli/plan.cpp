// ganymede plan: what to rent for a target.

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "cli/command.hpp"
#include "cli/merged.hpp"
#include "cli/progress.hpp"
#include "cli/request_flags.hpp"
#include "cli/shared_options.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/plain_text.hpp"
#include "common/units.hpp"
#include "plan/pick_trace.hpp"
#include "plan/planner.hpp"
#include "plan/service_plan.hpp"
#include "report/plans.hpp"
#include "report/services.hpp"
#include "studies/study_shards.hpp"

namespace ganymede::cli {
namespace {
struct PlanFlags {
  RequestFlags request;
  std::string plan_file, like, serve, p95;
  std::string shard;
  std::string effort = "normal";
  bool exhaustive = false, verbose = false;

  plan::Effort how() const {
    return exhaustive || effort == "exhaustive" ? plan::Effort::exhaustive
           : effort == "quick"                  ? plan::Effort::quick
                                                : plan::Effort::normal;
  }
};

volatile std::sig_atomic_t plan_stop_asked = 0;
void note_plan_stop(int signal) {
  std::signal(signal, SIG_DFL);  // a second one ends the program
  plan_stop_asked = 1;
}

/// What a search has found so far, on the terminal's last line.
class SearchLine {
 public:
  SearchLine(const Shared& shared, const plan::Request& request) : shared_(shared), request_(request) {
    if (shared.progress_fd < 0 && shows_progress(shared))
      line_ = std::make_unique<ProgressLine>([this](double now_s, std::size_t /*columns*/) { return text(now_s); });
  }
  void done(std::size_t pieces, std::size_t count) {
    if (!line_ && !bar_) bar_ = progress_bar(shared_, count, "groups of candidates");
    if (bar_) bar_(pieces);
    const std::lock_guard lock(mutex_);
    done_ = pieces;
    count_ = count;
  }
  void better(const plan::PlanCandidate& candidate, const plan::PlannedRun& run) {
    const std::lock_guard lock(mutex_);
    best_ = fmt::format("so far {:.2f} USD in {}: {}; ", run.usd.median, to_string(Seconds{run.time_s.median}),
                        plan::label_of(request_, candidate));
  }
  /// "16 of 320 groups of candidates"
  std::string reached() const { return fmt::format("{} of {} groups of candidates", done_, count_); }

 private:
  std::string text(double now_s) {
    const std::lock_guard lock(mutex_);
    return fmt::format("{}{}", best_,
                       count_ == 0 ? "looking for candidates: " + duration_text(now_s)
                                   : fmt::format("{}/{} groups, {}", done_, count_, duration_text(now_s)));
  }

  const Shared& shared_;
  const plan::Request& request_;
  std::mutex mutex_;
  std::size_t done_ = 0, count_ = 0;
  std::string best_;
  std::function<void(std::size_t)> bar_;
  std::unique_ptr<ProgressLine> line_;  // declared last, because its thread uses the other members
};

plan::Request request_of_plan(const PlanFlags& flags) {
  return flags.request.members.locate(
      [&] { return plan::read_request(request_of(flags.request, "plan"), format_time(stated_now())); });
}

void run_plan_shard(const PlanFlags& flags, Shared& shared) {
  require_folder(shared);
  if (flags.how() == plan::Effort::quick)
    throw ConfigError("--effort quick: found with --shard, whose shards evaluate all; expected normal or exhaustive");
  if (!flags.plan_file.empty()) throw ConfigError("--save: found with --shard; `ganymede merge` writes the plan");
  const studies::Shard shard = read_shard(flags.shard, std::getenv);
  report_shard(
      shared, shard,
      studies::run_plan_shard(request_of_plan(flags), flags.how() == plan::Effort::exhaustive, GANYMEDE_VERSION, shard,
                              shared.output, shard_options(shared, "groups of candidates")));
}

void run_plan(const PlanFlags& flags, Shared& shared) {
  check_output(shared);
  if (!flags.request.file.empty()) keep_input(shared, flags.request.file);
  const plan::Request request = request_of_plan(flags);
  plan::PlanOptions options;
  options.jobs = jobs(shared);
  options.effort = flags.how();
  std::optional<SearchLine> line(std::in_place, shared, request);
  options.progress = [&](std::size_t done, std::size_t groups) { line->done(done, groups); };
  options.better = [&](const plan::PlanCandidate& candidate, const plan::PlannedRun& run) {
    line->better(candidate, run);
  };
  if (std::signal(SIGINT, note_plan_stop) == SIG_IGN) std::signal(SIGINT, SIG_IGN);
  options.stopped = [] { return plan_stop_asked != 0; };
  const plan::Plan plan = plan::make_plan(request, options);
  const std::string reached = line->reached();
  line.reset();
  const std::filesystem::path folder = shared.output.empty() ? "."
                                       : std::filesystem::path(shared.output).parent_path().empty()
                                           ? "."
                                           : std::filesystem::path(shared.output).parent_path();
  const std::string json = plan::plan_json(request, plan, folder);
  const Json content = Json::parse(json);
  if (!flags.plan_file.empty()) {
    Shared file = shared;
    file.output = flags.plan_file;
    const auto parent = std::filesystem::path(flags.plan_file).parent_path();
    emit(file, plan::plan_json(request, plan, parent.empty() ? "." : parent));
  }
  emit(shared, shared.format == "json" ? json
               : shared.format == "csv"
                   ? report::plan_csv(content)
                   : highlighted(shared, report::plan_text(
                                             content, result_width(shared),
                                             flags.verbose ? report::PlanDetail::all : report::PlanDetail::answer)));
  if (plan_stop_asked == 0) return report_goals(request, plan, shared);
  say(fmt::format("ganymede: interrupted; this is the best of {}\n", reached));
  shared.exit_code = ExitCode::interrupted;
}

/// Requests a second.
double rate_of(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string unit = slash == std::string::npos ? "s" : text.substr(slash + 1);
  const double seconds = unit == "s" ? 1 : unit == "min" ? 60 : unit == "h" ? 3600 : 0;
  const double rate = parse_number<double>(text.substr(0, slash)).value_or(0) / std::max(seconds, 1.0);
  constexpr double kLeast = 1e-3, kMost = 1e6;
  if (seconds == 0 || !(rate >= kLeast && rate <= kMost))
    throw ConfigError(
        fmt::format("--serve {}: expected requests such as 50/s, 3000/min or 200000/h, from {} to {:.0f} a second",
                    text, kLeast, kMost));
  return rate;
}

/// The generator as a service's file names it. A model is taken from its list of layers where there is one, which any
/// GPU can be timed for, else from a recording.
JsonNode generator_of(const std::string& model, const std::string& trace, const std::string& recipe) {
  if (int{!model.empty()} + int{!trace.empty()} + int{!recipe.empty()} != 1)
    throw ConfigError("--serve: expected one of --model, --recipe and --trace, which say what generates");
  Json generator;
  if (!recipe.empty()) generator["recipe"] = recipe;
  if (!trace.empty()) generator["trace"] = trace;
  if (!model.empty()) {
    std::string how;
    generator["trace"] = plan::pick_trace(JsonNode::wrap({{"model", model}}, "--model", "").child("model"), how);
  }
  return JsonNode::wrap(std::move(generator), "--serve", ".");
}

/// Says what to rent for a trained generator that answers requests. `rate` is "50/s", "3000/min" or "100k/h"; `p95` a
/// duration. The flags say the generator and what may be rented; throws ConfigError for one that says something else.
void run_plan_serve(const std::string& rate, const std::string& p95, const RequestFlags& flags, Shared& shared) {
  if (!flags.file.empty()) throw ConfigError("--serve: a request's file is of a training; flags say everything here");
  const MeasuredOptions& measured = flags.measured;
  for (const auto& [option, is_given] : {std::pair("--batch", !flags.batches.empty()),
                                         {"--certainty", flags.certainty != 0},
                                         {"--set", !flags.assignments.empty()},
                                         {"--sure", flags.sure},
                                         {"--saves", !flags.saves.empty()},
                                         {"--step", !measured.step.empty()},
                                         {"--images-per-second", measured.images_per_second != 0},
                                         {"--on", !measured.gpu.empty()}})
    if (is_given) throw ConfigError(fmt::format("{}: says nothing of a service (--serve)", option));
  if (p95.empty()) throw ConfigError("--serve: --p95 is missing: the latency that 95 of 100 requests keep, as 300ms");
  plan::ServiceQuestion question{.generator = JsonNode::wrap(Json::object(), "--serve", "."),
                                 .per_second = rate_of(rate)};
  std::string model, trace, recipe;
  std::vector<std::string> markets;
  for (const auto& [pointer, value] : flags.members.overrides()) {
    const Json given = Json::parse(value);
    const auto list = [&](std::vector<std::string>& into) { into = given.get<std::vector<std::string>>(); };
    if (pointer == "/workload/model")
      model = given.get<std::string>();
    else if (pointer == "/workload/trace")
      trace = given.get<std::string>();
    else if (pointer == "/workload/recipe")
      recipe = given.get<std::string>();
    else if (pointer == "/search/catalogs")
      list(question.catalogs);
    else if (pointer == "/search/gpus")
      list(question.gpus);
    else if (pointer == "/search/regions")
      list(question.regions);
    else if (pointer == "/search/instances")
      list(question.instances);
    else if (pointer == "/search/markets")
      list(markets);
    else
      throw ConfigError(fmt::format("{}: says nothing of a service (--serve)", flags.members.flag(pointer)));
  }
  if (question.catalogs == std::vector<std::string>{"all"}) question.catalogs.clear();
  question.p95 = JsonNode::wrap(Json(p95), "--p95", ".").as_positive<Seconds>();
  if (!flags.seed.empty()) question.seed = JsonNode::parse(flags.seed, "--seed").as_seed();
  question.generator = generator_of(model, trace, recipe);
  if (!markets.empty()) {
    question.markets.clear();
    for (const std::string& market : markets)
      question.markets.push_back(platforms::read_market(JsonNode::wrap(Json(market), "--market", ".")));
  }
  auto waiting = show_elapsed(shared, "comparing");
  const documents::ServicePlan plan = plan::plan_service(question);
  waiting.reset();
  if (plan.offers.empty()) shared.exit_code = ExitCode::infeasible;
  emit(shared, shared.format == "json"  ? documents::service_plan_text(plan)
               : shared.format == "csv" ? report::service_plan_csv(plan)
                                        : report::service_plan_text(plan, result_width(shared)));
}

void declare_plan(Parser command, Shared& shared) {
  auto flags = std::make_shared<PlanFlags>();
  command.add_option("request", flags->request.file, "a ganymede.request/1 file; without it, flags say everything");
  declare_request(command, flags->request);
  flags->request.members.of(command)
      .list("--instance", "/search/instances", "only these instance types")
      .check(suggest("@instances"));
  command.add_option(
      "--like", flags->like,
      "a SkyPilot task, Slurm script or Kubernetes manifest: what it asks for costs, and what is cheaper");
  command.add_option("--serve", flags->serve,
                     "in place of a training: answer so many requests with its generator, such as 50/s; with --p95");
  command.add_option("--p95", flags->p95, "with --serve: the latency that 95 of 100 requests keep, such as 300ms");
  command.add_option("--save", flags->plan_file, "also write the plan as JSON, for simulate and why");
  command.add_flag("--verbose", flags->verbose,
                   "also print the Pareto set, near misses, steps, all warnings, and every column");
  command
      .add_option("--effort", flags->effort,
                  "quick: a first answer; normal (default): the best; exhaustive: also simulate candidates that are "
                  "shown to be beaten, slower, the same answer")
      .check(one_of({"quick", "normal", "exhaustive"}));
  command.add_flag("--exhaustive", flags->exhaustive, "the same as --effort exhaustive");
  add_shard(command, flags->shard);
  add_jobs(command, shared);
  add_format(command, shared, {"table", "json", "csv"});
  add_output(command, shared);
  command.callback([flags, &shared] {
    if (!flags->like.empty())
      run_like(flags->like, flags->request, shared);
    else if (!flags->serve.empty() && !flags->plan_file.empty())
      throw ConfigError("--save: is of a training's plan; -o writes this one, with --format json for simulate");
    else if (!flags->serve.empty())
      run_plan_serve(flags->serve, flags->p95, flags->request, shared);
    else if (!flags->p95.empty())
      throw ConfigError("--p95: is of a service; --serve says its rate");
    else if (flags->shard.empty())
      run_plan(*flags, shared);
    else
      run_plan_shard(*flags, shared);
  });
}

}  // namespace

void report_goals(const plan::Request& request, const plan::Plan& plan, Shared& shared) {
  if (plan.best) return;
  std::string nearest = "nothing that was searched can run it: ";
  for (const std::string& why : plan.candidates.left_out) nearest += why + "; ";
  for (const plan::PlannedRun& run : plan.runs)
    if (run.verdict == plan::Verdict::impossible) {
      nearest += run.reason + "; ";
      break;
    }
  if (nearest.ends_with("; ")) nearest.resize(nearest.size() - 2);
  if (!plan.best && !plan.near_misses.empty())
    nearest =
        fmt::format("the nearest is {}: {}", plan::label_of(request, plan.candidates.all[plan.near_misses.front()]),
                    plan.runs[plan.near_misses.front()].reason);
  say(fmt::format("ganymede: nothing meets the goals; {}\n", nearest));
  shared.exit_code = ExitCode::infeasible;
}

Command plan_command() {
  return {
      .name = "plan",
      .summary = "what to rent for a target: time, money, carbon",
      .examples =
          "  ganymede plan --model dcgan-64 --images 50000000 --deadline 60h --budget 500USD\n"
          "  ganymede example request > request.json && ganymede plan request.json --save plan.json\n"
          "  ganymede plan --like task.yaml                        what it costs an hour, and what is cheaper\n"
          "  ganymede plan --serve 50/s --p95 300ms --recipe stylegan2   what answers so many requests\n"
          "  ganymede simulate plan.json                           the chosen one, in full\n"
          "  ganymede why plan.json                                what would change the choice\n"
          "  ganymede plan --model stylegan2 --images 5000000 --step 0.9s --batch 16 --on RTX3090      I measured it\n"
          "  ganymede plan request.json --deadline 2026-12-01T18:00+01:00 --start 2026-11-28T09:00Z --gpu A100,H100\n",
      .about =
          "Says what to rent for a target: instance, count, region, market, scheme, policy and checkpoint\n"
          "interval. It simulates every candidate that bounds do not rule out. Flags replace what the request\n"
          "says. Exit code 3: nothing meets the goals. Quota and availability are not known.",
      .declare = declare_plan};
}

}  // namespace ganymede::cli
