#pragma once
// Predictions beside published measurements, `ganymede.validation-result/1`.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_fwd.hpp"
#include "documents/walk.hpp"

namespace ganymede::documents {

/// The quantities beside time, in the order in which they are shown.
inline constexpr std::array kOtherQuantities = {"cost", "utilization", "memory", "quality"};
inline constexpr std::string_view kValidationSchema = "ganymede.validation-result/1";

/// Errors of predicted cells, as shares of what was measured.
struct ErrorSummary {
  struct Baseline {
    std::string name;
    std::int64_t cells = 0;
    double mean_error = 0, skill = 0;
    bool beaten = false;
  };
  static constexpr std::string_view kTypeName = "summary";
  std::int64_t cells = 0;  ///< 0: nothing below
  double mean_error = 0, worst_error = 0, held_by_interval = 0;
  std::vector<Baseline> baselines;

  /// The baseline that leaves communication out; null if no cell has it.
  const Baseline* without_communication() const;
};

/// A published figure.
struct ValidatedCell {
  struct Baseline {
    std::string name;
    double value = 0, error = 0;
  };
  /// Parts of the prediction.
  struct Parts {
    double alone_s = 0;           ///< one worker's step
    double collectives_s = 0;     ///< the simulated step of workers that do not differ, less `alone_s`
    double step_s = 0;            ///< the predicted step without pauses
    double measured_s = 0;        ///< the measured step without pauses
    double pause_s = 0;           ///< a step's share of the pauses
    double bytes = 0;             ///< gradients of a step that are work for the workers, as if on a V100
    double links_half_width = 0;  ///< of the interval, as far as it comes from collectives: a logarithm
  };
  /// The prediction of `simulate`.
  struct Replay {
    double value = 0;
    Interval interval;
    bool holds = false;
  };
  std::string series, what, unit, role;
  std::optional<double> measured;
  std::vector<std::string> tags;
  std::optional<int> gpus;
  bool alternative = false;  ///< another reading of a figure that has a cell
  std::string quantity = "time", because;
  std::optional<double> simulated;
  std::string anchor;
  std::optional<double> predicted;  ///< none: nothing down to the baselines
  Interval interval_90;
  double error = 0;
  bool interval_holds = true;
  std::vector<Baseline> baselines;
  std::string evidence, executor;
  std::optional<double> repeat;
  std::optional<Parts> parts;
  std::optional<Replay> replay;

  const Baseline* without_communication() const;
};

struct ValidatedClaim {
  struct Value {
    std::string run;
    double value = 0;
  };
  std::string text;
  bool holds = false, expected = true;
  double margin = 0;
  bool within_error = false;
  std::vector<Value> values;
};

struct ValidatedStudy {
  struct Assumption {
    std::string what, source;
  };
  struct Fractions {
    struct Row {
      int gpus = 1;
      double bytes = 0, compute_fraction = 0;
    };
    std::string title, series;
    std::vector<Row> rows;
  };
  struct Promise {
    std::string cells;
    double mean_error_at_most = 0;
    bool beats_baselines = false, kept = false;
    ErrorSummary measured;
  };
  std::string name, title, source;
  std::vector<Assumption> assumptions;
  std::vector<std::string> informed_choices;
  bool in_totals = true;
  std::string links;  ///< of a rehearsal
  std::vector<std::string> fitted;
  std::vector<ValidatedCell> cells;
  std::vector<ValidatedClaim> claims;
  std::vector<Fractions> compute_fractions;
  ErrorSummary summary;
  std::map<std::string, ErrorSummary> other_quantities;  ///< of kOtherQuantities
  std::vector<Promise> promises;
};

struct ValidationResult {
  /// How often the intervals of a class of evidence hold, and how wide they are.
  struct Coverage {
    std::int64_t cells = 0;
    double held = 0, mean_half_width = 0;
  };
  struct Replayed {
    Coverage coverage;
    double off = 0;
  };
  struct Evidence {
    std::string evidence;
    std::int64_t sources = 0;
    Coverage coverage;
    std::optional<Replayed> replay;
  };
  struct Log {
    std::string name;
    std::int64_t from = 0, to = 0;
    bool fitted = true;
  };
  /// A constant that was fitted without a study.
  struct LeftOut {
    std::string constant, study;
    std::optional<std::int64_t> rows;
    std::optional<double> error;  ///< none: recorded, and not fitted again
    double left_out_error = 0, without_it = 0;
    std::optional<double> deviation, per_gigabyte_s;
    std::string by;
    std::optional<Log> log;
  };
  struct Rehearsed {
    std::string links;
    int rehearsals = 0;
    double mean_error = 0, factor = 1;
  };
  std::vector<ValidatedStudy> studies;
  ErrorSummary summary;
  std::vector<Evidence> coverage;
  std::vector<LeftOut> leave_one_out;
  std::vector<Rehearsed> rehearsed;
};

void describe(Walk& walk, ValidatedStudy& study);
void describe(Walk& walk, ValidationResult& result);
std::string validated_study_text(const ValidatedStudy& study);
ValidatedStudy validated_study_in(const Json& value);
OrderedJson validation_json(const ValidationResult& result);
/// Throws ConfigError, located, unless `node` is a validation. Members of newer programs are passed over.
ValidationResult read_validation_result(const JsonNode& node);
ValidationResult validation_in(const Json& value);

}  // namespace ganymede::documents
