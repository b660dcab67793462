// The fit to the cells of a series whose role is "fit".

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "common/errors.hpp"
#include "common/units.hpp"
#include "studies/scaling.hpp"

namespace ganymede::studies {

/// Finds the step of one GPU for each cell that calibrates it. If nobody measured one GPU, it is the step with which
/// the simulation of the cell's GPUs gives the measured value.
void ScalingSeries::find_step_of_one_gpu() {
  one_gpu_s_.assign(cells_.size(), 0);
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const ScalingCell& cell = cells_[i];
    if (!cell.fit || cell.gpus != fewest_gpus()) continue;
    const double measured_s = step_seconds(cell, cell.measured);
    one_gpu_s_[i] = measured_s;
    if (cell.gpus == 1) continue;
    double low = measured_s / 10, high = measured_s;
    for (int k = 0; k < 30; ++k) {
      one_gpu_s_[i] = (low + high) / 2;
      (simulate(cell, 1, 0) > measured_s ? high : low) = one_gpu_s_[i];
    }
  }
}

/// The fit cell of several GPUs, if something is fitted to it.
const ScalingCell& ScalingSeries::multi_gpu_fit_cell() const {
  const auto cell = std::find_if(cells_.begin(), cells_.end(), [](const auto& c) { return c.fit && c.gpus > 1; });
  assert(cell != cells_.end());  // the constructor refuses series without one
  return *cell;
}

/// The serial host time of a replica, in seconds, with which the simulation gives the measured value of the fit cell of
/// several GPUs.
double ScalingSeries::fit_serial_host(double bytes_factor) const {
  const ScalingCell& cell = multi_gpu_fit_cell();
  const double target_s = step_seconds(cell, cell.measured);
  double low = 0, high = alone_s(reference_cell(cell));
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (simulate(cell, bytes_factor, middle) < target_s ? low : high) = middle;
  }
  return low;
}

/// Fits the links' share of the assumed bandwidth so that the simulation gives the measured value of the fit cell of
/// several GPUs. Slower links are simulated as more bytes.
void ScalingSeries::fit_links() {
  const ScalingCell& cell = multi_gpu_fit_cell();
  const double target_s = step_seconds(cell, cell.measured);
  double low = 1e-4, high = 1e4;
  for (int i = 0; i < 60; ++i) {
    const double middle = std::sqrt(low * high);
    (simulate(cell, 1 / middle, 0) > target_s ? low : high) = middle;
  }
  links_ = high;
}

std::vector<std::string> ScalingSeries::fit(const std::vector<ScalingSeries>& before) {
  find_step_of_one_gpu();
  if (!links_as_.empty()) {
    const auto other = std::find_if(before.begin(), before.end(), [&](const auto& s) { return s.name() == links_as_; });
    if (other == before.end())
      throw ConfigError(fmt::format(
          "the series \"{}\" takes its links' share from \"{}\", which must be listed before it", name_, links_as_));
    links_ = other->links_;
    return {};
  }
  if (fits_links_) {
    fit_links();
    const ScalingCell& cell = multi_gpu_fit_cell();
    const double least_s = simulate(cell, 0, 0);
    if (const double measured_s = step_seconds(cell, cell.measured); least_s > measured_s)
      return {fmt::format(
          "{}: no bandwidth of the links explains its cell of several GPUs: a step of {} without any bytes is longer "
          "than the measured {}",
          name_, to_string(Seconds{least_s}), to_string(Seconds{measured_s}))};
    return {fmt::format(
        "{}: the links give {:.3g} times the bandwidth that is assumed, to the cells of one and several GPUs", name_,
        links_)};
  }
  if (!fits_serial_host_) return {};
  serial_host_s_ = fit_serial_host(1);
  // Links are ruled out if they are so slow that a step takes longer than the fit cell's even without serial host time.
  const ScalingCell& cell = multi_gpu_fit_cell();
  const double measured_s = step_seconds(cell, cell.measured);
  const auto refuted = [&](double link) { return simulate(cell, 1 / link, 0) > measured_s; };
  if (refuted(slowest_link_) && !refuted(1)) {
    double low = slowest_link_, high = 1;
    for (int i = 0; i < 40; ++i) (refuted((low + high) / 2) ? low : high) = (low + high) / 2;
    slowest_link_ = high;
  }
  serial_host_slow_s_ = fit_serial_host(1 / slowest_link_);
  serial_host_fast_s_ = fit_serial_host(1 / fastest_link_);
  return {
      fmt::format("{}: host time that one process spends for one replica after the other, {} a step, to the cells of "
                  "one and several GPUs ({} if the links gave {:.2g} times what is assumed, {} if {:.2g} times)",
                  name_, to_string(Seconds{serial_host_s_}), to_string(Seconds{serial_host_slow_s_}), slowest_link_,
                  to_string(Seconds{serial_host_fast_s_}), fastest_link_)};
}

}  // namespace ganymede::studies
