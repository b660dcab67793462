// Price lists in JSON: which kind a file is, Azure's own list, and platform files.

#include <fmt/format.h>

#include <fstream>
#include <set>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_parse.hpp"
#include "common/json_value.hpp"
#include "platforms/price_collector.hpp"

namespace ganymede::platforms {

std::string text_of(const Listed& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->as_string() : "";
}

double number_of(const Listed& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end()) return std::nan("");
  if (found->is_number()) return found->get<double>();
  return decimal_number(found->is_string() ? found->as_string() : "").value_or(std::nan(""));
}

const Listed& part_of(const Listed& object, std::string_view key) {
  static const Listed kEmpty = Listed::object();
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_structured() ? *found : kEmpty;
}

namespace {

/// What is needed of a file that may be larger than the memory: the machines of AWS's list, SKUs of parts of Google's
/// machines, and prices under Linux in ec2instances.info.
class Needed {
 public:
  explicit Needed(const PriceCollector& known) : known_(known) {}

  bool operator()(std::size_t depth, const std::string& top, const std::string& key, const Listed& value) {
    if (top == "products" && depth == 2) {
      seen_products_ = true;
      const Listed& attributes = part_of(value, "attributes");
      const bool may_be_added = attributes.contains("gpu");
      if (!is_plain_machine(attributes) || !(may_be_added || known_.knows(text_of(attributes, "instanceType"))))
        return false;
      skus_.insert(text_of(value, "sku"));
    }
    // A file may have its terms before the products that tell which ones are needed.
    if (top == "terms" && depth == 3) return !seen_products_ || skus_.contains(key);
    if (top == "skus" && depth == 2) return is_machine_sku(value);
    if (top.empty() && depth == 4) return key == "linux" || !(value.contains("ondemand") || value.contains("reserved"));
    return true;
  }

 private:
  const PriceCollector& known_;
  std::set<std::string> skus_;
  bool seen_products_ = false;
};

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

/// False for software, dedicated hosts and machines of Azure's older services, which have the same sizes.
bool is_linux_machine(const Listed& item) {
  const std::string product = text_of(item, "productName"), service = text_of(item, "serviceName");
  for (const char* other : {"Windows", "CloudServices", "Cloud Services", "Dedicated Host"})
    if (product.find(other) != std::string::npos) return false;
  const auto primary = item.find("isPrimaryMeterRegion");
  return (service.empty() || service == "Virtual Machines") && text_of(item, "unitOfMeasure") == "1 Hour" &&
         (primary == item.end() || !primary->is_boolean() || primary->get<bool>());
}

void read_azure(const Listed& list, const std::string& file, PriceCollector& out) {
  const std::string key = list.contains("Items") ? "Items" : "items";
  std::size_t index = 0;
  for (const Listed& item : part_of(list, key)) {
    const std::string where = fmt::format("{}: /{}/{}", file, key, index++);
    if (!item.is_object()) throw ConfigError(where + ": found no object, expected a price");
    const std::string type = text_of(item, "type");
    const std::string sku = text_of(item, "skuName"), meter = text_of(item, "meterName");
    // Low priority is an older product than spot; savings plans and development rates need a contract.
    if ((type != "Consumption" && type != "Reservation") || !is_linux_machine(item) || sku.ends_with("Low Priority") ||
        meter.ends_with("Low Priority") || !in_effect(item, out.options().today))
      continue;
    const double hours = type == "Reservation" ? term_hours(item) : 1;
    if (hours == 0) continue;
    const bool spot = sku.ends_with("Spot") || meter.ends_with("Spot");
    const Market market = type == "Consumption" ? (spot ? Market::spot : Market::on_demand)
                          : hours < 9000        ? Market::reserved_1y
                                                : Market::reserved_3y;
    const std::string currency = text_of(item, "currencyCode");
    out.add_rented(text_of(item, "armSkuName"), where, text_of(item, "armRegionName"), "", market,
                   number_of(item, "retailPrice") / hours, "", currency.empty() ? "USD" : currency);
  }
}

void read_platform_prices(const std::filesystem::path& file, PriceCollector& out) {
  const Platform platform = read_platform(JsonNode::parse(read_file(file), file.string()));
  for (const Instance& instance : platform.instances) {
    constexpr double kGib = 1024.0 * 1024 * 1024;
    const std::string where = fmt::format("{}: /instances/{}/prices", file.string(), instance.name);
    out.describe(
        instance.name, where, instance.gpu,
        {.gpus = instance.gpus, .vcpus = instance.vcpus, .memory = instance.memory ? instance.memory->si / kGib : 0});
    for (const Price& price : instance.prices)
      out.add(instance.name, where, price.region, price.zone, price.market,
              static_cast<double>(price.per_hour.value) * 1e-6, price.as_of);
  }
}

/// Takes note of the next page, which members of these names say in one list or another.
void read_next_page(const Listed& list, const std::string& file, PriceCollector& out) {
  for (const char* key : {"NextPageLink", "nextPageLink", "NextToken", "nextPageToken"}) {
    const auto next = list.find(key);
    if (next == list.end()) continue;
    if (!next->is_string() && !next->is_null())
      throw ConfigError(fmt::format("{}: /{}: expected the next page as text, or null", file, key));
    return out.end_page(next->is_string() ? next->as_string() : "");
  }
  out.end_page("");
}

}  // namespace

std::string read_json_prices(const std::filesystem::path& path, PriceCollector& out) {
  const std::string file = path.string();
  Listed list;
  try {
    std::ifstream in(path, std::ios::binary);
    Needed needed(out);
    list = parse_needed(in, std::ref(needed));
  } catch (const JsonError& error) {
    throw ConfigError(fmt::format("{}: is not JSON: {}", file, error.what()));
  }
  const auto has = [&](const char* key) { return list.is_object() && list.contains(key); };
  const auto rows_have = [&](const char* key) {
    return list.is_array() && !list.empty() && list.front().is_object() && list.front().contains(key);
  };
  if (list.is_object()) read_next_page(list, file, out);
  if (has("products") && has("terms")) return read_aws_list(list, file, out), "AWS price list";
  if (has("PriceList")) return read_aws_products(list.at("PriceList"), file, out), "AWS products";
  if (list.is_array() && !list.empty() && list.front().is_string())
    return read_aws_products(list, file, out), "AWS products";
  if (has("SpotPriceHistory")) return read_aws_spot_history(list, file, out), "AWS spot price history";
  if (has("Items") || has("items")) return read_azure(list, file, out), "Azure retail prices";
  if (has("skus")) return read_google_skus(list.at("skus"), file, out), "Google SKUs";
  if (rows_have("skuId")) return read_google_skus(list, file, out), "Google SKUs";
  if (rows_have("instance_type")) return read_vantage(list, file, out), "instances of ec2instances.info";
  if (has("projects")) return read_infracost(list, file, out), "Infracost breakdown";
  if (has("offers")) return read_vast_offers(list.at("offers"), file, out), "Vast.ai offers";
  if (rows_have("dph_total")) return read_vast_offers(list, file, out), "Vast.ai offers";
  const Listed& data = has("data") ? list.at("data") : list;
  if (data.is_object() && data.contains("gpuTypes"))
    return read_runpod_gpus(data.at("gpuTypes"), file, out), "RunPod GPUs";
  if (rows_have("communityPrice")) return read_runpod_gpus(list, file, out), "RunPod GPUs";
  if (has("schema")) return read_platform_prices(path, out), "platform file";
  throw ConfigError(
      fmt::format("{}: expected a platform file (\"schema\"), AWS's price list (\"products\" and \"terms\"), products "
                  "(\"PriceList\") or spot prices (\"SpotPriceHistory\"), Azure's retail prices (\"Items\"), Google's "
                  "SKUs (\"skus\"), the instances of ec2instances.info (\"instance_type\"), Infracost's breakdown "
                  "(\"projects\"), Vast.ai's offers (\"offers\") or RunPod's GPUs (\"gpuTypes\")",
                  file));
}

}  // namespace ganymede::platforms
