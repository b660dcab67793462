#pragma once
// A paid bill beside a plan, as a table.

#include <string>

#include "documents/paid_bill.hpp"
#include "report/table.hpp"

namespace ganymede::report {

std::string paid_bill_text(const documents::PaidBill& paid, std::size_t width = kAnyWidth);

}  // namespace ganymede::report
