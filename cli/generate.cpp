// ganymede generate: draws images from a checkpoint's generator.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "cli/command.hpp"
#include "cli/device_options.hpp"
#include "cli/progress.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "kernel/checkpoint.hpp"
#include "kernel/image_grid.hpp"
#include "kernel/models/models.hpp"
#include "kernel/train.hpp"
#include "kernel/weights.hpp"

namespace ganymede::cli {
namespace {

constexpr int kMaxImages = 10'000;
constexpr int kBatch = 64;

struct GenerateArguments {
  std::string checkpoint;
  int count = 64;
  std::uint64_t seed = 1;
  kernel::TrainOptions options;
};

kernel::Checkpoint open_checkpoint(const GenerateArguments& arguments, const Shared& shared) {
  std::vector<std::string> damaged;
  auto found = kernel::last_checkpoint(arguments.checkpoint, damaged);
  for (const auto& file : damaged) remark(shared, file + "; left aside");
  if (!found)
    throw ConfigError(
        fmt::format("--checkpoint: {}: found no checkpoint, expected a directory that ganymede train "
                    "--checkpoint wrote",
                    arguments.checkpoint));
  return std::move(*found);
}

void generate(const GenerateArguments& arguments, const Shared& shared) {
  using Clock = std::chrono::steady_clock;
  if (shared.output.empty())
    throw ConfigError("--output: expected the name of the PNG file to write, because a picture is not printed");
  if (arguments.count < 1 || arguments.count > kMaxImages)
    throw ConfigError(fmt::format("--count: found {}, expected 1 to {}", arguments.count, kMaxImages));
  check_output(shared);
  const kernel::Checkpoint checkpoint = open_checkpoint(arguments, shared);
  const kernel::Metadata metadata = checkpoint.metadata();
  const kernel::Model& model = kernel::find_model(metadata.text("model"));

  const auto backend = kernel::make_backend(arguments.options);
  kernel::TensorOps* const ops = backend->ops.get();
  const kernel::ImageShape image = kernel::find_image(model, metadata.text("image"));
  // The checkpoint holds the networks of the last step that was done.
  const std::int64_t steps_before = std::max<std::int64_t>(0, metadata.number("steps", 0) - 1);
  kernel::Gan gan =
      model.build(image, kernel::stage_after(model, image, steps_before, metadata.number("stage-steps", 0)).growth);
  const int batch = std::min(arguments.count, kBatch);
  const bool average = kernel::holds_average(checkpoint.content);
  double memory = 0;
  for (const auto& [kind, bytes] : gan.planned_memory_bytes(*ops, batch, {.average = average})) memory += bytes;
  gan.prepare(*ops, batch, 0, {.average = average});
  kernel::set_tensors(gan, *ops, checkpoint.content, true, checkpoint.file);
  auto waiting = show_elapsed(shared, fmt::format("drawing {} images", arguments.count));
  const auto begin = Clock::now();
  const std::string png = kernel::sample_grid(gan, *ops, arguments.seed, arguments.count);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  waiting.reset();
  write_file(shared.output, png);

  if (shared.format == "json") {
    const OrderedJson json = {{"checkpoint", checkpoint.file},
                              {"model", gan.model},
                              {"images", arguments.count},
                              {"backend", backend->info.backend},
                              {"device", backend->info.device},
                              {"total_s", seconds},
                              {"images_per_s", arguments.count / seconds},
                              {"memory_bytes", memory},
                              {"file", shared.output}};
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print("{} of {} from {}\n", arguments.count, gan.model, checkpoint.file);
  fmt::print("backend  {} on {}\n", backend->info.backend, backend->info.device);
  fmt::print("time     {}, {:.0f} images/s, PNG included\n", to_string(Seconds{seconds}), arguments.count / seconds);
  fmt::print("memory   {} for batches of {}\n", to_string(Bytes{memory}), batch);
  fmt::print("images   {}\n", shared.output);
}

void declare_generate(Parser command, Shared& shared) {
  auto arguments = std::make_shared<GenerateArguments>();
  command.add_option("--checkpoint", arguments->checkpoint, "the directory of ganymede train --checkpoint").required();
  command.add_option("--count", arguments->count, "number of images, drawn in a grid").capture_default_str();
  add_device_options(command, arguments->options);
  add_seed(command, arguments->seed, "seed of the latents");
  add_format(command, shared, {"table", "json"});
  add_output(command, shared);
  command.callback([arguments, &shared] {
    kernel::check(arguments->options);
    generate(*arguments, shared);
  });
}

}  // namespace

Command generate_command() {
  return {.name = "generate",
          .summary = "images from a checkpoint's generator",
          .examples =
              "  ganymede train --model dcgan-32 --steps 2000 --checkpoint run\n"
              "  ganymede generate --checkpoint run --count 100 -o images.png\n",
          .about =
              "Draws images from the generator of a checkpoint that `train --checkpoint` has written, saves them as\n"
              "one PNG, and prints the time and memory that this took.",
          .declare = declare_generate};
}

}  // namespace ganymede::cli
