#include "cli/price_age.hpp"

#include <fmt/format.h>

#include "common/dates.hpp"
#include "platforms/price_drift.hpp"

namespace ganymede::cli {

std::string today() { return format_time(stated_now()).substr(0, 10); }

void remark_price_age(const Shared& shared, const std::string& date) {
  if (!is_date(date)) return;
  const int days = days_between(date, today());
  if (days > platforms::kFreshDays)
    remark(shared,
           fmt::format("prices are of {}, {} days old; `ganymede catalog --update` merges new ones", date, days));
}

void remark_price_age(const Shared& shared, const sim::Scenario& scenario) {
  std::string oldest;
  for (const sim::ScenarioPool& pool : scenario.pools)
    if (!pool.price.ownership && is_date(pool.price.as_of) && (oldest.empty() || pool.price.as_of < oldest))
      oldest = pool.price.as_of;
  remark_price_age(shared, oldest);
}

}  // namespace ganymede::cli
