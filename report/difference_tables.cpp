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

using documents::Difference;
using Quantity = Difference::Quantity;

/// A new catalog changes hundreds of prices; the tables show so many inputs, the JSON all of them.
constexpr std::size_t kInputsMax = 20;

std::string shown_amount(double value, const std::string& unit) {
  if (unit == "s") return value < 10 ? fmt::format("{:.4g} s", value) : clock(value);
  if (unit == "USD") return usd(value) + " USD";
  if (unit == "share") return percent(value);
  return fmt::format("{:.4g} {}", value, unit);
}

std::string shown_value(const Difference::Known& side, const std::string& unit) {
  return side.value ? shown_amount(*side.value, unit) : "-";
}

std::string shown_interval(const Difference::Known& side, const std::string& unit) {
  if (!side.interval) return "";
  return range(side.interval->low, side.interval->high, [&](double value) { return shown_amount(value, unit); });
}

/// Whether a value is the same but for the rounding of sums.
bool is_rounding(const Quantity& row) { return row.change == 0.0 || (row.relative && std::abs(*row.relative) < 1e-6); }

std::string shown_change(const Quantity& row) {
  if (!row.change) return "-";
  if (is_rounding(row)) return "none";
  const char* sign = *row.change > 0 ? "+" : "-";
  return row.unit == "share" ? fmt::format("{}{:.1f} points", sign, 100 * std::abs(*row.change))
                             : sign + shown_amount(std::abs(*row.change), row.unit);
}

/// The relative change, "+12.5 %". Shares are compared in points alone.
std::string shown_relative(const Quantity& row) {
  return !row.relative || row.unit == "share" || is_rounding(row) ? "" : signed_percent(*row.relative);
}

std::string shown_error(const Quantity& row) {
  return !row.within_error || is_rounding(row) ? "" : *row.within_error ? "within" : "beyond";
}

std::string shown_input(const documents::JsonText& input) {
  const Json value = Json::parse(input.text);
  return printable(value.is_null() ? "not there" : value.is_string() ? value.get<std::string>() : input.text);
}

/// "scenario /platform/nodes", "content of trace.json at /workload/trace", "price: instance-hours p3.8xlarge ...".
std::string input_name(const Difference::Input& input) {
  const std::string name = printable(input.name), pointer = printable(input.pointer);
  if (input.kind == "field") return name + " " + pointer;
  if (input.kind == "file") return fmt::format("content of {} ({})", name, pointer);
  if (input.kind == "price") return fmt::format("price of {} ({})", name, pointer);
  return fmt::format("{} ({})", name, pointer);
}

std::string limit_line(const Difference::Limit& limit) {
  return fmt::format("{} at most +{:.6g} %: {}", limit.what, 100 * limit.most, limit.held ? "held" : "EXCEEDED");
}

using Rows = std::vector<std::vector<std::string>>;

/// Puts changes first: where a row is folded, its last columns go to a second line.
const std::vector<std::string> kQuantityColumns = {
    "what", ">change", ">", ">before", ">after", "stated error", "interval before", "interval after"};
const std::vector<std::string> kInputColumns = {"because of", "before", "after"};

Rows quantity_rows(const Difference& diff) {
  Rows rows;
  for (const Quantity& row : diff.quantities)
    if (row.before.value || row.after.value)
      rows.push_back({row.what, shown_change(row), shown_relative(row), shown_value(row.before, row.unit),
                      shown_value(row.after, row.unit), shown_error(row), shown_interval(row.before, row.unit),
                      shown_interval(row.after, row.unit)});
  return rows;
}

Rows input_rows(const Difference& diff) {
  Rows rows;
  for (std::size_t i = 0; i < std::min(kInputsMax, diff.inputs.size()); ++i)
    rows.push_back({input_name(diff.inputs[i]), shown_input(diff.inputs[i].before), shown_input(diff.inputs[i].after)});
  return rows;
}

/// The rest that the tables leave open, one sentence a line.
std::vector<std::string> remarks_of(const Difference& diff) {
  std::vector<std::string> remarks;
  const std::size_t inputs = diff.inputs.size();
  if (inputs == 0) remarks.emplace_back("No recorded input differs.");
  if (inputs > kInputsMax)
    remarks.push_back(fmt::format("{} more inputs differ; --format json lists them.", inputs - kInputsMax));
  if (inputs > 1) remarks.emplace_back("What each input contributes is not told apart: change one of them at a time.");
  if (!diff.inputs_recorded)
    remarks.emplace_back("A document does not hold its inputs in full, so that only what it says of them is compared.");
  if (diff.over_seeds) remarks.emplace_back("Time and cost are medians over the seeds.");
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

std::string side_line(const Difference::Side& side) { return printable(side.file + ": " + side.subject); }

}  // namespace

std::string differences_text(const Difference& diff, std::size_t width) {
  std::string out =
      wrap_prose(fmt::format("before: {}\nafter: {}\n", side_line(diff.before), side_line(diff.after)), width);
  out += "\n" + plain_table(kQuantityColumns, quantity_rows(diff), width) + "\n";
  if (!diff.inputs.empty()) out += plain_table(kInputColumns, input_rows(diff), width) + "\n";
  for (const Difference::Limit& limit : diff.limits) out += limit_line(limit) + "\n";
  for (const std::string& remark : remarks_of(diff)) out += wrap_prose(remark + "\n", width);
  return out;
}

std::string differences_markdown(const Difference& diff) {
  std::string out = fmt::format("**before** {}<br>\n**after** {}\n\n", markdown_text(side_line(diff.before)),
                                markdown_text(side_line(diff.after)));
  for (const Difference::Limit& limit : diff.limits)
    out += fmt::format("- {} {}\n", limit.held ? ":white_check_mark:" : ":x:", limit_line(limit));
  if (!diff.limits.empty()) out += "\n";
  out += markdown_table(kQuantityColumns, quantity_rows(diff)) + "\n";
  if (!diff.inputs.empty()) out += markdown_table(kInputColumns, input_rows(diff)) + "\n";
  for (const std::string& remark : remarks_of(diff)) out += remark + "\n";
  return out;
}

}  // namespace ganymede::report
