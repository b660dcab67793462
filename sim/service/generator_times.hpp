#pragma once
// How long one GPU takes to generate a batch of images.

#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "platforms/platform.hpp"

namespace ganymede::sim {

/// Seconds of a forward pass for 1, 2, ... images: as expected, and at the ends of the 90 % interval.
struct GeneratorTimes {
  std::vector<double> central_s, low_s, high_s;
  std::string how;  ///< where they come from, in words for people
};

/// Reads "generator": { "trace": NAME } or { "recipe": NAME }, perhaps with "network", or { "measured": { "1": "4ms",
/// "16": "30ms" } }, between which times lie on straight lines. Batches that no trace has recorded lie between those of
/// the powers of two. Throws ConfigError, located, for a trace without such a network and for times that fall.
GeneratorTimes read_generator(const JsonNode& node, const platforms::Gpu& gpu, const platforms::Link* host_link,
                              int largest_batch);

}  // namespace ganymede::sim
