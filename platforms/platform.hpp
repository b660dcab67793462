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

namespace ganymede {

/// Where a fact came from. A catalog's entries carry it; a user's file may leave it out.
struct Origin {
  std::string source;       ///< who published it and when, or "assumption: ..."
  std::string unconfirmed;  ///< not empty: why the value must not be trusted yet; a result repeats it as a warning
  std::string notes;        ///< anything else worth knowing
};

struct Gpu {
  std::string name;    ///< "V100-PCIE-16GB"
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
  Seconds latency;  ///< one message, one way; zero allowed
  Origin origin;
};

/// GPU to GPU inside a node, without the host.
struct GpuLinks : Link {
  enum class Kind { nvlink, pcie };
  Kind kind = Kind::nvlink;
};

struct Nic : Link {
  Seconds rendezvous{0};   ///< extra time of a message whose receiver must agree first; default 0
  bool gpu_direct = true;  ///< false: a message between nodes also crosses both hosts' links
};

enum class Market { on_demand, spot, reserved_1y, reserved_3y };
std::string_view to_string(Market market);       ///< "on-demand", "spot", "reserved-1y", "reserved-3y"
const std::vector<std::string>& market_names();  ///< in the order of the enumeration
std::optional<Market> parse_market(std::string_view name);
Market read_market(const JsonNode& node);  ///< an unknown name: ConfigError with the list and the nearest

struct Price {
  std::string region;
  Market market = Market::on_demand;
  MicroUsdPerHour per_hour;  ///< of the whole instance
  std::string as_of;         ///< "2026-07-20", or "undated"
  Origin origin;
};

struct Instance {
  std::string name;
  std::string gpu;  ///< a name in Platform::gpus
  int gpus = 0;
  int vcpus = 0;                      ///< 0: not stated
  std::optional<Bytes> memory;        ///< the host's
  std::optional<GpuLinks> gpu_links;  ///< absent: messages inside the node go over the host links
  std::optional<Link> host_link;  ///< between the host and each of its GPUs; absent: copies to the GPU are not timed
  std::optional<Nic> nic;         ///< absent: usable alone, not with other nodes
  std::optional<int> available;   ///< how many of these there are; absent: no stated limit
  std::optional<Seconds> boot;    ///< from request to a running host; absent: the platform's
  std::vector<Price> prices;      ///< at most one for a region and market
  Origin origin;
};

struct Region {
  std::string name;
  std::optional<GramsPerKwh> carbon;
  std::optional<double> pue;  ///< power of the building over power of the computers, at least 1
  Origin origin;
};

/// What joins the nodes' NICs. The default is an ideal switch.
struct Fabric {
  enum class Kind { switched };
  Kind kind = Kind::switched;       ///< "switch" in the file
  Seconds latency{0};               ///< added once to a message between nodes
  double oversubscription = 1;      ///< 1: non-blocking; k: the nodes together get 1/k of their NICs
  std::string label = "datasheet";  ///< how sure it is: "measured", "datasheet" or "assumed"
  Origin origin;
};

struct Storage {
  std::string name;
  BytesPerSecond read, write;
  std::optional<double> iops;
  MicroUsd per_gb_month;  ///< per 1e9 bytes kept for a month; default 0
  Origin origin;
};

struct Provisioning {
  Seconds boot{0};  ///< from request to a running host
  Origin origin;
};

/// Default: each second is billed, from the first.
struct Billing {
  Seconds granularity{1};
  Seconds minimum{0};
  Origin origin;
};

struct Platform {
  std::string file;      ///< where it was read, for messages
  std::string provider;  ///< default "private"
  std::string name;      ///< default: the provider
  /// What the short names at the start of a `source` stand for: {"KARP-AWS", "aws/karpenter-provider-aws ..."}.
  std::vector<std::pair<std::string, std::string>> sources;
  // Each of these lists is sorted by name: the members of a JSON object have no order.
  std::vector<Gpu> gpus;
  std::vector<Instance> instances;
  std::vector<Region> regions;
  std::vector<Storage> storage;
  Fabric fabric;
  Provisioning provisioning;
  Billing billing;

  // Lookups. What is not there is a ConfigError that names what there is and the nearest: 'the catalog "aws" has no
  // instance "p3.3xlarge"; did you mean "p3.2xlarge"?', placed at the JSON value `at` that asked for it, if given.
  const Instance& instance(std::string_view name, const JsonNode* at = nullptr) const;
  const Storage& storage_class(std::string_view name, const JsonNode* at = nullptr) const;
  /// The price of `instance`, one of this platform's. The region is looked for first, then the market in it.
  const Price& price(const Instance& instance, std::string_view region, Market market,
                     const JsonNode* region_at = nullptr, const JsonNode* market_at = nullptr) const;

  const Gpu& gpu_of(const Instance& instance) const;  ///< never fails: checked while reading
  const Region* region(std::string_view name) const;  ///< nullptr: nothing known of it
  Seconds boot(const Instance& instance) const;       ///< the instance's own or the platform's
};

/// nullptr where the instance has no price there.
const Price* find_price(const Instance& instance, std::string_view region, Market market);

/// Reads a platform. Any error is a ConfigError with file, JSON pointer, what was found and what was expected.
Platform read_platform(const JsonNode& root);
Platform load_platform(const std::filesystem::path& path);

}  // namespace ganymede
