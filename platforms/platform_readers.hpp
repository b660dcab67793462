#pragma once
// Helpers of the readers of platform files, and the functions that read one kind of object each.

#include <optional>
#include <string_view>

#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "platforms/platform.hpp"

namespace ganymede::platforms {

inline constexpr int kMaxNodes = 65536;  ///< largest number of nodes of a pool

/// Reads "source", "unconfirmed" and "notes".
Origin read_origin(JsonObject& in);

template <class Q>
std::optional<Q> optional_positive(JsonObject& in, std::string_view key) {
  const auto node = in.optional(key);
  return node ? std::optional<Q>(node->as_positive<Q>()) : std::nullopt;
}

inline Seconds seconds_or(JsonObject& in, std::string_view key, Seconds default_value) {
  const auto node = in.optional(key);
  return node ? node->as_quantity<Seconds>() : default_value;
}

// read_links.cpp
Link read_host_link(const JsonNode& node);
GpuLinks read_gpu_links(const JsonNode& node, int gpus);
Nic read_nic(const JsonNode& node);
Fabric read_fabric(const JsonNode& node);

// read_prices.cpp
/// Converts the amounts of a file with a "currency", such as { "code": "EUR", "usd": 1.08, "as_of": "2026-11-01" }:
/// "2EUR" becomes "2.16USD", to the micro-dollar. Sets `note` to "EUR at 1.08 USD of 2026-11-01". A file without a
/// currency is returned unchanged.
JsonNode in_dollars(const JsonNode& root, std::string& note);
std::vector<Price> read_prices(const JsonNode& node);
Storage read_storage(const std::string& name, const JsonNode& node);
Billing read_billing(const JsonNode& node);
EgressPrices read_transfer(const JsonNode& node);
Services read_services(const JsonNode& node);

}  // namespace ganymede::platforms
