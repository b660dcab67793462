#pragma once
// A platform is what one provider rents out, how it is wired and what it costs: the typed form of a
// `ganymede.platform/1` file.
//
// A file must state fp32, memory and memory_bandwidth of each GPU, gpu and gpus of each instance, and a NIC for
// instances that are used with others. Everything else is optional, with the defaults of the fields below.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "platforms/billing.hpp"
#include "platforms/measured_collective.hpp"

namespace ganymede::platforms {

/// A training device: a GPU, a TPU chip, or all processors of a host as one device.
struct Gpu {
  enum class Kind { gpu, tpu, cpu };
  std::string name;  ///< "V100-PCIE-16GB"
  Kind kind = Kind::gpu;
  std::string family;  ///< "V100"; the name itself if the file gives none
  Bytes memory;
  FlopsPerSecond fp32;                   ///< peak of one GPU; a multiply-add counts as 2 FLOP
  std::optional<FlopsPerSecond> tensor;  ///< dense peak of the tensor cores at 16 bit
  BytesPerSecond memory_bandwidth;
  /// The shortest time between the starts of two kernels that are launched back to back on one stream. A kernel takes
  /// at least this long.
  Seconds launch{0};
  int multiprocessors = 0;          ///< those that are switched on; 0: not stated. The model of kernel times needs them
  Bytes l2_cache{0};                ///< 0: not stated
  std::optional<Watts> idle, peak;  ///< power; energy needs both
  /// The share of its speed that a GPU loses while the other GPU of its board works too: they share the board's power.
  double board_slowdown = 0;
  Origin origin;
  bool operator==(const Gpu&) const = default;
};

/// A full-duplex link; `bandwidth` is that of one direction, and of one GPU if the link belongs to a GPU.
struct Link {
  BytesPerSecond bandwidth;
  Seconds latency;                  ///< of one message, one way; may be zero
  std::string label = "datasheet";  ///< how sure it is: "measured", "datasheet" or "assumed"
  Origin origin;
  bool operator==(const Link&) const = default;
};

/// The links between GPUs `a` and `b` of a mesh.
struct MeshEdge {
  int a = 0, b = 0;
  int count = 1;  ///< parallel links, which messages use as one
};

/// Links between the GPUs of a node that bypass the host.
struct GpuLinks : Link {
  enum class Kind {
    nvlink,    ///< each GPU has one port into a non-blocking network
    nvswitch,  ///< the same; the switches may be able to reduce
    mesh,      ///< point-to-point links; `bandwidth` is that of one link
    pcie,      ///< a tree of PCIe switches, host bridges and NUMA nodes; `bandwidth` is that of a GPU's slot
  };
  Kind kind = Kind::nvlink;
  bool reduces = false;        ///< nvswitch: the switches add and multicast (NVLink SHARP)
  std::vector<MeshEdge> mesh;  ///< mesh: its links
  /// nvlink, nvswitch, mesh: messages are split over these and the host links in proportion to the bandwidths.
  bool with_host_link = false;
  // pcie. A GPU that is in no group has a host bridge of its own on the first NUMA node.
  std::vector<std::vector<int>> switches;          ///< for each PCIe switch the GPUs below it
  std::optional<BytesPerSecond> switch_bandwidth;  ///< of a switch's uplink; default: a slot's
  std::vector<std::vector<int>> numa;              ///< GPUs of each NUMA node
  std::optional<BytesPerSecond> numa_bandwidth;    ///< between two NUMA nodes, each way; default: a slot's
  Seconds numa_latency{0};                         ///< added to a message between NUMA nodes
  /// Without peer-to-peer access, messages are staged through host memory: at this bandwidth, which all GPUs of a NUMA
  /// node share, and with this added latency. Absent: peer-to-peer.
  std::optional<Link> staging;
};

struct Nic : Link {
  enum class Transport { rdma, efa, tcp };
  int count = 1;  ///< NICs of a node, each of `bandwidth`; GPU i of g uses NIC i * count / g
  Transport transport = Transport::rdma;
  Seconds rendezvous{0};                   ///< added to a message whose receiver must agree before it is sent
  bool rendezvous_in_tuner = false;        ///< true: the network brings a tuner for NCCL that counts the rendezvous
  bool gpu_direct = true;                  ///< false: messages between nodes cross the host links of both ends too
  std::optional<BytesPerSecond> per_flow;  ///< largest bandwidth of one message
  /// Bandwidth until the credits of the instance are spent, after minutes; `bandwidth` is what it sustains.
  std::optional<BytesPerSecond> burst;
  /// How long full credits last at the burst rate: "typically from 5 to 60 minutes, depending on the instance size",
  /// and full when an instance starts (Amazon EC2 user guide, instance network bandwidth). Their geometric middle is an
  /// assumption.
  static constexpr Seconds kFullBurst{1040};
  /// Limits of TCP over this NIC, which hold if `transport` is tcp.
  struct Tcp {
    std::optional<BytesPerSecond> per_flow;  ///< largest bandwidth of one connection
    int sockets = 1;                         ///< connections over which NCCL splits a message
  };
  std::optional<Tcp> tcp;  ///< absent: only the bandwidth limits it
  int shared_by = 1;       ///< nodes (VMs) of the allocation that share one physical NIC
};

/// "rdma", "efa", "tcp", in the order of the enumeration.
const std::vector<std::string>& transport_names();

enum class Market { on_demand, spot, reserved_1y, reserved_3y };
std::string_view to_string(Market market);       ///< "on-demand", "spot", "reserved-1y", "reserved-3y"
const std::vector<std::string>& market_names();  ///< in the order of the enumeration
std::optional<Market> parse_market(std::string_view name);
Market read_market(const JsonNode& node);  ///< throws ConfigError for an unknown name

struct Price {
  std::string region;
  std::string zone;  ///< empty: the price holds in all zones of the region
  Market market = Market::on_demand;
  MicroUsdPerHour per_hour;            ///< of the whole instance; without electricity if the region prices it apart
  std::optional<Ownership> ownership;  ///< from which `per_hour` follows if the machine is owned
  std::string as_of;                   ///< "2026-07-20", or "undated"
  /// Spot: share of such nodes that are taken back within a month; absent: not known.
  std::optional<double> interrupted_per_month;
  /// A marketplace: of its hosts' offers 19 in 20 ask between these, and `per_hour` is in their middle; absent: not
  /// known.
  std::optional<std::pair<MicroUsdPerHour, MicroUsdPerHour>> spread;
  Origin origin;
};

struct Instance {
  std::string name;
  std::string gpu;  ///< a name in Platform::gpus
  int gpus = 0;
  int vcpus = 0;                      ///< 0: not stated
  std::optional<Bytes> memory;        ///< the host's
  std::optional<GpuLinks> gpu_links;  ///< absent: messages inside the node go over the host links
  std::optional<Link> host_link;      ///< link between the host and each GPU; absent: copies to the GPU take no time
  std::optional<Nic> nic;             ///< absent: the instance cannot be used with other nodes
  std::optional<int> available;       ///< number of instances that exist; absent: no stated limit
  std::optional<Seconds> boot;        ///< from request to a running host; absent: the platform's
  std::optional<Watts> idle, peak;    ///< power of the host without its GPUs; both or neither
  std::string retired;                ///< not empty: why it can no longer be rented; scenarios may still name it
  /// Sustained-use discounts of on-demand use: prices of equal parts of a month of 730 h, as shares of the list price;
  /// empty: none.
  std::vector<double> sustained_use;
  std::vector<Price> prices;  ///< at most one for a region, zone and market
  Origin origin;
};

struct Region {
  std::string name;
  std::optional<GramsPerKwh> carbon;
  /// Power usage effectiveness: power of the building divided by power of the computers, at least 1.
  std::optional<double> pue;
  std::optional<MicroUsd> per_kwh;  ///< price of electricity; absent: the instances' prices include it
  Origin origin;
};

/// One level of a fat tree, racks first: groups of `nodes` nodes.
struct FabricLevel {
  int nodes = 1;
  double oversubscription = 1;  ///< a group's uplink has the bandwidth of its nodes' NICs divided by this
  Seconds latency{0};           ///< added to a message that leaves its group
};

/// Zones or regions of `nodes` nodes each, with links between them.
struct Zones {
  int nodes = 1;
  BytesPerSecond bandwidth;  ///< shared by all messages that leave (or enter) a zone
  Seconds latency;           ///< added to a message between zones
  std::optional<BytesPerSecond> per_flow;
};

/// A link that routes name: one direction, or what both directions share.
struct RoutedLink {
  std::string name;
  BytesPerSecond bandwidth;
};

/// The way of messages from one GPU to another; GPUs are numbered from 0, node by node.
struct FabricRoute {
  int from = 0, to = 0;
  std::vector<int> links;  ///< indices into Fabric::links
  Seconds latency;
  std::optional<BytesPerSecond> per_flow;  ///< largest bandwidth of one message
};

/// The network between the nodes' NICs. The default is an ideal switch.
struct Fabric {
  enum class Kind { switched, fat_tree, torus, routed };
  Kind kind = Kind::switched;   ///< "switch", "fat-tree", "torus" or "routes" in the file
  Seconds latency{0};           ///< added once to a message between nodes; torus: of one hop
  double oversubscription = 1;  ///< switch: all nodes together get 1/k of the bandwidth of their NICs; 1: non-blocking
  std::vector<FabricLevel> levels;  ///< fat tree; group sizes ascend, each a multiple of the one before
  std::vector<int> dimensions;      ///< torus: GPUs in each dimension; neighbours are joined directly, without NICs
  BytesPerSecond bandwidth{0};      ///< torus: of one link, each way; switch: of all together, 0 if nothing limits it
  std::vector<RoutedLink> links;    ///< routes: what they cross
  std::vector<FabricRoute> routes;  ///< routes: at most one for each pair of GPUs
  bool reduces = false;             ///< switch: adds and multicasts messages
  std::optional<Zones> zones;
  std::string nccl;  ///< the version of NCCL that its machines have, or the month of their software; empty: not stated
  std::string label = "datasheet";  ///< how sure it is: "measured", "datasheet" or "assumed"
  Origin origin;

  /// True if the fabric joins GPUs rather than NICs, also those of one node: a torus, or routes.
  bool joins_gpus() const { return kind == Kind::torus || kind == Kind::routed; }
};

/// Prices of storage; a month has 730 h.
struct StorageRates {
  std::optional<MicroUsd> per_month;                   ///< for one `unit` kept for a month; absent: not known
  VolumeUnit unit = VolumeUnit::gb;                    ///< a volume that is priced by the GiB is sold in whole GiB
  std::optional<MicroUsd> per_iops_month;              ///< for each I/O a second above `Storage::iops`
  std::optional<MicroUsd> per_rate_month;              ///< for each MB/s or MiB/s above `Storage::read`
  bool rate_in_mib = false;                            ///< `per_rate_month` is for 2^20 bytes a second, not for 1e6
  std::optional<MicroUsd> per_1000_put, per_1000_get;  ///< requests
};

/// Speed of a volume that grows with its size, from the least values here up to those of `Storage`.
struct SpeedBySize {
  double iops_per_gib = 0, least_iops = 0;  ///< 0: `Storage::iops` at any size
  BytesPerSecond per_gib{0}, least{0};      ///< of reads and of writes alike; 0: `Storage::read` and `write`
};

/// Limits of what can be provisioned for one volume; absent: no limit is known.
struct VolumeLimits {
  std::optional<double> iops, iops_per_gib;
  std::optional<BytesPerSecond> throughput, per_iops;  ///< `per_iops`: for each I/O a second that the volume has
};

struct Storage {
  std::string name;
  BytesPerSecond read, write;
  std::optional<double> iops;  ///< I/O operations a second
  bool provisioned = false;    ///< all its IOPS are provisioned and charged
  Seconds latency{0};          ///< from a request to its first byte
  /// I/O operations per second while credits last. Credits grow back at the rate `iops` minus the used rate.
  std::optional<double> burst_iops;
  double burst_credits = 0;  ///< I/O operations
  StorageRates rates;
  std::vector<std::pair<std::string, StorageRates>> regions;  ///< rates of regions that differ from `rates`
  bool object_store = false;                                  ///< requests are charged; else it is a volume of a size
  /// True if each node has a volume of its own. For an object store, `read` and `write` are then the rates that one
  /// node reaches.
  bool each_node = false;
  std::optional<Bytes> minimum, maximum;  ///< the smallest and the largest volume that is sold
  SpeedBySize by_size;
  VolumeLimits limits;
  Origin origin;

  const StorageRates& rates_in(std::string_view region) const;
  /// Size of the volume that must be rented to keep `wanted`: at least `minimum`, and in whole GiB if it is priced by
  /// the GiB.
  Bytes sold(Bytes wanted) const;
  /// True if the size of a volume changes its price, its speed or what can be provisioned for it.
  bool size_matters(std::string_view region) const;
  /// Sets `read`, `write` and `iops` to those of a volume of that size.
  void set_size(Bytes size);
};

/// A lognormally distributed time; `spread` is the standard deviation of its logarithm.
struct Delay {
  Seconds median{0};
  double spread = 0;
};

/// The times between a request for nodes and the first step. All but `boot` are 0 unless a file states them.
struct Provisioning {
  Delay queue;               ///< from request to grant; not billed
  Delay boot;                ///< from grant to a running host
  Delay image_pull;          ///< of the container image, on a new host
  Delay framework_start;     ///< process start, imports, device context: at each start of the training program
  Delay communicator_start;  ///< rendezvous of several workers: at each start of the training program
  /// For each GPU of a node after its first, where one process drives them all one after the other: at each start of
  /// the training program. 0 where each GPU has a process.
  Delay replica_start;
  Origin origin;
};

struct Platform {
  std::string file;      ///< path or name under which it was read, for messages
  std::string provider;  ///< default "private"
  std::string name;      ///< default: the provider
  /// Meaning of the short names with which a `source` starts: {"KARP-AWS", "aws/karpenter-provider-aws ..."}.
  std::vector<std::pair<std::string, std::string>> sources;
  std::string currency;  ///< not empty: "EUR at 1.08 USD of 2026-11-01", from which amounts were converted
  // Sorted by name, because the members of a JSON object have no order.
  std::vector<Gpu> gpus;
  std::vector<Instance> instances;
  std::vector<Region> regions;
  std::vector<Storage> storage;
  Fabric fabric;
  Provisioning provisioning;
  Billing billing;
  EgressPrices transfer;
  Services services;
  /// Smallest and largest message, in bytes, to which the links of an overlay were fitted; absent unless an overlay
  /// states them.
  std::optional<std::pair<double, double>> measured_sizes;
  std::optional<MeasuredCollective> measured;  ///< the curve of an overlay from which its links were fitted

  // Lookups. For an unknown name they throw ConfigError with the nearest name, located at the JSON value `at` that
  // asked for it, if given, for example 'the catalog "aws" has no instance "p3.3xlarge"; did you mean "p3.2xlarge"?'.
  const Instance& instance(std::string_view name, const JsonNode* at = nullptr) const;
  const Storage& storage_class(std::string_view name, const JsonNode* at = nullptr) const;
  /// The price of `instance`, which must be one of this platform's. Throws ConfigError that names the region if the
  /// instance has no price there, else the market.
  const Price& price(const Instance& instance, std::string_view region, Market market,
                     const JsonNode* region_at = nullptr, const JsonNode* market_at = nullptr,
                     std::string_view zone = "") const;

  const Gpu& gpu_of(const Instance& instance) const;  ///< never fails: checked while reading
  /// The label of the least sure link that messages between those GPUs may cross. From the surest to the least sure:
  /// "measured", "datasheet", "assumed". Returns "not used" for one GPU.
  std::string fabric_label(const Instance& instance, int nodes, int gpus_per_node) const;
  const Region* region(std::string_view name) const;  ///< nullptr if nothing is known about it
  Delay boot(const Instance& instance) const;         ///< the instance's own delay, else the platform's
};

/// The price of the zone if it has one of its own, else that of the region; nullptr if there is none.
const Price* find_price(const Instance& instance, std::string_view region, Market market, std::string_view zone = "");
/// The assumptions in the price of an owned machine (years of use, share of use, staff), to show beside rented ones;
/// empty if the machine is rented.
std::string owning_assumes(const Platform& platform, const Instance& instance, const Price& price);

/// Reads "12.34USD", with at most six decimals.
MicroUsd read_money(const JsonNode& node);
/// Reads "90s" or { "median": "90s", "spread": 0.3 }.
Delay read_delay(const JsonNode& node);
/// Reads those members of `provisioning` that the file has, except `boot`.
void read_delays(JsonObject& in, Provisioning& provisioning);

/// Reads a platform. Throws ConfigError with file, JSON pointer, what was found and what was expected.
Platform read_platform(const JsonNode& root);
Platform load_platform(const std::filesystem::path& path);

}  // namespace ganymede::platforms
