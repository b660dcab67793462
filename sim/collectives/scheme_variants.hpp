#pragma once
// Variants of schemes: the text after the colon of a name, such as the 8 of "tree:8".

#include <cstdint>
#include <optional>
#include <string>

#include "sim/collectives/allreduce.hpp"

namespace ganymede::sim {

/// Parses a whole number from `low` to `high`; nullopt for bad input.
std::optional<std::int64_t> parse_number(const std::string& text, std::int64_t low, std::int64_t high);

/// The description of variants for schemes that take a number of pipeline chunks.
inline constexpr const char* kChunksVariant = "number of pipeline chunks";

/// Says what is wrong with a variant that should be a number of pipeline chunks or empty; nullopt: nothing.
std::optional<std::string> refuse_bad_chunks(const PlanRequest& request);

/// The number of chunks in which a pipeline sends the request's bytes: the number that the variant states; without a
/// variant as many as make a chunk about 512 KiB, at most 64. On a 12.5 GB/s link a chunk of 512 KiB takes 42 us,
/// several times the latency of a hop, so smaller chunks gain little. With 64 chunks the filling of a pipeline of ten
/// hops is a sixth of its time, and each further chunk must be simulated.
std::int64_t pipeline_chunks(const PlanRequest& request);

}  // namespace ganymede::sim
