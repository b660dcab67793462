#pragma once
// The answer to what to rent, `ganymede.plan/1`, and to what its choice hangs on, `ganymede.why/1`. The comments of
// members say what the descriptions (plan.cpp) do not.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "documents/walk.hpp"

namespace ganymede::documents {

inline constexpr std::string_view kPlanSchema = "ganymede.plan/1";

/// The median over the seeds, and the interval with all stated error.
struct Measure {
  static constexpr std::string_view kTypeName = "measure";
  double median = 0;
  Interval interval;
};

struct PlanUsd {
  double median = 0;
  Interval interval;
  /// With doubtful prices at their high ends: candidates are compared by it.
  std::optional<double> at_worst_prices;
  std::optional<double> expected, worst_tenth;  ///< means of the runs and of their dearest tenth
};

struct PlanPrice {
  MicroUsdPerHour usd_per_hour;
  std::string as_of, source;
  std::optional<std::string> doubt;  ///< why it is doubtful; none if it is not
  Interval factors;                  ///< the bill's prices may be so many times as high
};

/// The FID on the way, against the images and dollars of a candidate.
struct QualityPoint {
  double images = 0, usd = 0;
  Measure best_fid;
};

/// A training to an FID as a plan's candidate runs it.
struct PlanQuality {
  struct Checks {
    double every_images = 0, pause_s = 0, count = 0, images_beyond = 0;
  };
  double batch = 0;
  Measure images;
  double never = 0, usd_per_image = 0;
  std::optional<double> usd_per_point;
  std::optional<Checks> checks;
  std::vector<QualityPoint> curve;  ///< of the chosen candidate
};

/// A candidate, and if it was simulated what it comes to.
struct PlanRow {
  static constexpr std::string_view kTypeName = "row";
  std::string provider, region, market, instance;
  int nodes = 0, on_demand_nodes = 0, gpus_per_node = 0;
  bool part_of_instance = false;  ///< it uses fewer GPUs of a node than there are
  std::string gpu;
  int gpus = 0;
  std::optional<int> batch_per_gpu;
  std::string scheme, policy;
  std::optional<std::string> checkpoint;
  std::optional<MicroUsdPerHour> usd_per_hour;  ///< of all nodes
  std::string prices_as_of;
  std::optional<PlanPrice> price;  ///< of a node
  std::string verdict = "meets";
  Interval bounds;  ///< the least time in seconds, and the least cost in dollars
  std::string owned, reason;

  /// True if the members below, which come of its simulation, are there.
  bool simulated() const { return verdict == "meets" || verdict == "misses"; }
  Measure time_s;
  PlanUsd usd;
  std::optional<Measure> kg_co2e;
  std::optional<PlanQuality> quality;
  double gpu_busy = 0;
  std::optional<double> images_per_s;
  double losses_mean = 0, met_share = 0;
  std::optional<double> lost_s, saved_every_s;
  std::optional<double> probability;
  int probability_runs = 0;  ///< that it is the mean of; 0: of `seeds`
  int seeds = 0, never_finish = 0;
  std::string risk = "none", inputs;
  bool chosen = false;

  JsonText scenario;  ///< of the chosen candidate
  std::optional<std::vector<std::string>> warnings;
};

/// The request, as far as the answer repeats it.
struct PlanRequest {
  std::string model, trace, device;
  int batch_per_gpu = 0;
  std::vector<int> batches_per_gpu;
  std::optional<std::int64_t> images;
  std::optional<double> fid;
  std::optional<std::string> deadline;
  std::optional<Seconds> deadline_s;
  std::optional<std::string> start;
  std::optional<MicroUsd> budget;
  std::string objective = "cost";
  int seeds = 1, seeds_without_risk = 0;
  double certainty = 0;
  bool sure = false;
  std::uint64_t seed = 0;
  std::vector<std::string> schemes;
  std::optional<std::string> prices_aged_to;
  int max_price_age_days = 0;
  std::vector<std::string> catalogs;

  bool has_goals() const { return deadline_s || budget; }
};

/// A step of one GPU by itself.
struct PlanStep {
  std::string gpu;
  int batch_per_gpu = 0;
  double seconds = 0;
  Interval interval_s;
  std::string inputs, how;
};

struct Plan {
  struct Searched {
    std::int64_t candidates = 0, too_slow = 0, too_dear = 0, too_rare = 0, beaten = 0, impossible = 0, simulated = 0,
                 meeting = 0, untried = 0;
  };
  struct Cards {
    PlanRow cheapest, balanced, safest;
  };
  struct CannotRun {
    std::int64_t candidates = 0;
    std::string reason;
  };

  PlanRequest request;
  std::string effort = "normal";
  Searched searched;
  std::vector<PlanStep> steps;
  std::optional<PlanRow> chosen;
  std::optional<Cards> cards;
  std::optional<std::vector<PlanRow>> more_money;
  std::optional<PlanRow> best_of_known_risk;
  std::vector<PlanRow> best_of_each, pareto, near_misses;
  std::vector<std::string> left_out;
  std::vector<CannotRun> cannot_run;
  std::vector<PlanRow> simulated;
  std::map<std::string, std::string> missed;
  JsonText asked;  ///< the request, from which the plan can be made again
  std::string tool, caveat;
  JsonText request_content;
  std::map<std::string, std::string> file_hashes;
};

struct Why {
  struct HangsOn {
    std::string what, unit;
    double now = 0, tried = 0;
    std::optional<double> threshold;     ///< none: the choice does not change up to `tried`
    std::optional<PlanRow> to;           ///< what is chosen beyond the threshold; none: nothing meets the goals
    std::optional<std::string> without;  ///< why there is nothing to change
  };
  PlanRequest request;
  PlanRow chosen;
  std::vector<PlanStep> steps;
  std::vector<HangsOn> hangs_on;
  std::string tool;
};

void describe(Walk& walk, Measure& measure);
void describe(Walk& walk, QualityPoint& point);
void describe(Walk& walk, Plan& plan);
void describe(Walk& walk, PlanRow& row);
void describe(Walk& walk, Why& why);

std::string plan_text(const Plan& plan);
std::string why_text(const Why& why);
OrderedJson row_json(const PlanRow& row);
/// Throws ConfigError, located, unless `node` is a plan. Members of newer programs are passed over.
Plan read_plan(const JsonNode& node);
/// The same for values in memory, which errors call "plan" and "why".
Plan plan_in(const Json& value);
Why why_in(const Json& value);

}  // namespace ganymede::documents
