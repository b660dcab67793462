#pragma once
// Parts of kubernetes.cpp: pods, the script in them, and what shows the checkpoint.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/kubernetes.hpp"

namespace ganymede::kubernetes {

inline constexpr const char* kVolume = "data";

/// Of everything that is made; `base` is a label.
struct Names {
  static constexpr const char* kReplicated = "train";
  std::string base;
  bool jobset = false;

  std::string claim() const { return base + "-data"; }
  std::string scripts() const { return base + "-scripts"; }
  std::string keys() const { return base + "-ssh"; }
  std::string show() const { return base + "-show"; }
  /// Pod i has the host name pods()-i (JobSet: set, job, its index).
  std::string pods() const { return jobset ? base + "-" + kReplicated + "-0" : base; }
};

/// How to apply, and what must be there first: comment text.
std::string head(const Launch& launch, const KubernetesOptions& options, const Names& names);

std::string train_script(const Launch& launch, const TrainCommand& command);

nlohmann::ordered_json training_pod(const Launch& launch, const KubernetesOptions& options, const TrainCommand& command,
                                    const Names& names);

/// A Deployment and its Service.
std::vector<nlohmann::ordered_json> show(const KubernetesOptions& options, const Names& names);

}  // namespace ganymede::kubernetes
