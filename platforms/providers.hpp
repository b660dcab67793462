#pragma once
// The register of providers: what is known about each besides its catalog, platforms/catalog/NAME.json.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/units.hpp"

namespace ganymede::platforms {

/// A label of a Kubernetes node; an empty key: there is none.
struct NodeLabel {
  std::string_view key = {}, value = {};
};

/// How the nodes of a provider's managed Kubernetes are told apart.
struct KubernetesNodes {
  bool region_label = false;  ///< the standard label of the region holds the region's name in the catalog
  bool type_labels = false;   ///< the same for the standard labels of instance type and zone
  NodeLabel spot{};           ///< label that only spot nodes have
  bool spot_taint = false;    ///< spot nodes refuse pods that do not tolerate `spot`
  /// Key of the label that names the GPUs attached to an instance "MACHINE+4xGPU"; empty: there are no such instances.
  std::string_view attached_gpu = {};
  /// For each GPU that can be attached, its name in the catalog and the value of that label.
  std::span<const std::pair<std::string_view, std::string_view>> attached_gpus = {};
  std::string_view spot_remark = {};  ///< comment for the head of a manifest with spot nodes
};

/// The region of a price of which a list does not say where it holds.
constexpr std::string_view kAnyRegion = "any";

struct Provider {
  std::string_view name = {};    ///< as catalogs, scenarios and results name it: "aws"
  std::string_view vendor = {};  ///< as invoices name it: "AWS"; empty: by `name`
  bool owned = false;            ///< the machines are the user's own, so that nobody meters them or charges for data
  Seconds spot_notice{30};       ///< time from the notice to the loss of a spot node
  /// What stands in the names of machine types that single hosts rent out on a marketplace; absent: none does.
  std::optional<std::string_view> hosts = {};
  /// The rule by which who bids for a spot machine loses it, each machine apart; empty: there are no bids.
  std::string_view bids = {};
  std::string_view store = {};   ///< SkyPilot's name for its object store; empty: there is none
  std::string_view sky = {};     ///< SkyPilot's name for it, if it is another one: "do"
  KubernetesNodes kubernetes{};  ///< default: nothing is known of its nodes' labels
};

/// All providers. A new one needs a row in providers.cpp and a catalog.
std::span<const Provider> providers();

/// Returns the provider of that name. For a name that is not in the register, for example from a user's platform file,
/// it returns a provider with the defaults, about which nothing is known.
const Provider& provider_of(std::string_view name);

/// True if a single host rents out the machines of this type, so that they differ and may be withdrawn.
bool is_of_a_host(std::string_view provider, std::string_view instance);

/// Our name of the provider that SkyPilot calls so; the same name if it has no row.
std::string_view provider_of_sky(std::string_view cloud);

/// SkyPilot's name of the provider; empty if SkyPilot does not rent there.
std::string_view sky_cloud_of(std::string_view provider);

/// "AWS" for "aws"; the name itself if no other is known.
std::string vendor_of(std::string_view name);

/// The provider that a platform file without one has: the user.
const Provider& owned_provider();

}  // namespace ganymede::platforms
