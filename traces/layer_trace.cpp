// Makes a step trace of a list of layers.

#include <algorithm>
#include <cmath>

#include "traces/layer_list.hpp"

namespace ganymede::traces {
namespace {

using PassKind = LayerPass::Kind;

/// The default bucket_cap_mb of PyTorch's DistributedDataParallel.
constexpr double kBucketBytes = 25 * 1048576.0;

/// Bytes of a number in kernels over those in fp32.
double size_share(const LayerList& list) { return list.precision == "bf16" || list.precision == "fp16" ? 0.5 : 1; }

/// What a pass over a batch computes and moves. `share` is size_share() of its list.
TracePhase phase_of(const LayerPass& pass, const LayerNetwork& network, int batch, double share) {
  LayerCost one = network.total();
  one.read *= share;
  one.written *= share;
  const double master = kBytesPerNumber * static_cast<double>(one.parameters);
  const double weights = share * master;
  TracePhase phase;
  phase.name = pass.name;
  phase.network = pass.network;
  phase.stream = "compute";
  const auto set = [&](double flops, double read, double written, double launches) {
    phase.flops = pass.times * flops;
    phase.bytes_read = pass.times * read;
    phase.bytes_written = pass.times * written;
    phase.launches = std::llround(std::ceil(pass.times * launches));
  };
  const auto launches = static_cast<double>(one.launches);
  switch (pass.kind) {
    case PassKind::forward:
      set(batch * one.flops, batch * one.read + weights, batch * one.written, launches);
      break;
    case PassKind::backward:  // gradients of the inputs and of the weights
      set(2 * batch * one.flops, 2 * batch * (one.read + one.written) + weights, batch * one.read + master,
          2 * launches);
      break;
    case PassKind::backward_input:
      set(batch * one.flops, batch * (one.read + one.written) + weights, batch * one.read, launches);
      break;
    case PassKind::update:  // Adam reads weight, gradient and two moments, and writes weight and moments
      set(0, network.copies * 4 * master, network.copies * 3 * master, 1);
      break;
  }
  return phase;
}

/// Adds a network's buckets, from its last layer on. A bucket is ready when the backward pass, in proportion to FLOPs,
/// has computed the gradients of all its layers.
void add_buckets(TraceBatch& entry, const std::string& name, const LayerNetwork& network, const std::string& after) {
  double work = 0;
  for (const LayerCost& layer : network.layers) work += layer.flops;
  double bytes = 0, done = 0;
  for (auto layer = network.layers.rbegin(); layer != network.layers.rend(); ++layer) {
    bytes += network.copies * kBytesPerNumber * static_cast<double>(layer->parameters);
    done += layer->flops;
    const bool last = std::next(layer) == network.layers.rend();
    if (bytes == 0 || (bytes < kBucketBytes && !last)) continue;
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

TraceBatch entry_of(const LayerList& list, int batch, const RooflineDevice& device) {
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
    place(phase_of(pass, list.networks.at(pass.network), batch, size_share(list)), slowdown);
  }
  double parameters = 0, activations = 0;
  for (const auto& [name, network] : list.networks) {
    // The gradients that are reduced are complete after the last backward pass before the network's first update.
    std::string after;
    for (const LayerPass& pass : list.step) {
      if (pass.network != name) continue;
      if (pass.kind == PassKind::update) break;
      if (pass.kind == PassKind::backward) after = pass.name;
    }
    add_buckets(entry, name, network, after);
    add_missing_gradients(entry, name, network);
    parameters += network.copies * kBytesPerNumber * static_cast<double>(network.total().parameters);
    activations += network.copies * batch * size_share(list) * network.total().kept;
  }
  // Buckets are listed in the order in which they become ready.
  std::stable_sort(entry.buckets.begin(), entry.buckets.end(), [&](const TraceBucket& a, const TraceBucket& b) {
    const auto index = [&](const std::string& name) {
      return std::find_if(entry.phases.begin(), entry.phases.end(), [&](const auto& p) { return p.name == name; }) -
             entry.phases.begin();
    };
    return index(a.after_phase) < index(b.after_phase);
  });
  entry.memory_bytes = {{"parameters", parameters},
                        {"gradients", parameters},
                        {"optimizer", 2 * parameters},
                        {"activations", activations},
                        {"data", batch * list.bytes_per_image}};
  entry.wall_s = {now};
  return entry;
}

}  // namespace

StepTrace trace_of(const LayerList& list, const std::vector<int>& batches, const RooflineDevice& device) {
  StepTrace trace;
  trace.device = {device.name + " by roofline", "gpu", 1, device.rate, device.bandwidth, device.memory};
  trace.device.launch = device.launch;
  trace.software = {"layer list", list.name, std::string(kRooflineBackend)};
  trace.model = list.name;
  trace.precision = list.precision;
  for (const auto& [name, network] : list.networks) {
    double flops = 0;
    for (const LayerPass& pass : list.step)
      if (pass.network == name) flops += phase_of(pass, network, 1, 1).flops;
    const auto parameters = static_cast<std::int64_t>(network.copies) * network.total().parameters;
    trace.networks[name] = {parameters, flops, static_cast<std::int64_t>(kBytesPerNumber) * parameters};
  }
  for (const int batch : batches) trace.batches.push_back(entry_of(list, batch, device));
  return trace;
}

}  // namespace ganymede::traces
