#pragma once
// What a description of a job asks for: a task of SkyPilot, a script of Slurm, or manifests of Kubernetes (Job, Kueue's
// and Volcano's jobs, PyTorchJob, JobSet and whatever else has pods with GPUs in it).

#include <optional>
#include <string>
#include <vector>

#include "platforms/platform.hpp"

namespace ganymede::studies {

constexpr int kMostAskedNodes = 65536;

struct AskedResources {
  std::string format;  ///< "SkyPilot task", "Slurm script" or "Kubernetes manifest"
  std::string gpu;     ///< as the file names it; "": it does not say which
  int gpus_per_node = 0, nodes = 1;
  std::string cloud = {}, region = {}, instance = {};  ///< "": any
  bool spot = false;
  std::optional<Seconds> time = {};  ///< the limit of a Slurm script
  std::vector<std::string> notes = {};
  int choice = 0, choices = 1;  ///< which of the file's alternatives this is, and how many there are
  struct Taken {
    std::size_t place;
    bool by_preference;  ///< the list's alternatives stand in this order
  };
  std::vector<Taken> path = {};  ///< what `choice` takes of each list of several alternatives, outermost first
};

/// Reads a file. Throws ConfigError, with the line where there is one, for text that is none of these and for files
/// that ask for no GPU. Of alternatives it takes the one that `choice` says, counted from 0; one of several may ask for
/// no GPU and no instance type.
AskedResources read_task_file(const std::string& file, int choice = 0);

/// Reads the options of a script for sbatch (man sbatch). Throws ConfigError, with the line, for values it cannot read.
AskedResources read_slurm_script(const std::string& file, const std::string& text);

}  // namespace ganymede::studies
