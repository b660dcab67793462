#pragma once
// How the cost of reading grows with the input: a part of an input of the corpus is repeated until the input is long,
// and twice as long, and processor time and memory are compared. What grows faster than the input is a defect, because
// an input of some megabytes would take hours.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "target.hpp"

namespace ganymede::fuzz {

/// An input of about so many bytes.
using Grown = std::function<std::string(std::size_t bytes)>;

/// A part of the text many times: of JSON an element, a member or a text, of others a line, a cell, a word or all.
/// Names of elements and the last numbers of lines may be made different.
Grown grown(const std::string& text, RandomStream& random);

/// The cost of an input: seconds of processor time, and the most bytes that were held at a time.
struct Cost {
  double time_s = 0, held = 0;
};

/// The powers of its length with which the costs of an input grow over its last doubling. Zero where the costs are too
/// small to tell (10 ms, 4 MB), or could not be measured (memory, under the sanitizers).
struct Growth {
  double time = 0, memory = 0;
  Cost cost;              ///< of the longest
  std::size_t bytes = 0;  ///< its length
};

/// @param cost is asked for inputs of up to `most` bytes, and not for longer ones than take a second
Growth growth_of(const std::function<Cost(const std::string&)>& cost, const Grown& input, std::size_t most = 256'000);

/// Prints for each so many grown inputs of each file of the target's corpus what grows with a power above 1.3, and at
/// last the largest powers. Returns how many such there were; the input of each is left in `grown-TARGET-NUMBER`.
int report_growth(const Target& target, const std::vector<std::string>& corpus, std::uint64_t inputs,
                  std::uint64_t seed);

/// Tries the above on costs that are known; fails by expect().
void check_growth();

}  // namespace ganymede::fuzz
