#pragma once
// A request, `ganymede.request/1`: what to train, the deadline, the budget, and where to search.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibration/quality/goal.hpp"
#include "common/json_value.hpp"
#include "platforms/platform.hpp"
#include "platforms/price_doubt.hpp"
#include "policies/policy.hpp"
#include "sim/scenario/scenario.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::plan {

enum class Objective {
  cost,          ///< the median cost over the seeds
  time,          ///< the median time over the seeds
  carbon,        ///< the median CO2e over the seeds
  risk_neutral,  ///< the expected cost, over seeds and stated error of the time
  risk_averse    ///< the mean cost of the worst tenth of these outcomes
};
std::string_view to_string(Objective objective);

/// A policy that the search tries.
struct RequestPolicy {
  Json content;  ///< as the member "policy" of a scenario
  const policies::Policy* policy = nullptr;
  std::string name() const { return content["name"].get<std::string>(); }
};

/// What `ganymede why` changes to find out what a choice hangs on (what_if.hpp). The default changes nothing.
struct WhatIf {
  std::string gpu;  ///< the GPU whose steps take `step_factor` times as long
  double step_factor = 1;
  std::string instance, region;  ///< whose spot nodes are taken back `loss_factor` times as often
  double loss_factor = 1;
};

struct EvaluationCaches;  // plan/evaluate.hpp

struct Request {
  std::string file;  ///< for error messages
  /// What simulations leave for later ones; changed copies of the request share it.
  std::shared_ptr<EvaluationCaches> caches;
  /// The request as it was read, flags included, and the hashes of the trace and the catalogs by JSON pointer.
  Json content, file_hashes;
  Json common;  ///< members that the scenarios of all candidates share: workload, storage, billing, …
  traces::StepTrace trace;
  /// A batch size to try.
  struct Batch {
    int per_gpu = 0;                  ///< images on each GPU in each step
    std::vector<std::size_t> stages;  ///< indices into trace.batches; one entry unless the model grows
    int passes = 1;                   ///< of a step; each trains per_gpu / passes images
    std::vector<int> gpus = {};       ///< numbers of GPUs for which it is, ascending; empty: any
  };
  std::vector<Batch> batches;        ///< ascending
  int accumulation_steps = 1;        ///< passes of a step that the request states
  std::vector<double> stage_shares;  ///< share of the images that each stage trains; sums to 1
  double stage_variation = 0;        ///< largest relative change of a stage's length with the seed
  std::int64_t images = 0;           ///< number of images to train in total; 0 if an FID is the goal
  /// The FID to reach, by a model of recorded trainings; how many images it takes depends on the batch.
  std::optional<calibration::QualityGoal> quality;
  /// Evaluations whose interval the plan chooses for each candidate: "every" is "best".
  std::optional<sim::Evaluation> checks;
  std::string trace_choice;  ///< the trace's name, and why it was picked if the request names none

  std::optional<Seconds> deadline;  ///< since the request
  std::string start;  ///< the time of the request if the deadline is a time, such as "2026-12-01T09:00:00Z"; else empty
  std::string deadline_text;  ///< as the request states it
  std::optional<MicroUsd> budget;
  Objective objective = Objective::cost;

  struct Catalog {
    std::string name;        ///< as a scenario would name it
    std::uint64_t hash = 0;  ///< of its text
    std::shared_ptr<const platforms::Platform> platform;
  };
  std::vector<Catalog> catalogs;
  std::vector<std::string> gpus, instances, regions;  ///< names to search among; all if empty
  std::vector<std::string> gpu_names;                 ///< the GPUs of the catalogs that `gpus` names
  std::vector<platforms::Market> markets;
  int min_gpus = 1, max_gpus = 16;
  std::vector<std::string> schemes;  ///< all-reduce schemes of which the fastest is taken
  std::vector<RequestPolicy> on_demand_policies, spot_policies;
  /// Policies for allocations of spot and on-demand nodes together; such allocations are not tried if this is empty.
  std::vector<RequestPolicy> mixed_policies;
  std::string recipe_saves;              ///< such as "200000 images": the default of `checkpoints`; empty: not known
  std::vector<std::string> checkpoints;  ///< intervals to try if nodes may be lost; "": the training saves nothing
  /// Whether the training saves itself within the notice before its nodes are taken back; none: it is not said, and
  /// assumed.
  std::optional<bool> on_notice;
  platforms::PriceAge price_age;  ///< the age up to which a price is not doubtful
  int seeds = 5;                  ///< runs of a candidate whose nodes cannot be lost
  int seeds_at_risk = 20;         ///< runs of a candidate whose nodes may be lost at random
  double certainty = 0.9;         ///< least probability to meet the goals, by seeds and all stated error
  bool sure = false;              ///< the upper ends of the runs' intervals must meet the goals too
  std::uint64_t seed = 0;         ///< seed of the first run; each further one has the next seed
  WhatIf what_if;
};

/// The names of all objectives, in the order of the enumeration.
std::vector<std::string> objective_names();

/// The request as a `ganymede.request/1` that asks the same from a file in `folder`: what defaults and flags have set
/// is written out, and paths are relative to `folder`.
Json request_document(const Request& request, const std::filesystem::path& folder);
/// The relative path by which a file in `folder` names `path`.
std::string path_from(const std::filesystem::path& folder, const std::string& path);
/// The same of a trace, which may be a recipe's; one that comes with the program keeps its name.
std::string trace_from(const std::filesystem::path& folder, const std::string& trace);

/// Reads a request. Throws ConfigError, with file and JSON pointer, if something is wrong or contradicts itself. `now`
/// is the time in UTC from which a deadline that is a time counts, unless the request has a "start", and to whose day
/// the age of prices counts, unless the request names another; empty: no dated price is old.
Request read_request(const JsonNode& node, const std::string& now);

/// Leaves out of the program's own catalogs the instances that a platform file of the request has too: its prices are
/// meant.
void prefer_files(Request& request);

}  // namespace ganymede::plan
