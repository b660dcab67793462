#include "common/random.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace ganymede {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014): spreads one word over the state, as the authors of xoshiro advise.
std::uint64_t split_mix(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

// ln 2 = kLn2High + kLn2Low; the last 20 bits of the first are zero.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

}  // namespace

std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  return hash;
}

double portable_log(double x) {
  // x = (1 + f) 2^e with 1 + f in [sqrt(1/2), sqrt(2)); log(1 + f) = 2 atanh(s) with s = f / (2 + f) and |s| < 0.172.
  // Each term of its series 2s + 2s^3/3 + 2s^5/5 + ... is at most 1/34 of the one before. To lose hardly any digits (as
  // in fdlibm's e_log.c), 2s is written as f - s f, where f is exact, and ln 2 is split into two parts, of which the
  // first times e is exact.
  int exponent = 0;
  if (x < 0x1p-1022) {  // a subnormal number is scaled to a normal one
    x *= 0x1p54;
    exponent = -54;
  }
  const auto bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffU) | 0x3ff0000000000000U);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  constexpr double kTerms[] = {2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13,
                               2.0 / 11, 2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3};
  const double f = m - 1;
  const double s = f / (2 + f);
  const double square = s * s;
  double sum = 0;
  for (const double term : kTerms) sum = sum * square + term;
  return exponent * kLn2High - ((s * (f - square * sum) - exponent * kLn2Low) - f);
}

RandomStream::RandomStream(std::uint64_t seed, std::string_view consumer) {
  std::uint64_t word = seed ^ std::rotl(fnv1a(consumer), 17);
  for (auto& part : state_) part = split_mix(word);
}

std::uint64_t RandomStream::next() {
  // xoshiro256++ 1.0 (Blackman and Vigna 2019).
  auto& s = state_;
  const std::uint64_t result = std::rotl(s[0] + s[3], 23) + s[0];
  const std::uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = std::rotl(s[3], 45);
  return result;
}

double RandomStream::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

std::uint64_t RandomStream::below(std::uint64_t bound) {
  // The lowest values are rejected, because they would make some results more likely than others.
  const std::uint64_t unfair = (0 - bound) % bound;
  std::uint64_t value = next();
  while (value < unfair) value = next();
  return value % bound;
}

double RandomStream::normal() {
  // Marsaglia's polar method. Its second value is dropped, so that a checkpoint needs to save only the generator's
  // state.
  for (;;) {
    const double u = 2 * uniform() - 1;
    const double v = 2 * uniform() - 1;
    const double square = u * u + v * v;
    if (square > 0 && square < 1) return u * std::sqrt(-2 * portable_log(square) / square);
  }
}

double RandomStream::exponential() { return -portable_log(1 - uniform()); }

void RandomStream::fill_normal(std::span<float> out) {
  for (auto& value : out) value = static_cast<float>(normal());
}

// With x = k ln 2 + r and |r| <= ln 2 / 2, exp(x) is 2^k exp(r). exp(r) is summed by its series, whose fourteenth term
// is below 1e-17.
double portable_exp(double x) {
  if (x < -745) return 0;
  if (x > 709.7) return std::numeric_limits<double>::infinity();
  const double k = std::nearbyint(x / (kLn2High + kLn2Low));
  const double r = (x - k * kLn2High) - k * kLn2Low;
  double sum = 1;
  for (int term = 14; term >= 1; --term) sum = 1 + sum * r / term;
  return std::ldexp(sum, static_cast<int>(k));
}

}  // namespace ganymede
