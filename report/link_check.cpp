#include "report/link_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/units.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {

/// The causes that are shown: those of some weight, and "normal" for comparison.
bool is_shown(const documents::LikelyCause& cause) { return cause.share >= 0.02 || cause.cause == "normal"; }

constexpr double kLarge = 32 << 20;  // bytes from which bandwidth decides

std::string against(double ratio) {
  return ratio >= 1e4 || ratio < 1e-3 ? fmt::format("{:.0e}", ratio) : fmt::format("{:.3g}", ratio);
}

}  // namespace

std::string link_check_text(const documents::LinkCheck& check, std::size_t width) {
  const documents::CheckedSize& last = check.sizes.back();
  const bool faster = check.ratio > check.interval.high;
  std::string out = fmt::format(
      "{}: {:.4g} GB/s of bus bandwidth at {} where {:.4g} ({:.4g} .. {:.4g}) are expected; {} {:.2f} of "
      "the expected bandwidth.\n",
      faster ? "faster than this machine should be" : check.verdict, last.measured_bus, to_string(Bytes{last.bytes}),
      last.expected_bus, last.expected_bus * last.expected / last.interval.high,
      last.expected_bus * last.expected / last.interval.low,
      last.bytes < kLarge ? "the largest size has" : "large sizes have", check.ratio);
  out[0] = static_cast<char>(out[0] - 'a' + 'A');
  const auto first = std::find_if(check.causes.begin(), check.causes.end(),
                                  [](const documents::LikelyCause& cause) { return cause.cause != "normal"; });
  if (!faster && first != check.causes.end() && (check.verdict != "normal" || first->share > 0.5)) {
    out += fmt::format("Likeliest: {} ({:.0f} %, {} times as likely as nothing wrong).\n", first->says,
                       100 * first->share, against(first->against_normal));
    if (!first->sign.empty()) out += fmt::format("The log says: {}\n", first->sign);
    out += fmt::format("What would show it: {}.\n", first->shows);
  }
  out += fmt::format("{}: {} x {} ({}), {} GPUs, {}, {}; links: {}\n", check.catalog, check.nodes, check.instance,
                     check.recognised, check.nodes * check.gpus_per_node, check.collective, check.scheme, check.links);
  for (const std::string& note : check.notes) out += note + "\n";
  Table sizes({"size", ">measured", ">expected", "90 %", ">GB/s", ">expected"});
  for (const documents::CheckedSize& size : check.sizes)
    sizes.add({to_string(Bytes{size.bytes}), to_string(Seconds{size.measured}), to_string(Seconds{size.expected}),
               fmt::format("{} .. {}", to_string(Seconds{size.interval.low}), to_string(Seconds{size.interval.high})),
               fmt::format("{:.4g}", size.measured_bus), fmt::format("{:.4g}", size.expected_bus)});
  Table causes({"cause", ">probability", ">to normal", ">GB/s", "says"});
  for (const documents::LikelyCause& cause : check.causes)
    if (is_shown(cause))
      causes.add({cause.cause, fmt::format("{:.0f} %", 100 * cause.share), against(cause.against_normal),
                  cause.bus ? fmt::format("{:.4g}", *cause.bus) : "", cause.says});
  return wrap_prose(out, width) + "\n" + sizes.text(width) + "\n" + causes.text(width);
}

std::string link_check_csv(const documents::LinkCheck& check) {
  Table table({"bytes", "measured_s", "expected_s", "low_s", "high_s", "measured_busbw_GBps", "expected_busbw_GBps"});
  for (const documents::CheckedSize& size : check.sizes)
    table.add({fmt::format("{:.0f}", size.bytes), fmt::format("{:.6g}", size.measured),
               fmt::format("{:.6g}", size.expected), fmt::format("{:.6g}", size.interval.low),
               fmt::format("{:.6g}", size.interval.high), fmt::format("{:.6g}", size.measured_bus),
               fmt::format("{:.6g}", size.expected_bus)});
  return table.csv();
}

}  // namespace ganymede::report
