// A storage class as a scenario rents it: its size, its IOPS and its throughput.

#include <fmt/format.h>

#include <algorithm>

#include "common/json.hpp"
#include "common/units.hpp"
#include "sim/scenario/sections.hpp"

namespace ganymede::sim {
namespace {

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
