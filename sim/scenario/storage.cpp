// "storage" and "checkpoint" of a scenario: where the dataset and the checkpoints are kept.

#include "sim/scenario/storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/json.hpp"
#include "common/text.hpp"
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
  for (const auto& [name, network] : scenario.trace->networks) weights += static_cast<double>(network.gradient_bytes);
  checkpoints.bytes = Bytes{kValuesPerWeight * weights};
  if (auto bytes = in.optional("bytes")) checkpoints.bytes = bytes->as_quantity<Bytes>();
  if (auto notice = in.optional("on_notice")) checkpoints.on_notice = notice->as_bool();
  in.finish();
}

using namespace literals;

// Libraries were measured on one thread of an otherwise idle host. Two busy threads of a core do about 1.2 times the
// work of one, so each takes 1 / 0.6 of that time: an assumption.
constexpr double kBusy = 1 / 0.6;

// JPEG and PNG by Pillow and torchvision: huggingface/transformers pull request 45195 (2026), medians of 20 on the host
// of an A10G on AWS (AMD EPYC 7R32) at 224, 512 and 1024 pixels: Pillow 0.77, 3.19, 12.29 ms (PNG 0.83, 4.93, 19.15),
// torchvision 0.64, 2.99, 11.60 ms (PNG 0.73, 4.52, 17.93); the lines through them are within 8 %. OpenCV from Pillow
// by the ratio of their rates for ImageNet on three x86 hosts, 1.20 (arXiv 2605.08731, 2026, one thread: 664, 841 and
// 721 against 537, 726 and 577 images/s).
//
// Whole pipelines: tensorpack/benchmarks, ImageNet/README.md, on a DGX-1 with 80 hardware threads: tf.data with crop,
// resize and flip 11,000 images/s; Python processes with OpenCV, crop, resize, lighting and flip 5,600 images/s.
// ImageNet's images have 400 x 350 pixels on average (tensorpack, efficient-dataflow). Nothing says how their time
// depends on the size; it is taken as proportional.
constexpr double kImageNetMegapixels = 0.4 * 0.35;
constexpr std::array kDecoders{
    Decoder{"pillow", "JPEG by Pillow, without augmentation", 0.17_ms * kBusy, 11.6_ms * kBusy},
    Decoder{"pillow-png", "PNG by Pillow, without augmentation", 0_ms, 18.3_ms * kBusy},
    Decoder{"torchvision", "JPEG by torchvision, without augmentation", 0.09_ms * kBusy, 11.0_ms * kBusy},
    Decoder{"torchvision-png", "PNG by torchvision, without augmentation", 0_ms, 17.2_ms * kBusy},
    Decoder{"opencv", "JPEG by OpenCV, without augmentation", 0.14_ms * kBusy, 9.7_ms * kBusy},
    Decoder{"tf-data", "JPEG by tf.data, with crop, resize and flip", 0_ms,
            Seconds{80 / 11000.0 / kImageNetMegapixels}},
    Decoder{"opencv-processes", "JPEG by OpenCV in Python processes, with crop, resize, lighting and flip", 0_ms,
            Seconds{80 / 5600.0 / kImageNetMegapixels}}};

/// Gives the volume the IOPS that `node` states: `extra_iops` of them are charged beyond those that come with it. If
/// all IOPS are provisioned, throughput is at most `limits.per_iops` for each of them. Throws ConfigError if so many
/// IOPS are not sold.
void provision_iops(const JsonNode& node, const platforms::Platform& platform, platforms::Storage& storage,
                    Volume& volume) {
  const double wanted = node.as_number(1, 1e9);
  const double included = storage.iops.value_or(0);
  const platforms::VolumeLimits& limits = storage.limits;
  if (wanted > included && !storage.rates.per_iops_month)
    node.fail(fmt::format("the catalog {} sells no more than {:g} IOPS of {}", platform.name, included, storage.name));
  if (wanted > included && limits.iops && wanted > *limits.iops)
    node.expected(fmt::format("at most {:g}, which is what {} is sold with", *limits.iops, storage.name));
  const double gib = volume.size.si / platforms::bytes_of(platforms::VolumeUnit::gib);
  if (wanted > included && limits.iops_per_gib && wanted > *limits.iops_per_gib * gib)
    node.expected(
        fmt::format("at most {:g}: {} is sold with at most {:g} IOPS for each GiB, and this volume has {:g} GiB",
                    std::max(included, *limits.iops_per_gib * gib), storage.name, *limits.iops_per_gib, gib));
  volume.extra_iops = std::max(0.0, wanted - included);
  storage.iops = std::max(wanted, included);
  if (storage.provisioned && limits.per_iops) {
    storage.read = std::min(storage.read, *limits.per_iops * *storage.iops);
    storage.write = std::min(storage.write, *limits.per_iops * *storage.iops);
  }
}

/// Gives the volume the throughput that `node` states. The limit of throughput depends on the IOPS, which must have
/// been set before.
void provision_throughput(const JsonNode& node, const platforms::Platform& platform, platforms::Storage& storage,
                          Volume& volume) {
  const auto wanted = node.as_positive<BytesPerSecond>();
  const platforms::VolumeLimits& limits = storage.limits;
  const bool more = wanted > storage.read;
  if (more && !storage.rates.per_rate_month)
    node.fail(fmt::format("the catalog {} sells no more than {} of {}", platform.name, to_string(storage.read),
                          storage.name));
  if (more && limits.throughput && wanted > *limits.throughput)
    node.expected(
        fmt::format("at most {}, which is what {} is sold with", to_string(*limits.throughput), storage.name));
  if (const double iops = storage.iops.value_or(0); more && limits.per_iops && wanted > *limits.per_iops * iops)
    node.expected(fmt::format("at most {}: {} is sold with at most {} for each of its IOPS, and this volume has {:g}",
                              to_string(std::max(storage.read, *limits.per_iops * iops)), storage.name,
                              to_string(*limits.per_iops), iops));
  volume.extra_rate = std::max(0.0, (wanted - storage.read).si / (storage.rates.rate_in_mib ? 1048576.0 : 1e6));
  storage.read = std::max(storage.read, wanted);
  storage.write = std::max(storage.write, wanted);
}

/// Sets the size of the volume to the smallest size sold that holds its content and is at least the size that `node`
/// states; an object store has no size. Throws ConfigError if the size matters but neither is known, or if the size is
/// not sold.
void set_volume_size(const JsonNode& node, const VolumeContent& content, std::string_view region,
                     platforms::Storage& storage, Volume& volume) {
  if (storage.object_store) return;
  volume.size = storage.sold(std::max(volume.size, content.bytes));
  if (volume.size.si <= 0 && content.is_written && storage.size_matters(region))
    node.expected(
        fmt::format("a size, as in {{\"class\": \"{}\", \"size\": \"100GiB\"}}: what is charged for {} and how fast it "
                    "is depend on it, and {}",
                    storage.name, storage.name, content.unknown));
  if (storage.maximum && volume.size > *storage.maximum)
    node.fail(fmt::format("a volume of {:g} GiB is wanted, and {} is sold up to {:g} GiB",
                          volume.size.si / platforms::bytes_of(platforms::VolumeUnit::gib), storage.name,
                          storage.maximum->si / platforms::bytes_of(platforms::VolumeUnit::gib)));
  if (volume.size.si > 0) storage.set_size(volume.size);
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

std::vector<std::string> decoder_names() { return names_of(kDecoders); }
const Decoder* find_decoder(std::string_view name) { return find_named(kDecoders, name); }

platforms::Storage read_volume(const JsonNode& node, const ScenarioPool& pool, const VolumeContent& content,
                               Volume& volume) {
  const platforms::Platform& platform = *pool.platform;
  const auto refuse_empty = [&](const platforms::Storage& storage) {
    if (storage.provisioned && !storage.iops)
      node.fail(fmt::format("{} has the IOPS that are provisioned: {{\"class\": \"{}\", \"iops\": 3000}}", storage.name,
                            storage.name));
  };
  if (!node.is_object()) {
    platforms::Storage storage = platform.storage_class(node.as_string(), &node);
    refuse_empty(storage);
    set_volume_size(node, content, pool.pool.region, storage, volume);
    return storage;
  }
  JsonObject in(node);
  const JsonNode name = in.required("class");
  platforms::Storage storage = platform.storage_class(name.as_string(), &name);
  if (auto size = in.optional("size")) {
    if (storage.object_store) size->fail(fmt::format("{} has no size: what is kept in it is charged", storage.name));
    volume.size = size->as_positive<Bytes>();
    if (volume.size < content.bytes)
      size->expected(fmt::format("at least {}, which is what it is to hold", to_string(content.bytes)));
  }
  set_volume_size(node, content, pool.pool.region, storage, volume);
  if (auto iops = in.optional("iops")) provision_iops(*iops, platform, storage, volume);
  if (auto rate = in.optional("throughput")) provision_throughput(*rate, platform, storage, volume);
  in.finish();
  refuse_empty(storage);
  return storage;
}

}  // namespace ganymede::sim
