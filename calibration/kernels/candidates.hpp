#pragma once
// Ways in which the libraries may run one kernel, each with its arithmetic, its traffic and its analytic time.

#include <array>
#include <string_view>

#include "calibration/kernels/chip.hpp"
#include "calibration/kernels/kernel.hpp"
#include "calibration/kernels/parameters.hpp"

namespace ganymede::calibration {

struct Candidate {
  Group group = Group::kElementwise;
  std::string_view algorithm;
  double flops = 0, bytes = 0, least_bytes = 0;  ///< of this algorithm; the least that memory must carry
  double arithmetic_s = 0, memory_s = 0, launch_s = 0;
  double analytic_s = 0, floor_s = 0;  ///< before the learned part, and the roofline that it cannot pass
  double blocks = 0, waves = 0;
  double power_flops = 0;  ///< that draw the energy of 32-bit operations; none on tensor cores
  double handicap = 1;     ///< by how much it must be faster than the others to be chosen
  Features features{};
};

/// At most kMax candidates of one kernel.
struct Candidates {
  static constexpr std::size_t kMax = 6;
  std::array<Candidate, kMax> all;
  std::size_t count = 0;
  Candidate& add() { return all[count++]; }
  const Candidate* begin() const { return all.data(); }
  const Candidate* end() const { return all.data() + count; }
};

Candidates candidates_of(const Kernel& kernel, const Chip& chip, const KernelParameters& parameters);

inline constexpr double kNoSpan = -6;  // of kernels whose rows are not far apart in memory

/// An approximate logarithm to base 2 for features: exact at powers of two, linear between them.
double rough_log2(double x);

// Parts of candidates_of, each in a file of its own.
void add_products(const Kernel& kernel, const Chip& chip, const KernelParameters& parameters, Candidates& out);
void add_convolutions(const Kernel& kernel, const Chip& chip, const KernelParameters& parameters, Candidates& out);
void add_streaming(const Kernel& kernel, const Chip& chip, const KernelParameters& parameters, Candidates& out);

/// Fills a candidate from the time of its tiles. `bytes` is its whole memory traffic.
void fill_from_blocks(Candidate& candidate, const BlockTime& time, const ChipRates& rates,
                      const KernelParameters& parameters, const ProductShape& shape, double bytes, int launches);

}  // namespace ganymede::calibration
