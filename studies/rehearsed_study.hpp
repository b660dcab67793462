#pragma once
// Rehearsals as studies that `ganymede validate` runs.

#include <map>
#include <string>

#include "common/json_fwd.hpp"
#include "documents/validation_result.hpp"
#include "sim/scenario/scenario.hpp"
#include "studies/machine.hpp"

namespace ganymede::studies {

// The evidence of one's own rehearsals on predictions of communication: for each kind of network how much wider or
// narrower the intervals of its links are.

/// The kinds of networks that rehearsals have: "measured", "datasheet" or "assumed", as the links of a platform that
/// was rehearsed on are, and "played" for a network that a rehearsal made on one machine.
inline constexpr const char* kPlayedNetwork = "played";

/// Half-width of the 90 % interval of a rehearsed quantity, as the logarithm of a factor, if communication that is not
/// hidden is that share of it. Networks that are played do what they are told, which docs/rehearse.md measures.
double half_width_of_rehearsal(const std::string& links, double share);

/// A class states the half-width w of its communication. Each rehearsal is off by e = ln(measured / predicted) in the
/// communication of its steps, so that its deviation is z = 1.645 e / w of the class's own. The class counts for
/// kWeight rehearsals that were off as much as it says; with n of them its widths are
/// sqrt((kWeight + sum of z^2) / (kWeight + n)) times as wide.
class RehearsedLinks {
 public:
  static constexpr double kWeight = 5;  ///< an assumption

  /// Adds a result of run_validation(). Throws ConfigError, with `file`, if it is no study of a rehearsal.
  void add(const documents::ValidatedStudy& study, const std::string& file);
  double factor(const std::string& links) const;
  double factor(LinkEvidence links) const;
  std::vector<documents::ValidationResult::Rehearsed> kinds() const;

 private:
  struct Sums {
    int count = 0;
    double errors = 0, deviations_squared = 0;
  };
  std::map<std::string, Sums> kinds_;
};

/// A ganymede.validation/1 study of what was measured in the steps of a rehearsal, in the scenario's own time: the
/// step, and each use of the GPUs above a twentieth of it. `result` is what rehearsal::rehearse_scenario() returns;
/// `is_played`: on a network that was made here (--hosts), and not on the scenario's own.
OrderedJson steps_study(const sim::Scenario& scenario, const OrderedJson& result, bool is_played,
                        const std::string& name);
/// The same of a rehearsed life: its time, each use of the GPUs above a twentieth of it, and the bill.
OrderedJson life_study(const sim::Scenario& scenario, const OrderedJson& result, const std::string& name);

}  // namespace ganymede::studies
