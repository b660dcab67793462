#include "cli/request_flags.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/plain_text.hpp"
#include "plan/request.hpp"
#include "platforms/catalog.hpp"
#include "studies/task_offers.hpp"

namespace ganymede::cli {

Option MemberFlags::Declaring::text(const char* flag, const char* pointer, const char* what) const {
  flags.names_[pointer] = flag;
  return command.add_option(flag, flags.texts_[pointer], what);
}

Option MemberFlags::Declaring::number(const char* flag, const char* pointer, const char* what) const {
  flags.names_[pointer] = flag;
  return command.add_option(flag, flags.numbers_[pointer], what, positive_integer());
}

Option MemberFlags::Declaring::count(const char* flag, const char* pointer, const char* what) const {
  flags.names_[pointer] = flag;
  return command.add_option(flag, flags.numbers_[pointer], what).transform(positive_count());
}

Option MemberFlags::Declaring::list(const char* flag, const char* pointer, const char* what) const {
  flags.names_[pointer] = flag;
  return command.add_option(flag, flags.lists_[pointer], what).delimiter(',');
}

bool MemberFlags::has(const std::string& pointer) const {
  const auto text = texts_.find(pointer);
  const auto number = numbers_.find(pointer);
  const auto values = lists_.find(pointer);
  return (text != texts_.end() && !text->second.empty()) || (number != numbers_.end() && number->second != 0) ||
         (values != lists_.end() && !values->second.empty());
}

std::vector<JsonOverride> MemberFlags::overrides() const {
  std::vector<JsonOverride> all;
  for (const auto& [pointer, value] : texts_)
    if (!value.empty()) all.push_back({pointer, Json(value).dump()});
  for (const auto& [pointer, value] : numbers_)
    if (value != 0) all.push_back({pointer, Json(value).dump()});
  for (const auto& [pointer, values] : lists_)
    if (!values.empty()) all.push_back({pointer, Json(values).dump()});
  return all;
}

std::string MemberFlags::with_flag(const std::string& message) const {
  const std::size_t begin = message.find(": /");
  const std::size_t end = begin == std::string::npos ? begin : message.find(": ", begin + 2);
  if (end == std::string::npos) return message;
  std::string place = message.substr(begin + 2, end - begin - 2);
  // The scenario of a plan lies deeper than one of its own.
  const std::string chosen = "/chosen/scenario";
  if (place.starts_with(chosen)) place.erase(0, chosen.size());
  // The member itself, or an entry of a list: "/search/gpus" or "/search/gpus/0".
  const std::string list = place.substr(0, place.find_last_not_of("0123456789") + 1);
  for (const auto& [pointer, flag] : names_)
    if (has(pointer) && (place == pointer || list == pointer + "/")) return flag + message.substr(end);
  return message;
}

namespace {
constexpr const char* kBatchHelp =
    "images on a GPU in a step: batch sizes that the trace has recorded; default: all of them are tried";

/// A probability, also as a percentage: "95%" is 0.95.
Check probability() {
  const auto rewrite = [](std::string& text) -> std::string {
    const bool percent = text.ends_with('%');
    const std::string_view number = std::string_view(text).substr(0, text.size() - (percent ? 1 : 0));
    const double value = parse_number<double>(number).value_or(0) / (percent ? 100 : 1);
    if (!(value >= 0.01 && value <= 1))
      return fmt::format("found {}, expected a probability from 0.01 to 1, such as 0.95 or 95%", text);
    text = fmt::format("{}", value);
    return "";
  };
  return {rewrite, "PROBABILITY"};
}

constexpr std::string_view kEvery = "every:";

/// How a training saves itself: --saves.
Check saving() {
  const auto check = [](std::string& text) -> std::string {
    if (text == "on-notice" || text == "never" || (text.starts_with(kEvery) && text.size() > kEvery.size())) return "";
    return fmt::format("found {}, expected on-notice, never, or every: and an interval, such as every:1h", text);
  };
  return {check, "HOW"};
}

/// The members of a request that --saves stands for.
std::vector<JsonOverride> saves_overrides(const std::string& saves) {
  if (saves.empty()) return {};
  if (saves == "never") return {{"/checkpoint/every", "\"never\""}};
  if (saves == "on-notice") return {{"/checkpoint/on_notice", "true"}};
  return {{"/checkpoint/on_notice", "false"}, {"/checkpoint/every", Json(saves.substr(kEvery.size())).dump()}};
}

constexpr const char* kFid = "/workload/quality/fid";

std::vector<JsonOverride> overrides_of(const RequestFlags& flags) {
  std::vector<JsonOverride> overrides = flags.members.overrides();
  for (JsonOverride& override : overrides)  // its text is a number
    if (override.pointer == kFid) override.value = Json::parse(override.value).get<std::string>();
  if (flags.members.has("/workload/dataset/images")) overrides.push_back({"/workload/dataset/name", "\"the dataset\""});
  if (!flags.batches.empty()) overrides.push_back({"/workload/batch_per_gpu", Json(flags.batches).dump()});
  MeasuredOptions measured = flags.measured;
  if (flags.batches.size() == 1) measured.batch = flags.batches.front();
  for (JsonOverride& override : measured_overrides(measured)) overrides.push_back(std::move(override));
  if (flags.certainty != 0) overrides.push_back({"/search/certainty", Json(flags.certainty).dump()});
  if (flags.members.has("/search/checkpoints") && (flags.saves == "never" || flags.saves.starts_with(kEvery)))
    throw ConfigError(fmt::format("--saves {}: found with --checkpoint, which says other intervals", flags.saves));
  for (JsonOverride& override : saves_overrides(flags.saves)) overrides.push_back(std::move(override));
  if (flags.sure) overrides.push_back({"/search/sure", "true"});
  if (!flags.seed.empty()) overrides.push_back({"/seed", flags.seed});
  const auto more = parse_assignments(flags.assignments);
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

void declare_training(Parser command, RequestFlags& flags) {
  const MemberFlags::Declaring one = flags.members.of(command);
  one.text("--model", "/workload/model", "model to train: a recorded trace of it is used, or its list of layers")
      .check(suggest("@planned"));
  one.text("--recipe", "/workload/recipe",
           "a training as its authors run it, such as 'stylegan2-ada/paper512?image=1024': ganymede list recipes; its "
           "batch of all GPUs is kept unless --batch asks for others")
      .check(suggest("@recipes @files"));
  one.text("--trace", "/workload/trace", "a step trace: a file, or recorded:NAME");
  add_measured(command, flags.measured);
  command.add_option("--batch", flags.batches, kBatchHelp).delimiter(',').check(positive_integer());
  one.count("--images", "/workload/images", "images to train on, such as 50000000 or 50M");
  one.text("--fid", kFid, "an FID to train to, instead of --images").check(positive_number());
  one.text("--curve", "/workload/quality/curve",
           "the model of quality that `quality fit` wrote; default: the program's")
      .check(suggest("@files"));
  one.text("--dataset", "/workload/quality/dataset", "what is trained on, as `quality forecast --dataset`");
  one.text("--reference", "/workload/quality/reference", "what FID compares with, such as 'test 10000'");
  one.text("--quality-every", "/evaluation/every",
           "how often it is evaluated: '200000 images', '1h', or 'best' to let the plan choose; needs one of the next");
  one.text("--quality-fixed", "/evaluation/fixed", "time of an evaluation that no GPUs share, such as 30s");
  one.text("--quality-parallel", "/evaluation/parallel",
           "time of an evaluation on one GPU that all share, such as 10min");
  one.count("--epochs", "/workload/epochs", "epochs to train, instead of --images; needs --dataset-images");
  one.count("--dataset-images", "/workload/dataset/images", "images in one epoch");
  one.number("--bytes-per-image", "/workload/dataset/bytes_per_image", "bytes of an image as it is stored");
  one.text("--deadline", "/deadline", "a duration such as 60h, or a time with its zone");
  one.text("--start", "/start", "when a deadline that is a time is counted from; default: now");
  one.text("--budget", "/budget", "the most to spend, such as 500USD or $500");
  one.text("--objective", "/objective",
           "what is minimized: cost (default), time, carbon; risk-neutral: the expected cost; risk-averse: the mean "
           "cost of the worst tenth of all outcomes")
      .check(one_of(plan::objective_names()));
}

void declare_search(Parser command, RequestFlags& flags) {
  const MemberFlags::Declaring one = flags.members.of(command);
  one.list("--catalog", "/search/catalogs", "providers or platform files; all: every cloud, the default")
      .check(suggest("@providers @files"));
  one.list("--gpu", "/search/gpus", "only these GPUs or families, by any usual name, such as V100 or A100-SXM4-80GB")
      .check(suggest("@rented-gpus"));
  one.list("--region", "/search/regions", "only these regions").check(suggest("@regions"));
  one.list("--market", "/search/markets", "only these markets; default: on-demand,spot").check(suggest("@markets"));
  one.number("--min-gpus", "/search/min_gpus", "at least so many");
  one.number("--max-gpus", "/search/max_gpus", "at most so many; default: 16");
  one.list("--scheme", "/search/schemes", "all-reduce schemes, of which the fastest is taken; default: nccl")
      .check(suggest("@schemes"));
  one.list("--policy", "/search/policies", "only these policies; default: fixed, and on spot also spot-first")
      .check(suggest("@policies"));
  one.list("--checkpoint", "/search/checkpoints",
           "checkpoint intervals to try if nodes may be lost; default: as often as the recipe saves itself, else daly");
  command
      .add_option(
          "--saves", flags.saves,
          "how the training saves itself: on-notice (also within the notice before spot nodes are taken back), "
          "every:1h (only so often), never; default: as often as the recipe does, else as is best, and not on notice")
      .check(saving());
  one.number("--seeds", "/search/seeds", "runs of each candidate; default: 20 if nodes may be lost, else 5");
  command
      .add_option("--certainty", flags.certainty,
                  "least probability to meet the goals, with the seeds and all stated error; default: 0.9")
      .transform(probability());
  one.text("--max-price-age", "/search/max_price_age", "age from which a price is doubtful; default: 365d");
  one.text("--today", "/search/today", "day to which the age of prices is counted; default: today");
  command.add_flag("--sure", flags.sure, "upper ends of the intervals, with all stated error, must meet the goals");
  command.add_option("--seed", flags.seed, "seed of the first run");
}

}  // namespace

void declare_request(Parser command, RequestFlags& flags) {
  declare_training(command, flags);
  declare_search(command, flags);
  add_set(command, flags.assignments);
}

JsonNode request_of(const RequestFlags& flags, const char* command, const std::vector<JsonOverride>& more) {
  auto overrides = overrides_of(flags);
  overrides.insert(overrides.end(), more.begin(), more.end());
  if (!flags.file.empty()) {
    JsonNode request = JsonNode::load(flags.file, overrides);
    // The request's own word goes before the intervals that are tried, so that the flag would say nothing.
    if (flags.members.has("/search/checkpoints") && request.value().contains(JsonPointer("/checkpoint/every")))
      throw ConfigError(fmt::format(
          "--checkpoint: {}: /checkpoint/every says already how often the training saves itself; --saves replaces that",
          flags.file));
    return request;
  }
  if (flags.members.has("/workload/model") || flags.members.has("/workload/trace") ||
      flags.members.has("/workload/recipe"))
    return JsonNode::parse(R"({ "schema": "ganymede.request/1" })", "the command line", overrides);
  throw ConfigError(
      fmt::format("{} needs a request file, or --model (or --trace) with --images, or --recipe; `ganymede example "
                  "request` prints a request",
                  command));
}

report::Compared best_of(const RequestFlags& flags, const char* command, const std::string& name,
                         const std::vector<JsonOverride>& more, const plan::PlanOptions& search,
                         const std::function<void(plan::Request&)>& narrow) {
  plan::Request request = flags.members.locate(
      [&] { return plan::read_request(request_of(flags, command, more), format_time(stated_now())); });
  if (narrow) narrow(request);
  const plan::Plan plan = plan::make_plan(request, search);
  std::optional<std::size_t> best = plan.best;
  if (!best && !plan.near_misses.empty()) best = plan.near_misses.front();
  if (best) return {name, plan::row_of(request, plan, *best), ""};
  std::string why = "nothing that was searched can run it";
  for (const std::string& reason : plan.candidates.left_out) why += "; " + reason;
  return {name, {}, why};
}

namespace {

std::vector<JsonOverride> search_of(const report::LikeAnswer& answer, const studies::AskedResources& asked,
                                    const RequestFlags& flags) {
  const auto list = [](const std::vector<std::string>& names) { return Json(names).dump(); };
  const std::string gpus = std::to_string(answer.nodes * answer.gpus_per_node);
  std::vector<JsonOverride> out = {{"/search/min_gpus", gpus}, {"/search/max_gpus", gpus}};
  if (!asked.instance.empty())
    out.push_back({"/search/instances", list({asked.instance})});
  else if (!flags.members.has("/search/gpus") && !answer.gpu.empty())
    out.push_back({"/search/gpus", list(studies::gpus_meant(answer.gpu))});
  if (!asked.cloud.empty()) out.push_back({"/search/catalogs", list({asked.cloud})});
  if (!asked.region.empty()) out.push_back({"/search/regions", list({asked.region})});
  out.push_back({"/search/markets", list({asked.spot ? "spot" : "on-demand"})});
  return out;
}

/// Leaves instance types of which the GPUs that are asked for take as many nodes as are asked for; false if none does.
bool keep_shape(const report::LikeAnswer& answer, plan::Request& request) {
  const int gpus = answer.nodes * answer.gpus_per_node;
  const std::vector<std::string> meant = studies::gpus_meant(answer.gpu);
  std::vector<std::string> fitting;
  bool has_gpu = false;
  for (const auto& entry : request.catalogs)
    for (const platforms::Instance& of : entry.platform->instances)
      if (of.gpus >= answer.gpus_per_node && (gpus + of.gpus - 1) / of.gpus == answer.nodes &&
          (request.instances.empty() || std::ranges::find(request.instances, of.name) != request.instances.end())) {
        fitting.push_back(of.name);
        has_gpu = has_gpu || meant.empty() || std::ranges::find(meant, of.gpu) != meant.end();
      }
  if (fitting.empty()) fitting.emplace_back();  // no type has this name: an empty list would be any
  request.instances = std::move(fitting);
  return has_gpu;
}

}  // namespace

void run_like(const std::string& file, const RequestFlags& flags, Shared& shared) {
  keep_input(shared, file);
  std::string gpu;
  for (const auto& [pointer, value] : flags.members.overrides())
    if (pointer == "/search/gpus") gpu = Json::parse(value)[0].get<std::string>();
  const studies::AskedResources asked = studies::read_priced_task(file, gpu);
  const report::LikeAnswer answer = studies::task_offers(asked, gpu);
  const std::size_t width = result_width(shared);
  const bool trains = !flags.file.empty() || flags.members.has("/workload/model") ||
                      flags.members.has("/workload/trace") || flags.members.has("/workload/recipe");
  if (!trains)
    return emit(shared, shared.format == "json"  ? report::like_json(answer)
                        : shared.format == "csv" ? report::like_csv(answer)
                                                 : report::like_text(answer, today(), width));
  if (!asked.cloud.empty() && !platforms::is_provider(asked.cloud))
    throw ConfigError(file + ": " + asked.cloud + " has no catalog: `ganymede list providers` names those there are");
  plan::PlanOptions search;
  search.jobs = jobs(shared);
  auto waiting = show_elapsed(shared, "comparing");
  bool has_shape = true;
  std::vector<report::Compared> rows = {
      best_of(flags, "plan", "as it asks", search_of(answer, asked, flags), search,
              [&](plan::Request& request) { has_shape = keep_shape(answer, request); }),
      best_of(flags, "plan", "anything", {}, search)};
  waiting.reset();
  if (!has_shape && !rows.front().row)
    rows.front().reason =
        fmt::format("no instance type that is searched makes {} x {} such GPUs", answer.nodes, answer.gpus_per_node);
  emit(shared, shared.format == "json" ? report::compared_json(rows)
               : shared.format == "csv"
                   ? report::compared_csv(rows)
                   : report::compared_text(rows, today(), width) + "\n" + report::like_text(answer, today(), width));
}

}  // namespace ganymede::cli
