#include "sim/ledger/bill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "sim/ledger/ledger.hpp"

namespace ganymede::sim {

std::int64_t billed_time(std::int64_t metered, const BillingRule& rule) {
  const std::int64_t granularity = whole_nanoseconds(rule.granularity);
  assert(granularity > 0 && metered >= 0);
  const std::int64_t time = std::max(metered, whole_nanoseconds(rule.minimum));
  const std::int64_t whole = time / granularity, over = time % granularity;
  // The first unit is billed even if only a nanosecond of it was used.
  const std::int64_t units = whole + (over > (whole > 0 ? kNoiseNanoseconds : 0) ? 1 : 0);
  std::int64_t billed = 0;
  if (__builtin_mul_overflow(units, granularity, &billed)) throw Failure("a billed time does not fit");
  return billed;
}

std::int64_t Rental::billed_until(const BillingRule& rule) const {
  if (interrupted && to - from < whole_nanoseconds(rule.free_if_interrupted)) return from;
  return from + billed_time(to - from, rule);
}

namespace {

__extension__ typedef __int128 Wide;

/// Nanoseconds of 730 h.
constexpr std::int64_t kMonth = 730 * 3'600'000'000'000;
constexpr Wide kNanosecondsPerHour = 3'600'000'000'000;

/// price x time / hour, to the nearest micro-dollar, halves up.
MicroUsd amount_for(std::int64_t price, Wide node_nanoseconds) {
  Wide product;
  if (__builtin_mul_overflow(Wide{price}, node_nanoseconds, &product) ||
      (product + kNanosecondsPerHour / 2) / kNanosecondsPerHour > INT64_MAX)
    throw Failure("an item of the bill does not fit");
  return {static_cast<std::int64_t>((product + kNanosecondsPerHour / 2) / kNanosecondsPerHour)};
}

BillItem hours_item(const std::string& pool, MicroUsdPerHour price, Wide node_nanoseconds) {
  return {.item = "instance-hours",
          .pool = pool,
          .quantity = static_cast<double>(node_nanoseconds) / static_cast<double>(kNanosecondsPerHour),
          .unit = "h",
          .unit_price = {price.value},
          .usd = amount_for(price.value, node_nanoseconds)};
}

/// Returns time[month][count]: the nanoseconds of a month in which `count` rentals ran at once.
std::map<std::int64_t, std::map<std::int64_t, Wide>> time_by_concurrency(std::span<const Rental> rentals,
                                                                         const BillingRule& rule) {
  std::map<std::int64_t, std::int64_t> changes;
  for (const Rental& rental : rentals) {
    const std::int64_t until = rental.billed_until(rule);
    if (until == rental.from) continue;
    ++changes[rental.from];
    --changes[until];
  }
  std::map<std::int64_t, std::map<std::int64_t, Wide>> time;
  std::int64_t count = 0, at = 0;
  for (const auto& [when, change] : changes) {
    while (count > 0 && at < when) {
      const std::int64_t month = at / kMonth;
      const std::int64_t until = std::min(when, (month + 1) * kMonth);
      time[month][count] += until - at;
      at = until;
    }
    at = when;
    count += change;
  }
  return time;
}

}  // namespace

std::vector<BillItem> instance_hours(const std::string& pool, MicroUsdPerHour price, std::span<const Rental> rentals,
                                     const BillingRule& rule) {
  std::vector<BillItem> items;
  if (rule.sustained_use.empty()) {
    Wide billed = 0;
    for (const Rental& rental : rentals) billed += rental.billed_until(rule) - rental.from;
    if (billed > 0) items.push_back(hours_item(pool, price, billed));
    return items;
  }
  std::vector<Wide> by_part(rule.sustained_use.size(), 0);
  const auto part = kMonth / static_cast<std::int64_t>(by_part.size());
  for (const auto& [month, of_month] : time_by_concurrency(rentals, rule)) {
    // The k-th of the instances that run at once runs whenever at least k do. From the highest count down, `levels`
    // instances run for the same time `used`.
    Wide used = 0;
    for (auto entry = of_month.rbegin(); entry != of_month.rend(); ++entry) {
      used += entry->second;
      const auto below = std::next(entry);
      const std::int64_t levels = entry->first - (below == of_month.rend() ? 0 : below->first);
      Wide left = used;
      for (std::size_t i = 0; i < by_part.size() && left > 0; ++i) {
        const Wide here = i + 1 == by_part.size() ? left : std::min<Wide>(left, part);
        by_part[i] += levels * here;
        left -= here;
      }
    }
  }
  for (std::size_t i = 0; i < by_part.size(); ++i) {
    if (by_part[i] == 0) continue;
    const double share = rule.sustained_use[i];
    BillItem item = hours_item(pool, {std::llround(static_cast<double>(price.value) * share)}, by_part[i]);
    item.list_price = {price.value};
    if (share != 1) item.item += fmt::format(" at {:g} % (sustained use)", 100 * share);
    items.push_back(std::move(item));
  }
  return items;
}

BillItem charge(std::string item, std::string pool, double quantity, std::string unit, MicroUsd unit_price) {
  const double usd = quantity * static_cast<double>(unit_price.value);
  if (!(std::abs(usd) < 9e18)) throw Failure(fmt::format("the amount of \"{}\" does not fit", item));
  return {.item = std::move(item),
          .pool = std::move(pool),
          .quantity = quantity,
          .unit = std::move(unit),
          .unit_price = unit_price,
          .usd = {std::llround(usd)}};
}

void fill_tiers(double before, double volume, std::span<const platforms::PriceTier> tiers,
                std::vector<double>& quantities) {
  quantities.resize(tiers.size());
  const double last = before + volume;
  double done = before;
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    const double end = tiers[i].up_to ? std::min(last, *tiers[i].up_to) : last;
    if (end > done) quantities[i] += end - done;
    done = std::max(done, end);
  }
}

std::vector<BillItem> tiered(const std::string& item, const std::string& pool, std::span<const double> quantities,
                             platforms::VolumeUnit unit, std::span<const platforms::PriceTier> tiers) {
  std::vector<BillItem> items;
  for (std::size_t i = 0; i < quantities.size(); ++i)
    if (quantities[i] > 0)
      items.push_back(charge(item, pool, quantities[i], platforms::unit_name(unit), tiers[i].price));
  return items;
}

}  // namespace ganymede::sim
