#include "cli/plan_serve.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/progress.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/plain_text.hpp"
#include "plan/pick_trace.hpp"
#include "plan/service_plan.hpp"
#include "report/services.hpp"
#include "traces/recorded.hpp"

namespace ganymede::cli {
namespace {

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

}  // namespace

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

}  // namespace ganymede::cli
