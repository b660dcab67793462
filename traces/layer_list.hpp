#pragma once
// A list of layers, `ganymede.layers/1`: what a model computes, so that it can be planned without running it. It
// becomes a step trace whose FLOPs, bytes, launches and gradients are counted and whose times are a roofline's,
// labelled so.
//
//   { "schema": "ganymede.layers/1", "name": "pix2pix", "source": "…",
//     "networks": { "generator": { "input": [3, 256, 256], "layers": [ { "kind": "convolution", "out": 64, … }, … ] },
//                   "discriminator": { … } },
//     "step": [ { "network": "generator", "pass": "forward" }, … ] }     // default: an alternating GAN step
//
// docs/formats.md describes the kinds of layers.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "traces/step_trace.hpp"

namespace ganymede {

inline constexpr double kLayerNumber = 4;  ///< bytes of an activation, weight or gradient

/// What a layer, or a whole network, does for one image.
struct LayerCost {
  double flops = 0;             ///< of its forward pass; matrix work, a multiply-add is 2
  double read = 0;              ///< activations, bytes of its forward pass
  double written = 0;           ///< likewise
  double kept = 0;              ///< bytes of outputs that its backward pass needs
  std::int64_t launches = 0;    ///< kernels of its forward pass
  std::int64_t parameters = 0;  ///< trainable; of the layer, whatever the number of images
  LayerCost& operator+=(const LayerCost& more);
};

struct LayerNetwork {
  double copies = 1;  ///< networks alike, as CycleGAN's two generators
  std::vector<LayerCost> layers;
  std::vector<int> output;  ///< channels, height, width
  LayerCost total() const;  ///< of one copy
};

/// A part of a step: `times` passes of one copy, which may be a mean (a regularizer of every 16th step: 0.0625).
struct LayerPass {
  enum class Kind { forward, backward, backward_input, update };
  std::string name;
  std::string network;
  Kind kind = Kind::forward;
  double times = 1;
};

struct LayerList {
  std::string name, source, precision;
  std::map<std::string, LayerNetwork> networks;
  std::vector<LayerPass> step;
  double bytes_per_image = 0;  ///< copied to the device
};

/// ConfigError with file and pointer: unknown kinds, sizes that do not fit (a kernel larger than its input, channels
/// that its groups do not divide), a step that names no network or never updates one.
LayerList read_layer_list(const JsonNode& root);

/// The device whose roofline gives the times.
struct RooflineDevice {
  std::string name;  ///< "V100"
  FlopsPerSecond rate;
  BytesPerSecond bandwidth;
  Seconds launch{0};
  Bytes memory;
};
/// `software.backend` of a trace that nobody measured.
inline constexpr std::string_view kRooflineBackend = "roofline";

/// One entry a batch size, one step each. `software.backend` is "roofline", by which others tell that nothing was
/// measured. A backward pass costs two forward ones (gradients of inputs and of weights), one where only inputs' are
/// wanted; Adam reads four numbers a parameter and writes three. Gradients are reduced in buckets of 25 MiB, from the
/// last layer on, as PyTorch's DistributedDataParallel does.
StepTrace trace_of(const LayerList& list, const std::vector<int>& batches, const RooflineDevice& device);

}  // namespace ganymede
