#pragma once
// Whether measured collectives are as fast as their machine should make them, `ganymede.link-check/1`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "documents/walk.hpp"

namespace ganymede::documents {

inline constexpr std::string_view kLinkCheckSchema = "ganymede.link-check/1";

struct CheckedSize {
  double bytes = 0, measured = 0, expected = 0;
  Interval interval;
  double measured_bus = 0, expected_bus = 0;
};

/// What may be wrong, and how well it explains the times.
struct LikelyCause {
  std::string cause, says, shows;
  double share = 0, against_normal = 0;
  std::optional<double> bus = {};
  std::string sign = {};  ///< the line of the log that speaks for it; "": none
};

struct LinkCheck {
  std::string verdict, log, collective, scheme, catalog, instance, recognised, links;
  int nodes = 1, gpus_per_node = 1;
  double ratio = 1;
  Interval interval;
  std::vector<CheckedSize> sizes;
  std::vector<LikelyCause> causes;
  std::vector<std::string> notes;
};

void describe(Walk& walk, LinkCheck& check);
std::string link_check_text(const LinkCheck& check);

}  // namespace ganymede::documents
