// Makes a step trace of a list of layers.

#include <algorithm>
#include <cmath>
#include <limits>

#include "traces/layer_list.hpp"
#include "traces/layer_memory.hpp"
#include "traces/layer_walk.hpp"

namespace ganymede::traces {
namespace {

using PassKind = LayerPass::Kind;

/// The default bucket_cap_mb of PyTorch's DistributedDataParallel.
constexpr double kBucketBytes = 25 * 1048576.0;

bool is_half(std::string_view precision) { return precision == "bf16" || precision == "fp16"; }

/// Bytes of a number in a layer's kernels over those in fp32.
double size_share(const LayerList& list, const Layer& layer) {
  return is_half(layer.precision.empty() ? list.precision : layer.precision) ? 0.5 : 1;
}

/// The work of a network for one image, and the bytes of the weights that its kernels read.
struct NetworkCost : LayerCost {
  double weights = 0;
};

NetworkCost cost_of(const LayerList& list, const LayerNetwork& network) {
  NetworkCost sum;
  for (const Layer& layer : network.layers) {
    const double share = size_share(list, layer);
    LayerCost one = layer;
    one.read *= share, one.written *= share;
    sum += one;
    sum.weights += share * kBytesPerNumber * static_cast<double>(layer.parameters);
  }
  return sum;
}

/// The work of an optimizer for each parameter.
struct Update {
  double kernels, reads, writes;  ///< reads and writes of all kernels
};
/// Adam. Fused by a compiler it reads weight, gradient and two moments and writes weight and moments. Eager
/// PyTorch (torch/optim/adam.py) runs seven operations one after the other over all tensors: lerp, mul, addcmul, sqrt,
/// div, add and addcdiv, which read 2, 1, 2, 1, 1, 1 and 3 numbers for each parameter and write one each.
constexpr Update kFusedAdam{1, 4, 3}, kEagerAdam{7, 11, 7};
/// SGD with momentum and weight decay. Eager PyTorch (torch/optim/sgd.py) runs four operations: add, mul, add and add,
/// which read 2, 1, 2 and 2 numbers and write one each.
constexpr Update kFusedSgd{1, 3, 2}, kEagerSgd{4, 7, 4};
Update update_rule(const LayerList& list) {
  const bool eager = list.executor == "eager";
  if (list.optimizer == "sgd") return eager ? kEagerSgd : kFusedSgd;
  return eager ? kEagerAdam : kFusedAdam;
}

/// The work of a pass over a batch.
TracePhase phase_of(const LayerList& list, const LayerPass& pass, int batch, const NetworkCost& one) {
  const LayerNetwork& network = list.networks.at(pass.network);
  const Update rule = update_rule(list);
  const double master = kBytesPerNumber * static_cast<double>(one.parameters);
  TracePhase phase;
  phase.name = pass.name;
  phase.network = pass.network;
  phase.stream = "compute";
  const auto set = [&](double flops, double read, double written) {
    phase.flops = pass.times * flops;
    phase.bytes_read = pass.times * read;
    phase.bytes_written = pass.times * written;
  };
  switch (pass.kind) {
    case PassKind::forward:
      set(batch * one.flops, batch * one.read + one.weights, batch * one.written);
      break;
    case PassKind::backward:  // gradients of the inputs and of the weights
      set(2 * batch * one.flops, 2 * batch * (one.read + one.written) + one.weights, batch * one.read + master);
      break;
    case PassKind::backward_input:
      set(batch * one.flops, batch * (one.read + one.written) + one.weights, batch * one.read);
      break;
    case PassKind::update:
      set(0, network.copies * rule.reads * master, network.copies * rule.writes * master);
      break;
  }
  return phase;
}

TraceKernel update_of(const LayerList& list, const LayerNetwork& network) {
  const Update all = update_rule(list);
  TraceKernel update;
  update.layer = "update";
  update.op = list.optimizer;
  update.precision = "fp32";
  update.grows = TraceKernel::Growth::none;
  update.cols = std::llround(network.copies * static_cast<double>(network.total().parameters));
  update.times = all.kernels;
  update.reads = all.reads / all.kernels, update.writes = all.writes / all.kernels;
  return update;
}

/// How often a backward pass adds its gradients to those of an earlier one since the last update, instead of leaving
/// them where they were made: each pass but the first of each copy.
double additions_of(const LayerList& list, const LayerPass& pass) {
  double before = 0;
  for (const LayerPass& one : list.step) {
    if (&one == &pass) break;
    if (one.network != pass.network) continue;
    if (one.kind == PassKind::update) before = 0;
    if (one.kind == PassKind::backward) before += one.times;
  }
  const double copies = list.networks.at(pass.network).copies;
  return std::max(0.0, before + pass.times - copies) - std::max(0.0, before - copies);
}

TraceKernel addition_of(const Layer& layer, double times) {
  TraceKernel add;
  add.layer = "gradients";
  add.op = "accumulate";
  add.precision = "fp32";
  add.grows = TraceKernel::Growth::none;
  add.cols = layer.parameters;
  add.reads = 2, add.writes = 1, add.times = times;
  return add;
}

/// The kernels of one pass, without those that its precision does not need.
std::vector<TraceKernel> pass_kernels(const LayerList& list, const LayerPass& pass) {
  const LayerNetwork& network = list.networks.at(pass.network);
  std::vector<TraceKernel> kernels;
  if (pass.kind == PassKind::update) kernels.push_back(update_of(list, network));
  const auto add = [&](const Layer& layer, const std::vector<TraceKernel>& more) {
    for (TraceKernel kernel : more) {
      if (kernel.op == kCast && size_share(list, layer) == 1) continue;
      kernel.precision = kernel.op == kCast ? "fp32" : layer.precision;
      kernels.push_back(std::move(kernel));
    }
  };
  if (pass.kind == PassKind::forward)
    for (const Layer& layer : network.layers) add(layer, layer.forward);
  // Gradients of parameters alone go back no further than to the first layer that has some.
  const bool to_input = pass.kind == PassKind::backward_input;
  const auto first = to_input ? network.layers.begin()
                              : std::find_if(network.layers.begin(), network.layers.end(),
                                             [](const Layer& layer) { return layer.parameters > 0; });
  if (to_input || pass.kind == PassKind::backward)
    for (auto layer = network.layers.end(); layer != first;) {
      --layer;
      add(*layer, layer->inner);
      if (to_input || layer != first) add(*layer, layer->to_inputs);
      if (!to_input) add(*layer, layer->to_parameters);
    }
  for (TraceKernel& kernel : kernels) kernel.times *= pass.times;
  if (const double times = additions_of(list, pass); pass.kind == PassKind::backward && times > 1e-6)
    for (auto layer = network.layers.rbegin(); layer != network.layers.rend(); ++layer)
      if (layer->parameters > 0) kernels.push_back(addition_of(*layer, times));
  for (TraceKernel& kernel : kernels) {
    kernel.phase = pass.name;
    kernel.channels_last = kernel.is_convolution() && list.channels_last;
  }
  return kernels;
}

/// Adds a network's buckets, from its last layer on. A bucket is ready when the backward pass, in proportion to FLOPs,
/// has computed the gradients of all its layers.
void add_buckets(TraceBatch& entry, const std::string& name, const LayerNetwork& network, const std::string& after,
                 double bucket_bytes) {
  double work = 0;
  for (const LayerCost& layer : network.layers) work += layer.flops;
  double bytes = 0, done = 0;
  for (auto layer = network.layers.rbegin(); layer != network.layers.rend(); ++layer) {
    bytes += network.copies * kBytesPerNumber * static_cast<double>(layer->parameters);
    done += layer->flops;
    const bool last = std::next(layer) == network.layers.rend();
    if (bytes == 0 || (bytes < bucket_bytes && !last)) continue;
    entry.buckets.push_back(
        {name, std::llround(bytes), after, last || work == 0 ? 1 : std::clamp(done / work, 1e-6, 1.0)});
    bytes = 0;
  }
}

/// Changes the network's last bucket so that its buckets together hold exactly all gradients. Some may be missing
/// because of rounding, or because the first layers have no bucket.
void add_missing_gradients(TraceBatch& entry, const std::string& name, const LayerNetwork& network) {
  double missing = network.copies * kBytesPerNumber * static_cast<double>(network.total().parameters);
  for (const TraceBucket& bucket : entry.buckets)
    if (bucket.network == name) missing -= static_cast<double>(bucket.bytes);
  for (auto bucket = entry.buckets.rbegin(); bucket != entry.buckets.rend() && missing != 0; ++bucket)
    if (bucket->network == name) {
      bucket->bytes += std::llround(missing);
      missing = 0;
    }
}

/// Launches of a phase, a whole number even if it runs in some steps only.
std::int64_t launches_of(const std::vector<TraceKernel>& kernels, const std::string& phase) {
  double launches = 0;
  for (const TraceKernel& kernel : kernels)
    if (kernel.phase == phase) launches += kernel.times;
  return std::llround(std::ceil(launches - 1e-9));
}

/// Adds the buckets of all networks in the order in which they become ready, and the memory that they need.
void add_networks(TraceBatch& entry, const LayerList& list) {
  for (const auto& [name, network] : list.networks) {
    // The gradients that are reduced are complete after the last backward pass before the network's first update.
    std::string after;
    for (const LayerPass& pass : list.step) {
      if (pass.network != name) continue;
      if (pass.kind == PassKind::update) break;
      if (pass.kind == PassKind::backward) after = pass.name;
    }
    add_buckets(entry, name, network, after,
                list.flat_gradients ? std::numeric_limits<double>::infinity() : kBucketBytes);
    add_missing_gradients(entry, name, network);
  }
  std::stable_sort(entry.buckets.begin(), entry.buckets.end(), [&](const TraceBucket& a, const TraceBucket& b) {
    const auto index = [&](const std::string& name) {
      return std::find_if(entry.phases.begin(), entry.phases.end(), [&](const auto& p) { return p.name == name; }) -
             entry.phases.begin();
    };
    return index(a.after_phase) < index(b.after_phase);
  });
  entry.memory_bytes = allocated_memory(list, entry.batch);
}

TraceBatch entry_of(const LayerList& list, int batch, const RooflineDevice& device,
                    const std::vector<TraceKernel>& kernels) {
  TraceBatch entry;
  entry.batch = batch;
  double now = 0;
  const auto place = [&](TracePhase phase, double slowdown) {
    const double work =
        std::max(phase.flops / device.rate.si, (phase.bytes_read + phase.bytes_written) / device.bandwidth.si);
    const double time = std::max(slowdown * work, static_cast<double>(phase.launches) * device.launch.si);
    phase.start_s = {now};
    phase.seconds = {time};
    phase.host_s = {0};
    now += time;
    entry.phases.push_back(std::move(phase));
  };
  if (list.bytes_per_image > 0) {
    TracePhase copy;
    copy.name = "copy";
    copy.stream = "copy";
    copy.bytes_read = copy.bytes_written = batch * list.bytes_per_image;
    copy.launches = 1;
    place(std::move(copy), 1);
  }
  for (std::size_t i = 0; i < list.step.size(); ++i) {
    const LayerPass& pass = list.step[i];
    const double slowdown = pass.kind == PassKind::backward         ? kBackwardSlowdown
                            : pass.kind == PassKind::backward_input ? kBackwardInputSlowdown
                                                                    : 1;
    TracePhase phase = phase_of(list, pass, batch, cost_of(list, list.networks.at(pass.network)));
    phase.launches = launches_of(kernels, pass.name);
    place(std::move(phase), slowdown);
  }
  add_networks(entry, list);
  entry.wall_s = {now};
  return entry;
}

}  // namespace

std::vector<TraceKernel> kernels_of(const LayerList& list) {
  std::vector<TraceKernel> kernels;
  for (const LayerPass& pass : list.step) {
    std::vector<TraceKernel> more = pass_kernels(list, pass);
    kernels.insert(kernels.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  return kernels;
}

StepTrace trace_of(const LayerList& list, const std::vector<int>& batches, const RooflineDevice& device) {
  StepTrace trace;
  trace.device = {device.name + " by roofline", "gpu", 1, device.rate, device.bandwidth, device.memory};
  trace.device.launch = device.launch;
  trace.software = {"layer list", list.name, std::string(kRooflineBackend)};
  trace.model = list.name;
  trace.precision = list.precision;
  trace.executor = list.executor;
  trace.kernels = kernels_of(list);
  for (const auto& [name, network] : list.networks) {
    double flops = 0;
    for (const LayerPass& pass : list.step)
      if (pass.network == name) flops += phase_of(list, pass, 1, cost_of(list, network)).flops;
    const auto parameters = static_cast<std::int64_t>(network.copies) * network.total().parameters;
    trace.networks[name] = {parameters, flops, static_cast<std::int64_t>(kBytesPerNumber) * parameters};
  }
  for (const int batch : batches) trace.batches.push_back(entry_of(list, batch, device, trace.kernels));
  return trace;
}

}  // namespace ganymede::traces
