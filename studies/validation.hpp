#pragma once
// Predictions held against published measurements: a file says what was measured, what of it may calibrate, what is
// assumed and from where; everything else is predicted by the simulator and compared.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"
#include "studies/scaling.hpp"

namespace ganymede {

/// A quantity of whole runs, predicted from scenarios: in absolute terms, or in proportion to a cell that calibrates
/// it.
struct RunCell {
  std::string what, unit, run, value;  ///< `value`: a JSON pointer into the result
  double scale = 1;                    ///< from the result's unit
  double measured = 0;
  bool fit = false;
  std::string anchor;  ///< another cell's `what`: the prediction is its measurement times the ratio of the two runs
  std::vector<std::pair<std::string, double>> baselines;  ///< name; the anchor's measurement times this
  std::vector<std::string> tags;
};

/// An order that a paper found: the value falls from one run to the next.
struct OrderClaim {
  std::string text, value;
  std::vector<std::string> runs;  ///< from the largest
};

/// What the documentation promises of a study's predicted cells.
struct Promise {
  std::string tag;        ///< of the cells it holds for; empty: all
  double mean_error = 0;  ///< at most
  bool beats_baselines = false;
};

struct FractionTable {
  std::string title, series;
  std::vector<int> gpus;
  std::vector<double> bytes;
};

struct Validation {
  std::string name, title, source;
  std::vector<std::pair<std::string, std::string>> assumptions;  ///< what; its source
  std::vector<ScalingSeries> series;
  std::vector<std::pair<std::string, JsonNode>> runs;  ///< scenarios by name
  double run_error = 0;                                ///< 90 % half-width of a ratio of runs, relative: an assumption
  std::vector<RunCell> run_cells;
  std::vector<OrderClaim> claims;
  std::vector<FractionTable> fractions;
  std::vector<Promise> promises;
};

/// `ganymede.validation/1`. ConfigError, located, on anything that contradicts itself.
Validation read_validation(const JsonNode& root);

/// Names of the studies that come with the program, studies/*/study.json, sorted; and their text.
const std::vector<std::string>& validation_names();
std::string_view embedded_validation(std::string_view name);

/// One study's cells, predictions, errors, baselines and promises: an object of `ganymede.validation-result/1`'s
/// "studies". The same bytes on any machine.
nlohmann::ordered_json run_validation(Validation validation);

/// All of them with the summary over all: `ganymede.validation-result/1`.
nlohmann::ordered_json validation_result(const std::vector<nlohmann::ordered_json>& studies);

/// Whether every promise of a validation_result is kept.
bool promises_kept(const nlohmann::ordered_json& result);

}  // namespace ganymede
