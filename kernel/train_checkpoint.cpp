// What of a training goes into a checkpoint, and back.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/errors.hpp"
#include "kernel/models/models.hpp"
#include "kernel/train.hpp"
#include "kernel/weights.hpp"

namespace ganymede::kernel {
namespace {

std::string text_of(const RandomStream::State& state) {
  return fmt::format("{:016x} {:016x} {:016x} {:016x}", state[0], state[1], state[2], state[3]);
}

/// What a checkpoint's metadata say, or the error that they do not.
class Metadata {
 public:
  Metadata(const std::map<std::string, std::string>& values, const std::string& file) : values_(values), file_(file) {}

  const std::string& text(const std::string& key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) throw ConfigError(fmt::format("{}: \"{}\" is missing in its metadata", file_, key));
    return found->second;
  }
  void expect(const std::string& key, const std::string& expected) const {
    if (text(key) != expected)
      throw ConfigError(fmt::format("{}: found a checkpoint of {} {}, expected {}", file_, key, text(key), expected));
  }
  std::int64_t number(const std::string& key, std::int64_t least) const {
    std::int64_t value = -1;
    const std::string& digits = text(key);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < least) bad(key);
    return value;
  }
  RandomStream::State state(const std::string& key) const {
    RandomStream::State state{};
    const std::string& words = text(key);
    for (std::size_t i = 0; i < state.size(); ++i) {
      const char* begin = words.data() + 17 * i;
      if (words.size() != 67 || std::from_chars(begin, begin + 16, state[i], 16).ptr != begin + 16) bad(key);
    }
    return state;
  }

 private:
  [[noreturn]] void bad(const std::string& key) const {
    throw ConfigError(fmt::format("{}: \"{}\" of its metadata is \"{}\"", file_, key, text(key)));
  }

  const std::map<std::string, std::string>& values_;
  const std::string& file_;
};

}  // namespace

SafeTensors Trainer::checkpoint() {
  pause();
  if (data_sum_ == 0) data_sum_ = dataset_.fingerprint();
  SafeTensors content = tensors_of(*gan_, *ops_, true);
  content.metadata.merge(std::map<std::string, std::string>{
      {"image", to_string(gan_->whole)},
      {"batch", fmt::format("{}", global_batch())},
      {"seed", fmt::format("{}", options_.seed)},
      {"ema", fmt::format("{}", options_.average_decay)},
      {"loss", std::string(kLossNames[static_cast<std::size_t>(step_options_.loss)])},
      {"d-steps", fmt::format("{}", options_.discriminator_steps)},
      {"data", fmt::format("{:016x}", data_sum_)},
      {"stage-steps", fmt::format("{}", options_.stage_steps)},
      {"steps", fmt::format("{}", steps_done_)},
      {"epoch", fmt::format("{}", batches_->epoch())},
      {"position", fmt::format("{}", batches_->position())},
      {"latent", text_of(random_.latent.state())},
      {"dropout", text_of(random_.dropout.state())},
      {"generator.updates", fmt::format("{}", gan_->generator.updates())},
      {"discriminator.updates", fmt::format("{}", gan_->discriminator.updates())}});
  return content;
}

void Trainer::restore(const SafeTensors& checkpoint, const std::string& file) {
  if (data_sum_ == 0) data_sum_ = dataset_.fingerprint();
  const Metadata in(checkpoint.metadata, file);
  in.expect("model", options_.model);
  in.expect("image", to_string(gan_->whole));
  in.expect("batch", fmt::format("{}", global_batch()));
  in.expect("seed", fmt::format("{}", options_.seed));
  in.expect("ema", fmt::format("{}", options_.average_decay));
  in.expect("loss", std::string(kLossNames[static_cast<std::size_t>(step_options_.loss)]));
  in.expect("stage-steps", fmt::format("{}", options_.stage_steps));
  in.expect("d-steps", fmt::format("{}", options_.discriminator_steps));
  in.expect("data", fmt::format("{:016x}", data_sum_));
  const std::int64_t steps = in.number("steps", 0), epoch = in.number("epoch", 1), position = in.number("position", 0);
  const std::int64_t g_updates = in.number("generator.updates", 0), d_updates = in.number("discriminator.updates", 0);
  if (position > dataset_.images.count)
    throw ConfigError(fmt::format("{}: found position {} in {} images", file, position, dataset_.images.count));
  const auto latent = in.state("latent"), dropout = in.state("dropout");
  // The networks are those of the step that was done last.
  steps_done_ = std::max<std::int64_t>(0, steps - 1);
  if (const Place place = place_now(); !(place.growth == place_.growth)) {
    gan_.reset();
    enter(place);
  }
  set_tensors(*gan_, *ops_, checkpoint, true, file);
  steps_done_ = steps;
  batches_->seek(epoch, static_cast<std::size_t>(position));
  random_.latent.restore(latent);
  random_.dropout.restore(dropout);
  gan_->generator.set_updates(g_updates);
  gan_->discriminator.set_updates(d_updates);
}

}  // namespace ganymede::kernel
