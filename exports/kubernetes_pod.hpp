#pragma once
// The pods of kubernetes.cpp that train: on which nodes they run, their environment and their script.

#include <string>

#include "common/json_value.hpp"
#include "exports/kubernetes.hpp"

namespace ganymede::exports::kubernetes {

/// The volume of data and checkpoints, in each pod.
inline constexpr const char* kVolume = "data";

/// The names of all objects in the manifests. `base` is a label (launch.hpp).
struct Names {
  static constexpr const char* kReplicated = "train";  ///< the job of a JobSet
  std::string base;
  bool jobset = false;

  std::string claim() const { return base + "-data"; }
  std::string scripts() const { return base + "-scripts"; }
  std::string keys() const { return base + "-ssh"; }
  std::string show() const { return base + "-show"; }
  /// The host name of pod i is pods() + "-i". In a JobSet it is made of the set, its job and the job's index.
  std::string pods() const { return jobset ? base + "-" + kReplicated + "-0" : base; }
};

/// The beginning of an object in the manifests, below a comment if there is one.
inline OrderedJson manifest(const char* version, const char* kind, const std::string& name, const OrderedJson& labels,
                            const std::string& comment = "") {
  OrderedJson out;
  if (!comment.empty()) out["#comment"] = comment;
  out["apiVersion"] = version;
  out["kind"] = kind;
  out["metadata"] = {{"name", name}, {"labels", labels}};
  return out;
}

/// The volume of a pod that is the claim for data and checkpoints.
OrderedJson volume_claim(const Names& names);

/// Sets on which nodes of the cluster a pod runs.
void place(const Launch& launch, OrderedJson& pod);

/// Comment text: how to apply the manifests, and what must be in the cluster first.
std::string head(const Launch& launch, const KubernetesOptions& options, const Names& names);

/// The bash script that every pod runs.
std::string train_script(const Launch& launch, const TrainCommand& command);

/// The specification of a pod that trains.
OrderedJson training_pod(const Launch& launch, const KubernetesOptions& options, const TrainCommand& command,
                         const Names& names);

}  // namespace ganymede::exports::kubernetes
