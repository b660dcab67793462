#include "exports/focus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "common/usd.hpp"
#include "exports/exporter.hpp"
#include "platforms/providers.hpp"
#include "report/runs.hpp"
#include "report/table.hpp"

namespace ganymede::exports {
namespace {
using documents::BillItem;

constexpr const char* kUnusedCommitment = "unused commitment";

struct Service {
  const char *category, *name, *subcategory;  ///< the latter by the list of FOCUS 1.2
};

bool is_machine(const std::string& item) {
  return item.starts_with("instance-hours") || item == kUnusedCommitment || item == "parameter servers";
}

Service service_of(const std::string& item) {
  if (is_machine(item)) return {"Compute", "Virtual Machines", "Virtual Machines"};
  if (item == "data transfer") return {"Networking", "Data Transfer", "Other (Networking)"};
  if (item == "load balancer") return {"Networking", "Load Balancing", "Application Networking"};
  if (item == "control plane") return {"Compute", "Managed Kubernetes", "Containers"};
  if (item == "electricity") return {"Other", "Electricity", "Other (Other)"};
  if (item.ends_with("requests")) return {"Storage", "Object Storage", "Object Storage"};
  return {"Storage", "Storage", "Other (Storage)"};
}

std::string unit_of(const std::string& unit) {
  if (unit == "h") return "Hours";
  if (unit == "1000 requests") return "1000 Requests";
  if (unit.ends_with("-month")) return unit.substr(0, unit.size() - 6) + "-Months";
  return unit;
}

/// True for hours of nodes that are committed for one or three years, used or not.
bool is_committed(const BillItem& item) {
  return item.market.starts_with("reserved") &&
         (item.item.starts_with("instance-hours") || item.item == kUnusedCommitment);
}

MicroUsd list_price_of(const BillItem& item) { return item.list_price.value > 0 ? item.list_price : item.unit_price; }

/// The first second of the month of a time, or of the month after it.
std::int64_t month_of(std::int64_t time, bool next) {
  const std::string text = format_time(time);
  int year = std::stoi(text.substr(0, 4)), month = std::stoi(text.substr(5, 2)) + (next ? 1 : 0);
  if (month == 13) month = 1, ++year;
  const auto first = parse_time(fmt::format("{:04}-{:02}-01T00:00:00Z", year, month));
  if (!first) throw ConfigError("--start: the bill would go beyond the year 9999, expected an earlier start");
  return *first;
}

/// The value as a decimal without an exponent.
std::string plain(double value) {
  std::string text = fmt::format("{:.9f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// The part of a run that lies within one month.
struct Period {
  std::int64_t from = 0, to = 0;  ///< seconds
  double before = 0, until = 1;   ///< shares of the run that have passed when the period begins and ends
};

std::vector<Period> periods_of(std::int64_t start, std::int64_t end) {
  std::vector<Period> periods;
  const auto share = [&](std::int64_t at) {
    return static_cast<double>(at - start) / static_cast<double>(end - start);
  };
  for (std::int64_t from = start; from < end;) {
    const std::int64_t to = std::min(end, month_of(from, true));
    periods.push_back({from, to, share(from), share(to)});
    from = to;
  }
  return periods;
}

/// The part of an amount that falls into a period. The parts of all periods sum to the amount exactly.
std::int64_t part_of(std::int64_t whole, const Period& period) {
  const auto passed = [&](double share) { return std::llround(static_cast<double>(whole) * share); };
  return (period.until == 1 ? whole : passed(period.until)) - passed(period.before);
}

/// The columns of a row that differ between the rows of one item. Amounts are in micro-dollars.
struct Charge {
  const char *category = "Usage", *frequency = "Usage-Based";
  const char *pricing = "Standard", *commitment_status = "";
  std::string description;
  double quantity = 0;
  std::int64_t billed = 0, effective = 0, list = 0;
  std::string list_unit_price;
};

struct FocusRow {
  BillItem item;
  Period period;
  Charge charge;
  std::string instance;  ///< the machines' type; empty: of no machine, or not known
  std::string account, commitment, tags;
};

/// The instance type of an item's machines. Items name pools, and a request names the instance types of its pools.
std::string instance_of(const BillItem& item, const documents::LaunchRequest& launch) {
  if (!is_machine(item.item)) return "";
  if (item.item == "parameter servers") return item.pool;
  std::string found;
  const auto look = [&](bool same_market) {
    for (const documents::LaunchPool& pool : launch.pools) {
      if (pool.provider != item.provider || pool.region != item.region) continue;
      if (same_market && pool.market != item.market) continue;
      if (!found.empty() && found != pool.instance) return false;  // several: which one is not said
      found = pool.instance;
    }
    return !found.empty();
  };
  // A pool that only the policy may use is in no request: its nodes are those of the same place, in another market.
  return look(true) || (found.empty() && look(false)) ? found : "";
}

/// False for purchases, and for hours of a commitment that nothing used.
bool is_use(const Charge& charge) {
  return std::string_view(charge.category) == "Usage" && std::string_view(charge.commitment_status) != "Unused";
}

/// FOCUS 1.2 has "InstanceType" among the keys of SkuPriceDetails.
std::string price_details(const std::string& instance) {
  return instance.empty() ? "" : Json{{"InstanceType", instance}}.dump();
}

report::NamedCells focus_cells(const FocusRow& row) {
  const auto& [item, period, charge, instance, account, commitment, tags] = row;
  const std::string provider = platforms::vendor_of(item.provider);
  const Service service = service_of(item.item);
  const bool committed = is_committed(item), used = is_use(charge);
  const auto of_commitment = [&](const std::string& value) { return committed ? value : std::string(); };
  const auto if_used = [&](const std::string& value) { return used ? value : std::string(); };
  const std::string sku = item.item + "/" + (instance.empty() ? item.pool : instance);
  return {{"BilledCost", decimal(MicroUsd{charge.billed})},
          {"BillingAccountId", account},
          {"BillingAccountName", account},
          {"BillingAccountType", "Estimate"},
          {"BillingCurrency", "USD"},
          {"BillingPeriodStart", format_time(month_of(period.from, false))},
          {"BillingPeriodEnd", format_time(month_of(period.from, true))},
          {"ChargeCategory", charge.category},
          {"ChargeClass", ""},
          {"ChargeDescription", charge.description},
          {"ChargeFrequency", charge.frequency},
          {"ChargePeriodStart", format_time(period.from)},
          {"ChargePeriodEnd", format_time(period.to)},
          {"CommitmentDiscountCategory", of_commitment("Usage")},
          {"CommitmentDiscountId", of_commitment(commitment)},
          {"CommitmentDiscountName", of_commitment(commitment)},
          {"CommitmentDiscountQuantity", of_commitment(plain(charge.quantity))},
          {"CommitmentDiscountStatus", charge.commitment_status},
          {"CommitmentDiscountType", of_commitment(item.market)},
          {"CommitmentDiscountUnit", of_commitment(unit_of(item.unit))},
          {"ConsumedQuantity", if_used(plain(charge.quantity))},
          {"ConsumedUnit", if_used(unit_of(item.unit))},
          {"ContractedCost", decimal(MicroUsd{charge.list})},  // nothing here is negotiated
          {"ContractedUnitPrice", charge.list_unit_price},
          {"EffectiveCost", decimal(MicroUsd{charge.effective})},
          {"InvoiceId", ""},  // what is estimated is on no invoice
          {"InvoiceIssuerName", provider},
          {"ListCost", decimal(MicroUsd{charge.list})},
          {"ListUnitPrice", charge.list_unit_price},
          {"PricingCurrency", "USD"},
          {"PricingQuantity", plain(charge.quantity)},
          {"PricingUnit", unit_of(item.unit)},
          {"PricingCategory", charge.pricing},
          {"ProviderName", provider},
          {"PublisherName", provider},
          {"RegionId", item.region},
          {"RegionName", item.region},
          {"ResourceId", if_used(item.pool)},
          {"ResourceName", if_used(item.pool)},
          {"ResourceType", if_used(is_machine(item.item) ? "Instance" : service.name)},
          {"ServiceCategory", service.category},
          {"ServiceName", service.name},
          {"ServiceSubcategory", service.subcategory},
          {"SkuId", sku},
          {"SkuMeter", item.item},
          {"SkuPriceDetails", price_details(instance)},
          {"SkuPriceId", sku + "/" + (item.market.empty() ? "list" : item.market)},
          {"SubAccountId", ""},
          {"SubAccountName", ""},
          {"Tags", tags},
          {"x_IsEstimate", "true"}};
}

class RunRows {
 public:
  RunRows(std::vector<FocusRow>& rows, const documents::Result& run, const FocusOptions& options)
      : rows_(rows), items_(run.bill.items), launch_(run.launch), options_(options), hours_(run.total.si / 3600) {
    // An excess of less than a microsecond over a whole second is rounding noise.
    const auto length = static_cast<std::int64_t>(std::ceil(3600 * hours_ - 1e-6));
    periods_ = periods_of(options.start, options.start + std::max<std::int64_t>(1, length));
    commitment_ = run.hash + "/";
    tags_ = Json{{"scenario_hash", run.hash}, {"policy", run.policy}, {"scheme", run.scheme}}.dump();
  }

  void add_all() {
    for (const BillItem& item : items_) {
      const Charge charge = charge_of(item);
      if (!is_committed(item))
        add_by_month(item, charge);
      else if (item.item == kUnusedCommitment)
        add_rest_of_term(item, charge);
      else
        add_committed(item, charge);
    }
  }

 private:
  static Charge charge_of(const BillItem& item) {
    Charge charge;
    charge.pricing = item.market == "spot" ? "Dynamic" : is_committed(item) ? "Committed" : "Standard";
    charge.description = item.item + ", " + item.pool;
    charge.quantity = item.quantity;
    charge.billed = charge.effective = charge.list = item.usd.value;
    charge.list_unit_price = decimal(list_price_of(item));
    if (list_price_of(item) != item.unit_price)
      charge.list = std::llround(usd_of(list_price_of(item)) * charge.quantity * 1e6);
    return charge;
  }

  void add_by_month(const BillItem& item, const Charge& whole) {
    for (const Period& period : periods_) {
      Charge part = whole;
      part.quantity = whole.quantity * (period.until - period.before);
      part.billed = part_of(whole.billed, period);
      part.effective = part_of(whole.effective, period);
      part.list = part_of(whole.list, period);
      add(item, period, part);
    }
  }

  /// The charge for committed hours. It has no effective cost, because the rows of the hours have it; and it is no
  /// hour that the commitment makes cheaper, so it is sold at its own price.
  static Charge purchase_of(const BillItem& item, Charge hours) {
    hours.category = "Purchase";
    hours.pricing = "Standard";
    hours.description = "commitment, " + item.pool;
    hours.list = hours.billed;
    hours.list_unit_price = decimal(item.unit_price);
    hours.effective = 0;
    return hours;
  }

  /// Committed hours that the run uses. If the bill has no more of the commitment, they are paid for month by month.
  void add_committed(const BillItem& item, Charge hours) {
    const bool whole_term = std::any_of(items_.begin(), items_.end(), [&](const BillItem& other) {
      return other.item == kUnusedCommitment && other.pool == item.pool;
    });
    if (!whole_term) {
      Charge bought = purchase_of(item, hours);
      bought.frequency = "Recurring";
      bought.description += ": its hours that the run uses";
      add_by_month(item, bought);
    }
    hours.billed = 0;
    hours.commitment_status = "Used";
    add_by_month(item, hours);
  }

  /// The purchase of a whole term, and its hours that passed during the run while nothing used them. Hours after the
  /// run are in the purchase alone: whatever uses them will have their cost.
  void add_rest_of_term(const BillItem& item, const Charge& rest) {
    Charge bought = purchase_of(item, rest);
    bought.frequency = "One-Time";
    bought.description += ": its whole term, which covers hours after the run too";
    for (const BillItem& other : items_)
      if (is_committed(other) && other.pool == item.pool && other != item) {
        const Charge used = charge_of(other);
        bought.quantity += used.quantity;
        bought.billed += used.billed;
        bought.list += used.billed;
      }
    add(item, periods_.front(), bought);
    const double unused = passed_unused(item, rest.quantity);
    if (unused == 0) return;
    Charge passed = rest;
    passed.description += ": hours that passed during the run and that nothing used";
    passed.quantity = unused;
    passed.effective = std::llround(static_cast<double>(rest.billed) * unused / rest.quantity);
    passed.billed = 0;
    passed.list = passed.effective;  // nothing was rented more cheaply than on demand
    passed.list_unit_price = decimal(item.unit_price);
    passed.commitment_status = "Unused";
    add_by_month(item, passed);
  }

  /// Hours of a commitment (for one or three years) that passed during the run while none of its nodes used them.
  double passed_unused(const BillItem& item, double unused) const {
    double used = 0;
    for (const BillItem& other : items_)
      if (other.pool == item.pool && other.item.starts_with("instance-hours")) used += other.quantity;
    const double term = item.market == "reserved-3y" ? 3 * 8760 : 8760;
    const double nodes = std::round((used + unused) / term);
    const double passed = nodes * hours_ - used;
    return passed > nodes / 3600 ? std::min(passed, unused) : 0;  // the meter rounds by up to a second a node
  }

  void add(const BillItem& item, const Period& period, const Charge& charge) {
    FocusRow row{item, period, charge, instance_of(item, launch_), options_.account, "", tags_};
    row.commitment = commitment_ + item.market + "/" + item.pool;
    if (!row.instance.empty() && item.pool.find(row.instance) == std::string::npos)
      row.charge.description += ", " + row.instance;
    rows_.push_back(std::move(row));
  }

  std::vector<FocusRow>& rows_;
  const std::vector<BillItem>& items_;
  const documents::LaunchRequest& launch_;
  const FocusOptions& options_;
  double hours_;
  std::vector<Period> periods_;
  std::string tags_;
  std::string commitment_;  ///< how the ids of the run's commitments begin
};

}  // namespace

std::string focus_csv(const Json& result, const FocusOptions& options) {
  const std::vector<documents::Result> runs =
      result.contains("runs") ? report::runs_of(result) : std::vector{documents::result_in(result)};
  std::vector<FocusRow> rows;
  for (const documents::Result& run : runs) RunRows(rows, run, options).add_all();
  return report::csv_of(rows, focus_cells);
}

namespace {

/// When the run starts: what --start says, else today at 00:00 UTC.
std::int64_t start_of_run(const ExportValues& values) {
  const std::string& text = values.text("start");
  constexpr std::int64_t kDay = 86400;
  if (text.empty()) return stated_now() / kDay * kDay;
  const auto start = parse_time(text);
  if (!start)
    throw ConfigError(fmt::format("--start {}: expected a time with its zone, such as 2026-12-01T09:00:00Z", text));
  return *start;
}

std::string write_focus(const report::Document& document, const ExportValues& values, const ExportConsole& console) {
  const std::int64_t start = start_of_run(values);
  if (values.text("start").empty())
    console.remark("the run is taken to start at " + format_time(start) + "; --start says when");
  return focus_csv(document.json(), {.start = start, .account = values.text("account")});
}

}  // namespace

Exporter focus_exporter() {
  return {.name = "focus",
          .summary = "the bill as FOCUS 1.2 (FinOps Open Cost and Usage Specification), for cost tools",
          .examples = "  ganymede export focus result.json --start 2026-12-01T09:00:00Z -o bill.csv\n",
          .about = "Writes a row for each item of the bill and month, marked as an estimate.",
          .reads = {report::DocumentKind::result, report::DocumentKind::sweep},
          .refusal = "a plan has no bill: simulate it and export the result",
          .options = {{.name = "start", .summary = "when the run starts; default: today at 00:00 UTC"},
                      {.name = "account", .summary = "BillingAccountId", .default_value = "estimate"}},
          .check =
              [](const ExportValues& values) {
                (void)month_of(start_of_run(values), true);
                if (values.text("account").empty()) throw ConfigError("--account: expected a name, found none");
              },
          .write = write_focus};
}

}  // namespace ganymede::exports
