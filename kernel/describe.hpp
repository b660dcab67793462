#pragma once
// Describes a model without training it: layers, parameters, FLOPs and memory.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernel/train.hpp"

namespace ganymede::kernel {

struct LayerDescription {
  std::string network, name, kind;
  int outputs = 0;
  std::int64_t parameters = 0, statistics = 0;
  double forward_flops_per_image = 0;
};

struct Description {
  std::string model;
  int batch = 0;
  ImageShape image;
  std::vector<LayerDescription> layers;
  std::map<std::string, std::int64_t> parameters;  ///< trainable ones, by network
  std::map<std::string, std::int64_t> statistics;  ///< moving averages of batch norms, by network
  double flops_per_step = 0;                       ///< matrix work of a whole batch; a multiply-add is 2
  std::map<std::string, double> memory_bytes;      ///< device memory by kind: parameters, activations, ...
  /// The kernels of a step on a GPU (kernels_of).
  std::vector<traces::TraceKernel> kernels;
  /// For each phase of a step, in order: its name, and how many of the bytes above hold contents that are still needed.
  std::vector<std::pair<std::string, double>> memory_in_use_bytes;
};

/// Needs neither data nor device memory. Throws ConfigError as check() does.
Description describe(const TrainOptions& options);

std::string to_json(const Description& description);
std::string to_table(const Description& description);

// Whether a training fits into the device's memory.

/// Peak bytes of device memory that the training will allocate, over all stages of a growing model. `options` must have
/// passed check().
double predicted_memory_bytes(const TrainOptions& options, const TensorOps& ops);

/// Throws Infeasible if the training needs more than `available` bytes of device memory; the message names the largest
/// batch that fits. `available` is 0 if it is not known; then nothing is checked.
void check_memory(const TrainOptions& options, const TensorOps& ops, double available);

}  // namespace ganymede::kernel
