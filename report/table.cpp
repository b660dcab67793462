#include "report/table.hpp"

#include <algorithm>
#include <cassert>

namespace ganymede {
namespace {

/// Columns on a terminal: bytes that do not continue a UTF-8 character.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0U) != 0x80U; }));
}

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  return out;
}

Table::Table(std::vector<std::string> names) : names_(std::move(names)) {
  for (auto& name : names_) {
    right_.push_back(name.starts_with('>'));
    if (right_.back()) name.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> cells) {
  assert(cells.size() == names_.size());
  rows_.push_back(std::move(cells));
}

void Table::rule() { rows_.emplace_back(); }

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const auto& name : names_) widths.push_back(width(name));
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));

  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - width(cells[i]), ' ');
      text += (i == 0 ? "" : "  ") + (right_[i] ? padding + cells[i] : cells[i] + padding);
    }
    out += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  };
  std::string dashes;
  for (std::size_t i = 0; i < widths.size(); ++i) dashes += (i == 0 ? "" : "  ") + std::string(widths[i], '-');
  line(names_);
  out += dashes + "\n";
  for (const auto& row : rows_) row.empty() ? void(out += dashes + "\n") : line(row);
  return out;
}

std::string Table::html_rows() const {
  const auto row = [&](const std::vector<std::string>& cells, const char* element, const std::string& attributes) {
    std::string out = "<tr" + attributes + ">";
    for (std::size_t i = 0; i < cells.size(); ++i)
      out += std::string("<") + element + (right_[i] ? " class=n>" : ">") + escaped(cells[i]) + "</" + element + ">";
    return out + "</tr>\n";
  };
  std::string out = "<thead>" + row(names_, "th", "") + "</thead><tbody>\n";
  std::size_t number = 0;
  bool after_rule = false;
  for (const auto& cells : rows_) {
    if (!cells.empty())
      out += row(cells, "td", " data-row=" + std::to_string(number++) + (after_rule ? " class=rule" : ""));
    after_rule = cells.empty();
  }
  return out + "</tbody>\n";
}

std::string Table::csv() const {
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) out += (i == 0 ? "" : ",") + quoted(cells[i]);
    out += "\r\n";
  };
  line(names_);
  for (const auto& row : rows_)
    if (!row.empty()) line(row);
  return out;
}

}  // namespace ganymede
