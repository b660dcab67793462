// SKUs of Google's Cloud Billing catalog (cloud.google.com/billing/docs/reference/rest/v1/services.skus). None of them
// is a machine: they price a vCPU, a GiB of memory, a GPU and a GiB of local disk.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "platforms/price_collector.hpp"

namespace ganymede::platforms {
namespace {

/// Machines with GPUs by how their names begin. SkyPilot's names of the GPUs are those of its
/// sky/catalog/gcp_catalog.py (_ACC_INSTANCE_TYPE_DICTS); series, GPUs and disks those of the SKUs' descriptions and of
/// cloud.google.com/compute/docs/accelerator-optimized-machines, which bills the local disks that belong to a machine
/// too.
struct MachineKind {
  std::string_view begins, sky_gpu, sku_gpu, series;
  double local_ssd;  ///< GiB for each GPU
};
constexpr MachineKind kMachines[] = {{"a2-highgpu-", "A100", "A100", "A2", 0},
                                     {"a2-megagpu-", "A100", "A100", "A2", 0},
                                     {"a2-ultragpu-", "A100-80GB", "A100 80GB", "A2", 375},
                                     {"g2-standard-", "L4", "L4", "G2", 0},
                                     {"g4-standard-", "RTXPRO6000", "", "", 0},
                                     {"a3-highgpu-", "H100", "H100 80GB", "A3", 750},
                                     {"a3-megagpu-", "H100-MEGA", "H100 80GB Plus", "A3Plus", 750},
                                     {"a3-ultragpu-", "H200", "H200 141GB", "A3Ultra", 1500},
                                     {"a4-highgpu-", "B200", "", "", 0},
                                     {"a4x-highgpu-", "GB200", "", "", 0},
                                     {"n1-standard-", "", "", "N1 Predefined", 0}};

constexpr double kHoursOfMonth = 730;  // by which Google converts prices for a month

/// Removes `begin` from the text's beginning if it is there.
bool remove_begin(std::string_view& text, std::string_view begin) {
  if (!text.starts_with(begin)) return false;
  text.remove_prefix(begin.size());
  return true;
}

/// What a SKU prices: "A2 Core", "A2 Ram", "A100 80GB" or "disk"; empty for what is no part of a machine on demand or
/// on spot.
struct Part {
  std::string name;
  bool spot = false;
};

Part part_of_sku(const Listed& sku) {
  const std::string description = text_of(sku, "description"), usage = text_of(part_of(sku, "category"), "usageType");
  if (usage != "OnDemand" && usage != "Preemptible") return {};
  std::string_view text = description;
  Part part{"", usage == "Preemptible"};
  part.spot |= remove_begin(text, "Spot Preemptible ") || remove_begin(text, "Preemptible ");
  const bool disk = remove_begin(text, "SSD backed Local Storage");
  for (const std::string_view attached : {" attached to Spot Preemptible VMs", " attached to Preemptible VMs"})
    if (const std::size_t at = text.find(attached); at != std::string_view::npos) {
      part.spot = true;
      if (disk) text.remove_prefix(attached.size());
      if (!disk) text = text.substr(0, at);
    }
  if (disk)
    return text.empty() || text.starts_with(" running in ") || text.starts_with(" in ") ? Part{"disk", part.spot}
                                                                                        : Part{};
  text = text.substr(0, text.find(" running in "));
  if (text.find(" attached ") != std::string_view::npos) return {};  // to sole tenants, or for a stated time
  for (const std::string_view kind : {"Core", "Ram"})
    if (const std::string end = fmt::format(" Instance {}", kind); text.ends_with(end))
      return {fmt::format("{} {}", text.substr(0, text.size() - end.size()), kind), part.spot};
  if (text_of(part_of(sku, "category"), "resourceGroup") != "GPU") return {};
  remove_begin(text, "Nvidia ");
  remove_begin(text, "Tesla ");
  if (text.ends_with(" GPU")) text.remove_suffix(4);
  if (text == "H100 80GB Mega") text = "H100 80GB Plus";
  return {std::string(text), part.spot};
}

struct Rate {
  double price = 0;
  std::string currency, where;
};

/// Dollars of one unit in an hour; the last tier's, because earlier ones may be free.
Rate rate_of(const Listed& sku, const std::string& where) {
  const Listed& info = part_of(sku, "pricingInfo");
  const Listed& expression = part_of(info.is_array() && !info.empty() ? info.back() : info, "pricingExpression");
  const Listed& tiers = part_of(expression, "tieredRates");
  const Listed& price = part_of(tiers.is_array() && !tiers.empty() ? tiers.back() : tiers, "unitPrice");
  const std::string unit = text_of(expression, "usageUnit");
  const double whole = price.contains("units") ? number_of(price, "units") : 0;
  const double amount = whole + (price.contains("nanos") ? number_of(price, "nanos") * 1e-9 : 0);
  if (price.empty() || !(amount >= 0))
    throw ConfigError(
        fmt::format("{}: {}: expected a price from 0 in pricingInfo", where, text_of(sku, "description")));
  const std::string currency = text_of(price, "currencyCode");
  return {unit.ends_with("mo") ? amount / kHoursOfMonth : amount, currency.empty() ? "USD" : currency, where};
}

}  // namespace

namespace {

/// What is known of machines of this name; nullptr: nothing.
const MachineKind* kind_of(std::string_view host) {
  const auto* const found = std::find_if(std::begin(kMachines), std::end(kMachines),
                                         [&](const MachineKind& row) { return host.starts_with(row.begins); });
  return found == std::end(kMachines) ? nullptr : found;
}

}  // namespace

GoogleMachine google_machine(const Instance& instance, const Gpu& gpu) {
  GoogleMachine machine{instance.name, instance.gpu, "", "", 0};
  if (const MachineKind* kind = kind_of(instance.name)) {
    if (!kind->sky_gpu.empty()) machine.sky_gpu = kind->sky_gpu;
    machine.sku_gpu = kind->sku_gpu;
    machine.series = kind->series;
    machine.local_ssd = kind->local_ssd * instance.gpus;
  }
  // "n1-standard-8+1xV100" has its GPUs in its name.
  const std::size_t plus = instance.name.find('+');
  if (plus == std::string::npos) return machine;
  int count = 0;
  const char* end = instance.name.data() + instance.name.size();
  const auto [times, error] = std::from_chars(instance.name.data() + plus + 1, end, count);
  if (error != std::errc() || times == end || *times != 'x' || gpu.kind == Gpu::Kind::cpu) return machine;
  machine.host = instance.name.substr(0, plus);
  machine.sky_gpu = machine.sku_gpu = std::string(times + 1, end);
  return machine;
}

std::string_view google_gpu(std::string_view host) {
  const MachineKind* kind = kind_of(host);
  return kind == nullptr ? std::string_view() : kind->sky_gpu;
}

double google_local_ssd(std::string_view host) {
  const MachineKind* kind = kind_of(host);
  return kind == nullptr ? 0 : kind->local_ssd;
}

bool has_google_hosts(std::string_view sky_gpu) {
  return std::any_of(std::begin(kMachines), std::end(kMachines),
                     [&](const MachineKind& kind) { return !sky_gpu.empty() && kind.sky_gpu == sky_gpu; });
}

bool is_machine_sku(const Listed& sku) { return !part_of_sku(sku).name.empty(); }

void read_google_skus(const Listed& skus, const std::string& file, PriceCollector& out) {
  using PartRates = std::map<std::pair<std::string, bool>, Rate>;  // by part and whether it is for spot machines
  std::map<std::string, PartRates> regions;
  std::string currency;
  for (const Listed& sku : skus) {
    if (!sku.is_object()) throw ConfigError(file + ": expected SKUs as objects");
    const Part part = part_of_sku(sku);
    if (part.name.empty()) continue;
    const std::string where = fmt::format("{}: SKU {}", file, text_of(sku, "skuId"));
    const Rate rate = rate_of(sku, where);
    if (currency.empty()) currency = rate.currency;
    if (rate.currency != currency)
      throw ConfigError(fmt::format("{}: found a price in {}, expected {} as before", where, rate.currency, currency));
    for (const Listed& place : part_of(sku, "serviceRegions")) {
      const std::string region = place.is_string() ? place.as_string() : "";
      const auto [known, fresh] = regions[region].try_emplace({part.name, part.spot}, rate);
      if (!fresh && known->second.price != rate.price)
        throw ConfigError(fmt::format("{}: a second {}price of {} in {}: {:g} here, {:g} at {}", where,
                                      part.spot ? "spot " : "", part.name, region, rate.price, known->second.price,
                                      known->second.where));
    }
  }
  constexpr double kGib = 1024.0 * 1024 * 1024;
  for (const Instance& instance : out.platform().instances) {
    const Gpu& gpu = out.platform().gpu_of(instance);
    const GoogleMachine machine = google_machine(instance, gpu);
    if (machine.series.empty() || instance.vcpus == 0 || !instance.memory) continue;
    for (const bool spot : {false, true}) {
      const std::tuple<std::pair<std::string, bool>, double> parts[] = {
          {{machine.series + " Core", spot}, static_cast<double>(instance.vcpus)},
          {{machine.series + " Ram", spot}, instance.memory->si / kGib},
          {{machine.sku_gpu, spot}, gpu.kind == Gpu::Kind::gpu ? static_cast<double>(instance.gpus) : 0},
          {{"disk", spot}, machine.local_ssd}};
      const Market market = spot ? Market::spot : Market::on_demand;
      for (const auto& [region, rates] : regions) {
        const auto core = rates.find(std::get<0>(parts[0]));
        if (core == rates.end()) continue;  // the list does not have the series there
        double sum = 0;
        std::string missing;
        for (const auto& [part, amount] : parts) {
          if (amount == 0) continue;
          const auto found = rates.find(part);
          if (found != rates.end()) sum += amount * found->second.price;
          if (found == rates.end()) missing = fmt::format("{:g} x {}", amount, part.first);
        }
        if (missing.empty())
          out.add_rented(instance.name, core->second.where, region, "", market, sum, "", core->second.currency,
                         "vCPUs, memory, GPUs and local disks together");
        else if (machine.host == instance.name)  // a host that takes GPUs stands in all regions, its GPUs in some
          out.pass_over_part(fmt::format("{}: {} in {} {}, without its {}", core->second.where, instance.name, region,
                                         to_string(market), missing));
      }
    }
  }
}

}  // namespace ganymede::platforms
