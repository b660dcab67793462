#include "plan/paid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "common/dates.hpp"
#include "common/plain_text.hpp"
#include "common/usd.hpp"

namespace ganymede::plan {
namespace {

using documents::PaidItem;

constexpr double kSame = 0.02;  // differences of less are called as planned

constexpr const char* kServers = "parameter servers";

/// The kind of charge that an item of a simulated bill is. Hours of nodes that a plan reserves are paid for by their
/// purchase, whichever month it is billed in: both are the plan's hours.
std::string kind_of(const std::string& item) {
  if (item.starts_with("instance-hours") || item == "unused commitment") return "instance-hours";
  if (item == kServers) return kServers;
  if (item.ends_with("requests")) return "requests";
  for (const char* same : {"data transfer", "load balancer", "control plane", "electricity"})
    if (item == same) return item;
  return "storage";
}

struct Charges {
  double quantity = 0, usd = 0, planned_quantity = 0, planned_usd = 0;
  double own_hours = 0, own_usd = 0;  ///< of the plan's instance type
  std::string others;                 ///< what else is charged, the dearest
  double others_usd = 0, dearest = 0;
  std::string unit, planned_unit;
  bool is_paid = false, is_planned = false, has_unit = false;
};

std::string signed_usd(double usd) { return fmt::format("{}{:.2f} USD", usd < 0 ? "-" : "+", std::abs(usd)); }

/// Hours and their price, apart: more hours at the planned price, and all hours at the difference in price.
std::string why_of_hours(const Charges& of) {
  std::vector<std::string> parts;
  if (of.own_hours > 0 && of.planned_quantity > 0) {
    const double price = of.own_usd / of.own_hours, planned = of.planned_usd / of.planned_quantity;
    const double by_hours = (of.own_hours - of.planned_quantity) * planned, by_price = of.own_hours * (price - planned);
    const double least = kSame * std::max(of.planned_usd, 1e-6);
    if (std::abs(by_hours) > least)
      parts.push_back(
          fmt::format("{:.4g} h in place of {:.4g} h: {}", of.own_hours, of.planned_quantity, signed_usd(by_hours)));
    if (std::abs(by_price) > least)
      parts.push_back(fmt::format("{:.4g} USD/h in place of {:.4g}: {}", price, planned, signed_usd(by_price)));
  } else if (of.planned_quantity > 0) {
    parts.emplace_back("the bill has no hours of the plan's instance type");
    if (of.own_usd != 0) parts.back() += fmt::format(", and {:.2f} USD for it", of.own_usd);
  }
  if (of.others_usd > 0.005)
    parts.push_back(fmt::format("{}, which the plan does not rent: {}", of.others, signed_usd(of.others_usd)));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string why_of(const std::string& item, const Charges& of) {
  if (std::abs(of.usd - of.planned_usd) < 0.005) return "";
  if (item == "instance-hours") return why_of_hours(of);
  if (!of.is_paid) return "in the plan, and not in the bill";
  if (!of.is_planned)
    return item == "tax"          ? "prices of plans are without taxes"
           : item == "credit"     ? "credits, refunds and discounts: plans are at list prices"
           : item == "commitment" ? fmt::format("{}, for which the plan makes no commitment", of.others)
           : item == "fee"        ? "fees, such as for support, are in no plan"
                                  : fmt::format("{}: not in the plan", of.others);
  if (std::abs(of.usd - of.planned_usd) <= kSame * std::max(of.planned_usd, 0.01)) return "";
  if (of.unit == of.planned_unit && of.planned_quantity > 0)
    return fmt::format("{:.4g} {} in place of {:.4g}", of.quantity, of.unit, of.planned_quantity);
  return fmt::format("{:.2g} times what was planned", of.usd / of.planned_usd);
}

/// Bills of more than 1e12 dollars are not read, so that every sum fits.
MicroUsd micro(double usd) { return MicroUsd{std::llround(usd * 1e6)}; }

bool is_same(const std::string& instance, const std::string& other) {
  return lower_case(instance) == lower_case(other);
}

/// The kind of charge of the plan that an item of a bill is.
std::string kind_of(const traces::ChargedItem& item, const WatchedPlan& plan, bool reserves) {
  const bool own = is_same(item.what, plan.instance);
  if (item.item == "commitment" && reserves && (own || item.what == traces::kSavingsPlan)) return "instance-hours";
  const sim::ServerNodes& servers = plan.scenario.servers;
  const bool serves = servers.nodes > 0 && !own && is_same(item.what, servers.instance);
  return item.item == "instance-hours" && serves ? kServers : item.item;
}

std::map<std::string, Charges> charges_of(const WatchedPlan& plan, const documents::Result& planned,
                                          const traces::BillFile& bill) {
  std::map<std::string, Charges> all;
  bool reserves = false;
  for (const documents::BillItem& item : planned.bill.items) {
    // Servers of the nodes' own type are told from them by no bill.
    const bool own_servers = item.item == kServers && is_same(plan.scenario.servers.instance, plan.instance);
    Charges& to = all[own_servers ? "instance-hours" : kind_of(item.item)];
    to.planned_unit = to.is_planned && to.planned_unit != item.unit ? "" : item.unit;
    to.is_planned = true;
    to.planned_quantity += item.item == "unused commitment" ? 0 : item.quantity, to.planned_usd += usd_of(item.usd);
    reserves = reserves || item.market.starts_with("reserved");
  }
  for (const traces::ChargedItem& item : bill.items) {
    const std::string kind = kind_of(item, plan, reserves);
    Charges& to = all[kind];
    const bool is_purchase = item.item == "commitment" && kind != item.item;  // its hours are charged apart
    if (!is_purchase) to.unit = to.has_unit && to.unit != item.unit ? "" : item.unit, to.has_unit = true;
    to.is_paid = true;
    to.quantity += is_purchase ? 0 : item.quantity, to.usd += item.usd;
    if (kind == "instance-hours" && (is_purchase || is_same(item.what, plan.instance))) {
      to.own_hours += is_purchase ? 0 : item.quantity, to.own_usd += item.usd;
      continue;
    }
    to.others_usd += item.usd;
    if (to.others.empty() || item.usd > to.dearest) to.others = item.what, to.dearest = item.usd;
  }
  return all;
}

}  // namespace

documents::PaidBill paid_beside(const WatchedPlan& plan, const documents::Result& planned,
                                const traces::BillFile& bill) {
  documents::PaidBill out;
  out.plan = plan.file, out.bill = bill.file, out.dialect = bill.dialect;
  out.instance = plan.instance, out.nodes = plan.nodes;
  out.rows = bill.rows, out.skipped = bill.skipped_rows, out.outside = bill.outside;
  if (bill.from > 0) out.from = format_time(bill.from);
  if (bill.to > 0) out.to = format_time(bill.to);
  double paid = 0, all = 0, effective = 0;
  for (const auto& [name, of] : charges_of(plan, planned, bill)) {
    PaidItem item;
    item.item = name;
    const bool counted = name != "tax" && name != "credit" && name != "fee" && name != "commitment";
    item.unit = !counted                                       ? ""
                : !of.is_paid                                  ? of.planned_unit
                : !of.is_planned || of.unit == of.planned_unit ? of.unit
                                                               : "";
    item.planned = of.planned_quantity, item.paid = of.quantity;
    item.planned_usd = micro(of.planned_usd), item.paid_usd = micro(of.usd);
    item.difference_usd = std::abs(of.usd - of.planned_usd) < 5e-7 ? 0 : of.usd - of.planned_usd;
    item.why = why_of(name, of);
    paid += of.usd, all += of.planned_usd;
    out.items.push_back(std::move(item));
  }
  std::stable_sort(out.items.begin(), out.items.end(), [](const PaidItem& a, const PaidItem& b) {
    return std::abs(a.difference_usd) > std::abs(b.difference_usd);
  });
  for (const traces::ChargedItem& item : bill.items) effective += item.effective_usd;
  out.planned_usd = micro(all), out.paid_usd = micro(paid);
  out.plan_usd = plan.usd.median;
  out.plan_interval_usd = {plan.usd.low, plan.usd.high};
  if (bill.has_commitment && std::abs(effective - paid) > 0.005)
    out.notes.push_back(fmt::format("with its part of commitments the use costs {:.2f} USD", effective));
  if (bill.skipped_rows > 0)
    out.notes.push_back(fmt::format("{} of {} row{} could not be read and {} left out: {}", bill.skipped_rows,
                                    bill.rows, bill.rows == 1 ? "" : "s", bill.skipped_rows == 1 ? "is" : "are",
                                    fmt::join(bill.skipped, "; ")));
  if (bill.outside > 0)
    out.notes.push_back(
        fmt::format("{} of {} row{} {} of something else and left out{}", bill.outside, bill.rows,
                    bill.rows == 1 ? "" : "s", bill.outside == 1 ? "is" : "are",
                    bill.by_name ? ", as are taxes and credits without the training's tag or resource" : ""));
  if (bill.straddling > 0)
    out.notes.push_back(fmt::format("{} charged for times beyond the window too and count{} whole",
                                    bill.straddling == 1 ? "1 row is" : fmt::format("{} rows are", bill.straddling),
                                    bill.straddling == 1 ? "s" : ""));
  const bool has_own = std::any_of(bill.items.begin(), bill.items.end(),
                                   [&](const traces::ChargedItem& item) { return is_same(item.what, plan.instance); });
  if (!has_own)
    out.notes.push_back(
        fmt::format("no row names {}: is it the bill of another training, or is it too early?", plan.instance));
  return out;
}

}  // namespace ganymede::plan
