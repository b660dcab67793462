#pragma once
// The register of providers: what is known of each besides its catalog, platforms/catalog/NAME.json.

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
  bool region_label = false;  ///< the standard label of the region is as in our catalog
  bool type_labels = false;   ///< so are the standard labels of instance type and zone
  NodeLabel spot{};           ///< of spot nodes
  bool spot_taint = false;    ///< spot nodes refuse pods that do not tolerate `spot`
  /// Key of the label that names the GPUs attached to an instance "MACHINE+4xGPU"; empty: there are no such instances.
  std::string_view attached_gpu = {};
  std::span<const std::pair<std::string_view, std::string_view>> attached_gpus = {};  ///< our name, the label's value
  std::string_view spot_remark = {};  ///< for the head of a manifest of spot nodes
};

struct Provider {
  std::string_view name = {};    ///< as catalogs, scenarios and results name it: "aws"
  std::string_view vendor = {};  ///< as invoices name it: "AWS"; empty: by `name`
  bool owned = false;            ///< the machines are the user's own: nobody meters them or charges for data
  Seconds spot_notice{30};       ///< from the notice to the loss of a spot node
  std::string_view store = {};   ///< SkyPilot's name for its object store; empty: SkyPilot does not rent from it
  KubernetesNodes kubernetes{};  ///< default: nothing is known of its nodes' labels
};

/// To add one: a row here and its catalog.
std::span<const Provider> providers();

/// The provider of that name; for a name that is not in the register, as in a user's own platform file, one of which
/// nothing is known.
const Provider& provider_of(std::string_view name);

/// "AWS" for "aws"; the name itself where nothing else is known.
std::string vendor_of(std::string_view name);

/// The provider of a platform file that names none: the user.
const Provider& owned_provider();

}  // namespace ganymede::platforms
