#pragma once
// Why several GPUs are slower than one of them times their number, `ganymede.why-slow/1`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "documents/walk.hpp"

namespace ganymede::documents {

inline constexpr std::string_view kWhySlowSchema = "ganymede.why-slow/1";

/// A part of a step.
struct SlowShare {
  std::string part, says;
  double seconds = 0, share = 0;
};

/// What may be the cause, and what mending it would bring.
struct SlowCause {
  std::string cause, says, shows;
  double probability = 0;
  std::optional<double> rate = {};         ///< images/s that it explains
  std::optional<double> mended = {};       ///< images/s once it is mended
  std::optional<double> saved_hours = {};  ///< of `images`
  std::optional<double> saved_usd = {};
};

struct WhySlow {
  std::string verdict, catalog, instance, recognised, of;
  int gpus = 1, nodes = 1, batch = 0;
  double parameters = 0, images = 0;
  double one = 0, all = 0, efficiency = 0, expected = 0;
  Interval interval;
  double usd_per_hour = 0;
  std::vector<SlowShare> shares;
  std::vector<SlowCause> causes;
  std::vector<std::string> notes;
};

void describe(Walk& walk, WhySlow& answer);
std::string why_slow_text(const WhySlow& answer);

}  // namespace ganymede::documents
