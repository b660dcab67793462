// Reads `ganymede.platform/1`, with one function for each object of the file.

#include <fmt/format.h>

#include "common/json.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "common/written.hpp"
#include "platforms/money.hpp"
#include "platforms/platform_readers.hpp"
#include "platforms/providers.hpp"

namespace ganymede::platforms {
namespace {

// The upper limits catch typing errors; they are far above anything that is sold.
constexpr int kMaxGpusPerNode = 1024;
constexpr int kMaxVcpus = 65536;
constexpr int kMaxMultiprocessors = 65536;
constexpr double kMaxPue = 10;

Gpu read_gpu(const std::string& name, const JsonNode& node) {
  JsonObject in(node);
  Gpu gpu;
  gpu.name = name;
  if (const auto kind = in.optional("kind")) {
    const std::string what = kind->as_choice({"gpu", "tpu", "cpu"});
    gpu.kind = what == "gpu" ? Gpu::Kind::gpu : what == "tpu" ? Gpu::Kind::tpu : Gpu::Kind::cpu;
  }
  const auto family = in.optional("family");
  gpu.family = family ? family->as_string() : name;
  gpu.memory = in.required("memory").as_positive<Bytes>();
  gpu.fp32 = in.required("fp32").as_positive<FlopsPerSecond>();
  gpu.tensor = optional_positive<FlopsPerSecond>(in, "tensor");
  gpu.memory_bandwidth = in.required("memory_bandwidth").as_positive<BytesPerSecond>();
  gpu.launch = seconds_or(in, "launch", Seconds{0});
  if (const auto count = in.optional("multiprocessors"))
    gpu.multiprocessors = static_cast<int>(count->as_integer(1, kMaxMultiprocessors));
  if (const auto cache = in.optional("l2_cache")) gpu.l2_cache = cache->as_positive<Bytes>();
  if (const auto power = in.optional("power")) {
    JsonObject watts(*power);
    if (const auto idle = watts.optional("idle")) gpu.idle = idle->as_quantity<Watts>();
    gpu.peak = optional_positive<Watts>(watts, "peak");
    if (gpu.idle && gpu.peak && *gpu.idle > *gpu.peak) power->fail("idle is above peak");
    watts.finish();
  }
  if (const auto slowdown = in.optional("board_slowdown")) gpu.board_slowdown = slowdown->as_number(0, 0.9);
  gpu.origin = read_origin(in);
  in.finish();
  return gpu;
}

Instance read_instance(const std::string& name, const JsonNode& node, const std::vector<std::string>& gpu_names) {
  JsonObject in(node);
  Instance instance;
  instance.name = name;
  instance.gpu = in.required("gpu").as_choice(gpu_names);
  instance.gpus = static_cast<int>(in.required("gpus").as_integer(1, kMaxGpusPerNode));
  if (const auto vcpus = in.optional("vcpus")) instance.vcpus = static_cast<int>(vcpus->as_integer(1, kMaxVcpus));
  instance.memory = optional_positive<Bytes>(in, "memory");
  if (const auto links = in.optional("gpu_links")) instance.gpu_links = read_gpu_links(*links, instance.gpus);
  if (const auto link = in.optional("host_link")) instance.host_link = read_host_link(*link);
  if (const auto nic = in.optional("nic")) instance.nic = read_nic(*nic);
  if (const auto count = in.optional("available"))
    instance.available = static_cast<int>(count->as_integer(1, kMaxNodes));
  if (const auto boot = in.optional("boot")) instance.boot = with_unit(*boot, {"s", "min"}).as_quantity<Seconds>();
  if (const auto power = in.optional("power")) {
    JsonObject watts(*power);
    instance.idle = watts.required("idle").as_quantity<Watts>();
    instance.peak = watts.required("peak").as_positive<Watts>();
    if (*instance.idle > *instance.peak) power->fail("idle is above peak");
    watts.finish();
  }
  if (const auto why = in.optional("retired")) instance.retired = why->as_string();
  if (const auto shares = in.optional("sustained_use")) {
    instance.sustained_use = shares->as_numbers(0, 1);
    if (instance.sustained_use.empty()) shares->expected("shares of the list price, as [1, 0.8, 0.6, 0.4]");
  }
  if (const auto prices = in.optional("prices")) instance.prices = read_prices(*prices);
  instance.origin = read_origin(in);
  in.finish();
  if (instance.gpus > 1 && !instance.gpu_links && !instance.host_link)
    node.fail(fmt::format("{} GPUs and neither gpu_links nor host_link: nothing joins them", instance.gpus));
  if (instance.gpu_links && instance.gpu_links->with_host_link && !instance.host_link)
    node.fail(
        "gpu_links says \"with_host_link\": true, so its messages cross the host link too, and there is no "
        "host_link");
  if (instance.nic && !instance.nic->gpu_direct && !instance.host_link)
    node.fail("nic says \"gpu_direct\": false, so its messages cross the host link, and there is no host_link");
  return instance;
}

Region read_region(const std::string& name, const JsonNode& node) {
  JsonObject in(node);
  Region region;
  region.name = name;
  if (const auto carbon = in.optional("carbon")) region.carbon = carbon->as_quantity<GramsPerKwh>();
  if (const auto pue = in.optional("pue")) region.pue = pue->as_number(1, kMaxPue);
  if (const auto money = in.optional("per_kwh")) region.per_kwh = read_amount(*money, "kWh", "0.22USD");
  region.origin = read_origin(in);
  in.finish();
  return region;
}

}  // namespace

Delay read_delay(const JsonNode& node) {
  if (!node.is_object()) return {with_unit(node, {"s", "min"}).as_quantity<Seconds>(), 0};
  JsonObject in(node);
  Delay delay;
  delay.median = in.required("median").as_quantity<Seconds>();
  if (const auto spread = in.optional("spread")) delay.spread = spread->as_number(0, 3);
  in.finish();
  return delay;
}

void read_delays(JsonObject& in, Provisioning& provisioning) {
  if (const auto node = in.optional("queue")) provisioning.queue = read_delay(*node);
  if (const auto node = in.optional("image_pull")) provisioning.image_pull = read_delay(*node);
  if (const auto node = in.optional("framework_start")) provisioning.framework_start = read_delay(*node);
  if (const auto node = in.optional("communicator_start")) provisioning.communicator_start = read_delay(*node);
  if (const auto node = in.optional("replica_start")) provisioning.replica_start = read_delay(*node);
}

namespace {

Provisioning read_provisioning(const JsonNode& node) {
  JsonObject in(node);
  Provisioning provisioning;
  provisioning.boot = read_delay(in.required("boot"));
  read_delays(in, provisioning);
  provisioning.origin = read_origin(in);
  in.finish();
  return provisioning;
}

/// Reads a map whose keys are names that the file chooses; `read` reads each member.
template <class Item, class Read>
std::vector<Item> read_map(const JsonNode& node, Read read) {
  std::vector<Item> items;
  for (const auto& [name, member] : node.as_map()) items.push_back(read(name, member));
  return items;
}

template <class Item, class Read>
std::vector<Item> read_filled_map(const JsonNode& node, std::string_view what, Read read) {
  auto items = read_map<Item>(node, read);
  if (items.empty()) node.fail(fmt::format("is empty, expected at least one {}", what));
  return items;
}

void read_hardware(JsonObject& in, Platform& platform) {
  platform.gpus = read_filled_map<Gpu>(in.required("gpus"), "GPU", read_gpu);
  const std::vector<std::string> gpu_names = names_of(platform.gpus);
  platform.instances = read_filled_map<Instance>(
      in.required("instances"), "instance",
      [&](const std::string& name, const JsonNode& member) { return read_instance(name, member, gpu_names); });
}

}  // namespace

Origin read_origin(JsonObject& in) {
  Origin origin;
  if (const auto source = in.optional("source")) origin.source = source->as_string();
  if (const auto reason = in.optional("unconfirmed")) origin.unconfirmed = reason->as_string();
  if (const auto notes = in.optional("notes")) origin.notes = notes->as_string();
  return origin;
}

Platform read_platform(const JsonNode& file) {
  Platform platform;
  const JsonNode root = in_dollars(file, platform.currency);
  JsonObject in(root);
  check_schema(in, "ganymede.platform/1");
  in.optional("currency");
  platform.file = root.file();
  const auto provider = in.optional("provider");
  platform.provider = provider ? provider->as_string() : std::string(owned_provider().name);
  const auto name = in.optional("name");
  platform.name = name ? name->as_string() : platform.provider;
  if (const auto sources = in.optional("sources"))
    for (const auto& [id, text] : sources->as_map()) platform.sources.emplace_back(id, text.as_string());
  read_hardware(in, platform);
  if (const auto regions = in.optional("regions")) platform.regions = read_map<Region>(*regions, read_region);
  if (const auto fabric = in.optional("fabric")) platform.fabric = read_fabric(*fabric);
  if (const auto storage = in.optional("storage")) platform.storage = read_map<Storage>(*storage, read_storage);
  if (const auto provisioning = in.optional("provisioning")) platform.provisioning = read_provisioning(*provisioning);
  if (const auto billing = in.optional("billing")) platform.billing = read_billing(*billing);
  if (const auto transfer = in.optional("transfer")) platform.transfer = read_transfer(*transfer);
  if (const auto services = in.optional("services")) platform.services = read_services(*services);
  in.finish();
  return platform;
}

Platform load_platform(const std::filesystem::path& path) { return read_platform(JsonNode::load(path)); }

}  // namespace ganymede::platforms
