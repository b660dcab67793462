#pragma once
// A list of layers, `ganymede.layers/1`: what a model computes, so that its training can be planned without running it.
// It becomes a step trace whose FLOPs, bytes, launches and gradients are counted and whose times come from a roofline;
// the trace says that they were not measured.
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
#include <optional>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "traces/layer_images.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::traces {

inline constexpr double kBytesPerNumber = 4;  ///< size of a weight, of a gradient, and of an activation in fp32

/// The work of a layer, or of a whole network, for one image: FLOPs and bytes moved.
struct LayerCost {
  double flops = 0;             ///< matrix work of the forward pass; a multiply-add is 2
  double read = 0;              ///< bytes of activations that the forward pass reads
  double written = 0;           ///< bytes of activations that the forward pass writes
  double kept = 0;              ///< bytes of outputs that the backward pass needs, as PyTorch saves them
  std::int64_t launches = 0;    ///< kernels launched in the forward pass
  std::int64_t parameters = 0;  ///< trainable parameters of the layer, not per image
  LayerCost& operator+=(const LayerCost& more);
};

/// A layer with the kernels that PyTorch launches for it, whose phases are not named yet.
struct Layer : LayerCost {
  std::string precision;                   ///< "fp16"; empty: that of the list
  double scaled = 0;                       ///< bytes that a convolution with styles keeps beside its output, in fp32
  std::optional<double> again;             ///< bytes kept to differentiate its gradients, in fp32; else by its kind
  double filters = 0;                      ///< bytes of the filters that each image makes for itself, always in fp32
  std::vector<TraceKernel> forward;        ///< of the forward pass
  std::vector<TraceKernel> inner;          ///< of the backward pass: what both kinds of gradients need, comes first
  std::vector<TraceKernel> to_inputs;      ///< of the backward pass: gradients of the inputs
  std::vector<TraceKernel> to_parameters;  ///< of the backward pass: gradients of the parameters
};

struct LayerNetwork {
  double copies = 1;                   ///< number of equal networks, for example CycleGAN's two generators
  bool frozen = false;                 ///< it is not trained, as a network that measures how alike images look
  std::int64_t frozen_parameters = 0;  ///< its weights, which take memory and are no parameters of the training
  bool average = false;                ///< a moving average of its weights is kept, as for the generator of a StyleGAN
  std::vector<Layer> layers;
  std::vector<int> output;  ///< shape of its result: channels, depth if it has one, height, width
  LayerCost total() const;  ///< sum over the layers of one copy
};

/// A part of a step: `times` passes through one copy of a network. `times` may be a mean over steps, for example 0.0625
/// for a regularizer in every 16th step.
struct LayerPass {
  enum class Kind { forward, backward, backward_input, update };
  std::string name;
  std::string network;
  Kind kind = Kind::forward;
  double times = 1;
  double images = 1;            ///< share of the batch that it sees; `times` is counted in whole batches
  bool differentiable = false;  ///< the gradients of this forward pass are differentiated again, as for R1
};

struct LayerList {
  std::string name, source, precision;
  std::string executor;        ///< how the host launches kernels, as StepTrace::executor
  std::string optimizer;       ///< "adam", or "sgd" with momentum and weight decay
  bool channels_last = false;  ///< memory format of activations and filters
  bool equalized = false;      ///< weights are scaled where they are used, and the scaled copies kept (StyleGAN)
  std::map<std::string, LayerNetwork> networks;
  std::vector<LayerPass> step;
  double bytes_per_image = 0;   ///< bytes that are copied to the device for each image
  bool flat_gradients = false;  ///< all of a network's gradients are reduced together, after its backward pass
  double gradient_sums = 0;     ///< buffers beside the gradients, each as large, in which those of passes are summed
  double bytes_beside = 0;      ///< bytes on the device that do not train, such as a network that measures quality
};

/// Reads and checks a list. Throws ConfigError with file and pointer for unknown kinds, sizes that do not fit (a kernel
/// larger than its input, channels that the groups do not divide), a step that names an unknown network or never
/// updates one of the networks. `image` is the side of the images for a list that is written for several
/// (layer_images.hpp); without it they have its native size. Its layers may name `settings`.
LayerList read_layer_list(const JsonNode& root, std::optional<int> image = std::nullopt,
                          const LayerSettings& settings = {});

/// The device whose roofline gives the times: rate of matrix products, memory bandwidth, time to launch a kernel.
struct RooflineDevice {
  std::string name;  ///< "V100"
  FlopsPerSecond rate;
  BytesPerSecond bandwidth;
  Seconds launch{0};
  Bytes memory;
};
/// `software.backend` of a trace whose times were computed, not measured.
inline constexpr std::string_view kRooflineBackend = "roofline";

/// The time of a backward pass over that of its work at the rate of a forward pass. Its work is twice a forward pass's
/// (gradients of inputs and of weights), but it takes 2.6 times as long: the geometric mean over the convolutions of
/// DeepBench (Baidu @da81ba782073) is 2.50 and 2.58 on V100 in fp32 and on tensor cores, 2.45 on P100, 2.76 on GTX
/// 1080 Ti. The gradients of the inputs alone take 1.19 to 1.34 times a forward pass.
inline constexpr double kBackwardSlowdown = 1.3;
inline constexpr double kBackwardInputSlowdown = 1.25;

/// True for a trace whose times were computed from a list of layers.
bool is_counted(const TraceSoftware& software);

/// The kernels of a step, phase by phase: those of each pass's layers, of each update, and of adding the gradients of
/// further backward passes to the first one's. A backward pass does not compute the gradients of its network's own
/// input, which nothing needs.
std::vector<TraceKernel> kernels_of(const LayerList& list);

/// The trace of one step for each batch size, with kRooflineBackend as its backend. The list's precision decides the
/// size of activations and of the weights that kernels read: two bytes in bf16 and fp16; the weights that are updated,
/// gradients and the optimizer stay in fp32, as in mixed precision. The update is one kernel, or in an eager program
/// several. Gradients are reduced in buckets of 25 MiB, from the last layer on, as by PyTorch's
/// DistributedDataParallel.
StepTrace trace_of(const LayerList& list, const std::vector<int>& batches, const RooflineDevice& device);

}  // namespace ganymede::traces
