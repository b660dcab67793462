#pragma once
// A platform: what one provider rents, how it is wired and what it costs. The typed form of a `ganymede.platform/1`
// file.
//
// Essential are a GPU's fp32, memory and memory_bandwidth, an instance's gpu and gpus, and a NIC where several nodes
// are used. All else is optional; the defaults stand beside the fields.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/json.hpp"
#include "common/units.hpp"
#include "platforms/billing.hpp"

namespace ganymede {

/// What trains: a GPU, a TPU chip, or all processors of a host as one device.
struct Gpu {
  enum class Kind { gpu, tpu, cpu };
  std::string name;  ///< "V100-PCIE-16GB"
  Kind kind = Kind::gpu;
  std::string family;  ///< "V100"; the name itself where the file gives none
  Bytes memory;
  FlopsPerSecond fp32;                   ///< peak of one GPU, a multiply-add counts as 2
  std::optional<FlopsPerSecond> tensor;  ///< dense peak of the tensor cores at 16 bit
  BytesPerSecond memory_bandwidth;
  /// The least time between the starts of two kernels launched back to back on one stream: a shorter kernel costs this.
  Seconds launch{0};
  std::optional<Watts> idle, peak;  ///< power
  Origin origin;
};

/// Full duplex; `bandwidth` is that of one direction, of one GPU where the link is a GPU's.
struct Link {
  BytesPerSecond bandwidth;
  Seconds latency;                  ///< one message, one way; zero allowed
  std::string label = "datasheet";  ///< how sure it is: "measured", "datasheet" or "assumed"
  Origin origin;
};

/// Links between two GPUs of a mesh.
struct MeshEdge {
  int a = 0, b = 0;
  int count = 1;  ///< parallel links, used as one
};

/// GPU to GPU inside a node, without the host.
struct GpuLinks : Link {
  enum class Kind {
    nvlink,    ///< one port a GPU into something that does not block
    nvswitch,  ///< the same through switches, which may be able to reduce
    mesh,      ///< point to point; `bandwidth` is that of one link
    pcie,      ///< a tree of PCIe switches, host bridges and NUMA nodes; `bandwidth` is that of a GPU's slot
  };
  Kind kind = Kind::nvlink;
  bool reduces = false;        ///< nvswitch: adds and multicasts in passing (NVLink SHARP)
  std::vector<MeshEdge> mesh;  ///< mesh: its links
  /// nvlink, nvswitch, mesh: messages also use the host links, in proportion to the bandwidths.
  bool with_host_link = false;
  // pcie. GPUs that no group names stand alone: below a host bridge of their own, on the first NUMA node.
  std::vector<std::vector<int>> switches;          ///< GPUs below one PCIe switch
  std::optional<BytesPerSecond> switch_bandwidth;  ///< of a switch's uplink; default: a slot's
  std::vector<std::vector<int>> numa;              ///< GPUs of each NUMA node
  std::optional<BytesPerSecond> numa_bandwidth;    ///< between two NUMA nodes, each way; default: a slot's
  Seconds numa_latency{0};                         ///< extra, between NUMA nodes
  /// No peer-to-peer: messages are staged through host memory, whose rate for this all GPUs of a NUMA node share, at
  /// the extra latency. Absent: peer-to-peer.
  std::optional<Link> staging;
};

struct Nic : Link {
  enum class Transport { rdma, efa, tcp };
  int count = 1;  ///< NICs of a node, of `bandwidth` each; GPU i of g uses NIC i * count / g
  Transport transport = Transport::rdma;
  Seconds rendezvous{0};                   ///< extra time of a message whose receiver must agree first; default 0
  bool gpu_direct = true;                  ///< false: a message between nodes also crosses both hosts' links
  std::optional<BytesPerSecond> per_flow;  ///< what one message reaches at most, as one TCP connection does
  int shared_by = 1;                       ///< so many of the allocation's nodes (VMs) share one physical NIC
};

enum class Market { on_demand, spot, reserved_1y, reserved_3y };
std::string_view to_string(Market market);       ///< "on-demand", "spot", "reserved-1y", "reserved-3y"
const std::vector<std::string>& market_names();  ///< in the order of the enumeration
std::optional<Market> parse_market(std::string_view name);
Market read_market(const JsonNode& node);  ///< an unknown name: ConfigError with the list and the nearest

struct Price {
  std::string region;
  std::string zone;  ///< empty: of any zone of the region
  Market market = Market::on_demand;
  MicroUsdPerHour per_hour;  ///< of the whole instance, without electricity where the platform sells that apart
  std::optional<Ownership> ownership;  ///< what `per_hour` was worked out from, where somebody owns the machine
  std::string as_of;                   ///< "2026-07-20", or "undated"
  /// Spot: the share of such nodes that is taken back within a month; absent: not known.
  std::optional<double> interrupted_per_month;
  Origin origin;
};

struct Instance {
  std::string name;
  std::string gpu;  ///< a name in Platform::gpus
  int gpus = 0;
  int vcpus = 0;                      ///< 0: not stated
  std::optional<Bytes> memory;        ///< the host's
  std::optional<GpuLinks> gpu_links;  ///< absent: messages inside the node go over the host links
  std::optional<Link> host_link;    ///< between the host and each of its GPUs; absent: copies to the GPU are not timed
  std::optional<Nic> nic;           ///< absent: usable alone, not with other nodes
  std::optional<int> available;     ///< how many of these there are; absent: no stated limit
  std::optional<Seconds> boot;      ///< from request to a running host; absent: the platform's
  std::optional<Watts> idle, peak;  ///< power of the host without its GPUs; both or neither
  std::string retired;              ///< not empty: why it can no longer be rented; old runs still can
  /// Prices of equal parts of a month of 730 h as shares of the list price, for what is used on demand; empty: none.
  std::vector<double> sustained_use;
  std::vector<Price> prices;  ///< at most one for a region, zone and market
  Origin origin;
};

struct Region {
  std::string name;
  std::optional<GramsPerKwh> carbon;
  std::optional<double> pue;        ///< power of the building over power of the computers, at least 1
  std::optional<MicroUsd> per_kwh;  ///< electricity that a run pays for; absent: in the instances' prices
  Origin origin;
};

/// One level of a fat tree, from the racks up: groups of `nodes` nodes.
struct FabricLevel {
  int nodes = 1;
  double oversubscription = 1;  ///< a group's uplink has the bandwidth of its nodes' NICs divided by this
  Seconds latency{0};           ///< added to a message that leaves its group
};

/// Zones or regions, `nodes` nodes in each, joined by links of their own.
struct Zones {
  int nodes = 1;
  BytesPerSecond bandwidth;  ///< of all messages that leave (or enter) one zone
  Seconds latency;           ///< added to a message between zones
  std::optional<BytesPerSecond> per_flow;
};

/// What joins the nodes' NICs. The default is an ideal switch.
struct Fabric {
  enum class Kind { switched, fat_tree, torus };
  Kind kind = Kind::switched;       ///< "switch", "fat-tree" or "torus" in the file
  Seconds latency{0};               ///< added once to a message between nodes; torus: of one hop
  double oversubscription = 1;      ///< switch: 1: non-blocking; k: the nodes together get 1/k of their NICs
  std::vector<FabricLevel> levels;  ///< fat tree; group sizes ascend, each a multiple of the one before
  std::vector<int> dimensions;      ///< torus: of GPUs, whose neighbours are joined directly, without NICs
  BytesPerSecond bandwidth{0};      ///< torus: of one link, each way
  bool reduces = false;             ///< switch: adds and multicasts in passing
  std::optional<Zones> zones;
  std::string label = "datasheet";  ///< how sure it is: "measured", "datasheet" or "assumed"
  Origin origin;
};

/// What storage costs; a month has 730 h.
struct StorageRates {
  std::optional<MicroUsd> per_month;       ///< for a `unit` kept for a month; absent: not known
  VolumeUnit unit = VolumeUnit::gb;        ///< a volume that is priced by the GiB is sold in whole ones
  std::optional<MicroUsd> per_iops_month;  ///< per I/O a second above `Storage::iops`, where that can be had
  std::optional<MicroUsd> per_rate_month;  ///< per MB/s or MiB/s above `Storage::read`, likewise
  bool rate_in_mib = false;                ///< `per_rate_month` is for 2^20 bytes a second, not for 1e6
  std::optional<MicroUsd> per_1000_put, per_1000_get;  ///< requests
};

/// How fast a volume is by its size, between the least and what `Storage` states, which is the most.
struct SpeedBySize {
  double iops_per_gib = 0, least_iops = 0;  ///< 0: `Storage::iops` whatever the size
  BytesPerSecond per_gib{0}, least{0};      ///< of reads and of writes alike; 0: `Storage::read` and `write`
};

/// The most that can be provisioned of one volume; absent: no limit is known.
struct VolumeLimits {
  std::optional<double> iops, iops_per_gib;
  std::optional<BytesPerSecond> throughput, per_iops;  ///< `per_iops`: for each I/O a second that the volume has
};

struct Storage {
  std::string name;
  BytesPerSecond read, write;
  std::optional<double> iops;  ///< I/O operations a second
  bool provisioned = false;    ///< its IOPS are those that are provisioned, and all of them are charged
  Seconds latency{0};          ///< of a request, to its first byte
  /// Above `iops` and `read` while credits last, which grow back when they are not used.
  std::optional<double> burst_iops;
  double burst_credits = 0;  ///< I/O operations
  StorageRates rates;
  std::vector<std::pair<std::string, StorageRates>> regions;  ///< where they differ
  bool object_store = false;                                  ///< requests are charged; else a volume of a size
  /// Each node has a volume of its own; of an object store, `read` and `write` are what one node reaches.
  bool each_node = false;
  std::optional<Bytes> minimum, maximum;  ///< the smallest and the largest volume that is sold
  SpeedBySize by_size;
  VolumeLimits limits;
  Origin origin;

  const StorageRates& rates_in(std::string_view region) const;
  /// The volume that is sold to whoever wants to keep so much: at least the smallest, in whole GiB where it is priced
  /// by them.
  Bytes sold(Bytes wanted) const;
  /// Whether the size of a volume changes its price, its speed or what can be provisioned of it.
  bool size_matters(std::string_view region) const;
  /// Sets read, write and iops to what a volume of that size reaches.
  void set_size(Bytes size);
};

/// A time that varies: lognormal, `spread` the standard deviation of its logarithm.
struct Delay {
  Seconds median{0};
  double spread = 0;
};

/// From a request to a first step. All but `boot` are 0 where a file does not say.
struct Provisioning {
  Delay queue;               ///< from request to grant; not billed
  Delay boot;                ///< from grant to a running host
  Delay image_pull;          ///< of the container image, on a new host
  Delay framework_start;     ///< process start, imports, device context: at each start of the training program
  Delay communicator_start;  ///< rendezvous of several workers: at each start of the training program
  Origin origin;
};

struct Platform {
  std::string file;      ///< where it was read, for messages
  std::string provider;  ///< default "private"
  std::string name;      ///< default: the provider
  /// What the short names at the start of a `source` stand for: {"KARP-AWS", "aws/karpenter-provider-aws ..."}.
  std::vector<std::pair<std::string, std::string>> sources;
  std::string currency;  ///< not empty: "EUR at 1.08 USD of 2026-11-01", from which amounts were converted
  // Each of these lists is sorted by name: the members of a JSON object have no order.
  std::vector<Gpu> gpus;
  std::vector<Instance> instances;
  std::vector<Region> regions;
  std::vector<Storage> storage;
  Fabric fabric;
  Provisioning provisioning;
  Billing billing;
  EgressPrices transfer;
  Services services;
  /// Smallest and largest message, in bytes, that an overlay's links were fitted to; none: no overlay, or it does not
  /// say.
  std::optional<std::pair<double, double>> measured_sizes;

  // Lookups. What is not there is a ConfigError that names what there is and the nearest: 'the catalog "aws" has no
  // instance "p3.3xlarge"; did you mean "p3.2xlarge"?', placed at the JSON value `at` that asked for it, if given.
  const Instance& instance(std::string_view name, const JsonNode* at = nullptr) const;
  const Storage& storage_class(std::string_view name, const JsonNode* at = nullptr) const;
  /// The price of `instance`, one of this platform's. The region is looked for first, then the market in it.
  const Price& price(const Instance& instance, std::string_view region, Market market,
                     const JsonNode* region_at = nullptr, const JsonNode* market_at = nullptr,
                     std::string_view zone = "") const;

  const Gpu& gpu_of(const Instance& instance) const;  ///< never fails: checked while reading
  /// "measured" where each link that messages between those GPUs may cross is; else the least sure label among them:
  /// "assumed" before "datasheet". "not used" for one GPU.
  std::string fabric_label(const Instance& instance, int nodes, int gpus_per_node) const;
  const Region* region(std::string_view name) const;  ///< nullptr: nothing known of it
  Delay boot(const Instance& instance) const;         ///< the instance's own or the platform's
};

/// That of the zone, if one is named and has its own, else the region's; nullptr where there is none.
const Price* find_price(const Instance& instance, std::string_view region, Market market, std::string_view zone = "");
/// What the price of a machine of one's own takes for granted, for whoever compares it with a rented one; empty where
/// it is rented.
std::string owning_assumes(const Platform& platform, const Instance& instance, const Price& price);

/// "12.34USD", at most six decimals.
MicroUsd read_money(const JsonNode& node);
/// "90s", or { "median": "90s", "spread": 0.3 }.
Delay read_delay(const JsonNode& node);
/// The members of `provisioning` but `boot`, where they stand there.
void read_delays(JsonObject& in, Provisioning& provisioning);

/// Reads a platform. Any error is a ConfigError with file, JSON pointer, what was found and what was expected.
Platform read_platform(const JsonNode& root);
Platform load_platform(const std::filesystem::path& path);

}  // namespace ganymede
