#pragma once
// A bill that was paid beside the plan of the training, `ganymede.paid-bill/1`.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/units.hpp"
#include "documents/walk.hpp"

namespace ganymede::documents {

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

}  // namespace ganymede::documents
