#pragma once
// A published series of measurements: one model on 1 to n GPUs of one machine. The measurement on one GPU, and others
// that are marked "fit", calibrate it. All others are predicted by the simulator that users run.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibration/batch_step.hpp"
#include "calibration/step_model.hpp"
#include "calibration/worker_variation.hpp"
#include "common/json_fwd.hpp"
#include "documents/validation_result.hpp"
#include "platforms/platform.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/synchronization.hpp"
#include "studies/machine.hpp"
#include "studies/rehearsed_study.hpp"

namespace ganymede::studies {

/// The parts of a training step, as shares of its time on one GPU.
struct StepShape {
  struct Phase {
    std::string name, network;
    double share = 0;         ///< share of the step's device time
    double serial_share = 0;  ///< share of the host time that one process spends on the replicas, one after the other
  };
  struct Bucket {
    std::string network;
    std::string after;  ///< the phase that produces the gradients
    double bytes = 0;
    double ready = 1;  ///< share of that phase after which the gradients are ready
  };
  std::vector<Phase> phases;
  std::vector<Bucket> buckets;
  std::vector<double> variables;  ///< bytes of the largest ones, which parameter servers hold whole
  double launch_s = 0;            ///< least time of a step: that of launching its kernels; 0: unknown
};

/// One published measurement.
struct ScalingCell {
  int gpus = 1;
  int batch = 0;         ///< images on each GPU in each step
  int accumulation = 1;  ///< passes of a step; each has batch / accumulation images
  double measured = 0;   ///< in the unit of the series
  bool fit = false;      ///< the cell calibrates the series and is not predicted
  std::vector<std::string> tags;
  int pass() const { return batch / accumulation; }
};

/// The prediction of a simpler rule, in the unit of the series.
struct Baseline {
  std::string name;
  double value = 0;
};

/// The parts of a predicted step, from which constants are fitted again.
using StepParts = documents::ValidatedCell::Parts;

/// The prediction of one cell, in the unit of the series.
struct CellPrediction {
  double value = 0;
  double low = 0, high = 0;  ///< ends of the 90 % interval
  std::string evidence;      ///< the class of the evidence that the interval rests on
  StepParts parts;
  std::vector<Baseline> baselines;
};

/// What `simulate` states for a cell, in the unit of the series.
struct SimulatedCell {
  double value = 0, low = 0, high = 0;
};

/// The share of a step that is compute: time without communication over time with it.
using ComputeFraction = documents::ValidatedStudy::Fractions::Row;

class ScalingSeries {
 public:
  enum class Unit { images_per_second, seconds_per_kimg, seconds };

  /// Reads one entry of "series". `root` is the whole file, for the machines and steps that the entry names. Throws
  /// ConfigError if something is wrong or missing.
  ScalingSeries(const JsonNode& node, const JsonNode& root);
  /// The same on a machine that is not the file's.
  ScalingSeries(const JsonNode& node, const JsonNode& root, Machine machine);

  const std::string& name() const { return name_; }
  std::string unit() const;
  const std::vector<ScalingCell>& cells() const { return cells_; }
  /// True if the series is an alternative reading of what a paper leaves open. It is shown, but is not part of a
  /// summary.
  bool alternative() const { return alternative_; }
  /// True for eager executors (PyTorch), false for graph executors (TensorFlow, MXNet).
  bool eager() const { return eager_; }
  /// Standard deviation of a published figure, relative.
  double repeat() const { return repeat_; }
  /// Workers differ like this instead of as the executor's do. Call it before fit().
  void set_variation(const calibration::WorkerVariation& variation) { spread_ = variation; }
  /// Another batch size is predicted with these constants instead of batch_step.hpp's.
  void set_fixed_step(double on_v100_s, double exponent) { fixed_s_ = on_v100_s, fixed_exponent_ = exponent; }
  /// Intervals have the width that rehearsals of such links suggest.
  void set_rehearsed(const RehearsedLinks& rehearsed) { link_factor_ = rehearsed.factor(link_evidence(2)); }
  /// Fits the series to its fit cells and returns the results as sentences for people. `before` are series that were
  /// fitted earlier; this one may take its links from one of them. Throws ConfigError if the series that it names is
  /// not among them.
  std::vector<std::string> fit(const std::vector<ScalingSeries>& before);
  /// Predicts a cell. Call fit() first.
  CellPrediction predict(const ScalingCell& cell) const;
  /// The same by `simulate`, as a user would ask it: a training of 1,000 steps whose step on one GPU is stated, on the
  /// catalog as it ships, or on the study's own platform. Its interval is the result's. Nullopt for what no scenario
  /// can say: a fit to several GPUs, and another batch than the stated one. Call fit() first.
  std::optional<SimulatedCell> replay(const ScalingCell& cell) const;
  /// The share of a step that is compute, for each number of GPUs and each size of all gradients; by another scheme
  /// than the series' if one is given.
  std::vector<ComputeFraction> compute_fractions(const std::vector<int>& gpus, const std::vector<double>& bytes,
                                                 const std::optional<sim::Scheme>& scheme = {}) const;

 private:
  void read_options(JsonObject& in);
  void read_cells(const JsonNode& cells);
  bool measured_batch(const ScalingCell& cell) const { return reference_cell(cell).pass() == cell.pass(); }
  const ScalingCell& reference_cell(const ScalingCell& cell) const;
  double alone_s(const ScalingCell& cell) const;
  void find_step_of_one_gpu();
  int fewest_gpus() const;
  const ScalingCell& multi_gpu_fit_cell() const;
  sim::Synchronization synchronization(int gpus) const;
  double images_of(const ScalingCell& cell) const;                   // images of a step
  double step_seconds(const ScalingCell& cell, double value) const;  // converts from the unit of the series
  double in_unit(const ScalingCell& cell, double step_s) const;      // converts from seconds of a step
  std::vector<calibration::StepBucket> buckets(double bytes_factor) const;
  calibration::StepModel model(const ScalingCell& cell, double pass_s, double bytes_factor, double serial_host_s) const;
  double passes(const ScalingCell& cell) const;
  calibration::StepAtBatch pass_s(const ScalingCell& cell) const;
  traces::StepTrace stated_trace(const ScalingCell& cell) const;
  double simulate(const ScalingCell& cell, double bytes_factor, double serial_host_s, bool alike = false) const;
  double fit_serial_host(double bytes_factor) const;
  void fit_links();
  std::vector<Baseline> baselines(const ScalingCell& cell) const;
  double gradient_bytes() const;
  const platforms::Gpu& gpu() const;
  double pause_s_per_image(int gpus) const;
  int networks() const;
  bool fits_several() const { return fits_links_ || fits_serial_host_ || !links_as_.empty(); }
  std::string evidence_of(const ScalingCell& cell) const;
  LinkEvidence link_evidence(int nodes) const { return fits_several() ? LinkEvidence::fitted : machine_.links(nodes); }
  int nodes(const ScalingCell& cell) const { return cell.gpus > machine_.gpus_per_node ? 2 : 1; }  // 2: several

  std::string name_;
  Unit unit_ = Unit::seconds;
  Machine machine_;
  double link_factor_ = 1;
  sim::Scheme scheme_;
  bool overlap_ = true;
  bool flat_ = false;  // one all-reduce of a network's gradients after its last pass, which nothing overlaps
  bool eager_ = false;
  std::optional<sim::Evaluation> pause_;  // its unit is images
  bool alternative_ = false;
  bool component_split_ = false;  // generator and discriminator on GPUs of their own
  double image_bytes_ = 0;        // bytes of an image that is sent between them
  calibration::WorkerVariation spread_;
  double fixed_s_ = calibration::kFixedPerNetwork_s, fixed_exponent_ = calibration::kFixedExponent;
  double repeat_ = 0.01;  // standard deviation of a published figure, relative
  double steps_ = 1;      // number of steps of a run, if the unit is seconds
  bool fits_links_ = false;
  std::string links_as_;                        // name of the series whose links give the same share of what is assumed
  double links_ = 1;                            // that share: bandwidth of the links over what is assumed
  double slowest_link_ = 1, fastest_link_ = 1;  // the range of that share, for the interval
  std::optional<double> input_;                 // images a second that the processors of a node prepare
  std::optional<double> equations_;             // bytes a second in the paper's own formula
  bool fits_serial_host_ = false;
  // Host time of one replica in a step, as fitted: with the assumed links, and with the slowest and the fastest links.
  double serial_host_s_ = 0, serial_host_slow_s_ = 0, serial_host_fast_s_ = 0;
  StepShape shape_;
  std::vector<ScalingCell> cells_;
  std::vector<double> one_gpu_s_;  // by cell: one GPU's step without pauses; 0 for cells that do not calibrate it
};

}  // namespace ganymede::studies
