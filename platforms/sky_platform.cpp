#include "platforms/sky_platform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "platforms/catalog.hpp"
#include "platforms/check.hpp"
#include "platforms/price_collector.hpp"
#include "platforms/providers.hpp"
#include "platforms/sky_gpus.hpp"
#include "platforms/sky_machines.hpp"

namespace ganymede::platforms {
namespace {

/// The hosts whose names do not say how many accelerators they take: SkyPilot's sky/catalog/gcp_catalog.py.
struct Host {
  std::string_view name, accelerator;
  int count;
};
constexpr Host kHosts[] = {
    {"g2-standard-4", "L4", 1},          {"g2-standard-8", "L4", 1},           {"g2-standard-12", "L4", 1},
    {"g2-standard-16", "L4", 1},         {"g2-standard-32", "L4", 1},          {"g2-standard-24", "L4", 2},
    {"g2-standard-48", "L4", 4},         {"g2-standard-96", "L4", 8},          {"g4-standard-48", "RTXPRO6000", 1},
    {"g4-standard-96", "RTXPRO6000", 2}, {"g4-standard-192", "RTXPRO6000", 4}, {"g4-standard-384", "RTXPRO6000", 8}};
/// The vCPUs of the least host, an n1 with at least four times as much memory in GiB: _NUM_ACC_TO_NUM_CPU, for 1, 2, 4,
/// 8 and 16 accelerators.
struct HostSize {
  std::string_view accelerator;
  std::array<int, 5> vcpus;
};
constexpr HostSize kHostSizes[] = {{"K80", {4, 8, 16, 32, 64}}, {"T4", {4, 8, 48, 0, 0}}, {"", {8, 16, 32, 64, 128}}};

/// The accelerators of a machine that always has some: 8 x "A100" of "a2-highgpu-8g"; nothing for another one.
std::optional<std::pair<std::string_view, int>> accelerators_of(std::string_view host) {
  for (const Host& known : kHosts)
    if (host == known.name) return {{known.accelerator, known.count}};
  const std::string_view gpu = google_gpu(host);
  const char* const begin = host.data() + host.rfind('-') + 1;
  const char* const end = host.data() + host.size() - 1;
  int count = 0;
  if (gpu.empty() || !host.ends_with('g') || std::from_chars(begin, end, count).ptr != end) return std::nullopt;
  return {{gpu, count}};
}

/// vCPUs that the least host of so many accelerators has; 0: SkyPilot knows of none.
int host_vcpus(std::string_view accelerator, int count) {
  const auto size = std::find_if(std::begin(kHostSizes), std::end(kHostSizes) - 1,
                                 [&](const HostSize& each) { return each.accelerator == accelerator; });
  constexpr std::array kCounts = {1, 2, 4, 8, 16};
  const auto at = std::find(kCounts.begin(), kCounts.end(), count);
  return at == kCounts.end() ? 0 : size->vcpus[static_cast<std::size_t>(at - kCounts.begin())];
}

/// A price on each of kSkyMarkets; absent: none is listed.
using Prices = std::array<std::optional<double>, 2>;

/// What a row states: a machine, or a part of one, whose name is that of the host or of the accelerators.
struct Part {
  std::string name, region, zone, info;
  double count = 0, vcpus = 0, memory_gib = 0;
  Prices prices;
  std::size_t line = 0;
};

/// Takes a list piece by piece: it may be larger than the memory.
class SkyListReader {
 public:
  explicit SkyListReader(const SkyListOptions& options) : options_(options) {
    const std::string_view provider = provider_of_sky(options.cloud);
    if (is_provider(provider)) made_.base = OrderedJson::parse(catalog_text(provider), /*comments=*/true);
  }
  void read(const CsvTable& piece) {
    list_ = &piece;
    if (instance_ < 0) find_columns();
    for (const CsvTable::Row& row : piece.rows()) read_row(row);
  }
  SkyPlatform platform();

 private:
  void find_columns();
  const std::string& cell(const CsvTable::Row& row, int column) const {
    static const std::string kNone;
    return column < 0 ? kNone : row.cells[static_cast<std::size_t>(column)];
  }
  std::string place(std::size_t line) const { return fmt::format("{}: line {}", file_, line); }
  /// A number of a cell; nothing if it is empty.
  std::optional<double> number(const CsvTable::Row& row, int column) const {
    const std::string& text = cell(row, column);
    if (text.empty()) return std::nullopt;
    const auto value = decimal_number(text);
    if (!value || !std::isfinite(*value) || *value < 0)
      list_->fail(row, list_->names()[static_cast<std::size_t>(column)],
                  fmt::format("found \"{}\", expected a number from 0", text));
    return value;
  }
  std::string region(const CsvTable::Row& row) const {
    const std::string& text = cell(row, region_);
    const std::size_t first = text.find_first_not_of(", ");
    return first == std::string::npos ? std::string(kAnyRegion) : text.substr(first);
  }

  void read_row(const CsvTable::Row& row);
  void join_parts();
  void add_tpu(const Part& part);
  void leave_out(const Part& part);
  const SkyGpu* gpu_named(const Part& part, const std::string& instance);
  void add(const std::string& instance, const SkyGpu& gpu, const Part& part, const std::string& notes = "");
  void price(SkyMachine& machine, const std::string& name, const Part& part);

  const SkyListOptions& options_;
  const CsvTable* list_ = nullptr;  ///< the piece that is read
  std::string file_;
  int instance_ = -1, name_ = -1, count_ = -1, region_ = -1, vcpus_ = -1, memory_ = -1, zone_ = -1, info_ = -1;
  std::array<int, 2> prices_{};
  std::unordered_map<std::string, SkyGpu> known_;  ///< by what the list says of them
  SkyMachines made_;
  std::vector<Part> hosts_, accelerators_;                              ///< hosts: only those that take accelerators
  std::map<std::string, std::pair<std::size_t, std::size_t>> unknown_;  ///< rows and first line of GPUs without a sheet
  std::set<std::string> without_disks_;                                 ///< machines whose price lacks their disks
  std::size_t plain_ = 0, without_host_ = 0, shares_ = 0, price_count_ = 0, dear_spot_ = 0, dear_spot_line_ = 0;
};

void SkyListReader::find_columns() {
  file_ = list_->file();
  const auto column = [&](std::string_view name, bool needed) {
    const auto& names = list_->names();
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<int>(found - names.begin());
    if (needed)
      throw ConfigError(
          fmt::format("{}: line 1: there is no column \"{}\"; SkyPilot's lists have InstanceType, AcceleratorName, "
                      "AcceleratorCount, Region, Price and mostly SpotPrice",
                      file_, name));
    return -1;
  };
  instance_ = column("InstanceType", true), name_ = column("AcceleratorName", true);
  count_ = column("AcceleratorCount", true), region_ = column("Region", true);
  prices_ = {column("Price", true), column("SpotPrice", false)};
  vcpus_ = column("vCPUs", false), memory_ = column("MemoryGiB", false);
  zone_ = column("AvailabilityZone", false), info_ = column("GpuInfo", false);
  if (info_ < 0) info_ = column("GPUInfo", false);
}

void SkyListReader::price(SkyMachine& machine, const std::string& name, const Part& part) {
  const auto listed = [&](std::size_t market) { return part.prices[market].value_or(0) > 0; };
  if (listed(0) && listed(1) && *part.prices[1] > *part.prices[0] && dear_spot_++ == 0) dear_spot_line_ = part.line;
  for (std::size_t market = 0; market < kSkyMarkets.size(); ++market) {
    if (!listed(market)) continue;
    const double usd = *part.prices[market];
    if (usd / machine.gpus > kMaxDevicePrice)
      throw ConfigError(
          fmt::format("{}: found {:g} USD/h for {} devices of {}, more than {:g} for each: no cloud asks so much",
                      place(part.line), usd, machine.gpus, name, kMaxDevicePrice));
    ++price_count_;
    const auto [at, fresh] = machine.prices[{part.region, market}].try_emplace(part.zone, SkyZonePrice{usd, part.line});
    if (!fresh && at->second.usd != usd)
      throw ConfigError(fmt::format("{}: a second {} price of {} in {}: {:g} here, {:g} in line {}", place(part.line),
                                    to_string(kSkyMarkets[market]), name, part.zone.empty() ? part.region : part.zone,
                                    usd, at->second.usd, at->second.line));
  }
}

void SkyListReader::leave_out(const Part& part) {
  auto& [rows, line] = unknown_[part.name];
  if (rows++ == 0) line = part.line;
}

const SkyGpu* SkyListReader::gpu_named(const Part& part, const std::string& instance) {
  const bool card = names_a_card(instance);
  const auto [at, fresh] = known_.try_emplace(fmt::format("{}\n{}\n{}\n{}", part.name, part.info, part.count, card));
  if (fresh) at->second = gpu_of({options_.cloud, part.name, part.info, part.count, card, 0});
  if (at->second.sheet != nullptr) return &at->second;
  leave_out(part);
  return nullptr;
}

void SkyListReader::add(const std::string& instance, const SkyGpu& gpu, const Part& part, const std::string& notes) {
  const int gpus = std::max(1, static_cast<int>(part.count));
  // One type with other GPUs in another row is another machine; SkyPilot's tasks name the GPUs beside the type.
  std::string name = instance;
  const auto first = made_.machines.find(name);
  if (first != made_.machines.end() && (first->second.gpu != gpu.name || first->second.gpus != gpus))
    name += fmt::format("+{}x{}", gpus, gpu.name);
  const auto [at, fresh] = made_.machines.try_emplace(name);
  SkyMachine& machine = at->second;
  const auto least = [&, fresh = fresh](double& known, double here) {
    known = fresh || known == 0 ? here : std::min(known, here > 0 ? here : known);
  };
  if (!fresh && part.memory_gib > 0 && machine.memory_gib > 0 && machine.memory_gib != part.memory_gib)
    machine.notes = "memory: the least of those that the list states";
  if (!notes.empty()) machine.notes = notes;
  machine.gpu = gpu.name, machine.gpus = gpus;
  least(machine.vcpus, part.vcpus), least(machine.memory_gib, part.memory_gib);
  made_.gpus.try_emplace(gpu.name, gpu);
  price(machine, name, part);
}

/// A slice of a pod, whose price has its host: it is known if the cloud's catalog has it.
void SkyListReader::add_tpu(const Part& part) {
  const auto& instances = made_.base["instances"];
  const auto known = instances.find(part.name);
  if (made_.base.is_null() || known == instances.end()) return leave_out(part);
  SkyMachine& machine = made_.machines[part.name];
  machine.gpu = known->at("gpu").get<std::string>(), machine.gpus = known->at("gpus").get<int>();
  price(machine, part.name, part);
}

void SkyListReader::read_row(const CsvTable::Row& row) {
  const std::string& instance = cell(row, instance_);
  const std::string& name = cell(row, name_);
  if (instance == "InstanceType" || name == "AcceleratorName")
    throw ConfigError(place(row.line) + ": a second line of column names: two lists stand in one file");
  const double count = number(row, count_).value_or(0);
  Part part{name.empty() ? instance : name,
            region(row),
            cell(row, zone_),
            cell(row, info_),
            count,
            number(row, vcpus_).value_or(0),
            number(row, memory_).value_or(0),
            {number(row, prices_[0]), number(row, prices_[1])},
            row.line};
  if (name.empty()) {
    if (instance.empty()) throw ConfigError(place(row.line) + ": names neither an InstanceType nor an AcceleratorName");
    ++plain_;
    if (instance.starts_with("n1-") || accelerators_of(instance)) hosts_.push_back(std::move(part));
    return;
  }
  constexpr double kLeast = 1.0 / 64, kMost = 1024, kMostVcpus = 65536;
  if (part.vcpus > kMostVcpus)
    list_->fail(row, "vCPUs", fmt::format("found \"{}\", expected at most {:g}", cell(row, vcpus_), kMostVcpus));
  if (count < kLeast || count > kMost)
    list_->fail(row, "AcceleratorCount", fmt::format("found \"{}\", expected a number of {}", cell(row, count_), name));
  if (name.starts_with("tpu-")) return add_tpu(part);
  if (count > 1 && count != std::floor(count)) return void(++shares_);
  if (instance.empty()) return accelerators_.push_back(std::move(part));
  if (const SkyGpu* gpu = gpu_named(part, instance)) add(instance, *gpu, part);
}

/// Joins accelerators that have rows of their own and the cheapest host in their zone. Hosts of B200 cost 0: Google's
/// price of the GPUs has them.
void SkyListReader::join_parts() {
  std::map<std::pair<std::string_view, std::string_view>, std::vector<const Part*>> hosts;  // by region and zone
  for (const Part& host : hosts_)
    if (host.prices[0]) hosts[{host.region, host.zone}].push_back(&host);
  for (const Part& part : accelerators_) {
    const SkyGpu* gpu = gpu_named(part, "");
    if (gpu == nullptr) continue;
    const int count = static_cast<int>(part.count);
    const bool own = has_google_hosts(part.name);
    const int vcpus = own ? 0 : host_vcpus(part.name, count);
    const auto joined = [&](const Part& host, const std::string& name) {
      Part sum = part;
      sum.vcpus = host.vcpus, sum.memory_gib = host.memory_gib;
      for (std::size_t market = 0; market < sum.prices.size(); ++market)
        sum.prices[market] = part.prices[market].value_or(0) > 0 && host.prices[market]
                                 ? std::optional(*part.prices[market] + *host.prices[market])
                                 : std::nullopt;
      std::string notes = fmt::format("price: the list's {} and {} x {} together", host.name, count, part.name);
      if (const double disks = google_local_ssd(host.name) * count; disks > 0) {
        notes += fmt::format(", without its {:g} GiB of local disks", disks);
        without_disks_.insert(host.name);
      }
      add(name, *gpu, sum, notes);
    };
    const Part* cheapest = nullptr;
    bool taken = false;
    for (const Part* host : hosts[{part.region, part.zone}]) {
      if (own && accelerators_of(host->name) == std::pair<std::string_view, int>(part.name, count)) {
        joined(*host, host->name);
        taken = true;
      } else if (vcpus > 0 && host->name.starts_with("n1-") && host->vcpus >= vcpus && host->memory_gib >= 4 * vcpus &&
                 *host->prices[0] > 0 && (cheapest == nullptr || *host->prices[0] < *cheapest->prices[0])) {
        cheapest = host;
      }
    }
    if (cheapest != nullptr) joined(*cheapest, fmt::format("{}+{}x{}", cheapest->name, count, part.name));
    if (cheapest == nullptr && !taken) ++without_host_;
  }
}

SkyPlatform SkyListReader::platform() {
  join_parts();
  const auto priced =
      static_cast<std::size_t>(std::count_if(made_.machines.begin(), made_.machines.end(),
                                             [](const auto& machine) { return !machine.second.prices.empty(); }));
  SkyPlatform out;
  out.remarks.push_back(fmt::format("{}: {} with accelerators, {} of {}", options_.cloud,
                                    counted(priced, "instance type"), counted(price_count_, "price"), options_.as_of));
  if (!unknown_.empty()) {
    std::string names;
    for (const auto& [name, rows] : unknown_)
      names += fmt::format("{}{} ({}, first line {})", names.empty() ? "" : ", ", name, counted(rows.first, "row"),
                           rows.second);
    out.remarks.push_back(fmt::format("{}: left out, without a data sheet of their rates and memory bandwidth: {}",
                                      options_.cloud, names));
  }
  const auto left_out = [&](std::size_t rows, const char* why) {
    if (rows > 0) out.remarks.push_back(fmt::format("{}: left out: {} {}", options_.cloud, counted(rows, "row"), why));
  };
  if (accelerators_.empty()) left_out(plain_, "of machines without accelerators");
  left_out(without_host_, "of accelerators that no host in their zone takes");
  left_out(shares_, "with one and a part of an accelerator");
  if (!without_disks_.empty())
    out.remarks.push_back(fmt::format(
        "{}: SkyPilot's prices leave out the local disks that always belong to {}; Google bills them besides",
        options_.cloud, fmt::join(without_disks_, ", ")));
  if (dear_spot_ > 0)
    out.remarks.push_back(fmt::format("{}: spot above on demand in {}, first line {}: taken as they stand",
                                      options_.cloud, counted(dear_spot_, "row"), dear_spot_line_));
  if (priced == 0)
    throw NoMachines(fmt::format("{}: without a price of a machine with accelerators{}", file_,
                                 out.remarks.size() > 1 ? "; " + out.remarks[1] : ""));
  out.text = platform_text(made_, options_);
  return out;
}

}  // namespace

SkyPlatform platform_of_sky_list(const CsvTable& list, const SkyListOptions& options) {
  SkyListReader reader(options);
  reader.read(list);
  return reader.platform();
}

SkyPlatform load_sky_list(const std::filesystem::path& file, const SkyListOptions& options) {
  SkyListReader reader(options);
  CsvTable::load_pieces(file, [&](const CsvTable& piece) { reader.read(piece); });
  return reader.platform();
}

}  // namespace ganymede::platforms
