#include "platforms/check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/dates.hpp"
#include "platforms/price_doubt.hpp"
#include "platforms/providers.hpp"

namespace ganymede::platforms {
namespace {

constexpr int kMaxPriceDays = 365;
// Bounds for the data of a training device, in bytes per second, FLOP per second and bytes. All devices that were sold
// lie well within them, from the K80 to the B200 and TPUs.
constexpr double kMinBandwidth = 50e9, kMaxBandwidth = 20e12;
constexpr double kMinFlops = 1e12, kMaxFlops = 5e15;
constexpr double kMinMemory = 4e9, kMaxMemory = 600e9;

class Check {
 public:
  Check(const Platform& platform, const std::string& today) : platform_(platform), today_(today) {}

  std::vector<Finding> run() {
    for (const Gpu& gpu : platform_.gpus) check(gpu);
    for (const Instance& instance : platform_.instances) check(instance);
    for (const Region& region : platform_.regions) {
      origin(region.name, region.origin);
      if (!region.carbon) add("no carbon", region.name, "no carbon intensity is known");
    }
    for (const Storage& storage : platform_.storage) {
      origin(storage.name, storage.origin);
      if (!storage.rates.per_month && !provider_of(platform_.provider).owned)
        add("no price", storage.name, "no price of a GB-month or GiB-month is known");
    }
    origin("fabric", platform_.fabric.origin);
    origin("provisioning", platform_.provisioning.origin);
    origin("billing", platform_.billing.origin);
    if (platform_.transfer.zone || !platform_.transfer.internet.empty()) origin("transfer", platform_.transfer.origin);
    if (platform_.services.control_plane) origin("services", platform_.services.origin);
    return std::move(findings_);
  }

 private:
  void add(std::string kind, std::string where, std::string what) {
    findings_.push_back({std::move(kind), std::move(where), std::move(what)});
  }

  void origin(const std::string& where, const Origin& origin) {
    const bool assumption = origin.source.starts_with("assumption: ");
    const bool named = std::any_of(platform_.sources.begin(), platform_.sources.end(),
                                   [&](const auto& source) { return origin.source.starts_with(source.first); });
    if (!assumption && !named)
      add("no source", where,
          origin.source.empty() ? "no source" : fmt::format("\"{}\" opens with no name of \"sources\"", origin.source));
    if (!origin.unconfirmed.empty()) add("unconfirmed", where, origin.unconfirmed);
  }

  void check(const Gpu& gpu) {
    origin(gpu.name, gpu.origin);
    if (!gpu.peak) add("no power", gpu.name, "idle and peak power are not known: no energy");
    if (gpu.kind == Gpu::Kind::cpu) return;
    const auto range = [&](double value, double low, double high, const std::string& what) {
      if (value < low || value > high) add("implausible", gpu.name, what);
    };
    range(gpu.memory_bandwidth.si, kMinBandwidth, kMaxBandwidth,
          "memory bandwidth of " + to_string(gpu.memory_bandwidth));
    range(gpu.fp32.si, kMinFlops, kMaxFlops, "fp32 rate of " + to_string(gpu.fp32));
    range(gpu.memory.si, kMinMemory, kMaxMemory, "memory of " + to_string(gpu.memory));
    if (gpu.tensor && *gpu.tensor < gpu.fp32) add("implausible", gpu.name, "tensor cores slower than fp32");
  }

  void check(const Instance& instance) {
    origin(instance.name, instance.origin);
    if (instance.nic) origin(instance.name + " nic", instance.nic->origin);
    if (instance.gpu_links) origin(instance.name + " gpu_links", instance.gpu_links->origin);
    if (instance.host_link) origin(instance.name + " host_link", instance.host_link->origin);
    if (!instance.retired.empty()) add("retired", instance.name, instance.retired);
    if (instance.prices.empty()) add("no price", instance.name, "no price in any region");
    for (const Price& price : instance.prices) check(instance, price);
  }

  void check(const Instance& instance, const Price& price) {
    const std::string where =
        fmt::format("{} {} {}", instance.name, price.zone.empty() ? price.region : price.zone, to_string(price.market));
    origin(where, price.origin);
    if (price.as_of == "undated") add("undated", where, "the source has no date");
    if (price.as_of != "undated" && price.as_of > today_)
      add("in the future", where, "dated " + price.as_of);
    else if (price.as_of != "undated" && days_between(price.as_of, today_) > kMaxPriceDays)
      add("old price", where, fmt::format("of {}, {} days ago", price.as_of, days_between(price.as_of, today_)));
    const double each = static_cast<double>(price.per_hour.value) * 1e-6 / instance.gpus;
    const Gpu::Kind kind = platform_.gpu_of(instance).kind;
    if ((each < kMinDevicePrice && !price.ownership) || each > kMaxDevicePrice)
      add("absurd price", where,
          fmt::format("{:g} USD/h for each {}", each, kind == Gpu::Kind::cpu ? "node" : "device"));
    if (const std::string deep = implausible_discount(instance, price); !deep.empty())
      add("deep discount", where, deep + ": check it; a plan takes the price for uncertain");
    compare(instance, price, where);
  }

  void compare(const Instance& instance, const Price& price, const std::string& where) {
    if (price.market == Market::on_demand) return;
    const Price* list = find_price(instance, price.region, Market::on_demand, price.zone);
    if (list == nullptr) return add("no list price", where, "no on-demand price to compare with");
    const bool reserved = price.market != Market::spot;
    if (reserved && price.as_of != list->as_of)
      return add("dates differ", where,
                 fmt::format("of {}, on-demand of {}: not a discount", price.as_of, list->as_of));
    if (reserved ? price.per_hour >= list->per_hour : price.per_hour > list->per_hour)
      add("dearer", where,
          fmt::format("{} against {} on demand", to_string(price.per_hour), to_string(list->per_hour)));
    const Price* one_year = find_price(instance, price.region, Market::reserved_1y, price.zone);
    if (price.market == Market::reserved_3y && one_year && price.as_of == one_year->as_of &&
        price.per_hour > one_year->per_hour)
      add("dearer", where,
          fmt::format("{} against {} for one year", to_string(price.per_hour), to_string(one_year->per_hour)));
  }

  const Platform& platform_;
  const std::string& today_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> check_platform(const Platform& platform, const std::string& today) {
  return Check(platform, today).run();
}

}  // namespace ganymede::platforms
