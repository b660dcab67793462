#include "report/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/units.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {

const char* yes_no(bool value) { return value ? "yes" : "no"; }

std::vector<HostDependency> parts_of(const HostInventory& machine) {
  const HostProcessor& cpu = machine.processor;
  const HostGpus& gpu = machine.graphics;
  std::vector<HostDependency> parts = {
      {"processor", true, cpu.model},
      {"cores", true, fmt::format("{}, {} usable", cpu.cores, cpu.usable)},
      {"memory", true, fmt::format("{}, {} free", to_string(cpu.memory), to_string(cpu.available))},
      {"instructions", true,
       fmt::format("AVX2 {}, FMA {}, AVX-512 {}", yes_no(cpu.avx2), yes_no(cpu.fma), yes_no(cpu.avx512))},
      {"GPU", !gpu.devices.empty(),
       gpu.devices.empty() ? "none found (no /proc/driver/nvidia, no /dev/nvidia0)"
                           : fmt::format("{}", fmt::join(gpu.devices, ", "))},
      {"GPU driver", gpu.driver.has_value(),
       gpu.driver.value_or("no kernel module") + ", " + (gpu.cuda ? "CUDA up to " + *gpu.cuda : "no libcuda.so.1")}};
  parts.insert(parts.end(), machine.dependencies.begin(), machine.dependencies.end());
  return parts;
}

}  // namespace

std::string machine_text(const HostInventory& machine, const std::vector<HostDependency>& backends, std::size_t width) {
  std::string text;
  for (const HostDependency& part : parts_of(machine))
    text += hanging(fmt::format("{:<14}", part.name), part.detail, width);
  text += "\nbackends\n";
  for (const auto& [name, available, reason] : backends)
    text +=
        hanging(fmt::format("  {:<12}", name), fmt::format("{}: {}", available ? "ready" : "missing", reason), width);
  return text;
}

std::string machine_csv(const HostInventory& machine, const std::vector<HostDependency>& backends) {
  Table table({"part", "found", "detail"});
  for (const auto& [name, found, detail] : parts_of(machine)) table.add({name, yes_no(found), detail});
  for (const auto& [name, available, reason] : backends) table.add({name + " backend", yes_no(available), reason});
  return table.csv();
}

namespace {

std::string size(double bytes) { return to_string(Bytes{bytes}); }
std::string ends(const documents::Interval& interval) {
  return fmt::format("{} .. {}", size(interval.low), size(interval.high));
}
std::string batch(int images) { return images == 0 ? "none" : std::to_string(images); }

/// The question, in a sentence.
std::string answer(const documents::Fits& fits) {
  const auto best = std::max_element(fits.gpus.begin(), fits.gpus.end(), [](const auto& a, const auto& b) {
    return std::pair(a.largest_batch, a.perhaps_batch) < std::pair(b.largest_batch, b.perhaps_batch);
  });
  const auto count = [&](const char* verdict) {
    return std::count_if(fits.gpus.begin(), fits.gpus.end(),
                         [&](const documents::FitsGpu& gpu) { return gpu.at_verdict == verdict; });
  };
  if (!fits.gpus.front().at_verdict)
    return best->perhaps_batch == 0
               ? fmt::format("None of these GPUs holds a step of {}, not even of one image.", fits.model)
               : "";
  const auto sure = count("fits"), perhaps = count("perhaps");
  if (sure + perhaps == 0)
    return fmt::format(
        "None of these GPUs holds a step of {} with batch {}. The largest batch that fits is {} (perhaps "
        "{}), on {}.",
        fits.model, fits.batch, batch(best->largest_batch), batch(best->perhaps_batch), best->gpu);
  return fmt::format("{} with batch {} on a GPU: {} of these GPUs hold it, {} perhaps.", fits.model, fits.batch, sure,
                     perhaps);
}

}  // namespace

std::string fits_text(const documents::Fits& fits, std::size_t width) {
  std::string out = answer(fits);
  if (!out.empty()) out = wrap_prose(out, width) + "\n\n";
  Table kinds({"memory", ">bytes"});
  for (const documents::FitsKind& kind : fits.kinds) kinds.add({kind.name, size(kind.bytes)});
  kinds.rule();
  kinds.add({"total", size(fits.total.bytes)});
  out += fmt::format("One GPU, batch {}, {}: {}\n\n{}", fits.batch, fits.precision, fits.how, kinds.text(width));
  if (fits.total.interval.low != fits.total.interval.high)
    out += fmt::format("90 %: {}; torch.cuda.max_memory_allocated() would show {}\n", ends(fits.total.interval),
                       size(fits.allocated));
  const bool asked = fits.gpus.front().at_verdict.has_value();
  std::vector<std::string> names = {"gpu", ">memory", ">largest batch", ">perhaps"};
  if (asked) names.insert(names.end(), {fmt::format(">batch {}", fits.batch), "90 %", "fits"});
  Table gpus(names);
  for (const documents::FitsGpu& gpu : fits.gpus) {
    std::vector<std::string> cells = {gpu.gpu, size(gpu.memory), batch(gpu.largest_batch), batch(gpu.perhaps_batch)};
    if (asked) cells.insert(cells.end(), {size(gpu.at_batch->bytes), ends(gpu.at_batch->interval), *gpu.at_verdict});
    gpus.add(std::move(cells));
  }
  return out + "\n" + gpus.text(width);
}

std::string fits_csv(const documents::Fits& fits) {
  Table table({"gpu", "memory_bytes", "largest_batch", "perhaps_batch", "batch", "bytes", "low_bytes", "high_bytes",
               "verdict"});
  for (const documents::FitsGpu& gpu : fits.gpus) {
    const bool asked = gpu.at_batch.has_value();
    const auto number = [&](double bytes) { return asked ? fmt::format("{:.0f}", bytes) : ""; };
    const documents::FitsMemory at = gpu.at_batch.value_or(documents::FitsMemory{});
    table.add({gpu.gpu, fmt::format("{:.0f}", gpu.memory), std::to_string(gpu.largest_batch),
               std::to_string(gpu.perhaps_batch), asked ? std::to_string(fits.batch) : "", number(at.bytes),
               number(at.interval.low), number(at.interval.high), gpu.at_verdict.value_or("")});
  }
  return table.csv();
}

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
  const bool faster = check.verdict == "faster";
  std::string out = fmt::format(
      "{}: {:.4g} GB/s of bus bandwidth at {} where {:.4g} ({:.4g} .. {:.4g}) are expected; {} {:.2f} of "
      "the expected bandwidth.\n",
      faster                                                                ? "faster than this machine should be"
      : check.verdict == "normal" && check.causes.front().cause != "normal" ? "normal in the mean"
                                                                            : check.verdict,
      last.measured_bus, to_string(Bytes{last.bytes}), last.expected_bus,
      last.expected_bus * last.expected / last.interval.high, last.expected_bus * last.expected / last.interval.low,
      last.bytes < kLarge ? "the largest size has" : "large sizes have", check.ratio);
  out[0] = static_cast<char>(out[0] - 'a' + 'A');
  if (const auto first = check.causes.begin(); !faster && first->cause != "normal") {
    const auto normal = std::find_if(first, check.causes.end(),
                                     [](const documents::LikelyCause& cause) { return cause.cause == "normal"; });
    out += fmt::format(
        "Something is wrong with a probability of {:.0f} %. Likeliest: {} ({:.0f} %; explains the times {} times as "
        "well "
        "as nothing wrong).\n",
        100 - 100 * normal->share, first->says, 100 * first->share, against(first->against_normal));
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

namespace {

std::string rates_sentence(const documents::WhySlow& answer) {
  std::string out =
      fmt::format("{}: {} images/s on {} GPUs are {} of {} times one GPU; {} ({} .. {}) are expected.\n",
                  answer.verdict == "slow"     ? "Slow"
                  : answer.verdict == "faster" ? "Faster than expected (are both rates of the same training and batch?)"
                                               : "As expected",
                  shown_rate(answer.all), answer.gpus, percent(answer.efficiency), answer.gpus,
                  shown_rate(answer.expected), shown_rate(answer.interval.low), shown_rate(answer.interval.high));
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
