#include "report/why_slow.hpp"

#include <fmt/format.h>

#include "common/units.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {

std::string rates_sentence(const documents::WhySlow& answer) {
  std::string out = fmt::format(
      "{}: {} images/s on {} GPUs are {} of {} times one GPU; {} ({} .. {}) are expected.\n",
      answer.verdict == "slow"            ? "Slow"
      : answer.all > answer.interval.high ? "Faster than expected (are both rates of the same training and batch?)"
                                          : "As expected",
      shown_rate(answer.all), answer.gpus, percent(answer.efficiency), answer.gpus, shown_rate(answer.expected),
      shown_rate(answer.interval.low), shown_rate(answer.interval.high));
  if (answer.verdict == "slow") {
    const documents::SlowCause& first = answer.causes.front();
    out += fmt::format("Likeliest: {} ({}).\n", first.says, percent(first.probability));
    if (!first.shows.empty()) out += fmt::format("What shows or mends it: {}.\n", first.shows);
  }
  out +=
      fmt::format("{}: {} x {} ({}); {:.4g} million parameters ({}), {} images on a GPU\n", answer.catalog,
                  answer.nodes, answer.instance, answer.recognised, answer.parameters * 1e-6, answer.of, answer.batch);
  return out;
}

}  // namespace

std::string why_slow_text(const documents::WhySlow& answer, std::size_t width) {
  std::string out = answer.verdict == "trace"
                        ? fmt::format("{}: the GPU computes {} of a step. Largest other part: {}.\n", answer.of,
                                      percent(answer.efficiency), answer.causes.front().says)
                        : rates_sentence(answer);
  for (const std::string& note : answer.notes) out += note + "\n";
  Table shares({"part", ">a step", ">share", "what"});
  for (const documents::SlowShare& share : answer.shares)
    shares.add({share.part, fmt::format("{:.4g} ms", 1000 * share.seconds), percent(share.share), share.says});
  Table causes({"cause", ">probability", ">images/s", ">mended", fmt::format(">saved of {:.3g} images", answer.images),
                ">USD", "says"});
  const auto number = [](const std::optional<double>& value) { return value ? shown_rate(*value) : ""; };
  for (const documents::SlowCause& cause : answer.causes)
    if (cause.probability >= 0.02)
      causes.add({cause.cause, percent(cause.probability), number(cause.rate), number(cause.mended),
                  cause.saved_hours ? to_string(Seconds{*cause.saved_hours * 3600}) : "",
                  cause.saved_usd ? fmt::format("{:.2f}", *cause.saved_usd) : "", cause.says});
  return wrap_prose(out, width) + "\n" + shares.text(width) + "\n" + causes.text(width);
}

}  // namespace ganymede::report
