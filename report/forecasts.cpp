#include "report/forecasts.hpp"

#include <fmt/format.h>

#include <cmath>

#include "common/dates.hpp"
#include "common/json_value.hpp"
#include "report/numbers.hpp"
#include "report/prometheus.hpp"

namespace ganymede::report {
namespace {
double median_of(const OrderedJson& measure) { return measure.at("median").get<double>(); }

std::string interval_of(const OrderedJson& measure, auto&& shown) {
  return range(measure.at("interval").at(0).get<double>(), measure.at("interval").at(1).get<double>(), shown);
}

std::string speed_text(const OrderedJson& forecast) {
  if (forecast.at("step_s").is_null()) return "not known yet";
  const double step_s = forecast.at("step_s").get<double>();
  if (!forecast.at("step_is_measured").get<bool>())
    return fmt::format("{:.4g} s a step by the plan; the log times no step yet", step_s);
  const double planned = forecast.at("plan_step_s").get<double>();
  const double factor = step_s / planned;
  if (std::abs(factor - 1) < 0.005) return fmt::format("{:.4g} s a step, as planned", step_s);
  return fmt::format("{:.4g} s a step, {:.3g} times the planned {:.4g} s", step_s, factor, planned);
}

std::string decision_text(const OrderedJson& decision) {
  std::string pools;
  for (const OrderedJson& pool : decision.at("pools")) {
    const int nodes = int_of(pool.at("nodes")), now = int_of(pool.at("nodes_now"));
    pools += fmt::format("{}{} x {}", pools.empty() ? "" : ", ", nodes, pool.at("pool").get<std::string>());
    if (nodes != now) pools += fmt::format(" ({} now)", now);
  }
  const char* verb = decision.at("pause").get<bool>()     ? "would pause and hold"
                     : decision.at("changes").get<bool>() ? "would change to"
                                                          : "would keep";
  return fmt::format("{} {} {}", decision.at("policy").get<std::string>(), verb, pools.empty() ? "nothing" : pools);
}

/// When the run gets to its FID, and what it costs until then.
std::string quality_text(const OrderedJson& quality, auto&& shown_time) {
  const auto short_number = [](double value) { return fmt::format("{:.3g}", value); };
  std::string out = fmt::format("FID {:g}", quality.at("fid").get<double>());
  if (quality.at("reached").get<bool>())
    return out + fmt::format(" is reached, after {:.3g} images", median_of(quality.at("images")));
  out += fmt::format(", by {} points: reached with a probability of {}", int_of(quality.at("points")),
                     percent(quality.at("probability").get<double>()));
  if (!quality.at("time_s").is_null())
    out += fmt::format(", after {:.3g} images ({}), {} ({}) and {} USD ({})", median_of(quality.at("images")),
                       interval_of(quality.at("images"), short_number), shown_time(median_of(quality.at("time_s"))),
                       interval_of(quality.at("time_s"), shown_time), usd(median_of(quality.at("usd"))),
                       interval_of(quality.at("usd"), usd));
  for (const OrderedJson& note : quality.at("notes")) out += "; " + note.get<std::string>();
  return out;
}

}  // namespace

std::string forecast_text(const OrderedJson& forecast, std::size_t width) {
  const auto number = [&](const char* key) { return forecast.at(key).get<double>(); };
  const OrderedJson& time = forecast.at("time_s");
  const auto counted = [&](const char* key, const char* format) {
    const int count = int_of(forecast.at(key));
    return count > 0 ? fmt::format(fmt::runtime(format), count) : std::string();
  };
  std::string out = fmt::format(
      "{} on {} x {}: step {} of {} ({}), {}{}{}\n\n", forecast.at("model").get<std::string>(),
      int_of(forecast.at("nodes")), forecast.at("instance").get<std::string>(),
      with_thousands(int64_of(forecast.at("steps_done"))), with_thousands(int64_of(forecast.at("steps"))),
      percent(number("done_share")), forecast.at("state").get<std::string>(),
      counted("resumptions", ", resumed {} time(s)"), counted("cut_lines", ", {} line(s) of the log cut short"));
  const auto line = [&](const char* name, const std::string& text) {
    out += hanging(fmt::format("{:<10}", name), text, width);
  };
  const auto shown_time = [&](double seconds) { return clock_like(seconds, median_of(time)); };
  const bool over = forecast.at("state") == "finished";
  line("time", fmt::format("{} so far, {} of it to set up and {} in pauses", shown_time(number("elapsed_s")),
                           shown_time(number("setup_s")), shown_time(number("paused_s"))));
  if (over)
    line("end", fmt::format("{}; planned {} ({})", shown_time(median_of(time)),
                            shown_time(median_of(forecast.at("plan_time_s"))),
                            interval_of(forecast.at("plan_time_s"), shown_time)));
  else
    line("end", fmt::format("after {} ({}), about {}; planned {} ({})", shown_time(median_of(time)),
                            interval_of(time, shown_time), forecast.at("ends_at").get<std::string>(),
                            shown_time(median_of(forecast.at("plan_time_s"))),
                            interval_of(forecast.at("plan_time_s"), shown_time)));
  line("speed", speed_text(forecast));
  line("bill", fmt::format("{} USD so far, {} USD at the end ({}); planned {} USD ({})", usd(number("spent_usd")),
                           usd(median_of(forecast.at("usd"))), interval_of(forecast.at("usd"), usd),
                           usd(median_of(forecast.at("plan_usd"))), interval_of(forecast.at("plan_usd"), usd)));
  if (forecast.contains("quality") && !forecast.at("quality").is_null())
    line("quality", quality_text(forecast.at("quality"), shown_time));
  const OrderedJson& deadline = forecast.at("deadline");
  if (!deadline.at("seconds").is_null())
    line("deadline",
         fmt::format("{}: met with a probability of {}; the plan asked for {}",
                     clock(deadline.at("seconds").get<double>()), percent(deadline.at("probability").get<double>()),
                     percent(deadline.at("certainty").get<double>())));
  if (!forecast.at("decision").is_null()) line("policy", decision_text(forecast.at("decision")));
  for (const OrderedJson& warning : forecast.at("warnings")) line("warning", warning.get<std::string>());
  return out;
}

std::string forecast_metrics(const OrderedJson& forecast) {
  Gauges gauges("ganymede_run_");
  const Gauges::Labels labels{{"model", forecast.at("model").get<std::string>()},
                              {"instance", forecast.at("instance").get<std::string>()}};
  const auto add = [&](const char* name, const char* help, const OrderedJson& value) {
    if (!value.is_number()) return;
    gauges.begin(name, help);
    gauges.sample(labels, value.get<double>());
  };
  const auto add_measure = [&](const char* name, const char* help, const OrderedJson& measure) {
    gauges.begin(name, help);
    const std::pair<const char*, double> quantiles[] = {{"0.05", measure.at("interval").at(0).get<double>()},
                                                        {"0.5", median_of(measure)},
                                                        {"0.95", measure.at("interval").at(1).get<double>()}};
    for (const auto& [quantile, value] : quantiles) {
      Gauges::Labels all = labels;
      all.emplace_back("quantile", quantile);
      gauges.sample(all, value);
    }
  };
  add("steps_done", "Steps done.", forecast.at("steps_done"));
  add("steps", "Steps of the whole run.", forecast.at("steps"));
  add("running", "1 while the run goes on.", forecast.at("state") == "running" ? 1 : 0);
  add("last_line_timestamp_seconds", "Unix time of the log's last line.", forecast.at("last_line_unix_s"));
  add("elapsed_seconds", "Time since the nodes were asked for.", forecast.at("elapsed_s"));
  add("paused_seconds", "Time in evaluations, checkpoints and interruptions.", forecast.at("paused_s"));
  add("step_seconds", "Time of a step.", forecast.at("step_s"));
  add_measure("forecast_seconds", "Time from the request of nodes to the run's end.", forecast.at("time_s"));
  add("spent_usd", "Price of the nodes so far.", forecast.at("spent_usd"));
  add_measure("forecast_usd", "Bill at the run's end.", forecast.at("usd"));
  if (const auto quality = forecast.find("quality"); quality != forecast.end() && !quality->is_null()) {
    add("best_fid", "Lowest FID so far.", quality->at("best_seen"));
    add("fid_probability", "Probability to reach the plan's FID.", quality->at("probability"));
    if (!quality->at("usd").is_null())
      add_measure("fid_usd", "Bill when the plan's FID is reached.", quality->at("usd"));
  }
  add("deadline_seconds", "Time from the request to the deadline.", forecast.at("deadline").at("seconds"));
  add("deadline_probability", "Probability to meet the deadline.", forecast.at("deadline").at("probability"));
  return gauges.text();
}

}  // namespace ganymede::report
