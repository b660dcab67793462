// Reading of `ganymede.platform/1`: one function an object of the file, so that each reads like the format's
// description.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "platforms/read_parts.hpp"

namespace ganymede {
namespace {

// Upper limits only catch slips of the keyboard; they are far above anything that is sold.
constexpr int kMaxGpusPerNode = 1024;
constexpr int kMaxVcpus = 65536;
constexpr int kMaxNodes = 65536;  // the design's limit on a pool
constexpr double kMaxIops = 1e9;
constexpr double kMaxPue = 10;

Gpu read_gpu(const std::string& name, const JsonNode& node) {
  JsonObject in(node);
  Gpu gpu;
  gpu.name = name;
  const auto family = in.optional("family");
  gpu.family = family ? family->as_string() : name;
  gpu.memory = in.required("memory").as_positive<Bytes>();
  gpu.fp32 = in.required("fp32").as_positive<FlopsPerSecond>();
  gpu.tensor = optional_positive<FlopsPerSecond>(in, "tensor");
  gpu.memory_bandwidth = in.required("memory_bandwidth").as_positive<BytesPerSecond>();
  gpu.launch = seconds_or(in, "launch", Seconds{0});
  if (const auto power = in.optional("power")) {
    JsonObject watts(*power);
    if (const auto idle = watts.optional("idle")) gpu.idle = idle->as_quantity<Watts>();
    gpu.peak = optional_positive<Watts>(watts, "peak");
    if (gpu.idle && gpu.peak && *gpu.idle > *gpu.peak) power->fail("idle is above peak");
    watts.finish();
  }
  gpu.origin = read_origin(in);
  in.finish();
  return gpu;
}

bool is_leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

/// YYYY-MM-DD, a day of the calendar.
bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  const auto number = [&](std::size_t from, std::size_t length) {
    int value = -1;
    const char* end = text.data() + from + length;
    const auto [stop, error] = std::from_chars(text.data() + from, end, value);
    return error == std::errc() && stop == end ? value : -1;
  };
  const int year = number(0, 4);
  const int month = number(5, 2);
  const int day = number(8, 2);
  if (year < 1 || month < 1 || month > 12 || day < 1) return false;
  constexpr std::array<int, 12> kDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return day <= kDays[static_cast<std::size_t>(month - 1)] + (month == 2 && is_leap(year) ? 1 : 0);
}

Price read_price(const JsonNode& node) {
  JsonObject in(node);
  Price price;
  price.region = in.required("region").as_string();
  price.market = read_market(in.required("market"));
  price.per_hour = in.required("per_hour").as_quantity<MicroUsdPerHour>();
  const JsonNode as_of = in.required("as_of");
  price.as_of = as_of.as_string();
  if (price.as_of != "undated" && !is_date(price.as_of)) as_of.expected("a date as YYYY-MM-DD, or \"undated\"");
  if (const auto share = in.optional("interrupted_per_month")) price.interrupted_per_month = share->as_number(0, 0.999);
  price.origin = read_origin(in);
  in.finish();
  return price;
}

std::vector<Price> read_prices(const JsonNode& node) {
  std::vector<Price> prices;
  std::set<std::pair<std::string, Market>> seen;
  for (const JsonNode& row : node.as_array()) {
    const Price& price = prices.emplace_back(read_price(row));
    if (!seen.emplace(price.region, price.market).second)
      row.fail(fmt::format("a second {} price in region \"{}\"; keep one", to_string(price.market), price.region));
  }
  return prices;
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
  if (const auto boot = in.optional("boot")) instance.boot = boot->as_quantity<Seconds>();
  if (const auto prices = in.optional("prices")) instance.prices = read_prices(*prices);
  instance.origin = read_origin(in);
  in.finish();
  if (instance.gpus > 1 && !instance.gpu_links && !instance.host_link)
    node.fail(fmt::format("{} GPUs and neither gpu_links nor host_link: nothing joins them", instance.gpus));
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
  region.origin = read_origin(in);
  in.finish();
  return region;
}

/// "0.08USD". Read as a price per hour, whose text is the same but for its end, so that there is one exact decimal
/// reader.

Storage read_storage(const std::string& name, const JsonNode& node) {
  JsonObject in(node);
  Storage storage;
  storage.name = name;
  storage.read = in.required("read").as_positive<BytesPerSecond>();
  storage.write = in.required("write").as_positive<BytesPerSecond>();
  if (const auto iops = in.optional("iops")) storage.iops = iops->as_number(1, kMaxIops);
  storage.latency = seconds_or(in, "latency", Seconds{0});
  if (const auto burst = in.optional("burst_iops")) storage.burst_iops = burst->as_number(1, kMaxIops);
  if (const auto credits = in.optional("burst_credits")) storage.burst_credits = credits->as_number(0, 1e15);
  if (const auto money = in.optional("per_gb_month")) storage.per_gb_month = read_money(*money);
  storage.origin = read_origin(in);
  in.finish();
  return storage;
}

}  // namespace

MicroUsd read_money(const JsonNode& node) {
  const std::string text = node.as_string();
  try {
    if (text.size() >= 3 && text.compare(text.size() - 3, 3, "USD") == 0) {
      const MicroUsd money{parse_quantity<MicroUsdPerHour>(text + "/h").value};
      if (money >= MicroUsd{}) return money;
    }
  } catch (const std::invalid_argument&) {
  }
  node.expected("an amount like \"0.08USD\", zero or more, with at most six decimals");
}

Delay read_delay(const JsonNode& node) {
  if (!node.is_object()) return {node.as_quantity<Seconds>(), 0};
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

Billing read_billing(const JsonNode& node) {
  JsonObject in(node);
  Billing billing;
  if (const auto granularity = in.optional("granularity")) billing.granularity = granularity->as_positive<Seconds>();
  billing.minimum = seconds_or(in, "minimum", billing.minimum);
  billing.origin = read_origin(in);
  in.finish();
  return billing;
}

/// A map whose keys are the file's: each member through `read`.
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
  std::vector<std::string> gpu_names;
  for (const Gpu& gpu : platform.gpus) gpu_names.push_back(gpu.name);
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

Platform read_platform(const JsonNode& root) {
  JsonObject in(root);
  check_schema(in, "ganymede.platform/1");
  Platform platform;
  platform.file = root.file();
  const auto provider = in.optional("provider");
  platform.provider = provider ? provider->as_string() : "private";
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
  in.finish();
  return platform;
}

Platform load_platform(const std::filesystem::path& path) { return read_platform(JsonNode::load(path)); }

}  // namespace ganymede
