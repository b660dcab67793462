#include "sim/collectives/scheme_variants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ganymede::sim {
namespace {

constexpr std::int64_t kChunkBytes = 512 << 10;
constexpr std::int64_t kMaxDefaultChunks = 64;
constexpr std::int64_t kMaxChunks = 65536;

}  // namespace

std::optional<std::int64_t> parse_number(const std::string& text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end || value < low || value > high) return std::nullopt;
  return value;
}

std::optional<std::string> refuse_bad_chunks(const PlanRequest& request) {
  if (request.variant.empty() || parse_number(request.variant, 1, kMaxChunks)) return std::nullopt;
  return fmt::format("found \"{}\", expected a number of pipeline chunks from 1 to {}", request.variant, kMaxChunks);
}

std::int64_t pipeline_chunks(const PlanRequest& request) {
  if (const auto asked = parse_number(request.variant, 1, kMaxChunks)) return *asked;
  return std::clamp<std::int64_t>((request.bytes + kChunkBytes - 1) / kChunkBytes, 1, kMaxDefaultChunks);
}

}  // namespace ganymede::sim
