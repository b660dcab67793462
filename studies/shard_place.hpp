#pragma once
// The shard that a process does, as --shard and the program that started it say.

#include <functional>
#include <string>

#include "studies/shards.hpp"

namespace ganymede::studies {

/// The value of an environment variable; null if it is not set.
using ReadVariable = std::function<const char*(const char* name)>;

/// Reads "3/64", "auto" or "auto/64". `auto` takes the place that Slurm, mpirun or Kubernetes says in the environment:
/// in an array of jobs, among the ranks of a job, or both together. Indices may count from 0 or from 1: the last of 64
/// shards is 63/64, and 64/64 is 0/64. Throws ConfigError for an index beyond the count, and if the environment says
/// too little.
Shard read_shard(const std::string& text, const ReadVariable& variable);

}  // namespace ganymede::studies
