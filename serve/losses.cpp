#include "serve/losses.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>

namespace ganymede::serve {

void Losses::add(const Progress& progress) {
  Point point{static_cast<std::int64_t>(progress.done), NAN, NAN};
  for (const auto& [name, value] : progress.values) {
    if (name == "discriminator") point.discriminator = value;
    if (name == "generator") point.generator = value;
  }
  if (!std::isfinite(point.discriminator) || !std::isfinite(point.generator)) return;
  if (!points_.empty() && point.step <= points_.back().step) return;
  points_.push_back(point);
  if (points_.size() < kMost) return;
  for (std::size_t i = 0; i < kMost / 2; ++i) points_[i] = points_[2 * i];
  points_.resize(kMost / 2);
}

std::string Losses::csv() const {
  std::string text = "step,discriminator,generator\n";
  for (const Point& point : points_)
    text += fmt::format("{},{},{}\n", point.step, point.discriminator, point.generator);
  return text;
}

Losses Losses::read(const std::filesystem::path& file) {
  Losses losses;
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  for (Point point{}; std::getline(in, line);) {
    if (std::sscanf(line.c_str(), "%ld,%lf,%lf", &point.step, &point.discriminator, &point.generator) != 3) break;
    losses.add({static_cast<std::uint64_t>(point.step),
                0,
                "",
                {{"discriminator", point.discriminator}, {"generator", point.generator}}});
  }
  return losses;
}

}  // namespace ganymede::serve
