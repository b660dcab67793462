#pragma once
// A life that was predicted and played, `ganymede.rehearsal/1`.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "documents/result.hpp"
#include "documents/walk.hpp"

namespace ganymede::documents {

inline constexpr std::string_view kRehearsalSchema = "ganymede.rehearsal/1";

struct Rehearsal {
  struct Figure {
    std::string what, unit;
    double predicted = 0, measured = 0;
    std::optional<double> off;
    double share = 0;
  };
  struct Decision {
    double at_s = 0;
    JsonText nodes;  ///< their numbers by pool
    bool elastic = false, pause = false;
  };
  struct Processes {
    std::int64_t nodes_started = 0, nodes_killed = 0, notices_heard = 0, trainings_started = 0, steps_played = 0,
                 checkpoints_written = 0, checkpoints_read = 0;
  };
  struct Life : Result {
    static constexpr std::string_view kTypeName = "life";
  };

  std::string scenario, network;
  int hosts = 0;
  double scale = 0, steps_each = 0, took_s = 0, latest_s = 0;
  std::vector<Figure> comparison;
  bool same_decisions = false;
  std::vector<Decision> predicted_decisions, measured_decisions;
  Processes processes;
  Life predicted, measured;
};

void describe(Walk& walk, Rehearsal& rehearsal);

OrderedJson rehearsal_json(const Rehearsal& rehearsal);
/// Throws ConfigError, located, unless `node` is a rehearsal. Members of newer programs are passed over.
Rehearsal read_rehearsal(const JsonNode& node);
/// The same for a value in memory, which errors call "rehearsal".
Rehearsal rehearsal_in(const Json& value);

}  // namespace ganymede::documents
