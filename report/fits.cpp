#include "report/fits.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/units.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {

std::string size(double bytes) { return to_string(Bytes{bytes}); }
std::string ends(const documents::Interval& interval) {
  return fmt::format("{} .. {}", size(interval.low), size(interval.high));
}
std::string batch(int images) { return images == 0 ? "none" : std::to_string(images); }

/// What was asked, in a sentence.
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

}  // namespace ganymede::report
