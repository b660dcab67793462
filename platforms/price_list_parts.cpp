// SkyPilot's lists of prices. Most rows are of whole machines. On Google Cloud a machine and its GPUs have a price
// each, and rows of their own: "a2-highgpu-8g" without an accelerator, and 8 of the accelerator "A100" without a
// machine.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/errors.hpp"
#include "platforms/price_collector.hpp"

namespace ganymede::platforms {

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
