#include "report/forecasts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "common/printable.hpp"
#include "common/text.hpp"
#include "common/usd.hpp"
#include "report/numbers.hpp"

namespace ganymede::report {
namespace {

std::string label_value(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

void Gauges::begin(const std::string& name, const std::string& help) {
  name_ = prefix_ + name;
  text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name_, help);
}

void Gauges::sample(const Labels& labels, double value) {
  std::string shown;
  for (const auto& [name, text] : labels)
    shown += fmt::format("{}{}=\"{}\"", shown.empty() ? "" : ",", name, label_value(text));
  text_ += fmt::format("{}{} {}\n", name_, shown.empty() ? "" : "{" + shown + "}", value);
}

namespace {

constexpr double kBandWidth = 720, kBandHeight = 420;  // of the picture, in pixels
constexpr double kBandLeft = 70, kBandRight = 20, kBandTop = 40, kBandBottom = 50;

/// A logarithmic axis.
struct LogAxis {
  double low = 1, high = 10;  ///< values at its ends
  double from = 0, to = 1;    ///< pixels of its ends
  double at(double value) const {
    return from + (to - from) * std::log(std::clamp(value, low, high) / low) / std::log(high / low);
  }
  /// 1, 2 and 5 times powers of ten, or only these if there are many.
  std::vector<double> ticks() const {
    std::vector<double> out;
    const bool few = high / low < 1e3;
    for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10)
      for (const double factor : {1.0, 2.0, 5.0})
        if (const double value = factor * power; value >= low && value <= high && (few || factor == 1))
          out.push_back(value);
    return out;
  }
};

/// 200k, 5M, 1G.
std::string short_count(double value) {
  for (const auto& [unit, name] : {std::pair{1e9, "G"}, {1e6, "M"}, {1e3, "k"}})
    if (value >= unit) return fmt::format("{:g}{}", value / unit, name);
  return fmt::format("{:g}", value);
}

std::string grid(const LogAxis& x, const LogAxis& y, bool by_usd) {
  std::string out;
  const auto line = [&](double x1, double y1, double x2, double y2) {
    out += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n", x1, y1,
                       x2, y2);
  };
  const auto text = [&](double at_x, double at_y, const char* anchor, const std::string& words) {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", at_x, at_y, anchor, words);
  };
  for (const double value : x.ticks()) {
    line(x.at(value), y.from, x.at(value), y.to);
    text(x.at(value), y.from + 18, "middle", short_count(value));
  }
  for (const double value : y.ticks()) {
    line(x.from, y.at(value), x.to, y.at(value));
    text(x.from - 8, y.at(value) + 4, "end", fmt::format("{:g}", value));
  }
  text((x.from + x.to) / 2, kBandHeight - 10, "middle", by_usd ? "USD" : "real images");
  text(x.from - 50, kBandTop - 14, "start", "FID, the lowest so far");
  return out;
}

std::string path_of(const std::vector<double>& xs, const std::vector<double>& ys, const LogAxis& x, const LogAxis& y) {
  std::string out;
  for (std::size_t i = 0; i < xs.size(); ++i)
    out += fmt::format("{}{:.1f},{:.1f}", out.empty() ? "" : " ", x.at(xs[i]), y.at(ys[i]));
  return out;
}

}  // namespace

std::string quality_band_svg(const QualityPicture& picture) {
  const QualityPicture::Band& band = picture.band;
  std::vector<double> xs = band.x, ys = band.low;
  ys.insert(ys.end(), band.high.begin(), band.high.end());
  for (const auto& [at, fid] : picture.points) {
    xs.push_back(at);
    ys.push_back(fid);
  }
  if (picture.fid > 0) ys.push_back(picture.fid);
  const auto axis = [](const std::vector<double>& values, double from, double to) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const double least = std::max(*low, *high * 1e-6);
    return LogAxis{0.95 * least, 1.05 * std::max(*high, least), from, to};
  };
  const LogAxis x = axis(xs, kBandLeft, kBandWidth - kBandRight), y = axis(ys, kBandHeight - kBandBottom, kBandTop);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" height=\"{1:g}\" "
      "font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>{2}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kBandWidth, kBandHeight, escaped(picture.title));
  out += grid(x, y, picture.by_usd);
  std::vector<double> back_x(band.x.rbegin(), band.x.rend()), back_y(band.low.rbegin(), band.low.rend());
  out += fmt::format("<polygon points=\"{} {}\" fill=\"#0072b2\" fill-opacity=\"0.2\"/>\n",
                     path_of(band.x, band.high, x, y), path_of(back_x, back_y, x, y));
  out += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"#0072b2\" stroke-width=\"2\"/>\n",
                     path_of(band.x, band.median, x, y));
  if (picture.fid > 0)
    out += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{2:.1f}\" x2=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"#d55e00\" "
        "stroke-dasharray=\"6 4\"/>\n",
        x.from, x.to, y.at(picture.fid));
  for (const auto& [at, fid] : picture.points)
    out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"#222222\"/>\n", x.at(at), y.at(fid));
  return out + "</svg>\n";
}

namespace {
std::string interval_of(const documents::Measure& measure, auto&& shown) {
  return range(measure.interval.low, measure.interval.high, shown);
}

std::string speed_text(const documents::Forecast& forecast) {
  if (!forecast.step_s) return "not known yet";
  const double step_s = *forecast.step_s;
  if (!forecast.step_is_measured) return fmt::format("{:.4g} s a step by the plan; the log times no step yet", step_s);
  const double planned = forecast.plan_step_s.value_or(NAN), factor = step_s / planned;
  if (std::abs(factor - 1) < 0.005) return fmt::format("{:.4g} s a step, as planned", step_s);
  return fmt::format("{:.4g} s a step, {:.3g} times the planned {:.4g} s", step_s, factor, planned);
}

std::string decision_text(const documents::WatchedDecision& decision) {
  std::string pools;
  for (const documents::WatchedDecision::Pool& pool : decision.pools) {
    pools += fmt::format("{}{} x {}", pools.empty() ? "" : ", ", pool.nodes, pool.pool);
    if (pool.nodes != pool.nodes_now) pools += fmt::format(" ({} now)", pool.nodes_now);
  }
  const char* verb = decision.pause ? "would pause and hold" : decision.changes ? "would change to" : "would keep";
  return fmt::format("{} {} {}", decision.policy, verb, pools.empty() ? "nothing" : pools);
}

/// When the run gets to its FID, and what it costs until then.
std::string quality_text(const documents::WatchedQuality& quality, auto&& shown_time) {
  const auto short_number = [](double value) { return fmt::format("{:.3g}", value); };
  std::string out = fmt::format("FID {:g}", quality.fid);
  if (quality.reached)
    return out + fmt::format(" is reached, after {:.3g} images", quality.images ? quality.images->median : 0);
  out += fmt::format(", by {} points: reached with a probability of {}", quality.points, percent(quality.probability));
  if (quality.images && quality.time_s && quality.usd)
    out +=
        fmt::format(", after {:.3g} images ({}), {} ({}) and {} USD ({})", quality.images->median,
                    interval_of(*quality.images, short_number), shown_time(quality.time_s->median),
                    interval_of(*quality.time_s, shown_time), usd(quality.usd->median), interval_of(*quality.usd, usd));
  for (const std::string& note : quality.notes) out += "; " + note;
  return out;
}

}  // namespace

std::string forecast_text(const documents::Forecast& forecast, std::size_t width) {
  const auto counted = [](int count, const char* format) {
    return count > 0 ? fmt::format(fmt::runtime(format), count) : std::string();
  };
  std::string out =
      fmt::format("{} on {} x {}: step {} of {} ({}), {}{}{}\n\n", forecast.model, forecast.nodes, forecast.instance,
                  with_thousands(forecast.steps_done), with_thousands(forecast.steps), percent(forecast.done_share),
                  forecast.state, counted(forecast.resumptions, ", resumed {} time(s)"),
                  counted(forecast.cut_lines, ", {} line(s) of the log cut short"));
  const auto line = [&](const char* name, const std::string& text) {
    out += hanging(fmt::format("{:<10}", name), text, width);
  };
  const auto shown_time = [&](double seconds) { return clock_like(seconds, forecast.time_s.median); };
  line("time", fmt::format("{} so far, {} of it to set up and {} in pauses", shown_time(forecast.elapsed_s),
                           shown_time(forecast.setup_s), shown_time(forecast.paused_s)));
  const std::string planned = fmt::format("planned {} ({})", shown_time(forecast.plan_time_s.median),
                                          interval_of(forecast.plan_time_s, shown_time));
  const std::string end = shown_time(forecast.time_s.median);
  line("end", forecast.state == "finished"
                  ? fmt::format("{}; {}", end, planned)
                  : fmt::format("after {} ({}), about {}; {}", end, interval_of(forecast.time_s, shown_time),
                                forecast.ends_at, planned));
  line("speed", speed_text(forecast));
  line("bill", fmt::format("{} USD so far, {} USD at the end ({}); planned {} USD ({})", usd(forecast.spent_usd),
                           usd(forecast.usd.median), interval_of(forecast.usd, usd), usd(forecast.plan_usd.median),
                           interval_of(forecast.plan_usd, usd)));
  if (forecast.quality) line("quality", quality_text(*forecast.quality, shown_time));
  const documents::Forecast::Deadline& deadline = forecast.deadline;
  if (deadline.seconds)
    line("deadline", fmt::format("{}: met with a probability of {}; the plan asked for {}", clock(*deadline.seconds),
                                 percent(deadline.probability.value_or(0)), percent(deadline.certainty)));
  if (forecast.decision) line("policy", decision_text(*forecast.decision));
  for (const std::string& warning : forecast.warnings) line("warning", warning);
  return out;
}

std::string forecast_metrics(const documents::Forecast& forecast) {
  Gauges gauges("ganymede_run_");
  const Gauges::Labels labels{{"model", forecast.model}, {"instance", forecast.instance}};
  const auto add = [&](const char* name, const char* help, std::optional<double> value) {
    if (!value) return;
    gauges.begin(name, help);
    gauges.sample(labels, *value);
  };
  const auto add_measure = [&](const char* name, const char* help, const documents::Measure& measure) {
    gauges.begin(name, help);
    for (const auto& [quantile, value] :
         {std::pair("0.05", measure.interval.low), {"0.5", measure.median}, {"0.95", measure.interval.high}}) {
      Gauges::Labels all = labels;
      all.emplace_back("quantile", quantile);
      gauges.sample(all, value);
    }
  };
  add("steps_done", "Steps done.", static_cast<double>(forecast.steps_done));
  add("steps", "Steps of the whole run.", static_cast<double>(forecast.steps));
  add("running", "1 while the run goes on.", forecast.state == "running" ? 1 : 0);
  add("last_line_timestamp_seconds", "Unix time of the log's last line.", forecast.last_line_unix_s);
  add("elapsed_seconds", "Time since the nodes were asked for.", forecast.elapsed_s);
  add("paused_seconds", "Time in evaluations, checkpoints and interruptions.", forecast.paused_s);
  add("step_seconds", "Time of a step.", forecast.step_s);
  add_measure("forecast_seconds", "Time from the request of nodes to the run's end.", forecast.time_s);
  add("spent_usd", "Price of the nodes so far.", forecast.spent_usd);
  add_measure("forecast_usd", "Bill at the run's end.", forecast.usd);
  if (const auto& quality = forecast.quality) {
    add("best_fid", "Lowest FID so far.", quality->best_seen);
    add("fid_probability", "Probability to reach the plan's FID.", quality->probability);
    if (quality->usd) add_measure("fid_usd", "Bill when the plan's FID is reached.", *quality->usd);
  }
  add("deadline_seconds", "Time from the request to the deadline.", forecast.deadline.seconds);
  add("deadline_probability", "Probability to meet the deadline.", forecast.deadline.probability);
  return gauges.text();
}

std::string paid_bill_text(const documents::PaidBill& paid, std::size_t width) {
  const auto rounded = [](double amount) { return std::abs(amount) < 0.005 ? 0 : amount; };  // and never -0.00
  const auto cents = [&](double amount) { return fmt::format("{:.2f}", rounded(amount)); };
  const double planned = usd_of(paid.planned_usd), billed = usd_of(paid.paid_usd), more = billed - planned;
  const bool as_planned = std::abs(more) < 0.005;
  // The bill stands beside one run. Where the plan's median is another figure, both are said.
  const std::string interval =
      fmt::format("({} .. {})", usd(paid.plan_interval_usd.low), usd(paid.plan_interval_usd.high));
  const bool differs = std::abs(planned - paid.plan_usd) > 0.02 * paid.plan_usd;
  std::string out = fmt::format("Paid {} USD; planned {} USD {}", usd(rounded(billed)), usd(planned),
                                differs ? "in one run with the plan's seed" : interval);
  if (as_planned)
    out += ": as planned";
  else if (planned > 0)
    out += fmt::format(": {} {} than planned", percent(std::abs(more) / planned), more < 0 ? "less" : "more");
  out += ".\n";
  if (differs)
    out += fmt::format("The plan itself says {} USD {}, the median of its runs.\n", usd(paid.plan_usd), interval);
  if (!as_planned && !paid.items.empty() && !paid.items.front().why.empty())
    out += fmt::format("Most of it: {}, {}.\n", paid.items.front().item, printable(paid.items.front().why));
  out += fmt::format("{} ({}), {} {}{}; the plan rents {} x {}\n", printable(paid.bill), paid.dialect, paid.rows,
                     paid.rows == 1 ? "row" : "rows",
                     paid.from.empty() ? "" : fmt::format(" from {} to {}", paid.from, paid.to), paid.nodes,
                     printable(paid.instance));
  for (const std::string& note : paid.notes) out += printable(note) + "\n";
  Table items({"item", ">planned", ">paid", "unit", ">planned USD", ">paid USD", ">difference", "why"});
  for (const documents::PaidItem& item : paid.items)
    items.add({item.item, item.unit.empty() ? "" : fmt::format("{:.4g}", item.planned),
               item.unit.empty() ? "" : fmt::format("{:.4g}", item.paid), printable(item.unit),
               cents(usd_of(item.planned_usd)), cents(usd_of(item.paid_usd)),
               fmt::format("{:+.2f}", rounded(item.difference_usd)), printable(item.why)});
  items.rule();
  items.add({"total", "", "", "", cents(planned), cents(billed), fmt::format("{:+.2f}", rounded(more)), ""});
  return wrap_prose(out, width) + "\n" + items.text(width);
}

}  // namespace ganymede::report
