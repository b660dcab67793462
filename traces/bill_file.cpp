#include "traces/bill_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>

#include "common/csv.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/plain_text.hpp"
#include "common/printable.hpp"
#include "traces/inflated_text.hpp"

namespace ganymede::traces {
namespace {

/// The columns of a dialect by what they hold; "" where it has none.
struct Dialect {
  const char* name;
  const char *cost, *effective, *currency, *kind, *quantity, *unit, *service, *usage, *begin, *end;
  std::array<const char*, 5> words;  ///< in which an instance type may be named
};

constexpr Dialect kDialects[] = {{"FOCUS",
                                  "BilledCost",
                                  "EffectiveCost",
                                  "BillingCurrency",
                                  "ChargeCategory",
                                  "PricingQuantity",
                                  "PricingUnit",
                                  "ServiceName",
                                  "x_UsageType",
                                  "ChargePeriodStart",
                                  "ChargePeriodEnd",
                                  {"ChargeDescription", "SkuId", "SkuMeter", "SkuPriceDetails", "ResourceName"}},
                                 {"AWS CUR",
                                  "lineItem/UnblendedCost",
                                  "reservation/EffectiveCost",
                                  "lineItem/CurrencyCode",
                                  "lineItem/LineItemType",
                                  "lineItem/UsageAmount",
                                  "pricing/unit",
                                  "lineItem/ProductCode",
                                  "lineItem/UsageType",
                                  "lineItem/UsageStartDate",
                                  "lineItem/UsageEndDate",
                                  {"product/instanceType", "lineItem/LineItemDescription", "", "", ""}},
                                 {"AWS CUR 2.0",
                                  "line_item_unblended_cost",
                                  "reservation_effective_cost",
                                  "line_item_currency_code",
                                  "line_item_line_item_type",
                                  "line_item_usage_amount",
                                  "pricing_unit",
                                  "line_item_product_code",
                                  "line_item_usage_type",
                                  "line_item_usage_start_date",
                                  "line_item_usage_end_date",
                                  {"product_instance_type", "line_item_line_item_description", "product", "", ""}}};

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// "2026-11-01 00:00:00", "2026-11-01T00:00:00.000Z" or "2026-11-01T00:00:00Z".
std::optional<std::int64_t> time_of(std::string text) {
  if (text.size() < 19) return std::nullopt;
  text = text.substr(0, 19) + "Z";
  if (text[10] == ' ') text[10] = 'T';
  return parse_time(text);
}

/// What a row is charged for; all words are in small letters.
struct Words {
  std::string kind, service, usage, unit, category;
};

/// By the kind of the charge, else by what was used: AWS's types of usage are the most exact.
std::string item_of(const Words& of) {
  struct Rule {
    const char* word;
    const char* item;
  };
  constexpr Rule kKinds[] = {{"tax", "tax"},
                             {"credit", "credit"},
                             {"refund", "credit"},
                             {"discount", "credit"},
                             {"adjustment", "credit"},
                             {"negation", "commitment"},
                             {"purchase", "commitment"},
                             {"rifee", "commitment"},
                             {"savingsplan", "commitment"},
                             {"fee", "fee"}};
  // Hours that a commitment covers are used as others are, and no discount.
  if (of.kind != "discountedusage" && of.kind != "savingsplancoveredusage")
    for (const Rule& rule : kKinds)
      if (has(of.kind, rule.word)) return rule.item;
  constexpr Rule kUsages[] = {{"boxusage", "instance-hours"},
                              {"spotusage", "instance-hours"},
                              {"dedicatedusage", "instance-hours"},
                              {"reservation", "instance-hours"},
                              {"loadbalancer", "load balancer"},
                              {"lcuusage", "load balancer"},
                              {"datatransfer", "data transfer"},
                              {"natgateway", "data transfer"},
                              {"out-bytes", "data transfer"},
                              {"in-bytes", "data transfer"},
                              {"request", "requests"},
                              {"ebs:", "storage"},
                              {"timedstorage", "storage"},
                              {"snapshot", "storage"}};
  for (const Rule& rule : kUsages)
    if (has(of.usage, rule.word)) return rule.item;
  const std::string service = of.category + " " + of.service;
  if (has(of.unit, "request")) return "requests";
  constexpr Rule kServices[] = {{"load balanc", "load balancer"},
                                {"kubernetes", "control plane"},
                                {"transfer", "data transfer"},
                                {"bandwidth", "data transfer"},
                                {"networking", "data transfer"},
                                {"network", "data transfer"},
                                {"storage", "storage"},
                                {"support", "fee"},
                                {"virtual machine", "instance-hours"},
                                {"compute", "instance-hours"},
                                {"ec2", "instance-hours"},
                                {"gpu", "instance-hours"}};
  for (const Rule& rule : kServices)
    if (has(service, rule.word)) return rule.item;
  return "other";
}

/// Adds up the rows of a bill, piece by piece.
class Reader {
 public:
  Reader(BillFile& out, std::string instance) : out_(out), instance_(lower_case(std::move(instance))) {}

  /// `before`: how many lines the file has before the table's, beyond the table's own count.
  void take(const CsvTable& table, std::size_t before) {
    if (dialect_ == nullptr) find_dialect(table);
    const Dialect& of = *dialect_;
    columns_.clear();
    for (const CsvTable::Row& row : table.rows()) {
      ++out_.rows;
      const auto cost = parse_number<double>(cell(table, row, of.cost));
      if (!cost || !std::isfinite(*cost) || std::abs(*cost) > 1e12) {
        skip(fmt::format("line {}: {}: found \"{}\", expected an amount", before + row.line, of.cost,
                         printable(cell(table, row, of.cost)).substr(0, 40)));
        continue;
      }
      const std::string& currency = cell(table, row, of.currency);
      if (!currency.empty() && currency != "USD" && *cost != 0)
        throw ConfigError(fmt::format("{}: line {}: {}: found {}, expected USD, in which plans are", out_.file,
                                      before + row.line, of.currency, printable(currency).substr(0, 20)));
      add(table, row, *cost);
    }
  }

  void skip(std::string why) {
    constexpr std::size_t kShown = 3;
    ++out_.skipped_rows;
    if (out_.skipped.size() < kShown) out_.skipped.push_back(std::move(why));
  }

  void finish() {
    for (auto& [key, item] : items_) out_.items.push_back(std::move(item));
  }

 private:
  void find_dialect(const CsvTable& table) {
    for (const Dialect& dialect : kDialects)
      if (table.has(dialect.cost) && table.has(dialect.kind)) dialect_ = &dialect;
    if (dialect_ == nullptr)
      throw ConfigError(fmt::format(
          "{}: expected a bill as CSV with the columns of FOCUS ({}, {}) or of AWS's Cost and Usage Report ({} or {})",
          out_.file, kDialects[0].cost, kDialects[0].kind, kDialects[1].cost, kDialects[2].cost));
    out_.dialect = dialect_->name;
  }

  /// The row's cell; "" if the table has no such column.
  const std::string& cell(const CsvTable& table, const CsvTable::Row& row, std::string_view column) {
    static const std::string kNone;
    if (column.empty()) return kNone;
    const auto known = columns_.find(column);
    std::size_t at = known == columns_.end() ? 0 : known->second;
    if (known == columns_.end()) {
      const auto& names = table.names();
      at = static_cast<std::size_t>(std::find(names.begin(), names.end(), column) - names.begin());
      columns_.emplace(column, at);
    }
    return at < row.cells.size() ? row.cells[at] : kNone;
  }

  void add(const CsvTable& table, const CsvTable::Row& row, double cost) {
    const Dialect& of = *dialect_;
    const auto number = [&](const char* column) {
      const auto value = parse_number<double>(cell(table, row, column));
      return value && std::isfinite(*value) ? value : std::nullopt;
    };
    const Words words = {lower_case(cell(table, row, of.kind)), lower_case(cell(table, row, of.service)),
                         lower_case(cell(table, row, of.usage)), lower_case(cell(table, row, of.unit)),
                         lower_case(cell(table, row, "ServiceCategory"))};
    ChargedItem charged;
    charged.item = item_of(words);
    charged.what = name_of(table, row, charged.item);
    const bool hours = has(words.unit, "hour") || words.unit == "hrs" || words.unit == "h";
    charged.unit = hours ? "h" : cell(table, row, of.unit);
    // A purchase of a commitment has the hours that it covers, which are charged apart.
    charged.quantity = number(of.quantity).value_or(0);
    charged.usd = cost, charged.rows = 1;
    charged.effective_usd = number(of.effective).value_or(cost);
    if (std::string_view(of.name) != "FOCUS" && words.kind != "discountedusage") charged.effective_usd = cost;
    constexpr std::size_t kMostItems = 10000;
    ChargedItem& sum = items_.size() < kMostItems || items_.contains({charged.item, charged.what})
                           ? items_[{charged.item, charged.what}]
                           : items_[{charged.item, "others"}];
    if (sum.rows == 0) {
      sum = charged;
    } else {
      if (sum.unit != charged.unit) sum.unit.clear();
      sum.quantity += charged.quantity, sum.usd += charged.usd, sum.effective_usd += charged.effective_usd, ++sum.rows;
    }
    if (const auto begin = time_of(cell(table, row, of.begin)); begin && (out_.from == 0 || *begin < out_.from))
      out_.from = *begin;
    if (const auto end = time_of(cell(table, row, of.end)); end && *end > out_.to) out_.to = *end;
  }

  /// The plan's instance type if a word of the row names it; else AWS's type behind the usage's colon, or the service.
  std::string name_of(const CsvTable& table, const CsvTable::Row& row, const std::string& item) {
    const std::string& usage = cell(table, row, dialect_->usage);
    if (item == "instance-hours" || item == "commitment") {
      if (!instance_.empty()) {
        std::string all = usage;
        for (const char* column : dialect_->words) all += ' ' + cell(table, row, column);
        if (is_named(lower_case(all))) return instance_;
      }
      if (const std::size_t colon = usage.rfind(':'); colon != std::string::npos) return usage.substr(colon + 1);
      if (const std::string& type = cell(table, row, dialect_->words[0]); item == "instance-hours" && !type.empty())
        return type;
    }
    const std::string& service = cell(table, row, dialect_->service);
    return service.empty() ? usage : service;
  }

  /// True if the text has the instance type as a word of its own: "p3.2xlarge" is no part of "p3.2xlarge-spot"'s like.
  bool is_named(const std::string& text) const {
    const auto is_inside = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_';
    };
    for (std::size_t at = text.find(instance_); at != std::string::npos; at = text.find(instance_, at + 1)) {
      const std::size_t end = at + instance_.size();
      const bool more = end < text.size() && is_inside(text[end]) && (text[end] != '.' || end + 1 < text.size());
      if ((at == 0 || !is_inside(text[at - 1])) && !more) return true;
    }
    return false;
  }

  BillFile& out_;
  std::string instance_;
  const Dialect* dialect_ = nullptr;
  std::map<std::string, std::size_t, std::less<>> columns_;  // their places, by name
  std::map<std::pair<std::string, std::string>, ChargedItem> items_;
};

}  // namespace

BillFile read_bill_file(const std::filesystem::path& file, const std::string& instance) {
  BillFile out;
  out.file = file.string();
  Reader reader(out, instance);
  std::string names;      // the first line, which stands before each piece
  std::size_t lines = 0;  // that were read
  inflated_pieces(file, [&](std::string_view piece) {
    std::vector<std::string> unlike;
    const CsvTable table = CsvTable::parse(names + std::string(piece), out.file, &unlike);
    reader.take(table, names.empty() ? 0 : lines - 1);
    out.rows += static_cast<std::int64_t>(unlike.size());
    for (const std::string& row : unlike) reader.skip(row.substr(std::min(row.size(), out.file.size() + 2)));
    if (names.empty()) names = piece.substr(0, piece.find('\n') + 1);
    lines += static_cast<std::size_t>(std::count(piece.begin(), piece.end(), '\n'));
  });
  reader.finish();
  if (out.dialect.empty() || out.rows == out.skipped_rows)
    throw ConfigError(fmt::format("{}: expected at least one row with an amount{}", out.file,
                                  out.skipped.empty() ? "" : "; " + out.skipped.front()));
  return out;
}

}  // namespace ganymede::traces
