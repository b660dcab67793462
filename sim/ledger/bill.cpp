#include "sim/ledger/bill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "common/errors.hpp"
#include "sim/ledger/nanoseconds.hpp"

namespace ganymede {
namespace {

constexpr double kSecondsPerHour = 3600;

}  // namespace

MicroUsd Bill::total() const {
  MicroUsd sum;
  for (const BillItem& item : items) {
    if (__builtin_add_overflow(sum.value, item.usd.value, &sum.value)) throw Failure("the bill's total does not fit");
  }
  return sum;
}

Seconds billed_time(Seconds metered, const BillingRule& rule) {
  const std::int64_t granularity = whole_nanoseconds(rule.granularity);
  assert(granularity > 0);
  const std::int64_t time = std::max(whole_nanoseconds(metered), whole_nanoseconds(rule.minimum));
  const std::int64_t units = time / granularity + (time % granularity != 0 ? 1 : 0);
  return static_cast<double>(units) * rule.granularity;
}

BillItem instance_hours(std::string pool, std::int64_t nodes, MicroUsdPerHour price, Seconds metered,
                        const BillingRule& rule) {
  assert(nodes > 0 && price.value >= 0);
  MicroUsdPerHour all;
  if (__builtin_mul_overflow(nodes, price.value, &all.value)) {
    throw Failure(fmt::format("the price of {} nodes at {} does not fit", nodes, to_string(price)));
  }
  const Seconds billed = billed_time(metered, rule);
  return {.item = "instance-hours",
          .pool = std::move(pool),
          .quantity = static_cast<double>(nodes) * billed.si / kSecondsPerHour,
          .unit = "h",
          .unit_price = {price.value},
          .usd = cost(all, billed)};
}

}  // namespace ganymede
