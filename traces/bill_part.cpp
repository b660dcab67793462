#include "traces/bill_part.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/plain_text.hpp"
#include "common/printable.hpp"

namespace ganymede::traces {
namespace {

/// "user:project" and "user_project" are how AWS writes the tag "project" of a user.
bool is_key(std::string_view name, std::string_view key) {
  for (const std::string_view prefix : {"", "user:", "user_"})
    if (name.starts_with(prefix) && lower_case(std::string(name.substr(prefix.size()))) == key) return true;
  return false;
}

/// The tags of a cell such as {"project": "gan"}; none for anything else.
std::map<std::string, std::string> tags_of(const std::string& cell) {
  std::map<std::string, std::string> out;
  if (cell.empty() || cell.front() != '{') return out;
  try {
    const Json tags = JsonNode::parse(cell, "tags").value();
    for (const auto& [name, value] : tags.items())
      out[name] = value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
  } catch (const ConfigError&) {
    // A cell that is no object has no tags.
  }
  return out;
}

bool is_resource(const std::string& cell, const std::string& wanted) {
  if (!cell.ends_with(wanted)) return false;
  return cell.size() == wanted.size() || cell[cell.size() - wanted.size() - 1] == '/' ||
         cell[cell.size() - wanted.size() - 1] == ':';
}

}  // namespace

BillRows::BillRows(const BillPart& part) : part_(part) {
  const std::size_t sign = part.tag.find('=');
  key_ = lower_case(part.tag.substr(0, sign));
  if (sign != std::string::npos) value_ = part.tag.substr(sign + 1);
}

void BillRows::begin(const CsvTable& table) {
  const auto& names = table.names();
  tag_columns_.clear(), tags_.reset(), resource_.reset();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = lower_case(names[i]);
    if (name == "tags" || name == "resource_tags") tags_ = i;
    for (const char* prefix : {"resourceTags/", "resource_tags_"})
      if (names[i].starts_with(prefix) && is_key(std::string_view(names[i]).substr(std::string(prefix).size()), key_))
        tag_columns_.push_back(i);
    if (name == "resourceid" || name == "lineitem/resourceid" || name == "line_item_resource_id") resource_ = i;
  }
  if (!part_.tag.empty() && !tags_ && tag_columns_.empty())
    throw ConfigError(fmt::format("{}: has no column of the tag \"{}\": neither Tags nor resourceTags/user:{}",
                                  table.file(), key_, key_));
  if (!part_.resource.empty() && !resource_)
    throw ConfigError(table.file() + ": has no column of resources, ResourceId or lineItem/ResourceId");
}

bool BillRows::has_tag(const CsvTable::Row& row) {
  constexpr std::size_t kShown = 8;
  const auto matches = [&](const std::string& value) {
    if (!value.empty() && values_.size() < kShown) values_.insert(value);
    return value_.empty() ? !value.empty() : value == value_;
  };
  for (const std::size_t column : tag_columns_)
    if (column < row.cells.size() && matches(row.cells[column])) return true;
  if (!tags_ || *tags_ >= row.cells.size()) return false;
  for (const auto& [name, value] : tags_of(row.cells[*tags_]))
    if (is_key(name, key_) && matches(value)) return true;
  return false;
}

bool BillRows::has(const CsvTable::Row& row, std::optional<std::int64_t> begin, std::optional<std::int64_t> end) {
  const bool in_time = (!part_.from || (end && *end > *part_.from) || (!end && begin && *begin >= *part_.from)) &&
                       (!part_.to || (begin && *begin < *part_.to));
  const bool in =
      in_time && (part_.tag.empty() || has_tag(row)) &&
      (part_.resource.empty() || (*resource_ < row.cells.size() && is_resource(row.cells[*resource_], part_.resource)));
  if (!in) ++outside_;
  if (in && ((part_.from && begin && *begin < *part_.from) || (part_.to && end && *end > *part_.to))) ++straddling_;
  return in;
}

std::string BillRows::seen() const {
  return values_.empty() ? "" : printable(fmt::format("; the tag's values are {}", fmt::join(values_, ", ")));
}

}  // namespace ganymede::traces
