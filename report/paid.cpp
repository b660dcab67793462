#include "report/paid.hpp"

#include <fmt/format.h>

#include <cmath>

#include "common/usd.hpp"
#include "report/numbers.hpp"

namespace ganymede::report {

std::string paid_bill_text(const documents::PaidBill& paid, std::size_t width) {
  const auto cents = [](double amount) { return fmt::format("{:.2f}", amount); };
  const double planned = usd_of(paid.planned_usd), billed = usd_of(paid.paid_usd), more = billed - planned;
  std::string out = fmt::format("Paid {} USD; planned {} USD ({} .. {})", usd(billed), usd(planned),
                                usd(paid.plan_interval_usd.low), usd(paid.plan_interval_usd.high));
  if (std::abs(more) < 0.005)
    out += ": as planned";
  else if (planned > 0)
    out += fmt::format(": {} {} than planned", percent(std::abs(more) / planned), more < 0 ? "less" : "more");
  out += ".\n";
  if (!paid.items.empty() && std::abs(paid.items.front().difference_usd) >= 0.005 && !paid.items.front().why.empty())
    out += fmt::format("Most of it: {}, {}.\n", paid.items.front().item, paid.items.front().why);
  out += fmt::format("{} ({}), {} rows{}; the plan rents {} x {}\n", paid.bill, paid.dialect, paid.rows,
                     paid.from.empty() ? "" : fmt::format(" from {} to {}", paid.from, paid.to), paid.nodes,
                     paid.instance);
  for (const std::string& note : paid.notes) out += note + "\n";
  Table items({"item", ">planned", ">paid", "unit", ">planned USD", ">paid USD", ">difference", "why"});
  for (const documents::PaidItem& item : paid.items)
    items.add({item.item, item.unit.empty() ? "" : fmt::format("{:.4g}", item.planned),
               item.unit.empty() ? "" : fmt::format("{:.4g}", item.paid), item.unit, cents(usd_of(item.planned_usd)),
               cents(usd_of(item.paid_usd)), fmt::format("{:+.2f}", item.difference_usd), item.why});
  items.rule();
  items.add({"total", "", "", "", cents(planned), cents(billed), fmt::format("{:+.2f}", more), ""});
  return wrap_prose(out, width) + "\n" + items.text(width);
}

}  // namespace ganymede::report
