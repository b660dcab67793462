#pragma once
// Trainings that the recorded ones say nothing of.

#include <string>

namespace ganymede::calibration {

/// Why the model that comes with the program says nothing of a model's trainings: all that it was fitted to make images
/// from noise. Empty if it does. `curve` is what names a curve of other trainings: "--curve", or a member of a
/// document.
std::string why_no_forecast(const std::string& model, const std::string& curve);

}  // namespace ganymede::calibration
