#pragma once
// How long it takes to turn a stored image into an array, by program and image size.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/units.hpp"

namespace ganymede::sim {

/// A program that decodes images. Its times are those of one hardware thread (vCPU) of a host whose threads are all
/// busy.
struct Decoder {
  std::string_view name;
  std::string_view summary;  ///< Its work on an image, for people.
  Seconds fixed;             ///< For each image.
  Seconds per_megapixel;     ///< For each 1e6 pixels of the stored image.

  /// The time of one thread for an image of `pixels` pixels.
  Seconds time(double pixels) const { return fixed + per_megapixel * (pixels * 1e-6); }
  /// Images a second that `threads` threads decode.
  double rate(double pixels, double threads) const { return threads / time(pixels).si; }
};

std::span<const Decoder> decoders();
std::vector<std::string> decoder_names();
/// Returns the decoder of a name in decoder_names(), else null.
const Decoder* find_decoder(std::string_view name);

}  // namespace ganymede::sim
