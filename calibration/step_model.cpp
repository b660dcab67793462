#include "calibration/step_model.hpp"

#include <algorithm>

namespace ganymede::calibration {

double StepModel::step_s(std::size_t sample) const {
  double time = tail_s[sample];
  for (const auto& phase : phases)
    if (phase.stream == Stream::compute)
      time += phase.gap_s[sample] + std::max(phase.device_s[sample], phase.host_s[sample]);
  return time;
}

double StepModel::mean_s() const {
  double sum = 0;
  for (std::size_t sample = 0; sample < samples; ++sample) sum += step_s(sample);
  return sum / static_cast<double>(samples);
}

}  // namespace ganymede::calibration
