#pragma once
// Trainings that the recorded ones say nothing of.

#include <string>

namespace ganymede::calibration {

/// Why the model that comes with the program says nothing of a model's trainings: all that it was fitted to make images
/// from noise. Empty if it does.
std::string why_no_forecast(const std::string& model);

}  // namespace ganymede::calibration
