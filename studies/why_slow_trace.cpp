#include <algorithm>
#include <string_view>

#include "studies/why_slow.hpp"
#include "traces/profiler_trace.hpp"

namespace ganymede::studies {

using documents::SlowCause;

documents::WhySlow why_slow_of_trace(const WhySlowOptions& options) {
  traces::ProfilerOptions profiler;
  profiler.batch = std::max(1, options.batch);
  profiler.parameters = std::max<std::int64_t>(1, options.parameters);
  const traces::ProfilerEvents events = traces::read_profiler_events(options.trace);
  const traces::ProfilerImport found = traces::import_profiler(events, profiler);
  const traces::ProfilerBreakdown& mean = found.mean;
  documents::WhySlow out;
  out.verdict = "trace", out.of = options.trace, out.gpus = std::max(1, events.ranks), out.batch = options.batch;
  out.images = options.images;
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
      cause.saved_hours = options.images * (1 / rate - 1 / mended) / 3600;
    }
    out.causes.push_back(std::move(cause));
  }
  out.efficiency = mean.compute / mean.step;
  std::stable_sort(out.causes.begin(), out.causes.end(),
                   [](const SlowCause& a, const SlowCause& b) { return a.probability > b.probability; });
  return out;
}

}  // namespace ganymede::studies
