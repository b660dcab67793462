#pragma once
// A bill that was paid beside the plan of the training, item by item.

#include "documents/forecast.hpp"
#include "documents/result.hpp"
#include "plan/watch.hpp"
#include "traces/bill_file.hpp"

namespace ganymede::plan {

/// `planned` is a simulated run of the plan's scenario, whose items the charges stand beside.
documents::PaidBill paid_beside(const WatchedPlan& plan, const documents::Result& planned,
                                const traces::BillFile& bill);

}  // namespace ganymede::plan
