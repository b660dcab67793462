#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>

#include "common/errors.hpp"
#include "common/plain_text.hpp"
#include "common/units.hpp"
#include "studies/why_slow.hpp"
#include "traces/profiler_trace.hpp"

namespace ganymede::studies {

using documents::SlowCause;

double rate_of(const std::string& option, const std::string& text, double images, double run) {
  struct Unit {
    const char* name;
    double amount;  // of images, or seconds' images where it is a time
    bool is_time;
  };
  const Unit units[] = {{"", 1, false},
                        {"img/s", 1, false},
                        {"images/s", 1, false},
                        {"imgs/s", 1, false},
                        {"samples/s", 1, false},
                        {"it/s", images, false},
                        {"steps/s", images, false},
                        {"s/kimg", 1000, true},
                        {"s/it", images, true},
                        {"s/step", images, true},
                        {"ms/it", 1e3 * images, true},
                        {"ms/step", 1e3 * images, true}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit = lower_case(std::string(end, text.data() + text.size()));
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? unit.size() : unit.find_first_not_of(' '));
  if (error == std::errc() && value > 1e-6 && value < 1e12)
    for (const auto& [prefix, times] : {std::pair<std::string, double>{"", 1}, {"k", 1e3}, {"m", 1e6}})  // 1k, 1kimg/s
      for (const Unit& known : units)
        if (unit == prefix + known.name && (times == 1 || !known.is_time) &&
            (run <= 0 || unit != "m"))  // "90m" may mean minutes
          return known.is_time ? known.amount / value : times * known.amount * value;
  constexpr std::string_view kEpoch = "/epoch";
  try {
    const bool of_epoch = lower_case(text).ends_with(kEpoch);
    if (const Seconds took = parse_quantity<Seconds>(text.substr(0, text.size() - (of_epoch ? kEpoch.size() : 0)));
        took.si > 1e-6 && took.si < 1e12) {
      if (run > 0 && run < 1e15) return run / took.si;
      throw ConfigError(fmt::format("{} {}: --images says how many images take so long", option, text));
    }
  } catch (const std::invalid_argument&) {
    // no time either
  }
  throw ConfigError(fmt::format(
      "{} {}: expected a rate such as 250img/s, 4s/kimg, 2it/s or 0.5s/it, or the time of --images", option, text));
}

documents::WhySlow why_slow_of_trace(const WhySlowOptions& options) {
  traces::ProfilerOptions profiler;
  profiler.batch = std::max(1, options.batch);
  profiler.parameters = std::max<std::int64_t>(1, options.parameters);
  const traces::ProfilerEvents events = traces::read_profiler_events(traces::profiler_files(options.trace).front());
  const traces::ProfilerImport found = traces::import_profiler(events, profiler);
  const traces::ProfilerBreakdown& mean = found.mean;
  documents::WhySlow out;
  out.verdict = "trace", out.of = options.trace, out.gpus = std::max(1, events.ranks), out.batch = options.batch;
  out.images = images_of(options);
  for (const std::string& note : found.notes)
    if (note.find("gradients") == std::string::npos) out.notes.push_back(note);
  struct Part {
    const char *name, *says, *shows;
    double seconds;
  };
  const Part parts[] = {
      {"compute", "kernels that compute", "faster kernels: mixed precision, channels-last, a compiler", mean.compute},
      {"communication", "collectives that nothing hides, waiting for other ranks in them included",
       "check nccl-log of the same machine says whether its links are as they should; larger batches or accumulation "
       "need fewer reductions",
       mean.exposed},
      {"input", "copies to and from the host while nothing else runs",
       "pinned memory with non_blocking copies, and prefetching", mean.copies},
      {"host", "the GPU is idle: it waits for launches, for input, or for the host's other work",
       "py-spy or the trace's host threads show which; more loaders, CUDA graphs, fewer synchronisations (.item())",
       mean.idle}};
  for (const Part& part : parts) {
    out.shares.push_back({part.name, part.says, part.seconds, part.seconds / mean.step});
    if (std::string_view(part.name) == "compute") continue;
    SlowCause cause{part.name, part.says, part.shows, part.seconds / std::max(1e-12, mean.step - mean.compute)};
    if (options.batch > 0) {
      const double rate = options.batch * out.gpus / mean.step,
                   mended = options.batch * out.gpus / (mean.step - part.seconds);
      out.all = rate, cause.mended = mended;
      cause.saved_hours = out.images * (1 / rate - 1 / mended) / 3600;
    }
    out.causes.push_back(std::move(cause));
  }
  out.efficiency = mean.compute / mean.step;
  std::stable_sort(out.causes.begin(), out.causes.end(),
                   [](const SlowCause& a, const SlowCause& b) { return a.probability > b.probability; });
  return out;
}

}  // namespace ganymede::studies
