#include "platforms/money.hpp"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "common/json.hpp"
#include "common/units.hpp"

namespace ganymede::platforms {
namespace {

/// The digits of an amount of dollars, such as "12.34" of "12.34USD", "$12.34" and "12.34 USD"; nullopt if nothing says
/// that they are dollars.
std::optional<std::string> dollars_in(std::string_view text) {
  for (const std::string_view sign : {"USD", "usd", "$"}) {
    if (text.starts_with(sign))
      text.remove_prefix(sign.size());
    else if (text.ends_with(sign))
      text.remove_suffix(sign.size());
    else
      continue;
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return std::string(text);
  }
  return std::nullopt;
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

MicroUsd read_amount(const JsonNode& node, std::string_view per, std::string_view example) {
  if (node.is_number()) node.expected(fmt::format("an amount with its unit, such as \"{}\"", example));
  const std::string text = node.as_string();
  std::string_view amount = text;
  const std::string unit = fmt::format("/{}", per);
  if (!per.empty() && amount.ends_with(unit)) amount.remove_suffix(unit.size());
  if (const auto digits = dollars_in(amount); digits && is_digits(*digits)) {
    try {
      return {parse_quantity<MicroUsdPerHour>(*digits + "USD/h").value};
    } catch (const std::invalid_argument&) {  // too many digits, or two points
    }
  }
  const std::string other = text.find('/') == std::string::npos ? ""
                            : per.empty()                       ? "; it is an amount, not a rate"
                                          : fmt::format("; it is for one {}, which may follow as \"{}\"", per, unit);
  const std::string hint = is_digits(amount) ? fmt::format("; write \"{}USD\"", amount) : other;
  node.expected(fmt::format("an amount like \"{}\", zero or more, with at most six decimals{}", example, hint));
}

}  // namespace ganymede::platforms
