// ganymede plan: what to rent for a target.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/measured_options.hpp"
#include "cli/member_flags.hpp"
#include "cli/names.hpp"
#include "cli/progress.hpp"
#include "cli/terminal.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "plan/planner.hpp"
#include "report/plans.hpp"

namespace ganymede::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kBatchHelp =
    "images on a GPU in a step: batch sizes that the trace has recorded; default: all of them are tried";

struct PlanFlags {
  std::string request, plan_file;
  MemberFlags members;
  std::vector<std::int64_t> batches;
  MeasuredOptions measured;
  double certainty = 0;
  std::string seed;
  std::vector<std::string> assignments;
  bool exhaustive = false, sure = false;
};

/// Flags replace what the file says. Relative paths in flags start at the working directory, as those of --set do.
std::vector<JsonOverride> overrides_of(const PlanFlags& flags) {
  std::vector<JsonOverride> overrides = flags.members.overrides();
  if (!flags.batches.empty()) overrides.push_back({"/workload/batch_per_gpu", Json(flags.batches).dump()});
  MeasuredOptions measured = flags.measured;
  if (flags.batches.size() == 1) measured.batch = flags.batches.front();
  for (JsonOverride& override : measured_overrides(measured)) overrides.push_back(std::move(override));
  if (flags.certainty != 0) overrides.push_back({"/search/certainty", Json(flags.certainty).dump()});
  if (flags.sure) overrides.push_back({"/search/sure", "true"});
  if (!flags.seed.empty()) overrides.push_back({"/seed", flags.seed});
  const auto more = parse_assignments(flags.assignments);
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

JsonNode request_of(const PlanFlags& flags) {
  const auto overrides = overrides_of(flags);
  if (!flags.request.empty()) return JsonNode::load(flags.request, overrides);
  if (flags.members.has("/workload/model") || flags.members.has("/workload/trace"))
    return JsonNode::parse(R"({ "schema": "ganymede.request/1" })", "the command line", overrides);
  throw ConfigError(
      "plan needs a request file, or --model (or --trace) with --images; `ganymede example request` prints a request");
}

void run_plan(const PlanFlags& flags, Shared& shared) {
  check_output(shared);
  if (!flags.request.empty()) keep_input(shared, flags.request);
  const JsonNode document = request_of(flags);
  const plan::Request request = flags.members.locate([&] { return plan::read_request(document, format_time(now())); });
  plan::PlanOptions options;
  options.jobs = jobs(shared);
  options.exhaustive = flags.exhaustive;
  auto waiting = show_elapsed(shared, "looking for candidates");
  std::function<void(std::size_t)> bar;
  options.progress = [&](std::size_t done, std::size_t groups) {
    waiting.reset();
    if (!bar) bar = progress_bar(shared, groups, "groups of candidates");
    if (bar) bar(done);
  };
  const plan::Plan plan = plan::make_plan(request, options);
  waiting.reset();
  bar = {};
  std::string nearest = "there is nothing to rent that was searched";
  if (!plan.best && !plan.near_misses.empty())
    nearest =
        fmt::format("the nearest is {}: {}", plan::label_of(request, plan.candidates.all[plan.near_misses.front()]),
                    plan.runs[plan.near_misses.front()].reason);
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
  emit(shared, shared.format == "json"  ? json
               : shared.format == "csv" ? report::plan_csv(content)
                                        : highlighted(shared, report::plan_text(content, result_width(shared))));
  if (plan.best) return;
  say(fmt::format("ganymede: nothing meets the goals; {}\n", nearest));
  shared.exit_code = ExitCode::infeasible;
}

/// Flags that each stand for one member of a request.
struct RequestFlags {
  CLI::App& command;
  PlanFlags& flags;

  CLI::Option* text(const char* flag, const char* pointer, const char* what) const {
    return flags.members.text(command, flag, pointer, what);
  }
  CLI::Option* number(const char* flag, const char* pointer, const char* what) const {
    return flags.members.number(command, flag, pointer, what);
  }
  CLI::Option* count(const char* flag, const char* pointer, const char* what) const {
    return flags.members.count(command, flag, pointer, what);
  }
  CLI::Option* list(const char* flag, const char* pointer, const char* what) const {
    return flags.members.list(command, flag, pointer, what);
  }
};

void declare_training(const RequestFlags& one) {
  one.text("--model", "/workload/model", "model to train: a recorded trace of it is used, or its list of layers")
      ->check(suggest("@planned"));
  one.text("--trace", "/workload/trace", "a step trace: a file, or recorded:NAME");
  add_measured(one.command, one.flags.measured);
  one.command.add_option("--batch", one.flags.batches, kBatchHelp)->delimiter(',')->check(positive_integer());
  one.count("--images", "/workload/images", "images to train on, such as 50000000 or 50M");
  one.count("--epochs", "/workload/epochs", "epochs to train, instead of --images; needs --dataset-images");
  one.count("--dataset-images", "/workload/dataset/images", "images in one epoch");
  one.number("--bytes-per-image", "/workload/dataset/bytes_per_image", "bytes of an image as it is stored");
  one.text("--deadline", "/deadline", "a duration such as 60h, or a time with its zone");
  one.text("--start", "/start", "when a deadline that is a time is counted from; default: now");
  one.text("--budget", "/budget", "the most to spend, such as 500USD or $500");
  one.text("--objective", "/objective",
           "what is minimized: cost (default), time, carbon; risk-neutral: the expected cost; risk-averse: the mean "
           "cost of the worst tenth of all outcomes")
      ->check(CLI::IsMember(plan::objective_names()));
}

void declare_search(const RequestFlags& one) {
  one.list("--catalog", "/search/catalogs", "providers or platform files; default: all clouds")
      ->check(suggest("@providers @files"));
  one.list("--gpu", "/search/gpus", "only these GPUs or families of GPUs")->check(suggest("@rented-gpus"));
  one.list("--instance", "/search/instances", "only these instance types")->check(suggest("@instances"));
  one.list("--region", "/search/regions", "only these regions")->check(suggest("@regions"));
  one.list("--market", "/search/markets", "only these markets; default: on-demand,spot")->check(suggest("@markets"));
  one.number("--min-gpus", "/search/min_gpus", "at least so many");
  one.number("--max-gpus", "/search/max_gpus", "at most so many; default: 16");
  one.list("--scheme", "/search/schemes",
           "all-reduce schemes, of which the fastest is taken; default: those that may be the fastest")
      ->check(suggest("@schemes"));
  one.list("--policy", "/search/policies", "only these policies; default: fixed, and on spot also spot-first")
      ->check(suggest("@policies"));
  one.list("--checkpoint", "/search/checkpoints",
           "checkpoint intervals to try if nodes may be lost; default: 10min,1h,daly");
  one.number("--seeds", "/search/seeds", "runs of each candidate; default: 20 if nodes may be lost, else 5");
  one.command
      .add_option("--certainty", one.flags.certainty,
                  "least probability to meet the goals, with the seeds and all stated error; default: 0.9")
      ->check(CLI::Range(0.01, 1.0));
  one.text("--max-price-age", "/search/max_price_age", "age from which a price is doubtful; default: 365d");
  one.text("--today", "/search/today",
           "day on which the age of prices is counted; default: the newest price of the catalogs");
  one.command.add_flag("--sure", one.flags.sure,
                       "upper ends of the intervals, with all stated error, must meet the goals");
  one.command.add_option("--seed", one.flags.seed, "seed of the first run");
}

void declare_plan(CLI::App& command, Shared& shared) {
  auto flags = std::make_shared<PlanFlags>();
  command.add_option("request", flags->request, "a ganymede.request/1 file; without it, flags say everything");
  const RequestFlags members{command, *flags};
  declare_training(members);
  declare_search(members);
  command.add_option("--save", flags->plan_file, "also write the plan as JSON, for simulate and why");
  command.add_flag("--exhaustive", flags->exhaustive,
                   "also simulate candidates that bounds show to be beaten: slower, the same answer");
  add_set(command, flags->assignments);
  add_jobs(command, shared);
  add_format(command, shared, {"table", "json", "csv"});
  add_output(command, shared);
  command.callback([flags, &shared] {
    if (!flags->members.has("/workload/dataset/name") && flags->members.has("/workload/dataset/images"))
      flags->members.set("/workload/dataset/name", "the dataset");
    run_plan(*flags, shared);
  });
}

}  // namespace

Command plan_command() {
  return {
      .name = "plan",
      .summary = "what to rent for a target: time, money, carbon",
      .examples =
          "  ganymede plan --model dcgan-64 --images 50000000 --deadline 60h --budget 500USD\n"
          "  ganymede example request > request.json && ganymede plan request.json --save plan.json\n"
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
