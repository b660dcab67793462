#include "report/table.hpp"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <charconv>
#include <functional>
#include <numeric>
#include <sstream>

#include "common/printable.hpp"

namespace ganymede::report {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// True if a line must not be broken between two words, for example between a number and its unit: "5 s", "2 x", "1.0
/// %".
bool belongs_to(const std::string& left, const std::string& right) {
  if (left == "<-" || right == "..") return true;
  const auto first = static_cast<unsigned char>(right.front());
  return is_digit(left.back()) && (std::isalpha(first) != 0 || first == '%' || first >= 0x80U);
}

}  // namespace

std::size_t columns_of(const std::string& text) {
  // Counts the bytes that begin a character.
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0U) != 0x80U; }));
}

std::vector<std::string> unbreakable(const std::string& text) {
  std::vector<std::string> pieces;
  std::istringstream words(text);
  std::string last;
  for (std::string word; words >> word; last = word) {
    if (!pieces.empty() && belongs_to(last, word))
      pieces.back() += " " + word;
    else
      pieces.push_back(word);
  }
  return pieces;
}

std::vector<std::string> wrap_words(const std::string& text, std::size_t width) {
  if (columns_of(text) <= width) return {text};
  std::vector<std::string> lines;
  for (const std::string& piece : unbreakable(text)) {
    if (!lines.empty() && columns_of(lines.back()) + 1 + columns_of(piece) <= width)
      lines.back() += " " + piece;
    else
      lines.push_back(piece);
  }
  return lines.empty() ? std::vector<std::string>{""} : lines;
}

std::string hanging(const std::string& head, const std::string& text, std::size_t width) {
  const std::size_t indent = columns_of(head);
  // A head that takes nearly the whole width leaves no room for words beside it.
  if (width == kAnyWidth || indent + 20 > width) return head + text + "\n";
  std::string out;
  for (const std::string& line : wrap_words(text, width - indent))
    out += (out.empty() ? head : std::string(indent, ' ')) + line + "\n";
  return out;
}

std::string wrap_prose(const std::string& text, std::size_t width) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    if (columns_of(line) <= width || line.find("  ", indent) != std::string::npos || indent + 20 > width) {
      out += line + "\n";
      continue;
    }
    bool first = true;
    for (const std::string& part : wrap_words(line.substr(indent), width - indent - 2)) {
      out += std::string(first ? indent : indent + 2, ' ') + part + "\n";
      first = false;
    }
  }
  if (!text.ends_with('\n') && !out.empty()) out.pop_back();
  return out;
}

namespace {

constexpr std::size_t kColumnGap = 2;  // spaces between columns
constexpr std::size_t kIndent = 6;     // of a folded row's further lines

/// The width of columns side by side, gaps included.
std::size_t total(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), kColumnGap * (widths.size() - 1));
}

std::size_t widest(const std::vector<std::string>& pieces) {
  std::size_t most = 0;
  for (const auto& piece : pieces) most = std::max(most, columns_of(piece));
  return most;
}

/// Narrows the widest column that may be narrower until all fit; false if they cannot.
bool shrink(std::vector<std::size_t>& widths, const std::vector<std::size_t>& least, std::size_t width) {
  if (total(least) > width) return false;
  while (total(widths) > width) {
    std::size_t most = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (widths[i] > least[i] && (most == widths.size() || widths[i] > widths[most])) most = i;
    --widths[most];
  }
  return true;
}

/// A cell as HTML: its first line, and the others in small type.
std::string with_small_lines(const std::string& cell) {
  const std::size_t end = std::min(cell.find('\n'), cell.size());
  return escaped(cell.substr(0, end)) +
         (end + 1 < cell.size() ? "<small>" + escaped(cell.substr(end + 1)) + "</small>" : "");
}

/// True if a spreadsheet would take the cell for a formula: a name may be "=cmd()", and a plan of others may hold it.
bool is_formula(const std::string& cell) {
  if (cell.size() < 2 || std::string_view("=+-@\t\r").find(cell[0]) == std::string_view::npos) return false;
  double number = 0;
  const char* end = cell.data() + cell.size();
  const auto read = std::from_chars(cell.data() + (cell[0] == '+' ? 1 : 0), end, number);
  return read.ec != std::errc() || read.ptr != end;
}

std::string quoted(const std::string& cell) {
  if (is_formula(cell)) return quoted("'" + cell);
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

/// Places columns from left to right on as many lines as they need; nullopt if one column alone does not fit.
std::optional<Table::Layout> Table::fold(const std::vector<std::size_t>& wanted, const std::vector<std::size_t>& least,
                                         std::size_t width) {
  Layout folded{{}, wanted};
  std::size_t left = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::size_t room = i == 0 ? width : width - std::min(width, kIndent);
    folded.widths[i] = std::min(wanted[i], std::max(least[i], room));
    if (folded.widths[i] > room) return std::nullopt;
    if (i > 0 && folded.widths[i] + kColumnGap <= left) {
      left -= folded.widths[i] + kColumnGap;
    } else {
      folded.lines.emplace_back();
      left = room - folded.widths[i];
    }
    folded.lines.back().push_back(i);
  }
  return folded;
}

Table::Layout Table::layout(std::size_t width) const {
  const std::size_t columns = names_.size();
  // First without wrapping, then with wrapped headings, then with wrapped text too.
  std::vector<std::size_t> natural, whole_cells, least;
  Layout all{{{}}, {}};
  for (std::size_t i = 0; i < columns; ++i) {
    std::size_t cells = 0, piece = 0;
    for (const auto& row : rows_) {
      if (row.empty()) continue;
      cells = std::max(cells, columns_of(row[i]));
      piece = std::max(piece, right_[i] ? columns_of(row[i]) : widest(unbreakable(row[i])));
    }
    const std::size_t heading = widest(unbreakable(names_[i]));
    natural.push_back(std::max(cells, columns_of(names_[i])));
    whole_cells.push_back(std::max(cells, heading));
    least.push_back(std::max(piece, heading));
    all.lines[0].push_back(i);
  }
  all.widths = natural;
  if (columns == 0 || shrink(all.widths, whole_cells, width)) return all;
  all.widths = whole_cells;
  if (shrink(all.widths, least, width)) return all;

  const auto plain = fold(natural, least, width), tight = fold(whole_cells, least, width);
  if (!plain && !tight) return {all.lines, natural};
  return plain && plain->lines.size() <= tight->lines.size() ? *plain : *tight;
}

/// The lines of a cell in a column of that width.
std::vector<std::string> Table::lines_of(std::size_t column, const std::string& cell, std::size_t width) const {
  if (right_[column] && &cell != &names_[column]) return {cell};
  return wrap_words(cell, width);
}

std::string Table::row_text(const std::vector<std::string>& cells, const Layout& layout, bool heading) const {
  std::string out;
  for (const auto& columns : layout.lines) {
    std::vector<std::vector<std::string>> blocks;
    std::size_t height = 0;
    for (const std::size_t i : columns) {
      blocks.push_back(lines_of(i, cells[i], layout.widths[i]));
      height = std::max(height, blocks.back().size());
    }
    for (std::size_t at = 0; at < height; ++at) {
      std::string line(&columns == layout.lines.data() ? 0 : kIndent, ' ');
      for (std::size_t c = 0; c < columns.size(); ++c) {
        // Headings are aligned at the bottom, cells at the top.
        const std::size_t skipped = heading ? height - blocks[c].size() : 0;
        const std::string part = at < skipped || at - skipped >= blocks[c].size() ? "" : blocks[c][at - skipped];
        const std::size_t width = layout.widths[columns[c]];
        const std::string padding(width - std::min(width, columns_of(part)), ' ');
        line += (c == 0 ? "" : std::string(kColumnGap, ' ')) + (right_[columns[c]] ? padding + part : part + padding);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      // Empty lines of a folded row are left out.
      if (!line.empty() || &columns == layout.lines.data()) out += line + "\n";
    }
  }
  return out;
}

std::string Table::text(std::size_t width) const {
  Table shown = *this;
  for (auto& row : shown.rows_)
    for (std::string& cell : row) cell = printable(cell);
  return shown.printable_text(width);
}

std::string Table::printable_text(std::size_t width) const {
  const Layout layout = this->layout(width);
  std::string rule;
  if (layout.lines.size() == 1) {
    for (std::size_t i = 0; i < layout.widths.size(); ++i)
      rule += std::string(i == 0 ? 0 : kColumnGap, ' ') + std::string(layout.widths[i], '-');
  } else {
    rule = std::string(width, '-');
  }
  std::string out = row_text(names_, layout, true) + rule + "\n";
  for (const auto& row : rows_) out += row.empty() ? rule + "\n" : row_text(row, layout, false);
  return out;
}

std::string Table::take_constant_columns() {
  std::string out;
  const auto is_rule = [](const std::vector<std::string>& row) { return row.empty(); };
  if (std::count_if(rows_.begin(), rows_.end(), std::not_fn(is_rule)) < 2) return out;
  for (std::size_t i = names_.size(); i-- > 0;) {
    const std::string cell = std::find_if_not(rows_.begin(), rows_.end(), is_rule)->at(i);
    const auto differs = [&](const std::vector<std::string>& row) { return !is_rule(row) && row[i] != cell; };
    if (std::any_of(rows_.begin(), rows_.end(), differs)) continue;
    if (!cell.empty() && cell != "-") out = names_[i] + " " + cell + (out.empty() ? "" : ", ") + out;
    const auto at = static_cast<std::ptrdiff_t>(i);
    names_.erase(names_.begin() + at);
    right_.erase(right_.begin() + at);
    for (auto& row : rows_)
      if (!is_rule(row)) row.erase(row.begin() + at);
  }
  return out;
}

std::string Table::text_below_constants(std::size_t width) {
  const std::string constant = take_constant_columns();
  return (constant.empty() ? "" : wrap_prose("all: " + constant + "\n\n", width)) + text(width);
}

std::string Table::html_row(const std::vector<std::string>& cells, const char* element,
                            const std::string& attributes) const {
  std::string out = "<tr" + attributes + ">";
  for (std::size_t i = 0; i < cells.size(); ++i)
    out += std::string("<") + element + (right_[i] ? " class=n>" : ">") + with_small_lines(cells[i]) + "</" + element +
           ">";
  return out + "</tr>\n";
}

std::string Table::html_head() const { return html_row(names_, "th", ""); }

std::string Table::html_body() const {
  std::string out;
  std::size_t number = 0;
  bool after_rule = false;
  for (const auto& cells : rows_) {
    if (!cells.empty())
      out += html_row(cells, "td", " data-row=" + std::to_string(number++) + (after_rule ? " class=rule" : ""));
    after_rule = cells.empty();
  }
  return out;
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

}  // namespace ganymede::report
