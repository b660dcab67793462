#include "cli/same_options.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/errors.hpp"
#include "common/random.hpp"

namespace ganymede::cli {
namespace {

using SharedOption = std::pair<const char*, std::string>;

std::string shared_text(const std::optional<float>& value) { return value ? fmt::format("{}", *value) : ""; }

/// The options that all processes share, as text. Where files are read or written, and with how many threads, may
/// differ.
std::vector<SharedOption> shared_options(const TrainArguments& arguments) {
  const kernel::TrainOptions& options = arguments.options;
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  return {{"--model", options.model},
          {"--image", options.image},
          {"--steps", text(arguments.steps)},
          {"--batch", text(options.batch)},
          {"--seed", text(options.seed)},
          {"--lr", shared_text(options.learning_rate)},
          {"--beta1", shared_text(options.beta1)},
          {"--beta2", shared_text(options.beta2)},
          {"--epsilon", shared_text(options.epsilon)},
          {"--ema", text(options.average_decay)},
          {"--loss", options.loss},
          {"--stage-steps", text(options.stage_steps)},
          {"--d-steps", text(options.discriminator_steps)},
          {"--precision", options.precision},
          {"--activations", options.activations},
          {"--recompute", text(options.recompute)},
          {"--compression", options.compression},
          {"--sync-batch-norm", text(options.synchronized_norm)},
          {"--host-random", text(options.host_random)},
          {"--resume", text(arguments.resume)},
          {"--init", text(!arguments.init.empty())}};
}

/// A number by which texts can be told apart, and which is exact as a double.
double option_number(const std::string& text) {
  constexpr unsigned kBitsOfADouble = 53;
  return static_cast<double>(fnv1a(text) >> (64U - kBitsOfADouble));
}

}  // namespace

void check_same_options(const TrainArguments& arguments, kernel::Communicator& communicator) {
  const std::vector<SharedOption> options = shared_options(arguments);
  const auto [rank, ranks] = communicator.shard();
  // A row for each process; the others' rows are zeros here, so that the sum has all of them.
  std::vector<double> table(options.size() * static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < options.size(); ++i)
    table[static_cast<std::size_t>(rank) * options.size() + i] = option_number(options[i].second);
  communicator.sum(table);
  for (std::size_t at = options.size(); at < table.size(); ++at)
    if (const std::size_t i = at % options.size(); table[at] != table[i])
      throw ConfigError(
          fmt::format("{}: rank {} was started with another value than rank 0 (here: \"{}\"), expected the "
                      "same in all processes of a training",
                      options[i].first, at / options.size(), options[i].second));
}

}  // namespace ganymede::cli
