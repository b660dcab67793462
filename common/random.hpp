#pragma once
// Random streams, one for each named consumer, so that a new consumer, or one that draws more numbers, does not change
// the numbers of the others. Numbers are the same with any compiler, standard library and processor: only integer
// arithmetic and IEEE + - * / and sqrt are used, and no function of libm, whose results differ in their last bits
// between systems.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace ganymede {

class RandomStream {
 public:
  /// The stream of `consumer` ("kernel/latent", "run/bootstrap") under a user's seed.
  RandomStream(std::uint64_t seed, std::string_view consumer);

  std::uint64_t next();                      ///< 64 uniform bits (xoshiro256++)
  double uniform();                          ///< [0, 1), 53 bits
  std::uint64_t below(std::uint64_t bound);  ///< uniform integer in [0, bound), unbiased; bound > 0
  double normal();                           ///< mean 0, standard deviation 1
  double exponential();                      ///< mean 1

  /// Fills `out` with independent numbers of normal().
  void fill_normal(std::span<float> out);

  /// The generator's state, for checkpoints.
  using State = std::array<std::uint64_t, 4>;
  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

 private:
  State state_;
};

/// Natural logarithm of a number that must be positive and finite, by IEEE operations alone, within 2 units in the last
/// place.
double portable_log(double x);

/// Exponential by IEEE operations alone, within 2 units in the last place for |x| up to 700; 0 below -745, infinity
/// above 709.7.
double portable_exp(double x);

/// 64-bit FNV-1a hash, which names streams and fingerprints inputs. Not cryptographic.
std::uint64_t fnv1a(std::string_view bytes);

}  // namespace ganymede
