#pragma once
// Kubernetes manifests that train what was simulated on the nodes that were simulated: a claim for data, the scripts, a
// Job and its Service or a JobSet, and a Deployment that shows the checkpoint afterwards.

#include <string>

#include "exports/launch.hpp"

namespace ganymede::exports {

struct KubernetesOptions {
  std::string name = {};            ///< name of the job; empty: model and instance
  bool jobset = false;              ///< a JobSet (jobset.x-k8s.io/v1alpha2) instead of Job (batch/v1) and Service
  std::string image = {};           ///< container image
  bool placeholder = false;         ///< the user named no image; `image` is a placeholder
  std::string command = {};         ///< a line for bash that trains; empty: `ganymede train`
  std::string dataset = "builtin";  ///< "builtin", or a folder in the claim
  int disk_gb = 256;                ///< size of the claim in GiB
};

/// Returns YAML documents separated by "---", in the order in which the cluster must create them. Throws ConfigError
/// for a name that is no label and for a dataset outside the claim.
std::string kubernetes_manifests(const Launch& launch, const KubernetesOptions& options);

}  // namespace ganymede::exports
