// Price lists in JSON: AWS's and Azure's own, and platform files.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "platforms/price_collector.hpp"

namespace ganymede::platforms {
namespace {

using Listed = nlohmann::json;  // which can leave out parts of a list while it reads it

std::string text_of(const Listed& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Reads a number, or a string that states one; NaN for anything else.
double number_of(const Listed& value) {
  if (value.is_number()) return value.get<double>();
  const auto number = value.is_string() ? decimal_number(value.get<std::string>()) : std::nullopt;
  return number.value_or(std::nan(""));
}

/// Keeps in memory only the needed part of AWS's list: the list of one region has some hundred megabytes of text.
class AwsFilter {
 public:
  explicit AwsFilter(const PriceCollector& known) : known_(known) {}

  bool operator()(int depth, Listed::parse_event_t event, Listed& parsed) {
    using Event = Listed::parse_event_t;
    if (event == Event::key && depth == 1) section_ = parsed.get<std::string>();
    if (event == Event::key && depth == 3) sku_ = parsed.get<std::string>();
    if (event == Event::object_end && depth == 2 && section_ == "products") return product(parsed);
    if (event == Event::object_end && depth == 3 && section_ == "terms") return skus_.contains(sku_) || !seen_products_;
    return true;
  }
  int passed_over() const { return passed_over_; }

 private:
  bool product(const Listed& product) {
    seen_products_ = true;
    const Listed attributes = product.value("attributes", Listed::object());
    const std::string instance = text_of(attributes, "instanceType");
    const bool wanted = known_.knows(instance) && text_of(attributes, "operatingSystem") == "Linux" &&
                        text_of(attributes, "tenancy") == "Shared" && text_of(attributes, "preInstalledSw") == "NA" &&
                        (text_of(attributes, "capacitystatus") == "Used" || !attributes.contains("capacitystatus")) &&
                        // Blocks of capacity are paid for when they are reserved: their hours cost nothing.
                        (text_of(attributes, "marketoption") == "OnDemand" || !attributes.contains("marketoption"));
    if (wanted)
      skus_.insert(text_of(product, "sku"));
    else
      ++passed_over_;
    return wanted;
  }

  const PriceCollector& known_;
  std::string section_, sku_;
  std::set<std::string> skus_;
  bool seen_products_ = false;
  int passed_over_ = 0;
};

void read_aws(const Listed& list, const std::string& file, PriceCollector& out) {
  const std::string published = text_of(list, "publicationDate").substr(0, 10);
  const Listed none = Listed::object();
  const auto member = [&](const Listed& object, const char* key) -> const Listed& {
    const auto found = object.find(key);
    return found != object.end() && found->is_object() ? *found : none;
  };
  for (const auto& [sku, product] : member(list, "products").items()) {
    const Listed& attributes = member(product, "attributes");
    const std::string instance = text_of(attributes, "instanceType");
    const std::string region = text_of(attributes, "regionCode");
    for (const char* kind : {"OnDemand", "Reserved"}) {
      const Listed::json_pointer at(fmt::format("/terms/{}/{}", kind, sku));
      if (!list.contains(at)) continue;
      for (const auto& [code, offer] : list[at].items()) {
        const Listed& term = member(offer, "termAttributes");
        Market market = Market::on_demand;
        if (std::string_view(kind) == "Reserved") {
          if (text_of(term, "PurchaseOption") != "No Upfront" || text_of(term, "OfferingClass") != "standard") continue;
          market = text_of(term, "LeaseContractLength") == "1yr" ? Market::reserved_1y : Market::reserved_3y;
        }
        for (const auto& [dimension, price] : member(offer, "priceDimensions").items()) {
          const std::string where = fmt::format("{}: {}/{}/priceDimensions/{}", file, at.to_string(), code, dimension);
          if (text_of(price, "unit") != "Hrs") continue;
          for (const auto& [currency, amount] : member(price, "pricePerUnit").items())
            out.add(instance, where, region, "", market, number_of(amount), published.empty() ? "undated" : published,
                    currency);
        }
      }
    }
  }
}

/// Hours of a reservation's term, which is one year or three; 0 for anything else.
double term_hours(const Listed& item) {
  const std::string term = text_of(item, "reservationTerm");
  return term == "1 Year" ? 8760 : term == "3 Years" ? 3 * 8760 : 0;
}

/// False for a price that will hold, or has ended: the list may have those too.
bool in_effect(const Listed& item, const std::string& today) {
  const std::string begin = text_of(item, "effectiveStartDate").substr(0, 10);
  const std::string end = text_of(item, "effectiveEndDate").substr(0, 10);
  return begin <= today && (end.empty() || end > today);
}

void read_azure(const Listed& list, const std::string& file, PriceCollector& out) {
  const std::string key = list.contains("Items") ? "Items" : "items";
  std::size_t index = 0;
  for (const Listed& item : list[key]) {
    const std::string where = fmt::format("{}: /{}/{}", file, key, index++);
    if (!item.is_object()) throw ConfigError(where + ": found no object, expected a price");
    const std::string type = text_of(item, "type");
    const std::string meter = text_of(item, "skuName");
    // Low priority is an older product than spot; savings plans and development rates need a contract.
    if ((type != "Consumption" && type != "Reservation") || text_of(item, "productName").ends_with("Windows") ||
        meter.ends_with("Low Priority") || text_of(item, "unitOfMeasure") != "1 Hour" ||
        !in_effect(item, out.options().today))
      continue;
    const double hours = type == "Reservation" ? term_hours(item) : 1;
    if (hours == 0) continue;
    const Market market = type == "Consumption" ? (meter.ends_with("Spot") ? Market::spot : Market::on_demand)
                          : hours < 9000        ? Market::reserved_1y
                                                : Market::reserved_3y;
    const Listed amount = item.contains("retailPrice") ? item["retailPrice"] : Listed();
    const std::string currency = text_of(item, "currencyCode");
    out.add(text_of(item, "armSkuName"), where, text_of(item, "armRegionName"), "", market, number_of(amount) / hours,
            out.options().as_of, currency.empty() ? "USD" : currency);
  }
  if (list.contains("NextPageLink") && !list["NextPageLink"].is_string() && !list["NextPageLink"].is_null())
    throw ConfigError(fmt::format("{}: /NextPageLink: expected an address or null", file));
  out.end_page(text_of(list, "NextPageLink"));
}

void read_platform_prices(const JsonNode& root, PriceCollector& out) {
  for (const Instance& instance : read_platform(root).instances)
    for (const Price& price : instance.prices)
      out.add(instance.name, fmt::format("{}: /instances/{}/prices", root.file(), instance.name), price.region,
              price.zone, price.market, static_cast<double>(price.per_hour.value) * 1e-6, price.as_of);
}

}  // namespace

std::string read_json_prices(std::string_view text, const std::string& file, PriceCollector& out) {
  Listed list;
  AwsFilter filter(out);
  try {
    list = Listed::parse(text, std::ref(filter), true, true);
  } catch (const Listed::exception& error) {
    throw ConfigError(fmt::format("{}: is not JSON: {}", file, error.what()));
  }
  if (list.is_object() && list.contains("products") && list.contains("terms")) {
    read_aws(list, file, out);
    return "AWS price list";
  }
  if (list.is_object() && (list.contains("Items") || list.contains("items"))) {
    read_azure(list, file, out);
    return "Azure retail prices";
  }
  if (list.is_object() && list.contains("schema")) {
    read_platform_prices(JsonNode::parse(text, file), out);
    return "platform file";
  }
  throw ConfigError(
      fmt::format("{}: expected a platform file (\"schema\"), AWS's price list (\"products\" and \"terms\") or Azure's "
                  "retail prices (\"Items\")",
                  file));
}

}  // namespace ganymede::platforms
