#pragma once
// What an image takes at least on an instance type with a batch size, without a simulation of its fabric.

#include <span>
#include <vector>

#include "calibration/workload_model.hpp"
#include "plan/candidates.hpp"

namespace ganymede::plan {

/// The least weighted sum over the stages of a model, for example of seconds an image, for the lengths that the stages
/// have with the seeds of the request's runs.
double least_over_seeds(const Request& request, std::span<const double> of_stages);

/// Steps of an instance type with a batch size.
class LeastSteps {
 public:
  /// `known` keeps the models of the request's trace from call to call. All arguments must outlive this.
  LeastSteps(const Request& request, const Request::Batch& batch, const platforms::Platform& platform,
             const platforms::Instance& instance, calibration::KnownWorkloads& known);

  /// The least work for an image on so many nodes with so many GPUs each.
  LeastWork work(int nodes, int gpus_per_node) const;

 private:
  /// The step of one worker in a stage of the model.
  struct Stage {
    calibration::StepModel step;
    double fastest_s = 0, bytes = 0;
    calibration::WorkerVariation variation;
  };
  double joined_s(const Stage& stage, int nodes, int gpus_per_node) const;

  const Request& request_;
  const Request::Batch& batch_;
  const platforms::Instance& instance_;
  bool one_mode_;         // all-reduce after each step, as the request states nothing else
  bool flat_;             // all gradients of a network are one bucket
  double least_traffic_;  // of a node with many others, relative to the gradients
  std::vector<Stage> stages_;
  LeastWork once_;  // what does not depend on the number of nodes
};

}  // namespace ganymede::plan
