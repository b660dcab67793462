#include "common/written.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/text.hpp"

namespace ganymede {

std::optional<std::int64_t> parse_count(std::string_view text) {
  std::string digits(text);
  double factor = 1;
  if (!digits.empty()) {
    const char last = digits.back();
    factor = last == 'k' || last == 'K'             ? 1e3
             : last == 'm' || last == 'M'           ? 1e6
             : std::strchr("gGbB", last) != nullptr ? 1e9
                                                    : 1;
    if (factor != 1) digits.pop_back();
  }
  for (std::size_t at = digits.find('_'); at != std::string::npos; at = digits.find('_', at)) {
    const auto digit = [&](std::size_t i) { return i < digits.size() && digits[i] >= '0' && digits[i] <= '9'; };
    if (at == 0 || !digit(at - 1) || !digit(at + 1)) return std::nullopt;
    digits.erase(at, 1);
  }
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  // "1.1k" is 1.1 * 1000 = 1100.0000000000002 in binary arithmetic, hence the rounding.
  const double value = std::round(number * factor);
  if (error != std::errc{} || end != digits.data() + digits.size() || !(std::abs(value) < 0x1p53)) return std::nullopt;
  if (std::abs(number * factor - value) > 1e-9 * std::abs(value)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

const JsonNode& with_unit(const JsonNode& node, const std::vector<std::string>& units) {
  if (!node.is_string() && !node.is_number()) return node;
  const std::string text = node.is_string() ? node.value().get<std::string>() : node.value().dump();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || !(number > 0)) return node;
  std::vector<std::string> texts;
  for (const std::string& unit : units) texts.push_back(text + unit);
  node.fail(fmt::format("found {}, which has no unit; write {}", node.value().dump(), list_of(texts)));
}

}  // namespace ganymede
