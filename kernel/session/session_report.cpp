#include <fmt/format.h>

#include <filesystem>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "kernel/session/session.hpp"
#include "traces/quality_curve.hpp"

namespace ganymede::kernel {
namespace {

std::string quality_table(const SessionReport& report) {
  if (report.quality.empty()) return "";
  const Quality& last = report.quality.back().second;
  std::string out = fmt::format("\nquality by {}, {} generated and {} real images\n{:>10}  {:>18}  {:>14}\n",
                                last.features, last.images, last.images, "step", "FID", "inception score");
  for (const auto& [step, quality] : report.quality)
    out += fmt::format("{:>10}  {:>18.3f}  {:>14.3f}\n", step, quality.fid, quality.inception_score);
  return out + fmt::format("{:>10}  {:>18.3f}  {:>14.3f}   (other real images)\n", "", last.real_fid,
                           last.real_inception_score);
}

/// The files that the training has written, by kind.
std::vector<std::pair<const char*, std::string>> written_files(const SessionOptions& options) {
  std::vector<std::pair<const char*, std::string>> files = {
      {"samples", options.samples}, {"weights", options.weights}, {"trace", options.trace}};
  std::erase_if(files, [](const auto& file) { return file.second.empty(); });
  return files;
}

}  // namespace

void add_quality_curve(const SessionReport& report, const SessionOptions& options) {
  const std::filesystem::path file = options.quality_curve;
  const traces::QualityCurves mine{options.train.model, report.dataset, report.quality.front().second.features, {}};
  traces::QualityCurves all = mine;
  if (std::filesystem::exists(file)) {
    all = traces::read_quality_curves(JsonNode::load(file));
    if (all.model != mine.model || all.dataset != mine.dataset || all.features != mine.features)
      throw ConfigError(
          fmt::format("--quality-curve: {} is of {} on {} in the features of {}, this training of {} on {} "
                      "in those of {}",
                      file.string(), all.model, all.dataset, all.features, mine.model, mine.dataset, mine.features));
  }
  traces::QualityCurve curve{report.global_batch,
                             options.train.seed,
                             fmt::format("ganymede {} ({})", GANYMEDE_VERSION, report.backend.backend),
                             {}};
  for (const auto& [step, quality] : report.quality)
    curve.points.push_back({static_cast<double>(step) * report.global_batch, quality.fid, quality.inception_score});
  std::erase_if(all.curves, [&](const auto& old) { return old.batch == curve.batch && old.seed == curve.seed; });
  all.curves.push_back(std::move(curve));
  write_file(file, traces::write_quality_curves(all));
}

std::string to_table(const SessionReport& report, const SessionOptions& options) {
  const TrainOptions& train = options.train;
  std::string out = fmt::format("model    {}, batch {}, seed {}\n", train.model, train.batch, train.seed);
  out += fmt::format("data     {}, {} images, epoch {} reached\n", report.dataset, report.images, report.epoch);
  out += fmt::format("backend  {} on {} ({})\n", report.backend.backend, report.backend.device,
                     report.backend.instructions);
  if (report.shard.ranks > 1)
    out += fmt::format("replicas {}, {} images a step, gradients in {}, {}\n", report.shard.ranks, report.global_batch,
                       train.compression == "none" ? "fp32" : train.compression,
                       report.reduces_on_device
                           ? "by NCCL beside the backward pass"
                           : to_string(Seconds{report.waited_s /
                                               static_cast<double>(std::max<std::int64_t>(1, report.result.steps))}) +
                                 " a step waited for them");
  const std::size_t wide = std::string_view(report.loss_names.generator).size();
  if (!report.history.empty())
    out += fmt::format("\n{:>10}  {:>13} loss  {:>{}} loss\n", "step", report.loss_names.discriminator,
                       report.loss_names.generator, wide);
  for (const auto& point : report.history)
    out += fmt::format("{:>10}  {:>18.4f}  {:>{}.4f}\n", point.step, point.losses.discriminator, point.losses.generator,
                       wide + 5);
  out += quality_table(report);
  out += fmt::format("\nmemory   {} predicted, {} allocated at most, {} resident at most in this process\n",
                     to_string(Bytes{report.predicted_bytes}), to_string(Bytes{report.allocated_peak_bytes}),
                     to_string(Bytes{report.resident_peak_bytes}));
  if (report.result.steps > 0)
    out += fmt::format("time     {} for {}, {} a step, {:.0f} images/s\n", to_string(Seconds{report.result.seconds}),
                       counted(static_cast<std::size_t>(report.result.steps), "step"),
                       to_string(Seconds{report.step_s()}), report.global_batch / report.step_s());
  for (const auto& [kind, file] : written_files(options)) out += fmt::format("{:<9}{}\n", kind, file);
  return out;
}

std::string to_json(const SessionReport& report, const SessionOptions& options) {
  const auto losses = [](const Losses& value) {
    return OrderedJson{{"discriminator", value.discriminator}, {"generator", value.generator}};
  };
  const bool some = report.result.steps > 0;  // none if only the outputs were written
  OrderedJson history = OrderedJson::array();
  for (const auto& point : report.history) {
    OrderedJson entry = losses(point.losses);
    entry["step"] = point.step;
    history.push_back(entry);
  }
  OrderedJson files = OrderedJson::object();
  for (const auto& [kind, file] : written_files(options)) files[kind] = file;
  OrderedJson quality = OrderedJson::array();
  for (const auto& [step, measured] : report.quality) {
    OrderedJson entry = {{"step", step}, {"images", measured.images}};
    for (const auto& [name, value] : measured.figures()) entry[name] = value;
    quality.push_back(entry);
  }
  OrderedJson json = {
      {"model", options.train.model},
      {"dataset", report.dataset},
      {"images", report.images},
      {"backend", report.backend.backend},
      {"device", report.backend.device},
      {"instructions", report.backend.instructions},
      {"threads", report.backend.threads},
      {"batch", options.train.batch},
      {"processes", report.shard.ranks},
      {"predicted_memory_bytes", report.predicted_bytes},
      {"allocated_peak_bytes", report.allocated_peak_bytes},
      {"resident_peak_bytes", report.resident_peak_bytes},
      {"exposed_communication_s", report.reduces_on_device ? OrderedJson(nullptr) : OrderedJson(report.waited_s)},
      {"seed", options.train.seed},
      {"steps", report.result.steps},
      {"total_s", report.result.seconds},
      {"step_mean_s", some ? OrderedJson(report.step_s()) : nullptr},
      {"images_per_s", some ? OrderedJson(report.global_batch / report.step_s()) : nullptr},
      {"losses", some ? losses(report.result.losses) : nullptr},
      {"history", history},
      {"files", files}};
  if (!quality.empty()) json["quality"] = quality;
  return json.dump(2) + "\n";
}

}  // namespace ganymede::kernel
