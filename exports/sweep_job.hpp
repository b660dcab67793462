#pragma once
// Jobs for other schedulers that simulate a study in shards: what the exporters slurm and kubernetes have in common.

#include <string>
#include <vector>

#include "exports/exporter.hpp"
#include "report/documents.hpp"

namespace ganymede::exports {

/// A study and how it is split.
struct SweepJob {
  std::string name;    ///< a label (launch.hpp), from --name or the study's name
  std::string title;   ///< the study's name as it stands
  std::string study;   ///< path of the study, as the user named it
  std::string folder;  ///< path of the folder of shards; empty: the exporter's own choice
  int shards = 1;
  int cpus = 1;  ///< of each shard, which runs as many simulations at once
};

/// The options that read_sweep_job() needs, except for `name`.
std::vector<ExportOption> sweep_job_options();

/// Reads a study's name. Throws ConfigError if the document is no study.
SweepJob read_sweep_job(const report::Document& document, const ExportValues& values);

/// Manifests of an indexed Job with a pod for each shard, a claim for their folder and a ConfigMap with the study.
/// Throws ConfigError if the study names files that pods do not have.
std::string kubernetes_sweep(const report::Document& document, const ExportValues& values, const std::string& image);

}  // namespace ganymede::exports
