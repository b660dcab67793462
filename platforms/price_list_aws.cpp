// AWS's own lists of prices: its price list as JSON and as CSV, what `aws pricing get-products` prints, and the history
// of its spot prices. Formats:
// docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/reading-service-price-list-file.html and the AWS CLI's reference
// of both commands.

#include <fmt/format.h>

#include <algorithm>

#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "platforms/price_collector.hpp"

namespace ganymede::platforms {
namespace {

/// What both forms of the list say about a product; the names are those of the JSON.
struct Product {
  std::string instance_type, operating_system, tenancy, software, capacity, market;

  bool is_plain_machine() const {
    return operating_system == "Linux" && tenancy == "Shared" && software == "NA" &&
           (capacity == "Used" || capacity.empty()) &&
           // Blocks of capacity are paid for when they are reserved: their hours cost nothing.
           (market == "OnDemand" || market.empty());
  }
};

Product product_of(const Listed& attributes) {
  return {text_of(attributes, "instanceType"),   text_of(attributes, "operatingSystem"),
          text_of(attributes, "tenancy"),        text_of(attributes, "preInstalledSw"),
          text_of(attributes, "capacitystatus"), text_of(attributes, "marketoption")};
}

/// The value that a text which is JSON gives a member, without reading the text; "" if it is not plain there. Few
/// of AWS's machines are in a catalog, and reading the others took most of the time.
std::string_view glimpse(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    std::string_view rest = text.substr(at + key.size());
    if (at == 0 || text[at - 1] != '"' || !rest.starts_with('"')) continue;
    rest.remove_prefix(std::min(rest.find_first_not_of(" :", 1), rest.size()));
    if (!rest.starts_with('"')) return "";
    const std::string_view value = rest.substr(1, rest.find('"', 1) - 1);
    return value.find('\\') == value.npos ? value : "";
  }
  return "";
}

/// True for a product, as text, that is no machine of the catalog and cannot become one. A machine is counted.
bool is_passed_over(const std::string& text, PriceCollector& out) {
  // A list without filters has ten for other systems for each that counts.
  if (text.find("\"Linux\"") == text.npos) return true;
  const std::string instance(glimpse(text, "instanceType"));
  if (instance.empty() || out.knows(instance) || text.find("\"gpu\"") != text.npos) return false;
  const auto value = [&](const char* key) { return std::string(glimpse(text, key)); };
  const Product product{instance,
                        value("operatingSystem"),
                        value("tenancy"),
                        value("preInstalledSw"),
                        value("capacitystatus"),
                        value("marketoption")};
  if (product.is_plain_machine() && text.find("\"Hrs\"") != text.npos) out.skip(instance);
  return true;
}

/// The number at the beginning of "1,152 GiB"; 0 if there is none.
double leading_number(std::string text) {
  std::erase(text, ',');
  return decimal_number(std::string_view(text).substr(0, text.find(' '))).value_or(0);
}

/// The GPU of a new size of a family, which is that of the others: "H100" of "p5.4xlarge" if there is a "p5.48xlarge".
/// The list says how many GPUs a machine has, and not which.
std::string gpu_of_family(const Platform& platform, const std::string& instance) {
  const std::string family = instance.substr(0, instance.find('.') + 1);
  for (const Instance& other : platform.instances)
    if (!family.empty() && other.name.starts_with(family)) return other.gpu;
  return "";
}

void describe(const std::string& instance, const std::string& where, const std::string& gpus, const std::string& vcpus,
              const std::string& memory, PriceCollector& out) {
  const double number = leading_number(gpus);  // a part of a GPU is none
  if (out.knows(instance) || number < 1 || number != static_cast<int>(number)) return;
  out.describe(instance, where, gpu_of_family(out.platform(), instance),
               {.gpus = static_cast<int>(number),
                .vcpus = static_cast<int>(leading_number(vcpus)),
                .memory = leading_number(memory),
                .relative = true});
}

std::optional<Market> market_of(bool reserved, const std::string& option, const std::string& offering,
                                const std::string& length) {
  if (!reserved) return Market::on_demand;
  if (option != "No Upfront" || offering != "standard") return std::nullopt;
  return length.starts_with('1') ? Market::reserved_1y : Market::reserved_3y;
}

/// Takes the offers of a product: by their codes, as `terms` has them under "OnDemand" and "Reserved".
void read_offers(const Listed& attributes, const Listed& offers, bool reserved, const std::string& at,
                 const std::string& published, PriceCollector& out) {
  for (const auto& [code, offer] : offers.items()) {
    const Listed& term = part_of(offer, "termAttributes");
    const auto market = market_of(reserved, text_of(term, "PurchaseOption"), text_of(term, "OfferingClass"),
                                  text_of(term, "LeaseContractLength"));
    if (!market) continue;
    for (const auto& [dimension, price] : part_of(offer, "priceDimensions").items()) {
      if (text_of(price, "unit") != "Hrs") continue;
      const Listed& amounts = part_of(price, "pricePerUnit");
      for (const auto& [currency, amount] : amounts.items())
        out.add_rented(text_of(attributes, "instanceType"),
                       fmt::format("{}/{}/priceDimensions/{}", at, code, dimension), text_of(attributes, "regionCode"),
                       "", *market, number_of(amounts, currency.c_str()), published, currency);
    }
  }
}

}  // namespace

bool is_plain_machine(const Listed& attributes) { return product_of(attributes).is_plain_machine(); }

void read_aws_list(const Listed& list, const std::string& file, PriceCollector& out) {
  const std::string published = text_of(list, "publicationDate").substr(0, 10);
  for (const auto& [sku, product] : part_of(list, "products").items()) {
    const Listed& attributes = part_of(product, "attributes");
    describe(text_of(attributes, "instanceType"), fmt::format("{}: /products/{}", file, sku),
             text_of(attributes, "gpu"), text_of(attributes, "vcpu"), text_of(attributes, "memory"), out);
    for (const char* kind : {"OnDemand", "Reserved"})
      read_offers(attributes, part_of(part_of(part_of(list, "terms"), kind), sku), kind[0] == 'R',
                  fmt::format("{}: /terms/{}/{}", file, kind, sku), published, out);
  }
}

void read_aws_products(const Listed& products, const std::string& file, PriceCollector& out) {
  std::size_t index = 0;
  for (const Listed& text : products) {
    const std::string where = fmt::format("{}: /PriceList/{}", file, index++);
    // The service sends each product as a text that is JSON; some tools have read that already.
    if (text.is_string() && text.as_string().ends_with('}') && is_passed_over(text.as_string(), out)) continue;
    Listed product = text;
    if (text.is_string()) product = Listed::parse_or_null(text.as_string());
    if (!product.is_object()) throw ConfigError(where + ": expected a product as JSON, or as a text that is JSON");
    const Listed& attributes = part_of(part_of(product, "product"), "attributes");
    if (!is_plain_machine(attributes)) continue;
    describe(text_of(attributes, "instanceType"), where, text_of(attributes, "gpu"), text_of(attributes, "vcpu"),
             text_of(attributes, "memory"), out);
    for (const char* kind : {"OnDemand", "Reserved"})
      read_offers(attributes, part_of(part_of(product, "terms"), kind), kind[0] == 'R',
                  fmt::format("{}/terms/{}", where, kind), text_of(product, "publicationDate").substr(0, 10), out);
  }
}

void read_aws_spot_history(const Listed& list, const std::string& file, PriceCollector& out) {
  std::size_t index = 0;
  for (const Listed& row : part_of(list, "SpotPriceHistory")) {
    const std::string where = fmt::format("{}: /SpotPriceHistory/{}", file, index++);
    if (!text_of(row, "ProductDescription").starts_with("Linux/UNIX")) continue;
    // "us-east-1a" is in us-east-1, and so is the local zone "us-east-1-bos-1a". The names of zones differ between
    // accounts, their numbers do not.
    const std::string zone = text_of(row, "AvailabilityZone"), number = text_of(row, "AvailabilityZoneId");
    const std::size_t digit = zone.find_first_of("0123456789");
    if (digit == std::string::npos)
      throw ConfigError(fmt::format("{}: found the zone \"{}\", expected one such as us-east-1a", where, zone));
    const std::string region = zone.substr(0, zone.find_first_not_of("0123456789", digit));
    const std::string time = text_of(row, "Timestamp").substr(0, 19) + "Z";
    const auto since = parse_time(time);
    if (!since)
      throw ConfigError(fmt::format("{}: found the time \"{}\", expected one such as 2026-11-19T10:00:00+00:00", where,
                                    text_of(row, "Timestamp")));
    out.add_zone(text_of(row, "InstanceType"), region, number.empty() ? zone : number,
                 {number_of(row, "SpotPrice"), where, format_time(*since)});
  }
}

void read_aws_csv(const std::filesystem::path& file, PriceCollector& out) {
  std::string published;
  bool named = false;
  const auto before = [&](std::string line) {
    std::erase(line, '"');  // some tools leave out the quotes
    constexpr std::string_view kPublished = "Publication Date,";
    if (line.starts_with(kPublished)) published = line.substr(kPublished.size(), 10);
    return !(named = line.starts_with("SKU,"));
  };
  const auto read = [&](const CsvTable& table) {
    for (const char* column : {"Instance Type", "Region Code", "Operating System", "Tenancy", "Pre Installed S/W",
                               "TermType", "Unit", "PricePerUnit", "Currency"})
      if (!table.has(column)) throw ConfigError(fmt::format("{}: has no column \"{}\"", file.string(), column));
    for (const CsvTable::Row& row : table.rows()) {
      const auto cell = [&](const char* column) { return table.has(column) ? table.at(row, column) : std::string(); };
      const Product product{cell("Instance Type"),     cell("Operating System"), cell("Tenancy"),
                            cell("Pre Installed S/W"), cell("CapacityStatus"),   cell("MarketOption")};
      if (!product.is_plain_machine() || cell("Unit") != "Hrs") continue;
      const auto market = market_of(cell("TermType") == "Reserved", cell("PurchaseOption"), cell("OfferingClass"),
                                    cell("LeaseContractLength"));
      if (!market) continue;
      const std::string where = fmt::format("{}: line {}", file.string(), row.line);
      describe(product.instance_type, where, cell("GPU"), cell("vCPU"), cell("Memory"), out);
      out.add_rented(product.instance_type, where, cell("Region Code"), "", *market,
                     decimal_number(cell("PricePerUnit")).value_or(std::numeric_limits<double>::quiet_NaN()), published,
                     cell("Currency").empty() ? "USD" : cell("Currency"));
    }
  };
  CsvTable::load_pieces(file, read, before);
  if (!named) throw ConfigError(file.string() + ": expected AWS's price list: a line with SKU and other columns");
}

}  // namespace ganymede::platforms
