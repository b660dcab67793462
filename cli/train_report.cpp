#include "cli/train_report.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <filesystem>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "kernel/memory.hpp"
#include "traces/quality_curve.hpp"

namespace ganymede::cli {
namespace {

double predicted_bytes(const kernel::Trainer& trainer) {
  return kernel::predicted_memory_bytes(trainer.options(), trainer.ops());
}

std::string quality_table(const TrainReport& report) {
  if (report.quality.empty()) return "";
  const kernel::Quality& last = report.quality.back().second;
  std::string out = fmt::format("\nquality by {}, {} generated and {} real images\n{:>10}  {:>18}  {:>14}\n",
                                last.features, last.images, last.images, "step", "FID", "inception score");
  for (const auto& [step, quality] : report.quality)
    out += fmt::format("{:>10}  {:>18.3f}  {:>14.3f}\n", step, quality.fid, quality.inception_score);
  return out + fmt::format("{:>10}  {:>18.3f}  {:>14.3f}   (other real images)\n", "", last.real_fid,
                           last.real_inception_score);
}

}  // namespace

double peak_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

std::string describe_backend(const kernel::BackendInfo& info) {
  return fmt::format("{} on {} ({})", info.backend, info.device, info.instructions);
}

void check_quality_curve(const TrainArguments& arguments) {
  if (!std::filesystem::exists(arguments.quality_curve)) return;
  const std::string model = traces::read_quality_curves(JsonNode::load(arguments.quality_curve)).model;
  if (model != arguments.options.model)
    throw ConfigError(fmt::format("--quality-curve: {} is of {}, this training of {}", arguments.quality_curve, model,
                                  arguments.options.model));
}

void add_quality_curve(const TrainReport& report, kernel::Trainer& trainer, const TrainArguments& arguments) {
  const std::filesystem::path file = arguments.quality_curve;
  const traces::QualityCurves mine{
      arguments.options.model, trainer.whole_dataset().name, report.quality.front().second.features, {}};
  traces::QualityCurves all = mine;
  if (std::filesystem::exists(file)) {
    all = traces::read_quality_curves(JsonNode::load(file));
    if (all.model != mine.model || all.dataset != mine.dataset || all.features != mine.features)
      throw ConfigError(
          fmt::format("--quality-curve: {} is of {} on {} in the features of {}, this training of {} on {} "
                      "in those of {}",
                      file.string(), all.model, all.dataset, all.features, mine.model, mine.dataset, mine.features));
  }
  traces::QualityCurve curve{trainer.global_batch(),
                             arguments.options.seed,
                             fmt::format("ganymede {} ({})", GANYMEDE_VERSION, trainer.backend().info.backend),
                             {}};
  for (const auto& [step, quality] : report.quality)
    curve.points.push_back({static_cast<double>(step) * trainer.global_batch(), quality.fid, quality.inception_score});
  std::erase_if(all.curves, [&](const auto& old) { return old.batch == curve.batch && old.seed == curve.seed; });
  all.curves.push_back(std::move(curve));
  write_file(file, traces::write_quality_curves(all));
}

std::string to_table(const TrainReport& report, kernel::Trainer& trainer, const TrainArguments& arguments) {
  std::string out = fmt::format("model    {}, batch {}, seed {}\n", arguments.options.model, arguments.options.batch,
                                arguments.options.seed);
  out += fmt::format("data     {}, {} images, epoch {} reached\n", trainer.dataset().name,
                     trainer.dataset().images.count, trainer.epoch());
  out += fmt::format("backend  {}\n", describe_backend(trainer.backend().info));
  if (trainer.shard().ranks > 1)
    out += fmt::format("replicas {}, {} images a step, gradients in {}, {}\n", trainer.shard().ranks,
                       trainer.global_batch(),
                       arguments.options.compression == "none" ? "fp32" : arguments.options.compression,
                       trainer.backend().gradient_reducer != nullptr
                           ? "by NCCL beside the backward pass"
                           : to_string(Seconds{trainer.waited_s() / static_cast<double>(report.result.steps)}) +
                                 " a step waited for them");
  out += "\n";
  out += fmt::format("{:>10}  {:>18}  {:>14}\n", "step", "discriminator loss", "generator loss");
  for (const auto& point : report.history)
    out +=
        fmt::format("{:>10}  {:>18.4f}  {:>14.4f}\n", point.step, point.losses.discriminator, point.losses.generator);
  out += quality_table(report);
  out += fmt::format("\nmemory   {} predicted, {} allocated at most, {} resident at most in this process\n",
                     to_string(Bytes{predicted_bytes(trainer)}), to_string(Bytes{report.allocated_peak_bytes}),
                     to_string(Bytes{report.resident_peak_bytes}));
  const double step_s = report.result.seconds / static_cast<double>(report.result.steps);
  out +=
      fmt::format("time     {} for {} steps, {} a step, {:.0f} images/s\n", to_string(Seconds{report.result.seconds}),
                  report.result.steps, to_string(Seconds{step_s}), trainer.global_batch() / step_s);
  for (const auto& [what, file] : {std::pair{"samples", arguments.samples}, std::pair{"weights", arguments.weights},
                                   std::pair{"trace", arguments.trace}})
    if (!file.empty()) out += fmt::format("{:<9}{}\n", what, file);
  return out;
}

std::string to_json(const TrainReport& report, kernel::Trainer& trainer, const TrainArguments& arguments) {
  const auto losses = [](const kernel::Losses& value) {
    return OrderedJson{{"discriminator", value.discriminator}, {"generator", value.generator}};
  };
  OrderedJson history = OrderedJson::array();
  for (const auto& point : report.history) {
    OrderedJson entry = losses(point.losses);
    entry["step"] = point.step;
    history.push_back(entry);
  }
  OrderedJson files = OrderedJson::object();
  for (const auto& [what, file] : {std::pair{"samples", arguments.samples}, std::pair{"weights", arguments.weights},
                                   std::pair{"trace", arguments.trace}})
    if (!file.empty()) files[what] = file;
  OrderedJson quality = OrderedJson::array();
  for (const auto& [step, measured] : report.quality) {
    OrderedJson entry = {{"step", step}, {"images", measured.images}};
    for (const auto& [name, value] : measured.figures()) entry[name] = value;
    quality.push_back(entry);
  }
  const double step_s = report.result.seconds / static_cast<double>(report.result.steps);
  OrderedJson json = {
      {"model", arguments.options.model},
      {"dataset", trainer.dataset().name},
      {"images", trainer.dataset().images.count},
      {"backend", trainer.backend().info.backend},
      {"device", trainer.backend().info.device},
      {"instructions", trainer.backend().info.instructions},
      {"threads", trainer.backend().info.threads},
      {"batch", arguments.options.batch},
      {"processes", trainer.shard().ranks},
      {"predicted_memory_bytes", predicted_bytes(trainer)},
      {"allocated_peak_bytes", report.allocated_peak_bytes},
      {"resident_peak_bytes", report.resident_peak_bytes},
      {"exposed_communication_s",
       trainer.backend().gradient_reducer != nullptr ? OrderedJson(nullptr) : OrderedJson(trainer.waited_s())},
      {"seed", arguments.options.seed},
      {"steps", report.result.steps},
      {"total_s", report.result.seconds},
      {"step_mean_s", step_s},
      {"images_per_s", trainer.global_batch() / step_s},
      {"losses", losses(report.result.losses)},
      {"history", history},
      {"files", files}};
  if (!quality.empty()) json["quality"] = quality;
  return json.dump(2) + "\n";
}

}  // namespace ganymede::cli
