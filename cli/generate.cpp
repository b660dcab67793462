// ganymede generate: draws images from a checkpoint's generator.

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <vector>

#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "kernel/session/draw_images.hpp"

namespace ganymede::cli {
namespace {

constexpr int kMaxImages = 10'000;

struct GenerateArguments {
  std::string checkpoint;
  int count = 64;
  std::uint64_t seed = 1;
  std::optional<int> only;
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
  if (shared.output.empty())
    throw ConfigError("--output: expected the name of the PNG file to write, because a picture is not printed");
  if (arguments.count < 1 || arguments.count > kMaxImages)
    throw ConfigError(fmt::format("--count: found {}, expected 1 to {}", arguments.count, kMaxImages));
  check_output(shared);
  const kernel::Checkpoint checkpoint = open_checkpoint(arguments, shared);
  auto waiting = show_elapsed(shared, fmt::format("drawing {} images", arguments.count));
  const kernel::DrawnImages drawn =
      kernel::draw_images(checkpoint, arguments.options, arguments.count, arguments.seed, arguments.only);
  waiting.reset();
  write_file(shared.output, drawn.png);
  if (shared.format == "json") {
    const OrderedJson json = {{"checkpoint", checkpoint.file},
                              {"model", drawn.model},
                              {"images", arguments.count},
                              {"backend", drawn.backend.backend},
                              {"device", drawn.backend.device},
                              {"total_s", drawn.seconds},
                              {"images_per_s", arguments.count / drawn.seconds},
                              {"memory_bytes", drawn.memory_bytes},
                              {"file", shared.output}};
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print("{} of {} from {}\n", arguments.count, drawn.model, checkpoint.file);
  fmt::print("backend  {} on {}\n", drawn.backend.backend, drawn.backend.device);
  fmt::print("time     {}, {:.0f} images/s, PNG included\n", to_string(Seconds{drawn.seconds}),
             arguments.count / drawn.seconds);
  fmt::print("memory   {} for batches of {}\n", to_string(Bytes{drawn.memory_bytes}), drawn.batch);
  fmt::print("images   {}\n", shared.output);
}

void declare_generate(Parser command, Shared& shared) {
  auto arguments = std::make_shared<GenerateArguments>();
  command.add_option("--checkpoint", arguments->checkpoint, "the directory of ganymede train --checkpoint").required();
  command.add_option("--count", arguments->count, "number of images, drawn in a grid").capture_default_str();
  command.add_option("--class", arguments->only,
                     "draw only this class of a model that learns classes; default: image I has class SEED + I");
  add_device_options(command, arguments->options);
  add_seed(command, arguments->seed, "seed of the latents");
  add_result(command, shared, {"table", "json"});
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
          .trains = true,
          .declare = declare_generate};
}

}  // namespace ganymede::cli
