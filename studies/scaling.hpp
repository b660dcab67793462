#pragma once
// A published series: one model on 1 to n GPUs of one machine. The one-GPU cell and what else is marked "fit" calibrate
// it; every other cell is predicted by the simulator that users run.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibration/worker_variation.hpp"
#include "common/json.hpp"
#include "platforms/platform.hpp"
#include "sim/collectives/allreduce.hpp"

namespace ganymede {

struct Synchronization;

/// What a step consists of, as shares of its time on one GPU.
struct StepShape {
  struct Phase {
    std::string name, network;
    double share = 0;         ///< of the step's device time
    double serial_share = 0;  ///< of the host time that one process spends for one replica after the other
  };
  struct Bucket {
    std::string network, after;
    double bytes = 0;
    double ready = 1;  ///< share of the phase after which it is ready
  };
  std::vector<Phase> phases;
  std::vector<Bucket> buckets;
};

struct ScalingCell {
  int gpus = 1;
  int batch = 0;  ///< per GPU
  double measured = 0;
  bool fit = false;
  std::vector<std::string> tags;
};

struct Baseline {
  std::string name;
  double value = 0;
};

/// Of one cell, in the series' unit.
struct CellPrediction {
  double value = 0;
  double low = 0, high = 0;  ///< 90 %
  std::vector<Baseline> baselines;
};

struct ComputeFraction {
  int gpus;
  double bytes;
  double share;  ///< of a step's time, what it would take without communication
};

class ScalingSeries {
 public:
  enum class Unit { images_per_second, seconds_per_kimg, seconds };

  /// Reads one entry of "series"; `root` is the study's file, for the machines and steps that it names.
  ScalingSeries(const JsonNode& node, const JsonNode& root);

  const std::string& name() const { return name_; }
  std::string unit() const;
  const std::vector<ScalingCell>& cells() const { return cells_; }
  /// Another reading of what the paper leaves open: shown, but no part of a summary.
  bool alternative() const { return alternative_; }
  /// Fits what the series leaves open to its fit cells; says what came out, for people.
  /// `before`: series that it may take the links' share from.
  std::vector<std::string> fit(const std::vector<ScalingSeries>& before);
  CellPrediction predict(const ScalingCell& cell) const;
  /// With all gradients together of each of so many bytes.
  std::vector<ComputeFraction> compute_fraction(const std::vector<int>& gpus, const std::vector<double>& bytes) const;

 private:
  struct Step {
    double mean, low, high;  // seconds
  };
  const ScalingCell& reference(int batch) const;
  Synchronization synchronization(int gpus) const;
  double images_of(const ScalingCell& cell) const;
  double step_of(const ScalingCell& cell, double value) const;  // from the unit to seconds a step
  double in_unit(const ScalingCell& cell, double step_s) const;
  Step simulate(int gpus, int batch, double bytes_factor, double serial_host_s) const;
  double fit_serial_host(double bytes_factor) const;
  void fit_links();
  std::vector<Baseline> baselines(const ScalingCell& cell) const;
  double gradient_bytes() const;

  std::string name_;
  Unit unit_ = Unit::seconds;
  std::shared_ptr<const Platform> platform_;
  std::string instance_;
  int gpus_per_node_ = 0;
  Scheme scheme_;
  bool overlap_ = true;
  bool alternative_ = false;
  bool split_ = false;      // generator and discriminator on GPUs of their own
  double image_bytes_ = 0;  // of an image that crosses between them
  WorkerVariation spread_;
  double repeat_ = 0.01;  // standard deviation of a published figure, relative
  double steps_ = 1;      // of a run, where the unit is seconds
  bool fits_links_ = false;
  std::string links_as_;                        // the series whose links give the same share of what is assumed
  double links_ = 1;                            // that share, where it is fitted
  double slowest_link_ = 1, fastest_link_ = 1;  // what the links may really give, over what is assumed
  std::optional<double> input_;                 // images a second that a node's processors prepare
  std::optional<double> equations_;             // bytes a second of the paper's own formula
  bool fits_serial_host_ = false;
  double serial_host_s_ = 0;  // a step and replica; and where the links give what they may at worst and at best
  double serial_host_slow_s_ = 0, serial_host_fast_s_ = 0;
  StepShape shape_;
  std::vector<ScalingCell> cells_;
};

}  // namespace ganymede
