#pragma once
// Pieces of reading a platform file, shared by the files that do it.

#include <optional>
#include <string_view>

#include "common/json.hpp"
#include "platforms/platform.hpp"

namespace ganymede {

inline constexpr int kMaxNodes = 65536;  ///< the design's limit on a pool

Origin read_origin(JsonObject& in);

template <class Q>
std::optional<Q> optional_positive(JsonObject& in, std::string_view key) {
  const auto node = in.optional(key);
  return node ? std::optional<Q>(node->as_positive<Q>()) : std::nullopt;
}

inline Seconds seconds_or(JsonObject& in, std::string_view key, Seconds otherwise) {
  const auto node = in.optional(key);
  return node ? node->as_quantity<Seconds>() : otherwise;
}

// read_links.cpp
Link read_host_link(const JsonNode& node);
GpuLinks read_gpu_links(const JsonNode& node, int gpus);
Nic read_nic(const JsonNode& node);
Fabric read_fabric(const JsonNode& node);

// read_prices.cpp
/// The file with its amounts in dollars where it has a "currency" ({ "code": "EUR", "usd": 1.08, "as_of": … }): "2EUR"
/// becomes "2.16USD", to the micro-dollar. Fills in `note`.
JsonNode in_dollars(const JsonNode& root, std::string& note);
std::vector<Price> read_prices(const JsonNode& node);
Storage read_storage(const std::string& name, const JsonNode& node);
Billing read_billing(const JsonNode& node);
EgressPrices read_transfer(const JsonNode& node);
Services read_services(const JsonNode& node);

}  // namespace ganymede
