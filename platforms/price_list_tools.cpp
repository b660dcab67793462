// Lists that tools make of the owners' ones: the instances of ec2instances.info (github.com/vantage-sh/
// ec2instances.info) and Infracost's breakdown (infracost.io/docs/features/json_output_format).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "platforms/price_collector.hpp"

namespace ganymede::platforms {
namespace {

double positive(const Listed& object, const char* key) {
  const double value = number_of(object, key);
  return value > 0 ? value : 0;
}

/// A price that may be absent, which is written as "N/A", "" or null too.
std::optional<double> price_of(const Listed& prices, const char* key) {
  const auto found = prices.find(key);
  if (found == prices.end() || found->is_null()) return std::nullopt;
  const std::string text = text_of(prices, key);
  if (found->is_string() && (text.empty() || text == "N/A")) return std::nullopt;
  return number_of(prices, key);
}

}  // namespace

void read_vantage(const Listed& list, const std::string& file, PriceCollector& out) {
  std::size_t index = 0;
  for (const Listed& row : list) {
    const std::string where = fmt::format("{}: /{}", file, index++), instance = text_of(row, "instance_type");
    const double gpus = positive(row, "GPU");
    if (gpus == static_cast<int>(gpus))
      out.describe(instance, where, text_of(row, "GPU_model"),
                   {.gpus = static_cast<int>(gpus),
                    .gpu_memory = gpus > 0 ? positive(row, "GPU_memory") / gpus : 0,
                    .vcpus = static_cast<int>(positive(row, "vCPU")),
                    .memory = positive(row, "memory")});
    for (const auto& [region, systems] : part_of(row, "pricing").items()) {
      const Listed& linux_prices = part_of(systems, "linux");
      const std::string at = fmt::format("{}/pricing/{}/linux", where, region);
      const auto take = [&, region = region](Market market, const Listed& prices, const char* key) {
        const auto price = price_of(prices, key);
        if (price) out.add_rented(instance, at + "/" + key, region, "", market, *price, "");
        return price.has_value();
      };
      take(Market::on_demand, linux_prices, "ondemand");
      // The cheapest zone is the region's price, as in other lists.
      if (!take(Market::spot, linux_prices, "spot_min")) take(Market::spot, linux_prices, "spot");
      const Listed& reserved = part_of(linux_prices, "reserved");
      take(Market::reserved_1y, reserved, "yrTerm1Standard.noUpfront");
      take(Market::reserved_3y, reserved, "yrTerm3Standard.noUpfront");
    }
  }
}

namespace {

/// A machine among the components of a resource: "Instance usage (Linux/UNIX, on-demand, p3.2xlarge)".
struct Usage {
  std::string system, market, instance;
};

std::optional<Usage> usage_of(const std::string& component) {
  constexpr std::string_view kBegin = "Instance usage (";
  if (!component.starts_with(kBegin) || !component.ends_with(')')) return std::nullopt;
  const std::string inner = component.substr(kBegin.size(), component.size() - kBegin.size() - 1);
  const std::size_t first = inner.find(", "), last = inner.rfind(", ");
  if (first == std::string::npos || first == last) return std::nullopt;
  return Usage{inner.substr(0, first), inner.substr(first + 2, last - first - 2), inner.substr(last + 2)};
}

class Infracost {
 public:
  Infracost(const Listed& list, PriceCollector& out)
      : out_(out), as_of_(text_of(list, "timeGenerated").substr(0, 10)), currency_(text_of(list, "currency")) {
    if (currency_.empty()) currency_ = "USD";
  }

  void read(const Listed& resource, const std::string& where) {
    const Listed& components = part_of(resource, "costComponents");
    for (std::size_t i = 0; i < components.size(); ++i)
      if (const auto usage = usage_of(text_of(components.at(i), "name")))
        take(*usage, components, i, fmt::format("{}/costComponents/{}", where, i));
    const Listed& inner = part_of(resource, "subresources");
    for (std::size_t i = 0; i < inner.size(); ++i) read(inner.at(i), fmt::format("{}/subresources/{}", where, i));
  }

 private:
  void take(const Usage& usage, const Listed& components, std::size_t index, const std::string& where) {
    if (!usage.system.starts_with("Linux")) return;
    const bool spot = usage.market == "spot" || usage.market == "preemptible";
    if (!spot && usage.market != "on-demand" && usage.market != "pay as you go") return;
    double price = number_of(components.at(index), "price");
    // Google's GPUs are components of their own, so many for the machines of this component.
    const double machines = number_of(components.at(index), "monthlyQuantity");
    double gpus = 0;
    std::string gpu;
    for (const Listed& other : components) {
      const std::string name = text_of(other, "name");
      if (!name.starts_with("NVIDIA") && !name.starts_with("Nvidia")) continue;
      const double each = number_of(other, "monthlyQuantity") / machines;
      gpus += each;
      price += each * number_of(other, "price");
      gpu = name.substr(0, name.find(" ("));
    }
    const std::string name = gpus > 0 ? with_gpus(usage.instance, static_cast<int>(gpus), gpu) : usage.instance;
    if (out_.knows(name)) check_region(where);
    if (is_host_alone(name, gpus > 0))
      return out_.pass_over_part(fmt::format("{}: {}, without its GPUs", where, usage.instance));
    out_.add_rented(name, where, out_.options().region, "", spot ? Market::spot : Market::on_demand, price, as_of_,
                    currency_);
  }

  /// A region that no price of the catalog has is a slip more often than a new one.
  void check_region(const std::string& where) const {
    const std::string& region = out_.options().region;
    if (region.empty()) throw ConfigError(where + ": the breakdown does not say in which region; --region does");
    std::set<std::string> known;
    for (const Instance& instance : out_.platform().instances)
      for (const Price& price : instance.prices) known.insert(price.region);
    if (known.empty() || known.contains(region)) return;
    throw ConfigError(fmt::format("--region {}: the catalog {} has no price there{}", region, out_.platform().name,
                                  did_you_mean(region, {known.begin(), known.end()})));
  }

  /// The catalog's name of a machine to which GPUs are attached: "n1-standard-8+1xV100".
  std::string with_gpus(const std::string& host, int gpus, const std::string& gpu) const {
    for (const Instance& instance : out_.platform().instances)
      if (instance.gpus == gpus && instance.name.starts_with(host + "+") && gpu.find(instance.gpu) != std::string::npos)
        return instance.name;
    return host;
  }

  /// True for one of Google's machines with GPUs whose GPUs have no component.
  bool is_host_alone(const std::string& name, bool has_gpus) const {
    if (has_gpus || !out_.knows(name) || out_.platform().provider != "gcp") return false;
    return out_.platform().gpu_of(out_.platform().instance(name)).kind == Gpu::Kind::gpu;
  }

  PriceCollector& out_;
  std::string as_of_, currency_;
};

}  // namespace

void read_infracost(const Listed& list, const std::string& file, PriceCollector& out) {
  Infracost reader(list, out);
  const Listed& projects = part_of(list, "projects");
  for (std::size_t i = 0; i < projects.size(); ++i) {
    const Listed& resources = part_of(part_of(projects.at(i), "breakdown"), "resources");
    for (std::size_t j = 0; j < resources.size(); ++j)
      reader.read(resources.at(j), fmt::format("{}: /projects/{}/breakdown/resources/{}", file, i, j));
  }
}

std::optional<double> price_cell(const CsvTable& table, const CsvTable::Row& row, const char* column) {
  const std::string& cell = table.at(row, column);
  if (cell.empty()) return std::nullopt;
  const auto value = decimal_number(cell);
  if (!value || !std::isfinite(*value) || *value < 0)
    table.fail(row, column, fmt::format("found \"{}\", expected a price from 0", cell));
  return value;
}

namespace {

/// So many GPUs, as a list without their machine names them.
struct Accelerators {
  std::string name;
  int count = 0;
};

/// On-demand and spot price of a machine or of a part of it; absent: none is listed.
struct PartPrices {
  std::optional<double> list, spot;
  bool operator==(const PartPrices&) const = default;
};

class SkyPilotList {
 public:
  SkyPilotList(const CsvTable& table, PriceCollector& out) : table_(table), out_(out) {
    for (const Instance& instance : out.platform().instances)
      if (out.platform().gpu_of(instance).kind != Gpu::Kind::cpu) {
        const GoogleMachine machine = google_machine(instance, out.platform().gpu_of(instance));
        with_gpus_[machine.host].push_back({&instance, {machine.sky_gpu, instance.gpus}});
      }
  }

  void read() {
    for (const CsvTable::Row& row : table_.rows()) {
      const std::string& name = cell(row, "AcceleratorName");
      if (table_.at(row, "InstanceType").empty() && !name.empty()) {
        const Place place{name, accelerator_count(row), table_.at(row, "Region"), zone(row)};
        const auto [known, fresh] = accelerators_.try_emplace(place, prices(row));
        if (!fresh && known->second != prices(row))
          throw ConfigError(fmt::format("{}: line {}: another price of {:g} x {} in {} than above", table_.file(),
                                        row.line, std::get<double>(place), name, std::get<3>(place)));
        if (!asked_for(name)) out_.skip(name);
      }
    }
    for (const CsvTable::Row& row : table_.rows())
      if (!table_.at(row, "InstanceType").empty()) read_machine(row);
    for (const auto& [of, zone] : lowest_)
      out_.add_rented(of.first, zone.where, of.second, "", Market::spot, zone.price, "", "USD", zone.notes);
  }

 private:
  struct Machine {
    const Instance* instance;
    Accelerators gpus;
  };
  struct ZonePrice {
    double price = 0;
    std::string where, notes;
  };
  using Place = std::tuple<std::string, double, std::string, std::string>;  ///< GPU, count, region and zone

  const std::string& cell(const CsvTable::Row& row, const char* column) const {
    static const std::string kNone;
    return table_.has(column) ? table_.at(row, column) : kNone;
  }
  std::string zone(const CsvTable::Row& row) const { return cell(row, "AvailabilityZone"); }
  double accelerator_count(const CsvTable::Row& row) const {
    const auto count = decimal_number(table_.at(row, "AcceleratorCount"));
    if (!count || !(*count > 0) || !std::isfinite(*count))
      table_.fail(row, "AcceleratorCount",
                  fmt::format("found \"{}\", expected a number of GPUs", table_.at(row, "AcceleratorCount")));
    return *count;
  }
  PartPrices prices(const CsvTable::Row& row) const {
    return {price_cell(table_, row, "Price"), price_cell(table_, row, "SpotPrice")};
  }
  bool asked_for(const std::string& accelerator) const {
    return std::any_of(with_gpus_.begin(), with_gpus_.end(), [&](const auto& host) {
      return std::any_of(host.second.begin(), host.second.end(),
                         [&](const Machine& machine) { return machine.gpus.name == accelerator; });
    });
  }

  void read_machine(const CsvTable::Row& row) {
    const std::string& name = table_.at(row, "InstanceType");
    describe(row, name);
    // A list that names no accelerators at all has whole machines alone.
    const auto hosts = with_gpus_.find(name);
    const bool without_gpus = table_.has("AcceleratorName") && table_.at(row, "AcceleratorName").empty();
    if (!without_gpus || hosts == with_gpus_.end()) return add(row, name, prices(row));
    if (out_.knows(name) && hosts->second.front().instance->name != name) add(row, name, prices(row));
    for (const Machine& machine : hosts->second) add_sum(row, machine);
  }

  void describe(const CsvTable::Row& row, const std::string& name) {
    const auto number = [&](const char* column) { return decimal_number(cell(row, column)).value_or(0); };
    const double gpus = number("AcceleratorCount");
    if (!out_.knows(name) && gpus == static_cast<int>(gpus))
      out_.describe(
          name, fmt::format("{}: line {}", table_.file(), row.line), cell(row, "AcceleratorName"),
          {.gpus = static_cast<int>(gpus), .vcpus = static_cast<int>(number("vCPUs")), .memory = number("MemoryGiB")});
  }

  /// Adds the price of a machine whose host the row has.
  void add_sum(const CsvTable::Row& row, const Machine& machine) {
    const std::string& region = table_.at(row, "Region");
    const auto found =
        accelerators_.find({machine.gpus.name, static_cast<double>(machine.gpus.count), region, zone(row)});
    if (found == accelerators_.end()) {
      // A host that is sold alone too stands in all regions, its GPUs in some.
      if (machine.instance->name == table_.at(row, "InstanceType"))
        out_.pass_over_part(fmt::format("{}: line {}: {} in {}, without its {} x {}", table_.file(), row.line,
                                        machine.instance->name, zone(row).empty() ? region : zone(row),
                                        machine.gpus.count, machine.gpus.name));
      return;
    }
    const auto sum = [](std::optional<double> host, std::optional<double> gpus) {
      return host && gpus ? std::optional(*host + *gpus) : std::nullopt;
    };
    const PartPrices host = prices(row);
    add(row, machine.instance->name, {sum(host.list, found->second.list), sum(host.spot, found->second.spot)},
        fmt::format("the list's {} and {} x {} together", table_.at(row, "InstanceType"), machine.gpus.count,
                    machine.gpus.name));
  }

  void add(const CsvTable::Row& row, const std::string& instance, const PartPrices& price,
           const std::string& notes = "") {
    const std::string& region = table_.at(row, "Region");
    const std::string where = fmt::format("{}: line {}", table_.file(), row.line);
    if (price.list) out_.add_rented(instance, where, region, "", Market::on_demand, *price.list, "", "USD", notes);
    if (!price.spot || *price.spot == 0) return;
    if (const std::string in = zone(row); !in.empty() && in != region)
      out_.add_rented(instance, where, region, in, Market::spot, *price.spot, "", "USD", notes);
    const ZonePrice here{*price.spot, where, notes};
    const auto [place, fresh] = lowest_.try_emplace({instance, region}, here);
    if (!fresh && here.price < place->second.price) place->second = here;
  }

  const CsvTable& table_;
  PriceCollector& out_;
  std::map<std::string, std::vector<Machine>> with_gpus_;  ///< by their host
  std::map<Place, PartPrices> accelerators_;
  /// The cheapest zone of each instance and region: its spot price is that of the region.
  std::map<std::pair<std::string, std::string>, ZonePrice> lowest_;
};

}  // namespace

void read_sky_list(const CsvTable& table, PriceCollector& out) { SkyPilotList(table, out).read(); }

}  // namespace ganymede::platforms
