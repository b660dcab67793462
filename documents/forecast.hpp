#pragma once
// How a training under way compares with its plan, `ganymede.forecast/1`.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_fwd.hpp"
#include "documents/paid_bill.hpp"
#include "documents/plan.hpp"
#include "documents/walk.hpp"

namespace ganymede::documents {

inline constexpr std::string_view kForecastSchema = "ganymede.forecast/1";

/// When the run gets to the FID of its plan, by what its log has measured.
struct WatchedQuality {
  double fid = 0;
  std::int64_t points = 0;
  bool reached = false;
  std::optional<double> best_seen;
  double probability = 0;
  std::optional<Measure> images, time_s, usd;
  std::vector<QualityPoint> curve;
  std::vector<std::string> notes;
};

/// The nodes that the plan's policy would hold now.
struct WatchedDecision {
  struct Pool {
    std::string pool;
    int nodes = 0, nodes_now = 0;
  };
  std::string policy;
  bool changes = false, pause = false;
  std::vector<Pool> pools;
};

/// Seconds count from the request of the nodes.
struct Forecast {
  struct Deadline {
    std::optional<double> seconds, probability;
    double certainty = 0;
  };
  std::string log, plan, model, instance;
  int nodes = 1, gpus = 1;
  std::string state;
  int resumptions = 0, cut_lines = 0;
  std::int64_t steps_done = 0, steps = 0;
  double done_share = 0, last_line_unix_s = 0, setup_s = 0, elapsed_s = 0, paused_s = 0;
  std::optional<double> step_s, plan_step_s;
  bool step_is_measured = false;
  Measure time_s, plan_time_s;
  std::string ends_at;
  double usd_per_hour = 0, spent_usd = 0;
  Measure usd, plan_usd;
  std::optional<WatchedQuality> quality;
  Deadline deadline;
  std::optional<WatchedDecision> decision;  ///< none after the end
  std::vector<std::string> warnings;
  std::optional<PaidBill> bill;
};

void describe(Walk& walk, Forecast& forecast);
OrderedJson forecast_json(const Forecast& forecast);

}  // namespace ganymede::documents
