#include "kernel/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "common/errors.hpp"
#include "common/units.hpp"

namespace ganymede::kernel {

double predicted_memory_bytes(const TrainOptions& options, const TensorOps& ops) {
  const Model& model = find_model(options.model);
  const ImageShape image = image_of(options);
  std::vector<Growth> course{model.final_growth(image)};
  if (options.stage_steps > 0) {
    course = {{0, false}};
    for (int stage = 1; stage < model.stages(image); ++stage)
      course.insert(course.end(), {{stage, true}, {stage, false}});
  }
  double peak = 0, weights_before = 0;
  for (const Growth growth : course) {
    const auto kinds = model.build(image, growth).planned_memory_bytes(ops, options.batch, gan_options_of(options));
    const double all = std::accumulate(kinds.begin(), kinds.end(), 0.0,
                                       [](double sum, const auto& kind) { return sum + kind.second; });
    // While a stage takes over the weights of the one before, both are in memory.
    peak = std::max(peak, all + weights_before);
    weights_before = all;
    for (const char* passing : {"activations", "shared", "workspace", "data"}) weights_before -= kinds.at(passing);
  }
  return peak;
}

void check_memory(const TrainOptions& options, const TensorOps& ops, double available) {
  const double needed = predicted_memory_bytes(options, ops);
  if (available <= 0 || needed <= available) return;
  // Bisects for the largest batch that fits: memory grows with the batch.
  TrainOptions other = options;
  int fits = 1, not_fits = options.batch;
  while (fits + 1 < not_fits) {
    other.batch = std::midpoint(fits, not_fits);
    (predicted_memory_bytes(other, ops) <= available ? fits : not_fits) = other.batch;
  }
  throw Infeasible(
      fmt::format("--batch: {} of {} needs {} of memory, and {} are free: {}", options.batch, options.model,
                  to_string(Bytes{needed}), to_string(Bytes{available}),
                  fits >= kMinBatch ? fmt::format("a batch of {} would fit", fits) : "no batch would fit"));
}

}  // namespace ganymede::kernel
