#pragma once
// A scenario, `ganymede.scenario/1`: what to train, on what, how. Read once, strictly, into a struct whose references
// all resolve; past this point nothing is looked up by name.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "platforms/platform.hpp"
#include "policies/policy.hpp"
#include "sim/collectives/allreduce.hpp"
#include "traces/step_trace.hpp"

namespace ganymede {

struct Dataset {
  std::string name;
  std::int64_t images = 0;
  double bytes_per_image = 0;
};

enum class Fidelity { sampled, message };

struct Scenario {
  std::string file;
  std::string hash;  ///< of the scenario, its trace and its platform: 16 hexadecimal digits

  StepTrace trace;
  std::size_t batch_entry = 0;  ///< of trace.batches
  Dataset dataset;
  std::int64_t steps = 0;   ///< of the whole run
  std::int64_t images = 0;  ///< real images trained on: the last batch of an epoch may be padded

  Platform platform;
  std::string catalog;  ///< as the scenario names it
  Pool pool;            ///< instance, region, market, nodes, gpus_per_node
  Price price;

  Scheme scheme;
  bool overlap = true;
  const Policy* policy = nullptr;
  Fidelity fidelity = Fidelity::sampled;
  double precision = 0.005;  ///< relative half-width at which sampling stops
  std::uint64_t seed = 0;
  std::vector<std::string> warnings;  ///< what it asks for that a run leaves out

  const Instance& instance() const { return platform.instance(pool.instance); }
  const Gpu& gpu() const { return platform.gpu_of(instance()); }
  const TraceBatch& batch() const { return trace.batches[batch_entry]; }
  int workers() const { return pool.nodes * pool.gpus_per_node; }
};

/// ConfigError with file and pointer for anything that is wrong, Infeasible if the model does not fit the GPU's memory.
Scenario read_scenario(const JsonNode& node);
Scenario load_scenario(const std::filesystem::path& file, const std::vector<JsonOverride>& overrides = {});

/// GPU memory of one worker, from the trace: the sum over its kinds, without those on the host ("host...").
Bytes gpu_memory(const TraceBatch& batch);

}  // namespace ganymede
