#include "traces/bill_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "common/csv.hpp"
#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/plain_text.hpp"
#include "common/printable.hpp"
#include "traces/bill_words.hpp"
#include "traces/inflated_text.hpp"

namespace ganymede::traces {
namespace {

/// The columns of a dialect by what they hold; "" where it has none. Those of AWS are of its guide to Cost and Usage
/// Reports (data dictionary; in CUR 2.0 with underscores), those of FOCUS of its specification 1.2.
struct Dialect {
  const char* name;
  const char *cost, *currency, *kind, *quantity, *unit, *service, *usage, *begin, *end;
  const char* commitment;                         ///< filled where a row belongs to a commitment
  const char *effective, *effective_plan;         ///< the cost of hours that a reservation or a savings plan covers
  std::array<const char*, 2> unused_reservation;  ///< parts of a reservation's fee that no hours have: their sum
  std::array<const char*, 2> unused_plan;         ///< a savings plan's commitment, and its part that hours have
  std::array<const char*, 5> words;               ///< in which an instance type may be named
};

constexpr Dialect kDialects[] = {
    {"FOCUS",
     "BilledCost",
     "BillingCurrency",
     "ChargeCategory",
     "PricingQuantity",
     "PricingUnit",
     "ServiceName",
     "x_UsageType",
     "ChargePeriodStart",
     "ChargePeriodEnd",
     "CommitmentDiscountId",
     "EffectiveCost",
     "",
     {"", ""},
     {"", ""},
     {"ChargeDescription", "SkuId", "SkuMeter", "SkuPriceDetails", "ResourceName"}},
    {"AWS CUR",
     "lineItem/UnblendedCost",
     "lineItem/CurrencyCode",
     "lineItem/LineItemType",
     "lineItem/UsageAmount",
     "pricing/unit",
     "lineItem/ProductCode",
     "lineItem/UsageType",
     "lineItem/UsageStartDate",
     "lineItem/UsageEndDate",
     "reservation/ReservationARN",
     "reservation/EffectiveCost",
     "savingsPlan/SavingsPlanEffectiveCost",
     {"reservation/UnusedAmortizedUpfrontFeeForBillingPeriod", "reservation/UnusedRecurringFee"},
     {"savingsPlan/TotalCommitmentToDate", "savingsPlan/UsedCommitment"},
     {"product/instanceType", "lineItem/LineItemDescription", "", "", ""}},
    {"AWS CUR 2.0",
     "line_item_unblended_cost",
     "line_item_currency_code",
     "line_item_line_item_type",
     "line_item_usage_amount",
     "pricing_unit",
     "line_item_product_code",
     "line_item_usage_type",
     "line_item_usage_start_date",
     "line_item_usage_end_date",
     "reservation_reservation_a_r_n",
     "reservation_effective_cost",
     "savings_plan_savings_plan_effective_cost",
     {"reservation_unused_amortized_upfront_fee_for_billing_period", "reservation_unused_recurring_fee"},
     {"savings_plan_total_commitment_to_date", "savings_plan_used_commitment"},
     {"product_instance_type", "line_item_line_item_description", "product", "", ""}}};

/// Adds up the rows of a bill, piece by piece.
class Reader {
 public:
  Reader(BillFile& out, const std::vector<std::string>& instances, const BillPart& part) : out_(out), part_(part) {
    for (const std::string& instance : instances)
      if (!instance.empty()) instances_.push_back(lower_case(instance));
  }

  /// `before`: how many lines the file has before the table's, beyond the table's own count.
  void take(const CsvTable& table, std::size_t before) {
    if (dialect_ == nullptr) find_dialect(table);
    const Dialect& of = *dialect_;
    columns_.clear();
    part_.begin(table);
    for (const CsvTable::Row& row : table.rows()) {
      ++out_.rows;
      const std::string &begin = cell(table, row, of.begin), &end = cell(table, row, of.end);
      const auto from = time_of_bill(begin), to = time_of_bill(end);
      if (!part_.has(row, from, to)) continue;  // whatever it says
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
      if (from && to && *to < *from) {
        skip(fmt::format("line {}: {}: found {}, expected a time after {}, at which it starts", before + row.line,
                         of.end, printable(end).substr(0, 40), printable(begin).substr(0, 40)));
        continue;
      }
      if (from && (out_.from == 0 || *from < out_.from)) out_.from = *from;
      if (to && *to > out_.to) out_.to = *to;
      add(table, row, *cost, before + row.line);
    }
  }

  void skip(std::string why) {
    constexpr std::size_t kShown = 3;
    ++out_.skipped_rows;
    if (out_.skipped.size() < kShown) out_.skipped.push_back(std::move(why));
  }

  void finish(const BillPart& part) {
    out_.outside = part_.outside(), out_.straddling = part_.straddling();
    out_.by_name = !part.tag.empty() || !part.resource.empty();
    if (!part.is_all() && !out_.dialect.empty() && out_.rows == out_.skipped_rows + out_.outside)
      throw ConfigError(
          fmt::format("{}: none of its {} rows is of what was asked for{}", out_.file, out_.rows, part_.seen()));
    for (auto& [key, item] : items_) out_.items.push_back(std::move(item));
  }

 private:
  void find_dialect(const CsvTable& table) {
    for (const Dialect& dialect : kDialects)
      if (place(table, dialect.cost) < table.names().size() && place(table, dialect.kind) < table.names().size())
        dialect_ = &dialect;
    if (dialect_ == nullptr)
      throw ConfigError(fmt::format(
          "{}: expected a bill as CSV with the columns of FOCUS ({}, {}) or of AWS's Cost and Usage Report ({} or {})",
          out_.file, kDialects[0].cost, kDialects[0].kind, kDialects[1].cost, kDialects[2].cost));
    out_.dialect = dialect_->name;
  }

  /// The place of a column, or beyond all. Athena writes names in small letters.
  static std::size_t place(const CsvTable& table, std::string_view column) {
    const auto& names = table.names();
    const auto is = [wanted = lower_case(std::string(column))](const std::string& name) {
      return lower_case(name) == wanted;
    };
    return static_cast<std::size_t>(std::find_if(names.begin(), names.end(), is) - names.begin());
  }

  /// The row's cell; "" if the table has no such column.
  const std::string& cell(const CsvTable& table, const CsvTable::Row& row, std::string_view column) {
    static const std::string kNone;
    if (column.empty()) return kNone;
    const auto known = columns_.find(column);
    const std::size_t at = known != columns_.end() ? known->second : place(table, column);
    if (known == columns_.end()) columns_.emplace(column, at);
    return at < row.cells.size() ? row.cells[at] : kNone;
  }

  /// The cell's number; none if it is none.
  std::optional<double> number(const CsvTable& table, const CsvTable::Row& row, const char* column) {
    const auto value = parse_number<double>(cell(table, row, column));
    return value && std::isfinite(*value) ? value : std::nullopt;
  }

  /// Throws ConfigError for a row at that line whose quantity, or the sum of all amounts with it, is absurd.
  void check(double quantity, double cost, std::size_t line) {
    constexpr double kMost = 1e12;  // micro-dollars of its sixfold still fit into 64 bits
    const auto refuse = [&](const char* column, double found) {
      throw ConfigError(fmt::format("{}: line {}: {}: found {:.4g}, expected at most {:.0e}{}", out_.file, line, column,
                                    found, kMost, column == dialect_->cost ? " in all rows together" : ""));
    };
    if (std::abs(quantity) > kMost) refuse(dialect_->quantity, quantity);
    if ((all_usd_ += std::abs(cost)) > kMost) refuse(dialect_->cost, all_usd_);
  }

  /// The cost with its part of commitments. A fee's is what no hours have of it: AWS's "Data dictionary" has the parts.
  double effective_cost(const CsvTable& table, const CsvTable::Row& row, const std::string& kind, double cost) {
    const Dialect& of = *dialect_;
    const auto at = [&](const char* column) { return number(table, row, column).value_or(0); };
    if (dialect_ == &kDialects[0] || kind == "discountedusage") return number(table, row, of.effective).value_or(cost);
    if (kind == "savingsplancoveredusage") return number(table, row, of.effective_plan).value_or(cost);
    if (kind == "savingsplanrecurringfee") return at(of.unused_plan[0]) - at(of.unused_plan[1]);
    if (kind == "rifee") return at(of.unused_reservation[0]) + at(of.unused_reservation[1]);
    const bool upfront = kind == "fee" && !cell(table, row, of.commitment).empty();
    return upfront || kind == "savingsplannegation" || kind == "savingsplanupfrontfee" ? 0 : cost;
  }

  void add(const CsvTable& table, const CsvTable::Row& row, double cost, std::size_t line) {
    const Dialect& of = *dialect_;
    const ChargeWords words = {lower_case(cell(table, row, of.kind)), lower_case(cell(table, row, of.service)),
                               lower_case(cell(table, row, of.usage)), lower_case(cell(table, row, of.unit)),
                               lower_case(cell(table, row, "ServiceCategory"))};
    ChargedItem charged;
    charged.item = kind_of_charge(words);
    const bool of_commitment = !cell(table, row, of.commitment).empty();
    if (charged.item == "fee" && of_commitment) charged.item = "commitment";
    const bool of_machine = charged.item == "instance-hours" || charged.item == "commitment";
    const auto named = of_machine ? instance_in(table, row) : std::nullopt;
    charged.what = named ? *named : name_of(table, row, words, charged.item);
    // Hours of machines. A cloud that charges cores, memory and GPUs apart has no hours of whole machines.
    const bool is_part = of_machine && !named && is_part_of_machine(table, row);
    // AWS's types of usage of machines are in hours, also in rows that leave the unit out.
    const bool is_unsaid = of_machine && words.unit.empty() && dialect_ != &kDialects[0] &&
                           words.usage.find("usage:") != std::string::npos;
    const double hours = is_part     ? 0
                         : is_unsaid ? 1
                                     : hours_of(words.unit),
                 quantity = number(table, row, of.quantity).value_or(0);
    check(quantity, cost, line);
    const bool is_time = hours > 0 || charged.item == "instance-hours";
    charged.unit = is_time ? "h" : cell(table, row, of.unit);
    charged.quantity = is_time ? quantity * hours : quantity;
    charged.usd = cost, charged.rows = 1;
    charged.effective_usd = effective_cost(table, row, words.kind, cost);
    out_.has_commitment = out_.has_commitment || of_commitment || charged.item == "commitment" ||
                          words.kind == "discountedusage" || words.kind == "savingsplancoveredusage";
    sum_up(charged);
  }

  void sum_up(const ChargedItem& charged) {
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
  }

  /// The one of the plan's instance types that a word of the row names.
  std::optional<std::string> instance_in(const CsvTable& table, const CsvTable::Row& row) {
    const std::string words = words_of(table, row);
    // Azure's bills write "ND96asr v4" for Standard_ND96asr_v4.
    constexpr std::string_view kStandard = "standard_";
    for (const std::string& instance : instances_)
      if (has_word(words, instance) ||
          (instance.starts_with(kStandard) && has_word(words, instance.substr(kStandard.size()))))
        return instance;
    return std::nullopt;
  }

  bool is_part_of_machine(const CsvTable& table, const CsvTable::Row& row) {
    const std::string words = words_of(table, row);
    return std::ranges::any_of(std::array{"core", "vcpu", "ram", "memory", "gpu"},
                               [&](const char* part) { return has_word(words, part); });
  }

  std::string words_of(const CsvTable& table, const CsvTable::Row& row) {
    std::string all = cell(table, row, dialect_->usage);
    for (const char* column : dialect_->words) all += ' ' + cell(table, row, column);
    return lower_case(all);
  }

  /// AWS's instance type behind the usage's colon, or the description; else the service.
  std::string name_of(const CsvTable& table, const CsvTable::Row& row, const ChargeWords& words,
                      const std::string& item) {
    const std::string& usage = cell(table, row, dialect_->usage);
    if (item == "commitment" && words.kind.find("savingsplan") != std::string::npos) return kSavingsPlan;
    if (item == "instance-hours" || item == "commitment") {
      if (const std::size_t colon = usage.rfind(':'); colon != std::string::npos) return usage.substr(colon + 1);
      if (const std::string& type = cell(table, row, dialect_->words[0]); item == "instance-hours" && !type.empty())
        return type;
    }
    const std::string& service = cell(table, row, dialect_->service);
    return service.empty() ? usage : service;
  }

  BillFile& out_;
  BillRows part_;
  std::vector<std::string> instances_;
  double all_usd_ = 0;  // of all rows, without signs
  const Dialect* dialect_ = nullptr;
  std::map<std::string, std::size_t, std::less<>> columns_;  // their places, by name
  std::map<std::pair<std::string, std::string>, ChargedItem> items_;
};

}  // namespace

BillFile read_bill_file(const std::filesystem::path& file, const std::vector<std::string>& instances,
                        const BillPart& part) {
  BillFile out;
  out.file = file.string();
  Reader reader(out, instances, part);
  std::string names;      // the row of names, which stands before each piece
  std::size_t lines = 0;  // that were read
  const auto lines_in = [](std::string_view text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  };
  inflated_pieces(file, [&](std::string_view piece) {
    std::vector<std::string> unlike;
    const CsvTable table = CsvTable::parse(names + std::string(piece), out.file, &unlike);
    reader.take(table, lines - lines_in(names));
    out.rows += static_cast<std::int64_t>(unlike.size());
    for (const std::string& row : unlike) reader.skip(row.substr(std::min(row.size(), out.file.size() + 2)));
    if (names.empty()) names = first_row(piece);
    lines += lines_in(piece);
  });
  reader.finish(part);
  if (out.dialect.empty() || out.rows == out.skipped_rows)
    throw ConfigError(fmt::format("{}: expected at least one row with an amount{}", out.file,
                                  out.skipped.empty() ? "" : "; " + out.skipped.front()));
  return out;
}

}  // namespace ganymede::traces
