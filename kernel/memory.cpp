#include "kernel/memory.hpp"

#include <fmt/format.h>

#include <numeric>

#include "common/errors.hpp"
#include "common/units.hpp"

namespace ganymede::kernel {

double predicted_memory_bytes(const TrainOptions& options, const Ops& ops) {
  Gan gan = build_gan(options);
  const auto kinds = gan.planned_memory_bytes(ops, options.batch, gan_options_of(options));
  return std::accumulate(kinds.begin(), kinds.end(), 0.0,
                         [](double sum, const auto& kind) { return sum + kind.second; });
}

void check_memory(const TrainOptions& options, const Ops& ops, double available) {
  const double needed = predicted_memory_bytes(options, ops);
  if (available <= 0 || needed <= available) return;
  // The largest that fits: what is needed grows with the batch.
  TrainOptions other = options;
  int fits = 1, not_fits = options.batch;
  while (fits + 1 < not_fits) {
    other.batch = std::midpoint(fits, not_fits);
    (predicted_memory_bytes(other, ops) <= available ? fits : not_fits) = other.batch;
  }
  throw Infeasible(
      fmt::format("--batch: {} of {} needs {} of memory, and {} are free: {}", options.batch, options.model,
                  to_string(Bytes{needed}), to_string(Bytes{available}),
                  fits >= kBatchMin ? fmt::format("a batch of {} would fit", fits) : "no batch would fit"));
}

}  // namespace ganymede::kernel
