// A comparison of two documents as tables for a terminal and for Markdown.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/json_value.hpp"
#include "common/printable.hpp"
#include "report/differences.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {

using DiffJson = OrderedJson;

/// A new catalog changes hundreds of prices; the tables show so many inputs, the JSON all of them.
constexpr std::size_t kInputsMax = 20;

std::string shown_amount(double value, const std::string& unit) {
  if (unit == "s") return value < 10 ? fmt::format("{:.4g} s", value) : clock(value);
  if (unit == "USD") return usd(value) + " USD";
  if (unit == "share") return percent(value);
  return fmt::format("{:.4g} {}", value, unit);
}

std::string shown_value(const DiffJson& side, const std::string& unit) {
  return side.at("value").is_null() ? "-" : shown_amount(side.at("value").get<double>(), unit);
}

std::string shown_interval(const DiffJson& side, const std::string& unit) {
  if (side.at("interval").is_null()) return "";
  return range(side.at("interval").at(0).get<double>(), side.at("interval").at(1).get<double>(),
               [&](double value) { return shown_amount(value, unit); });
}

/// Whether a value is the same but for the rounding of sums.
bool is_rounding(const DiffJson& row) {
  if (row.at("change") == 0.0) return true;
  return row.at("relative").is_number() && std::abs(row.at("relative").get<double>()) < 1e-6;
}

std::string shown_change(const DiffJson& row) {
  if (row.at("change").is_null()) return "-";
  const double change = row.at("change").get<double>();
  if (is_rounding(row)) return "none";
  const std::string unit = row.at("unit").get<std::string>();
  const char* sign = change > 0 ? "+" : "-";
  return unit == "share" ? fmt::format("{}{:.1f} points", sign, 100 * std::abs(change))
                         : sign + shown_amount(std::abs(change), unit);
}

/// The relative change, "+12.5 %". Shares are compared in points alone.
std::string shown_relative(const DiffJson& row) {
  if (row.at("relative").is_null() || row.at("unit") == "share" || is_rounding(row)) return "";
  return signed_percent(row.at("relative").get<double>());
}

std::string shown_error(const DiffJson& row) {
  if (row.at("within_error").is_null() || is_rounding(row)) return "";
  return row.at("within_error").get<bool>() ? "within" : "beyond";
}

std::string shown_input(const DiffJson& value) {
  return printable(value.is_null() ? "not there" : value.is_string() ? value.get<std::string>() : value.dump());
}

/// "scenario /platform/nodes", "content of trace.json at /workload/trace", "price: instance-hours p3.8xlarge ...".
std::string input_name(const DiffJson& input) {
  const auto text = [&](const char* key) { return printable(input.at(key).get<std::string>()); };
  const std::string kind = text("kind"), name = text("name"), pointer = text("pointer");
  if (kind == "field") return name + " " + pointer;
  if (kind == "file") return fmt::format("content of {} ({})", name, pointer);
  if (kind == "price") return fmt::format("price of {} ({})", name, pointer);
  return fmt::format("{} ({})", name, pointer);
}

std::string limit_line(const DiffJson& limit) {
  return fmt::format("{} at most +{:.6g} %: {}", limit.at("what").get<std::string>(),
                     100 * limit.at("most").get<double>(), limit.at("held").get<bool>() ? "held" : "EXCEEDED");
}

using Rows = std::vector<std::vector<std::string>>;

/// Puts changes first: where a row is folded, its last columns go to a second line.
const std::vector<std::string> kQuantityColumns = {
    "what", ">change", ">", ">before", ">after", "stated error", "interval before", "interval after"};
const std::vector<std::string> kInputColumns = {"because of", "before", "after"};

Rows quantity_rows(const DiffJson& diff) {
  Rows rows;
  for (const DiffJson& row : diff.at("quantities")) {
    const auto unit = row.at("unit").get<std::string>();
    const DiffJson &before = row.at("before"), &after = row.at("after");
    if (before.at("value").is_null() && after.at("value").is_null()) continue;
    rows.push_back({row.at("what").get<std::string>(), shown_change(row), shown_relative(row),
                    shown_value(before, unit), shown_value(after, unit), shown_error(row), shown_interval(before, unit),
                    shown_interval(after, unit)});
  }
  return rows;
}

Rows input_rows(const DiffJson& diff) {
  Rows rows;
  const std::size_t count = std::min(kInputsMax, diff.at("inputs").size());
  for (std::size_t i = 0; i < count; ++i) {
    const DiffJson& input = diff.at("inputs").at(i);
    rows.push_back({input_name(input), shown_input(input.at("before")), shown_input(input.at("after"))});
  }
  return rows;
}

/// The rest that the tables leave open, one sentence a line.
std::vector<std::string> remarks_of(const DiffJson& diff) {
  std::vector<std::string> remarks;
  const std::size_t inputs = diff.at("inputs").size();
  if (inputs == 0) remarks.emplace_back("No recorded input differs.");
  if (inputs > kInputsMax)
    remarks.push_back(fmt::format("{} more inputs differ; --format json lists them.", inputs - kInputsMax));
  if (inputs > 1) remarks.emplace_back("What each input contributes is not told apart: change one of them at a time.");
  if (!diff.at("inputs_recorded").get<bool>())
    remarks.emplace_back("A document does not hold its inputs in full, so that only what it says of them is compared.");
  if (diff.at("over_seeds").get<bool>()) remarks.emplace_back("Time and cost are medians over the seeds.");
  remarks.emplace_back(
      "Stated error: within means that the intervals overlap. Errors that both share, such as those of one trace, "
      "cancel in part, so that even such a change may be real.");
  return remarks;
}

/// Text that Markdown and HTML leave as it is, in one line of a table.
std::string markdown_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\`*_[]|~#@!").find(c) != std::string_view::npos)
      out += std::string("\\") + c;
    else
      out += c;
  }
  return escaped(out);
}

std::string markdown_table(const std::vector<std::string>& columns, const Rows& rows) {
  std::string head = "|", rule = "|", body;
  for (const std::string& column : columns) {
    const bool right = column.starts_with('>');
    head += " " + column.substr(right ? 1 : 0) + " |";
    rule += right ? "---:|" : "---|";
  }
  for (const auto& row : rows) {
    body += "|";
    for (const std::string& cell : row) body += " " + markdown_text(cell) + " |";
    body += "\n";
  }
  return head + "\n" + rule + "\n" + body;
}

std::string plain_table(const std::vector<std::string>& columns, const Rows& rows, std::size_t width) {
  Table table(columns);
  for (const auto& row : rows) table.add(row);
  return table.text(width);
}

std::string side_line(const DiffJson& diff, const char* side) {
  return printable(diff.at(side).at("file").get<std::string>() + ": " + diff.at(side).at("subject").get<std::string>());
}

}  // namespace

std::string differences_text(const OrderedJson& diff, std::size_t width) {
  std::string out =
      wrap_prose(fmt::format("before: {}\nafter: {}\n", side_line(diff, "before"), side_line(diff, "after")), width);
  out += "\n" + plain_table(kQuantityColumns, quantity_rows(diff), width) + "\n";
  if (!diff.at("inputs").empty()) out += plain_table(kInputColumns, input_rows(diff), width) + "\n";
  for (const DiffJson& limit : diff.at("limits")) out += limit_line(limit) + "\n";
  for (const std::string& remark : remarks_of(diff)) out += wrap_prose(remark + "\n", width);
  return out;
}

std::string differences_markdown(const OrderedJson& diff) {
  std::string out = fmt::format("**before** {}<br>\n**after** {}\n\n", markdown_text(side_line(diff, "before")),
                                markdown_text(side_line(diff, "after")));
  for (const DiffJson& limit : diff.at("limits"))
    out += fmt::format("- {} {}\n", limit.at("held").get<bool>() ? ":white_check_mark:" : ":x:", limit_line(limit));
  if (!diff.at("limits").empty()) out += "\n";
  out += markdown_table(kQuantityColumns, quantity_rows(diff)) + "\n";
  if (!diff.at("inputs").empty()) out += markdown_table(kInputColumns, input_rows(diff)) + "\n";
  for (const std::string& remark : remarks_of(diff)) out += remark + "\n";
  return out;
}

}  // namespace ganymede::report
