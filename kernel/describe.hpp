#pragma once
// What a model is made of, without training it.

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
  std::map<std::string, std::int64_t> parameters;  ///< trainable, by network
  std::map<std::string, std::int64_t> statistics;  ///< moving averages, by network
  double flops_per_step = 0;                       ///< matrix work
  std::map<std::string, double> memory_bytes;      ///< on the device, by kind
  /// What of it holds something that is still needed, in the order of a step's phases.
  std::vector<std::pair<std::string, double>> memory_in_use_bytes;
};

/// ConfigError as check(). Neither data nor device memory is touched.
Description describe(const TrainOptions& options);

std::string to_json(const Description& description);
std::string to_table(const Description& description);

}  // namespace ganymede::kernel
