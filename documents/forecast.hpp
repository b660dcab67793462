#pragma once
// How a training under way compares with its plan, `ganymede.forecast/1`.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "documents/plan.hpp"
#include "documents/walk.hpp"

namespace ganymede::documents {

// A bill that was paid beside the plan of the training, `ganymede.paid-bill/1`.

inline constexpr std::string_view kPaidBillSchema = "ganymede.paid-bill/1";

/// One kind of charge, planned and paid.
struct PaidItem {
  std::string item;                ///< "instance-hours", "storage", "data transfer", "tax", ...
  std::string unit;                ///< of both quantities; "": none, or several
  double planned = 0, paid = 0;    ///< quantities
  MicroUsd planned_usd, paid_usd;  ///< amounts
  double difference_usd = 0;       ///< paid less planned
  std::string why;                 ///< a sentence without its end; "": as planned
};

struct PaidBill {
  std::string plan, bill, dialect;  ///< files; "FOCUS", "AWS CUR" or "AWS CUR 2.0"
  std::string instance, from, to;   ///< the plan's; the first and the last time of the bill
  int nodes = 1;
  std::int64_t rows = 0, skipped = 0, outside = 0;
  MicroUsd planned_usd, paid_usd;  ///< the former of one run with the plan's seed, whose items are below
  double plan_usd = 0;             ///< the plan's own figure: the median of its runs
  Interval plan_interval_usd;
  std::vector<PaidItem> items;  ///< the largest difference first
  std::vector<std::string> notes;
};

void describe(Walk& walk, PaidBill& paid);
std::string paid_bill_text(const PaidBill& paid);

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
