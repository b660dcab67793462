#pragma once
// The losses of a training as it goes on, thinned so that there are never many.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "serve/command_run.hpp"

namespace ganymede::serve {

class Losses {
 public:
  static constexpr std::size_t kMost = 1000;

  struct Point {
    std::int64_t step;
    double discriminator, generator;
  };

  /// Adds what a training has told of itself. A point that is not after the last one is left out, as is one without
  /// losses. Every other point is dropped when there are kMost.
  void add(const Progress& progress);
  const std::vector<Point>& points() const { return points_; }
  /// With the header "step,discriminator,generator".
  std::string csv() const;
  /// Reads what csv() wrote; nothing from a file that is not there or is damaged.
  static Losses read(const std::filesystem::path& file);

 private:
  std::vector<Point> points_;
};

}  // namespace ganymede::serve
