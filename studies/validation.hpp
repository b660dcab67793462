#pragma once
// Compares predictions with published measurements. A file says what was measured, which measurements may calibrate,
// what is assumed and from which source; all other measurements are predicted by the simulator.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"
#include "common/json_fwd.hpp"
#include "common/json_value.hpp"
#include "documents/validation_result.hpp"
#include "studies/collective_curve.hpp"
#include "studies/rehearsed_study.hpp"
#include "studies/scaling.hpp"
#include "studies/shards.hpp"

namespace ganymede::studies {

/// An answer about a training that needs no simulation: the result of `ganymede train`, or a forecast of its FID.
struct StudyAnswer {
  std::string name, evidence;
  JsonNode result;
};

/// The use of a figure: it calibrates; it is predicted; it is predicted and nobody has measured it; or nothing
/// predicts it.
enum class CellRole : std::uint8_t { fit, predict, shown, none };

/// A quantity of a whole run, predicted by simulating a scenario, or from an answer: either directly, or in
/// proportion to another cell that calibrates it.
struct RunCell {
  std::string what;               ///< for people
  std::string unit;               ///< unit of `measured`
  std::string quantity = "time";  ///< one of cell_quantities(); each has a summary of its own
  CellRole role = CellRole::predict;
  std::string because;  ///< `none`: why nothing predicts it
  std::string run;      ///< name of the scenario or of the answer
  std::string value;    ///< JSON pointer into the result
  std::string place;    ///< of `value` in the study, for error messages
  double scale = 1;     ///< factor from the result's unit to `unit`
  double measured = 0;  ///< 0: `shown`
  double error = 0;     ///< assumed 90 % half-width, relative; 0: the study's
  std::string anchor;  ///< another cell's `what`: the prediction is that cell's measurement times the ratio of the runs
  std::vector<std::pair<std::string, double>> baselines;  ///< name, and factor on the anchor's measurement
  std::vector<std::string> tags;
};

/// An order that a paper found: the value is smaller in each run than in the one before.
struct OrderClaim {
  std::string text;               ///< the claim, for people
  std::string value;              ///< JSON pointer into the results
  std::string place;              ///< of `value` in the study, for error messages
  std::vector<std::string> runs;  ///< from the largest value to the smallest
  bool expected = true;           ///< false: the study says that the model contradicts the claim, and why
};

/// "time", and what summaries and totals of times leave out.
const std::vector<std::string>& cell_quantities();

/// The promise of the documentation about a study's predicted cells.
struct Promise {
  std::string tag;        ///< tag of the cells that the promise is about; all cells if empty
  double mean_error = 0;  ///< largest mean absolute error of these cells, relative
  bool beats_baselines = false;
};

/// A table of the share of a step that is compute, for numbers of GPUs and sizes of gradients.
struct FractionTable {
  std::string title, series;
  std::optional<sim::Scheme> scheme;  ///< in place of the series'
  std::vector<int> gpus;
  std::vector<double> bytes;
};

/// A study of published measurements.
struct Validation {
  std::string name, title, source;
  std::vector<std::pair<std::string, std::string>> assumptions;  ///< what is assumed, and its source
  std::vector<std::string> informed_choices;  ///< choices made by people who had read the cells that are predicted
  bool in_totals = true;  ///< false: constants were chosen so that the cells come out, and totals leave the study out
  std::vector<ScalingSeries> series;
  std::vector<CollectiveCurve> curves;
  std::vector<std::pair<std::string, JsonNode>> runs;  ///< scenarios by name
  std::vector<StudyAnswer> answers;
  std::string links;  ///< of a rehearsal: what its network's links come from (rehearsed_study.hpp); "": no rehearsal
  RehearsedLinks rehearsed;  ///< rehearsals that widen or narrow the intervals
  double run_error = 0;      ///< assumed 90 % half-width of a ratio of two runs, relative
  std::vector<RunCell> run_cells;
  std::vector<OrderClaim> claims;
  std::vector<FractionTable> fractions;
  std::vector<Promise> promises;
};

/// Reads a `ganymede.validation/1`. Throws ConfigError with the place if something is wrong or contradicts itself.
Validation read_validation(const JsonNode& root);

/// The intervals of the study get the width that the rehearsals suggest. Call it before run_validation().
void use_rehearsals(const RehearsedLinks& rehearsed, Validation& validation);

/// Sorted names of the studies that come with the program (the folders of studies/*/study.json).
const std::vector<std::string>& validation_names();
/// The text of one of them; empty if there is no such study.
std::string_view embedded_validation(std::string_view name);

/// Runs one study: cells with predictions, errors and baselines, and promises. The same on any machine.
/// `replay`: cells of trainings are predicted by `simulate` too (ScalingSeries::replay()).
documents::ValidatedStudy run_validation(Validation validation, bool replay = false);

/// Puts results of run_validation() together, with a summary over all. `rehearsed`: those that the studies used.
documents::ValidationResult validation_result(const std::vector<documents::ValidatedStudy>& studies,
                                              const RehearsedLinks& rehearsed = {});

/// True if every promise is kept.
bool promises_kept(const documents::ValidationResult& result);
/// True if every claim comes out as its study expects.
bool claims_as_expected(const documents::ValidationResult& result);

// Studies of measurements that a user asks for, by name or as files.

/// All are read before the first one runs.
struct AskedValidations {
  std::vector<std::string> names;
  std::vector<JsonNode> documents;
  std::vector<Validation> studies;
};

/// Reads the studies that come with the program under these names, or files; all that come with it if there are none.
/// Throws ConfigError with the nearest name for one that is neither.
AskedValidations read_asked(const std::vector<std::string>& names);

/// Does one shard of the studies, for `ganymede merge`; `program` is its version.
ShardOutcome run_validation_shard(AskedValidations asked, const std::string& program, const Shard& shard,
                                  const std::string& folder, ShardOptions how);

/// Runs the studies of a user's rehearsals and learns from how far they were off. Throws ConfigError for two files with
/// the same rehearsal.
RehearsedLinks read_rehearsals(const std::vector<std::string>& files);

}  // namespace ganymede::studies
