#include "calibration/imported_traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "calibration/kernel_workload.hpp"
#include "calibration/kernels/gpu_sheets.hpp"
#include "common/errors.hpp"
#include "common/units.hpp"
#include "platforms/catalog.hpp"
#include "report/table.hpp"
#include "traces/profiler_trace.hpp"
#include "traces/recorded.hpp"

namespace ganymede::calibration {
namespace {

/// A GPU as catalogs name it, or as its data sheet does (then `catalog` is empty).
struct CatalogGpu {
  std::string gpu, catalog;

  platforms::Gpu found() const {
    if (!catalog.empty()) return platforms::catalog_gpu(catalog, gpu);
    return *platforms::gpu_of_sheet(gpu);
  }
};

/// The recorded GPU in the catalog in use, else in another one; nothing if none has it.
std::optional<CatalogGpu> in_catalogs(const GpuSheet* recorded, const std::string& catalog) {
  const auto name_in = [&](const platforms::Platform& platform) -> std::string {
    for (const platforms::Gpu& gpu : platform.gpus)
      if (find_gpu_sheet(gpu.name) == recorded) return gpu.name;
    return "";
  };
  if (recorded == nullptr) return std::nullopt;
  if (const std::string name = name_in(platforms::load_catalog(catalog, ".")); !name.empty())
    return CatalogGpu{name, catalog};
  for (const std::string& provider : platforms::provider_names())
    if (const std::string name = name_in(platforms::catalog(provider)); !name.empty())
      return CatalogGpu{name, provider};
  return std::nullopt;
}

/// The GPU that was recorded: the one that is asked for, else the one that the trace names.
CatalogGpu recorded_gpu(const traces::ProfilerEvents& events, const ProfilerFiles& request) {
  if (!request.gpu.empty()) {
    const std::vector<platforms::Gpu> gpus = platforms::load_catalog(request.catalog, ".").gpus;
    const bool is_there =
        std::any_of(gpus.begin(), gpus.end(), [&](const auto& gpu) { return gpu.name == request.gpu; });
    return {request.gpu, is_there || !platforms::gpu_of_sheet(request.gpu) ? request.catalog : ""};
  }
  if (const auto found = in_catalogs(find_gpu_sheet(events.device), request.catalog)) return *found;
  if (const auto found = platforms::gpu_of_sheet(events.device)) return {found->name, ""};
  throw ConfigError(events.device.empty()
                        ? fmt::format("{}: does not say which GPU it was recorded on: --gpu does", events.file)
                        : fmt::format("{}: was recorded on a \"{}\", which no catalog has: --catalog names a platform "
                                      "file with it, or --gpu a GPU whose limits are near",
                                      events.file, events.device));
}

/// Refuses a --gpu that is not the one that a trace names, unless it is to replace it. Returns a note where the trace
/// does not confirm it, or nothing.
std::string check_recorded_gpu(const traces::ProfilerEvents& events, const CatalogGpu& given, bool override_gpu) {
  if (events.device.empty()) return "";
  const GpuSheet* recorded = find_gpu_sheet(events.device);
  if (recorded != nullptr && recorded == find_gpu_sheet(given.gpu)) return "";
  if (recorded != nullptr && !override_gpu) {
    const auto known = in_catalogs(recorded, given.catalog);
    throw ConfigError(fmt::format(
        "--gpu {}: {} was recorded on a \"{}\", {}; --force takes its times as those of the {} nevertheless", given.gpu,
        events.file, events.device,
        !known                            ? "which no catalog has: its data sheet is taken without --gpu"
        : known->catalog == given.catalog ? fmt::format("expected --gpu {}", known->gpu)
                                          : fmt::format("expected --gpu {} --catalog {}", known->gpu, known->catalog),
        given.gpu));
  }
  return fmt::format("recorded on \"{}\", by --gpu its times are taken as those of the {}", events.device, given.gpu);
}

std::string profiler_text(const std::vector<traces::ProfilerEvents>& ranks,
                          const std::vector<traces::ProfilerImport>& imports, std::size_t width) {
  report::Table table(
      {"file", ">rank", ">steps", ">step", ">compute", ">exposed comm.", ">overlapped", ">copies", ">idle"});
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const traces::ProfilerBreakdown& mean = imports[i].mean;
    const auto part = [&](double seconds) {
      return fmt::format("{} ({:.1f} %)", to_string(Seconds{seconds}), 100 * seconds / mean.step);
    };
    table.add({ranks[i].file, std::to_string(ranks[i].rank), std::to_string(imports[i].steps),
               to_string(Seconds{mean.step}), part(mean.compute), part(mean.exposed), part(mean.overlapped),
               part(mean.copies), part(mean.idle)});
  }
  std::string out = table.text(width) + "\n";
  const traces::TraceBatch& batch = imports.front().trace.batches.front();
  report::Table phases({"phase", ">mean", ">share of the step", ">kernels"});
  double wall = 0;
  for (const double step : batch.wall_s) wall += step;
  for (const traces::TracePhase& phase : batch.phases) {
    double sum = 0;
    for (const double time : phase.seconds) sum += time;
    phases.add({phase.name, to_string(Seconds{sum / static_cast<double>(batch.wall_s.size())}),
                fmt::format("{:.1f} %", 100 * sum / wall), std::to_string(phase.launches)});
  }
  out += phases.text(width);
  std::int64_t bytes = 0;
  for (const traces::TraceBucket& bucket : batch.buckets) bytes += bucket.bytes;
  out += fmt::format("\ngradients: {} in {} all-reduces a step\n", to_string(Bytes{static_cast<double>(bytes)}),
                     batch.buckets.size());
  for (const std::string& note : imports.front().notes) out += "note: " + note + "\n";
  return out;
}

}  // namespace

ImportedProfile import_profiles(const ProfilerFiles& request,
                                const std::function<std::function<void(std::size_t)>(std::size_t)>& show,
                                std::size_t width) {
  traces::ProfilerOptions options;
  options.batch = request.batch;
  options.model = request.model;
  options.parameters = request.parameters;
  if (!request.layers.empty()) options.layers = traces::load_layer_list(request.layers);
  const std::string precision = !request.precision.empty() ? request.precision
                                : options.layers           ? options.layers->precision
                                                           : "fp32";
  CatalogGpu gpu;
  std::vector<traces::ProfilerEvents> ranks;
  std::vector<traces::ProfilerImport> imports;
  constexpr std::int64_t kMebibyte = 1 << 20;
  std::int64_t before = 0, all = 0;  // bytes of the files read so far, and of all files
  std::vector<std::string> files, again;
  for (const std::string& named : request.files)
    for (std::string& file : traces::profiler_files(named)) files.push_back(std::move(file));
  for (const std::string& file : files) {
    std::error_code unreadable;  // read_profiler_events reports such a file
    const auto size = std::filesystem::file_size(file, unreadable);
    if (!unreadable) all += static_cast<std::int64_t>(size);
  }
  auto bar = show(static_cast<std::size_t>(all / kMebibyte));
  for (const std::string& file : files) {
    std::int64_t now = 0;
    ranks.push_back(traces::read_profiler_events(
        file,
        [&](std::int64_t bytes) {
          now = bytes;
          if (bar) bar(static_cast<std::size_t>((before + now) / kMebibyte));
        },
        request.max_size));
    before += now;
    const auto same_rank = [&](const traces::ProfilerEvents& other) { return other.rank == ranks.back().rank; };
    if (files.size() > request.files.size() && std::any_of(ranks.begin(), ranks.end() - 1, same_rank)) {
      again.push_back(std::filesystem::path(file).filename().string());  // another cycle of the profiler
      ranks.pop_back();
      continue;
    }
    if (gpu.gpu.empty()) {
      gpu = recorded_gpu(ranks.back(), request);
      options.device = roofline_device(gpu.found(), precision);
    }
    const std::string other_gpu = check_recorded_gpu(ranks.back(), gpu, request.override_gpu);
    imports.push_back(traces::import_profiler(ranks.back(), options));
    imports.back().trace.precision = precision;
    if (!other_gpu.empty()) imports.back().notes.push_back(other_gpu);
    ranks.back().gpu.clear();
    ranks.back().gpu.shrink_to_fit();
  }
  bar = {};
  if (!again.empty())
    imports.front().notes.push_back(
        fmt::format("{} of the folder's traces left out, the first of them {}: its rank was read from another file",
                    again.size(), again.front()));
  return {traces::write_step_trace(imports.front().trace), profiler_text(ranks, imports, width)};
}

std::string layers_text(const traces::LayerList& list, const traces::StepTrace& trace, const std::string& how,
                        std::size_t width) {
  std::string out = fmt::format("{}{}\n\n", list.name, list.source.empty() ? "" : ": " + list.source);
  report::Table networks({"network", ">copies", ">parameters", ">GFLOP an image, forward", ">kernels", "output"});
  for (const auto& [name, network] : list.networks) {
    const traces::LayerCost total = network.total();
    networks.add({name, fmt::format("{:g}", network.copies), fmt::format("{}", total.parameters),
                  fmt::format("{:.3f}", total.flops / 1e9), std::to_string(total.launches),
                  fmt::format("{}", fmt::join(network.output, " x "))});
  }
  out += networks.text(width) + "\n";
  const traces::TraceBatch& batch = trace.batches.back();
  report::Table phases({"phase", ">time", ">share", ">GFLOP", ">MB moved", ">kernels"});
  for (const traces::TracePhase& phase : batch.phases)
    phases.add({phase.name, to_string(Seconds{phase.seconds[0]}),
                fmt::format("{:.1f} %", 100 * phase.seconds[0] / batch.wall_s[0]),
                fmt::format("{:.1f}", phase.flops / 1e9),
                fmt::format("{:.1f}", (phase.bytes_read + phase.bytes_written) / 1e6), std::to_string(phase.launches)});
  phases.rule();
  phases.add(
      {fmt::format("step at batch {}", batch.batch), to_string(Seconds{batch.wall_s[0]}), "100.0 %", "", "", ""});
  double memory = 0;
  for (const auto& [kind, bytes] : batch.memory_bytes) memory += bytes;
  return out + phases.text(width) +
         fmt::format(
             "\nmemory at batch {}: about {} (as PyTorch saves activations; nothing recomputed, no workspace). {}\n",
             batch.batch, to_string(Bytes{memory}), how);
}

}  // namespace ganymede::calibration
