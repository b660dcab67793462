// "storage" and "checkpoint" of a scenario: where the dataset and the checkpoints are kept.

#include "sim/scenario/storage.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/json.hpp"
#include "common/units.hpp"
#include "common/written.hpp"
#include "sim/scenario/sections.hpp"

namespace ganymede::sim {
namespace {

/// Values that a checkpoint holds for each weight: the weight itself and Adam's two moments.
constexpr double kValuesPerWeight = 3;

void read_decoder(const JsonNode& node, Scenario& scenario) {
  scenario.input.decoder = find_decoder(node.as_choice(decoder_names()));
  if (scenario.dataset.pixels <= 0)
    node.fail("decoding takes as long as images are large: expected \"pixels\" in \"dataset\" of \"workload\"");
  for (const ScenarioPool& pool : scenario.pools)
    if (pool.instance().vcpus <= 0)
      node.fail(fmt::format("the platform does not state how many vCPUs {} has", pool.pool.instance));
}

void read_storage(const JsonNode& node, Scenario& scenario) {
  JsonObject in(node);
  InputPath& input = scenario.input;
  Checkpoints& checkpoints = scenario.checkpoints;
  if (auto share = in.optional("compressed")) input.compressed = share->as_number(1e-3, 1);
  if (auto name = in.optional("dataset")) {
    const VolumeContent dataset{
        Bytes{static_cast<double>(scenario.dataset.images) * scenario.dataset.bytes_per_image * input.compressed}, true,
        "the dataset's \"bytes_per_image\" is not stated"};
    input.storage = read_volume(*name, scenario.pools.front(), dataset, input.volume);
    if (scenario.dataset.bytes_per_image <= 0)
      scenario.warnings.emplace_back(
          "the dataset's \"bytes_per_image\" is not stated: reading it from storage takes no time");
  }
  if (auto name = in.optional("checkpoint")) {
    const VolumeContent state{checkpoints.bytes, checkpoints.every != Checkpoints::Every::never,
                              "a checkpoint has no bytes"};
    checkpoints.storage = read_volume(*name, scenario.pools.front(), state, checkpoints.volume);
  }
  if (auto cache = in.optional("cache")) {
    const std::string kind = cache->as_choice({"memory", "disk", "none"});
    input.cache = kind == "memory" ? InputPath::Cache::memory
                  : kind == "disk" ? InputPath::Cache::disk
                                   : InputPath::Cache::none;
  }
  if (auto depth = in.optional("prefetch")) input.prefetch = static_cast<int>(depth->as_integer(1, 1024));
  if (auto time = in.optional("decompress")) input.decompress = time->as_quantity<Seconds>();
  if (auto decoder = in.optional("decoder")) read_decoder(*decoder, scenario);
  if (auto images = in.optional("images_per_request")) input.images_per_request = images->as_number(1, 1e9);
  in.finish();
}

void read_checkpoint(const JsonNode& node, Scenario& scenario) {
  JsonObject in(node);
  Checkpoints& checkpoints = scenario.checkpoints;
  const JsonNode every = in.required("every");
  const std::string text = every.as_string();
  const bool epochs = text.ends_with("epoch");
  if (text == "daly") {
    checkpoints.every = Checkpoints::Every::daly;
  } else if (epochs || text.ends_with("images")) {
    checkpoints.every = epochs ? Checkpoints::Every::epochs : Checkpoints::Every::images;
    checkpoints.count = count_of(text, epochs ? "epoch" : "images");
    if (checkpoints.count < 1) every.expected("a whole number from 1, such as \"1epoch\" or \"200000 images\"");
    if (epochs && scenario.dataset.images == 0)
      every.fail("epochs need \"dataset\" in \"workload\", to know how long one is");
  } else {
    checkpoints.every = Checkpoints::Every::interval;
    checkpoints.interval = with_unit(every, {"min", "h"}).as_positive<Seconds>();
  }
  double weights = 0;
  for (const auto& [name, network] : scenario.trace.networks) weights += static_cast<double>(network.gradient_bytes);
  checkpoints.bytes = Bytes{kValuesPerWeight * weights};
  if (auto bytes = in.optional("bytes")) checkpoints.bytes = bytes->as_quantity<Bytes>();
  if (auto notice = in.optional("on_notice")) checkpoints.on_notice = notice->as_bool();
  in.finish();
}

}  // namespace

void read_checkpoints_and_storage(const std::optional<JsonNode>& checkpoint, const std::optional<JsonNode>& storage,
                                  Scenario& scenario) {
  // The size of a volume for checkpoints depends on the size of a checkpoint, which is read first.
  if (checkpoint) read_checkpoint(*checkpoint, scenario);
  if (storage) read_storage(*storage, scenario);
  if (checkpoint && !scenario.checkpoints.storage) {
    scenario.checkpoints.every = Checkpoints::Every::never;
    scenario.warnings.emplace_back(
        "no checkpoints are written: \"storage\" names no place for them (\"storage\": {\"checkpoint\": ...})");
  }
}

}  // namespace ganymede::sim
