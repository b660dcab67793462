#include "report/paid.hpp"

#include <fmt/format.h>

#include <cmath>

#include "common/printable.hpp"
#include "common/usd.hpp"
#include "report/numbers.hpp"

namespace ganymede::report {

std::string paid_bill_text(const documents::PaidBill& paid, std::size_t width) {
  const auto rounded = [](double amount) { return std::abs(amount) < 0.005 ? 0 : amount; };  // and never -0.00
  const auto cents = [&](double amount) { return fmt::format("{:.2f}", rounded(amount)); };
  const double planned = usd_of(paid.planned_usd), billed = usd_of(paid.paid_usd), more = billed - planned;
  const bool as_planned = std::abs(more) < 0.005;
  // The bill stands beside one run. Where the plan's median is another figure, both are said.
  const std::string interval =
      fmt::format("({} .. {})", usd(paid.plan_interval_usd.low), usd(paid.plan_interval_usd.high));
  const bool differs = std::abs(planned - paid.plan_usd) > 0.02 * paid.plan_usd;
  std::string out = fmt::format("Paid {} USD; planned {} USD {}", usd(rounded(billed)), usd(planned),
                                differs ? "in one run with the plan's seed" : interval);
  if (as_planned)
    out += ": as planned";
  else if (planned > 0)
    out += fmt::format(": {} {} than planned", percent(std::abs(more) / planned), more < 0 ? "less" : "more");
  out += ".\n";
  if (differs)
    out += fmt::format("The plan itself says {} USD {}, the median of its runs.\n", usd(paid.plan_usd), interval);
  if (!as_planned && !paid.items.empty() && !paid.items.front().why.empty())
    out += fmt::format("Most of it: {}, {}.\n", paid.items.front().item, printable(paid.items.front().why));
  out += fmt::format("{} ({}), {} {}{}; the plan rents {} x {}\n", printable(paid.bill), paid.dialect, paid.rows,
                     paid.rows == 1 ? "row" : "rows",
                     paid.from.empty() ? "" : fmt::format(" from {} to {}", paid.from, paid.to), paid.nodes,
                     printable(paid.instance));
  for (const std::string& note : paid.notes) out += printable(note) + "\n";
  Table items({"item", ">planned", ">paid", "unit", ">planned USD", ">paid USD", ">difference", "why"});
  for (const documents::PaidItem& item : paid.items)
    items.add({item.item, item.unit.empty() ? "" : fmt::format("{:.4g}", item.planned),
               item.unit.empty() ? "" : fmt::format("{:.4g}", item.paid), printable(item.unit),
               cents(usd_of(item.planned_usd)), cents(usd_of(item.paid_usd)),
               fmt::format("{:+.2f}", rounded(item.difference_usd)), printable(item.why)});
  items.rule();
  items.add({"total", "", "", "", cents(planned), cents(billed), fmt::format("{:+.2f}", rounded(more)), ""});
  return wrap_prose(out, width) + "\n" + items.text(width);
}

}  // namespace ganymede::report
