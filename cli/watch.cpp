// ganymede watch: a training under way beside its plan.

#include "plan/watch.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <thread>

#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/process.hpp"
#include "common/units.hpp"
#include "plan/paid.hpp"
#include "report/forecasts.hpp"
#include "report/numbers.hpp"
#include "serve/timed_server.hpp"
#include "sim/run/simulate.hpp"
#include "traces/bill_file.hpp"
#include "traces/bill_words.hpp"

namespace ganymede::cli {
namespace {

struct WatchOptions {
  std::string plan, log, bill, listen, every = "10s";
  std::string tag, resource, from, to;  // of the bill
  bool follow = false;
};

/// Says once that a run which is not at its end has written nothing for long: it may be dead.
class Silence {
 public:
  void check(const plan::RunLog& log, const Shared& shared) {
    const std::optional<double> silent_s = plan::silent_seconds(log, static_cast<double>(stated_now()));
    if (silent_s && !said_)
      remark(shared, fmt::format("the log's last line is {} old; the run may have stopped, and its nodes still cost",
                                 report::clock(*silent_s)));
    said_ = silent_s.has_value();
  }

 private:
  bool said_ = false;
};

constexpr std::size_t kDay = 10;  // letters of a day without a time

/// Which rows of the bill count. A day at the window's end is in it.
traces::BillPart part_of(const WatchOptions& options) {
  const auto time = [](const char* option, const std::string& text) -> std::optional<std::int64_t> {
    if (text.empty()) return std::nullopt;
    if (const auto at = traces::time_of_bill(text.size() == kDay ? text + "T00:00:00Z" : text)) return at;
    throw ConfigError(fmt::format("{} {}: expected a time such as 2026-11-03T09:00:00Z, or a day", option, text));
  };
  traces::BillPart part{options.tag, options.resource, time("--bill-from", options.from),
                        time("--bill-to", options.to)};
  if (part.to && options.to.size() == kDay) *part.to += 86400;
  if (part.from && part.to && *part.from >= *part.to)
    throw ConfigError(fmt::format("--bill-to {}: expected a time after --bill-from {}", options.to, options.from));
  return part;
}

/// Puts a bill beside the plan, whose run is simulated again for its items.
documents::PaidBill paid(const plan::WatchedPlan& plan, const WatchOptions& options, const Shared& shared) {
  const traces::BillFile bill =
      traces::read_bill_file(options.bill, {plan.instance, plan.scenario.servers.instance}, part_of(options));
  auto waiting = show_elapsed(shared, "simulating the plan");
  const std::string json = run_child([&] { return documents::result_text(sim::simulate_seeds(plan.scenario, 1)); });
  waiting.reset();
  return plan::paid_beside(plan, documents::read_result(JsonNode::parse(json, "the plan's run")), bill);
}

void run_watch(const WatchOptions& options, Shared& shared) {
  check_output(shared);
  for (const std::string& input : {options.plan, options.log, options.bill})
    if (!input.empty()) keep_input(shared, input);
  if (options.log.empty() && options.bill.empty())
    throw ConfigError("watch: expected --log, which the run writes, or --bill, what was paid for it");
  if (options.bill.empty() && !(options.tag + options.resource + options.from + options.to).empty())
    throw ConfigError("--bill-tag, --bill-resource, --bill-from and --bill-to: expected --bill beside them");
  if (options.log.empty() && (options.follow || !options.listen.empty()))
    throw ConfigError(
        fmt::format("{}: expected --log beside it, which it follows", options.follow ? "--follow" : "--listen"));
  const double every_s =
      quantity_of("--every", options.every, Seconds{0.1}, Seconds{86400}, "a duration from 100ms to 24h").si;
  const plan::WatchedPlan plan = plan::load_watched_plan(options.plan);
  std::optional<documents::PaidBill> bill;
  if (!options.bill.empty()) {
    const documents::PaidBill beside = paid(plan, options, shared);
    if (options.log.empty())
      return emit(shared, shared.format == "json" ? documents::paid_bill_text(beside)
                                                  : report::paid_bill_text(beside, result_width(shared)));
    bill = beside;
  }
  if (shared.format == "table") remark_price_age(shared, plan.scenario);
  std::unique_ptr<serve::MetricsServer> server;
  if (!options.listen.empty()) {
    server = std::make_unique<serve::MetricsServer>(options.listen, report::kPrometheusType);
    remark(shared, "metrics: " + server->address());
  }
  plan::RunLogReader reader(options.log, plan::planned_training(plan));
  Silence silence;
  reader.read();
  for (bool first = true;; first = false) {
    if (first || reader.read() > 0) {
      documents::Forecast forecast = plan::watched(plan, reader.log(), options.log);
      forecast.bill = bill;
      if (server) server->show(report::forecast_metrics(forecast));
      shared.exit_code = plan::endangers_deadline(forecast) ? ExitCode::goal_missed : ExitCode::done;
      emit(shared, shared.format == "json"
                       ? documents::forecast_json(forecast).dump(options.follow ? -1 : 2) + "\n"
                       : report::forecast_text(forecast, result_width(shared)) +
                             (bill ? "\n" + report::paid_bill_text(*bill, result_width(shared)) : ""));
    }
    silence.check(reader.log(), shared);
    if (!(options.follow || server) || !reader.log().end.empty()) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(every_s));
  }
}

void declare_watch(Parser command, Shared& shared) {
  auto options = std::make_shared<WatchOptions>();
  command.add_option("--plan", options->plan, "the plan that the run follows, as `ganymede plan --save` writes it")
      .required()
      .check(suggest("@files"));
  command
      .add_option(
          "--log", options->log,
          "what the run writes: `ganymede train --metrics`, the recorder of the Python package, or another program")
      .check(suggest("@files"));
  command
      .add_option("--bill", options->bill,
                  "what was paid, beside the plan: FOCUS or AWS's Cost and Usage Report as CSV, perhaps gzipped")
      .check(suggest("@files"));
  command.add_option("--bill-tag", options->tag, "KEY=VALUE: only rows of the bill with this tag");
  command.add_option("--bill-resource", options->resource, "only rows of this resource, such as i-0abc");
  command.add_option("--bill-from", options->from, "only what is charged from this time on: 2026-11-03T09:00:00Z");
  command.add_option("--bill-to", options->to, "and until this time; a day without a time counts whole");
  command.add_flag("--follow", options->follow, "go on as the log grows, until the run's end");
  command.add_option("--listen", options->listen,
                     "follow, and serve the forecast as Prometheus metrics, for example at 127.0.0.1:9464");
  command.add_option("--every", options->every, "how often the log is read while it is followed").capture_default_str();
  add_result(command, shared, {"table", "json"});
  command.callback([options, &shared] { run_watch(*options, shared); });
}

}  // namespace

Command watch_command() {
  return {
      .name = "watch",
      .summary = "a run under way beside its plan: end, bill and deadline as they now look",
      .examples =
          "  ganymede plan --model dcgan-64 --images 20M --deadline 10h --save plan.json\n"
          "  ganymede train --model dcgan-64 --steps 1000 --metrics run.jsonl &\n"
          "  ganymede watch --plan plan.json --log run.jsonl                     how it stands\n"
          "  ganymede watch --plan plan.json --log run.jsonl --follow\n"
          "  ganymede watch --plan plan.json --log run.jsonl --listen 127.0.0.1:9464\n"
          "  ganymede watch --plan plan.json --bill focus.csv.gz                 what was really paid, by item\n"
          "  ganymede watch --plan plan.json --bill account.csv --bill-tag project=gan      of a whole account's "
          "bill\n",
      .about =
          "Reads how far the run is and says what that means: time and bill at its end with an interval, what is\n"
          "spent, the probability to meet the deadline, and what the plan's policy would do now. The exit code\n"
          "is 4 if the deadline is less sure than the plan asked for. Logs of StyleGAN (stats.jsonl, log.txt), "
          "StudioGAN and\n"
          "MMEngine, TensorBoard's event files and CSV exports of Weights & Biases are read as trainings of the plan.\n"
          "--bill puts what was paid beside what the plan said: hours, prices, storage, traffic, taxes, credits, and\n"
          "which of them differs and why.",
      .declare = declare_watch};
}

}  // namespace ganymede::cli
