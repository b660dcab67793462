#include "report/focus.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/dates.hpp"
#include "report/table.hpp"

namespace ganymede {
namespace {

using Json = nlohmann::json;

struct Service {
  const char *category, *name;
};

Service service_of(const std::string& item) {
  if (item.starts_with("instance-hours") || item == "unused commitment" || item == "parameter servers")
    return {"Compute", "Virtual Machines"};
  if (item == "data transfer") return {"Networking", "Data Transfer"};
  if (item == "load balancer") return {"Networking", "Load Balancing"};
  if (item == "control plane") return {"Compute", "Managed Kubernetes"};
  if (item == "electricity") return {"Other", "Electricity"};
  return {"Storage", item.ends_with("requests") ? "Object Storage" : "Storage"};
}

std::string unit_of(const std::string& unit) {
  if (unit == "h") return "Hours";
  if (unit == "1000 requests") return "1000 Requests";
  if (unit.ends_with("-month")) return unit.substr(0, unit.size() - 6) + "-Months";
  return unit;
}

std::string pricing_of(const std::string& market) {
  if (market == "spot") return "Dynamic";
  return market.starts_with("reserved") ? "Committed" : "Standard";
}

std::string provider_name(const std::string& provider) {
  if (provider == "aws") return "AWS";
  if (provider == "gcp") return "Google Cloud";
  if (provider == "azure") return "Microsoft";
  if (provider == "ibm") return "IBM Cloud";
  if (provider == "genesis") return "Genesis Cloud";
  return provider;
}

/// The first second of the month of a time, or of the next one.
std::int64_t month_of(std::int64_t time, bool next) {
  const std::string text = format_time(time);
  int year = std::stoi(text.substr(0, 4)), month = std::stoi(text.substr(5, 2)) + (next ? 1 : 0);
  if (month == 13) month = 1, ++year;
  return *parse_time(fmt::format("{:04}-{:02}-01T00:00:00Z", year, month));
}

/// As a decimal without an exponent.
std::string plain(double value) {
  std::string text = fmt::format("{:.9f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

void add_run(Table& table, const Json& run, const FocusOptions& options) {
  const auto length = static_cast<std::int64_t>(std::ceil(run.at("time").at("total_s").get<double>()));
  const std::int64_t end = options.start + std::max<std::int64_t>(1, length);
  const std::string tags = Json{{"scenario_hash", run.at("provenance").at("scenario_hash")},
                                {"policy", run.at("run").at("policy")},
                                {"scheme", run.at("run").at("scheme")}}
                               .dump();
  for (const Json& item : run.at("cost").at("items")) {
    const auto name = item.at("item").get<std::string>();
    const auto cost = item.at("usd").get<std::string>();
    const auto market = item.at("market").get<std::string>();
    const auto list_price = item.at("list_price_usd").get<std::string>();
    const double quantity = item.at("quantity").get<double>();
    const std::string provider = provider_name(item.at("provider").get<std::string>());
    const Service service = service_of(name);
    const bool discounted = list_price != item.at("unit_price_usd").get<std::string>();
    const std::string list_cost = discounted ? plain(std::round(std::stod(list_price) * quantity * 1e6) / 1e6) : cost;
    table.add({cost,
               options.account,
               options.account,
               "USD",
               format_time(month_of(options.start, false)),
               format_time(month_of(end - 1, true)),
               name == "unused commitment" ? "Purchase" : "Usage",
               "",
               name + ", " + item.at("pool").get<std::string>(),
               format_time(options.start),
               format_time(end),
               cost,
               cost,
               provider,
               list_cost,
               list_price,
               plain(quantity),
               unit_of(item.at("unit").get<std::string>()),
               pricing_of(market),
               provider,
               provider,
               item.at("region").get<std::string>(),
               service.category,
               service.name,
               name + "/" + item.at("pool").get<std::string>(),
               tags,
               "true"});
  }
}

}  // namespace

std::string focus_csv(const Json& result, const FocusOptions& options) {
  Table table({"BilledCost",
               "BillingAccountId",
               "BillingAccountName",
               "BillingCurrency",
               "BillingPeriodStart",
               "BillingPeriodEnd",
               "ChargeCategory",
               "ChargeClass",
               "ChargeDescription",
               "ChargePeriodStart",
               "ChargePeriodEnd",
               "ContractedCost",
               "EffectiveCost",
               "InvoiceIssuerName",
               "ListCost",
               "ListUnitPrice",
               "PricingQuantity",
               "PricingUnit",
               "PricingCategory",
               "ProviderName",
               "PublisherName",
               "RegionId",
               "ServiceCategory",
               "ServiceName",
               "SkuId",
               "Tags",
               "x_IsEstimate"});
  if (result.contains("runs"))
    for (const Json& run : result.at("runs")) add_run(table, run, options);
  else
    add_run(table, result, options);
  return table.csv();
}

}  // namespace ganymede
