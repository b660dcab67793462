#include "platforms/providers.hpp"

#include <algorithm>
#include <cassert>

#include "common/units.hpp"

namespace ganymede::platforms {
namespace {

// GKE's names of the GPUs that are attached to a machine; other machine types always have the same GPUs.
constexpr std::pair<std::string_view, std::string_view> kGkeGpus[] = {
    {"V100", "nvidia-tesla-v100"}, {"T4", "nvidia-tesla-t4"}, {"P100", "nvidia-tesla-p100"}};

// Notices: EC2 gives two minutes, Google Cloud and Azure 30 s, RunPod 5 s (docs.runpod.io/faq), Vast.ai none
// (docs.vast.ai/documentation/reference/faq/rental-types), Nebius a minute (docs.nebius.com, preemptible machines) and
// CoreWeave at most seven (docs.coreweave.com, spot node pools), by their documentation; 30 s is assumed for the
// others. Labels: EKS, GKE and AKS set the standard ones; IBM's labels name instance types differently than the
// catalog.
constexpr Provider kProviders[] = {
    {.name = "aws",
     .vendor = "AWS",
     .spot_notice = Seconds{120},
     .store = "s3",
     .kubernetes = {.region_label = true,
                    .type_labels = true,
                    .spot = {"eks.amazonaws.com/capacityType", "SPOT"},
                    .spot_remark = "Spot nodes are told by the label of EKS's managed node groups; Karpenter's is "
                                   "karpenter.sh/capacity-type: spot.\n"}},
    {.name = "gcp",
     .vendor = "Google Cloud",
     .store = "gcs",
     .kubernetes = {.region_label = true,
                    .type_labels = true,
                    .spot = {"cloud.google.com/gke-spot", "true"},
                    .spot_taint = true,
                    .attached_gpu = "cloud.google.com/gke-accelerator",
                    .attached_gpus = kGkeGpus}},
    {.name = "azure",
     .vendor = "Microsoft",
     .store = "azure",
     .kubernetes = {.region_label = true,
                    .type_labels = true,
                    .spot = {"kubernetes.azure.com/scalesetpriority", "spot"},
                    .spot_taint = true}},
    {.name = "ibm", .vendor = "IBM Cloud", .store = "ibm", .kubernetes = {.region_label = true}},
    {.name = "genesis", .vendor = "Genesis Cloud"},
    {.name = "coreweave", .vendor = "CoreWeave", .spot_notice = Seconds{420}},
    {.name = "crusoe", .vendor = "Crusoe"},
    {.name = "digitalocean", .vendor = "DigitalOcean", .sky = "do"},
    {.name = "hyperstack", .vendor = "Hyperstack"},
    {.name = "lambda", .vendor = "Lambda"},
    {.name = "nebius", .vendor = "Nebius", .spot_notice = Seconds{60}, .store = "nebius"},
    {.name = "oci", .vendor = "Oracle", .store = "oci"},
    {.name = "ovhcloud", .vendor = "OVHcloud"},
    {.name = "paperspace", .vendor = "Paperspace"},
    {.name = "runpod",
     .vendor = "RunPod",
     .spot_notice = Seconds{5},
     .hosts = "COMMUNITY",
     .bids = "a higher bid or a pod on demand ends a pod 5 s after a notice (docs.runpod.io/faq)"},
    {.name = "scaleway", .vendor = "Scaleway"},
    {.name = "together", .vendor = "Together AI"},
    {.name = "vast",
     .vendor = "Vast.ai",
     .spot_notice = Seconds{0},
     .hosts = "",
     .bids = "a higher bid or a renter on demand stops a machine at once, and it waits until its bid is the highest "
             "again (docs.vast.ai, rental types)"},
    {.name = "verda", .vendor = "Verda"},
    {.name = "private", .owned = true},
    {.name = "local", .owned = true},
};

// The clouds that SkyPilot rents machines from and its tasks may name: ALL_CLOUDS of sky/skylet/constants.py
// @0015e8ecf738, 2026, but for clusters of one's own.
constexpr std::string_view kSkyClouds[] = {
    "aws",     "azure",  "cudo",    "do",         "fluidstack",     "gcp",    "hyperbolic", "ibm",    "lambda",
    "mithril", "nebius", "oci",     "paperspace", "primeintellect", "runpod", "scp",        "seeweb", "shadeform",
    "vast",    "verda",  "vsphere", "yotta"};

}  // namespace

std::span<const Provider> providers() { return kProviders; }

const Provider& provider_of(std::string_view name) {
  static constexpr Provider kUnknown{};
  const auto found = std::find_if(std::begin(kProviders), std::end(kProviders),
                                  [&](const Provider& provider) { return provider.name == name; });
  return found == std::end(kProviders) ? kUnknown : *found;
}

bool is_of_a_host(std::string_view provider, std::string_view instance) {
  const auto hosts = provider_of(provider).hosts;
  return hosts && instance.find(*hosts) != std::string_view::npos;
}

std::string_view provider_of_sky(std::string_view cloud) {
  for (const Provider& provider : kProviders)
    if (provider.sky == cloud) return provider.name;
  return cloud;
}

std::string_view sky_cloud_of(std::string_view provider) {
  const std::string_view own = provider_of(provider).sky;
  const std::string_view name = own.empty() ? provider : own;
  const auto found = std::find(std::begin(kSkyClouds), std::end(kSkyClouds), name);
  return found == std::end(kSkyClouds) ? std::string_view() : *found;
}

std::string vendor_of(std::string_view name) {
  const std::string_view vendor = provider_of(name).vendor;
  return std::string(vendor.empty() ? name : vendor);
}

const Provider& owned_provider() {
  const auto found = std::find_if(std::begin(kProviders), std::end(kProviders),
                                  [](const Provider& provider) { return provider.owned; });
  assert(found != std::end(kProviders));
  return *found;
}

}  // namespace ganymede::platforms
