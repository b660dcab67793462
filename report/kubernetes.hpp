#pragma once
// Kubernetes manifests that train what was simulated on the nodes that were simulated: a claim for data, the scripts, a
// Job and its Service or a JobSet, and a Deployment that shows the checkpoint afterwards.

#include <string>

#include "report/launch.hpp"

namespace ganymede {

struct KubernetesOptions {
  std::string name = {};            ///< empty: model and instance
  bool jobset = false;              ///< a JobSet (jobset.x-k8s.io/v1alpha2) instead of Job (batch/v1) and Service
  std::string image = {};           ///< container image
  bool placeholder = false;         ///< that image is none of the user's
  std::string command = {};         ///< empty: `ganymede train`
  std::string dataset = "builtin";  ///< "builtin", or a folder in the claim
  int disk_gb = 256;                ///< of the claim, in GiB
};

/// Documents separated by "---", in the order in which they are to be made.
std::string kubernetes_manifests(const Launch& launch, const KubernetesOptions& options);

}  // namespace ganymede
