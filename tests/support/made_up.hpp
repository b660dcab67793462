#pragma once
// A made-up workload and platform whose times can be worked out by hand.

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <vector>

#include "traces/step_trace.hpp"

namespace ganymede {

/// The time of each step of the made-up GAN, in units of its scale: discriminator 3 + 1 (backward, update), an idle
/// 0.5, generator 4 + 1, and 0.5 at the end.
inline constexpr double kMadeUpStep = 10;

inline traces::TracePhase made_up_phase(const std::string& name, const std::string& network, double start,
                                        double seconds, const std::vector<double>& scale) {
  traces::TracePhase phase;
  phase.name = name;
  phase.network = network;
  phase.stream = "compute";
  for (const double unit : scale) {
    phase.start_s.push_back(start * unit);
    phase.seconds.push_back(seconds * unit);
    phase.host_s.push_back(0.25 * seconds * unit);
  }
  phase.flops = 1e9 * seconds;
  phase.bytes_read = 2e6 * seconds;
  phase.bytes_written = 1e6 * seconds;
  phase.launches = 10;
  return phase;
}

/// Step i takes scale[i] x kMadeUpStep seconds. Gradients: 4 MB of the discriminator in one bucket, 12 MB of the
/// generator in two. Divisible by 2, 4 and 8, so that the chunks of a ring are equal.
inline traces::StepTrace made_up_trace(const std::vector<double>& scale, const std::string& device = "GPU-X",
                                       int batch = 64) {
  traces::StepTrace trace;
  trace.device = {device, "gpu", 1, FlopsPerSecond{10e12}, BytesPerSecond{900e9}, Bytes{16e9}};
  trace.software = {"ganymede", "0.1.0", "eigen"};
  trace.model = "made-up-gan";
  trace.seed = 5;
  trace.networks = {{"discriminator", {1'000'000, 4e7, 4'000'000}}, {"generator", {3'000'000, 5e7, 12'000'000}}};
  traces::TraceBatch entry;
  entry.batch = batch;
  entry.memory_bytes = {{"parameters", 16e6}, {"activations", 100e6}, {"host.data", 1e12}};
  for (const double unit : scale) entry.wall_s.push_back(kMadeUpStep * unit);
  entry.phases = {made_up_phase("discriminator.backward", "discriminator", 0, 3, scale),
                  made_up_phase("discriminator.update", "discriminator", 3, 1, scale),
                  made_up_phase("generator.backward", "generator", 4.5, 4, scale),
                  made_up_phase("generator.update", "generator", 8.5, 1, scale)};
  entry.buckets = {{"discriminator", 4'000'000, "discriminator.backward", 1},
                   {"generator", 8'400'000, "generator.backward", 0.5},
                   {"generator", 3'600'000, "generator.backward", 1}};
  trace.batches = {entry};
  return trace;
}

/// `count` equal steps of `unit` x kMadeUpStep seconds.
inline traces::StepTrace constant_trace(std::size_t count, double unit = 1e-3, const std::string& device = "GPU-X") {
  return made_up_trace(std::vector<double>(count, unit), device);
}

/// One- and four-GPU nodes with the GPU of a made-up trace; prices 3.60 and 10.80 USD/h, boot 90 s, billed by the
/// second from 60 s on. The reduction of a bucket moves its bytes at 900 GB/s. A checkpoint of the made-up GAN, three
/// times its 16 MB of weights, takes a second to write to "disk" and half of one to read.
inline std::string made_up_platform() {
  return R"({ "schema": "ganymede.platform/1", "provider": "private", "name": "lab",
  "gpus": { "GPU-X": { "family": "X", "memory": "16GiB", "fp32": "10Tflop/s", "memory_bandwidth": "900GB/s",
                       "power": { "idle": "50W", "peak": "250W" } },
            "GPU-S": { "memory": "64MiB", "fp32": "10Tflop/s", "memory_bandwidth": "900GB/s" },
            "GPU-Y": { "family": "Y", "memory": "32GiB", "fp32": "20Tflop/s", "memory_bandwidth": "1800GB/s",
                       "launch": "4us" } },
  "instances": {
    "one": { "gpu": "GPU-X", "gpus": 1, "vcpus": 8, "available": 8,
             "nic": { "bandwidth": "10Gbit/s", "latency": "20us" },
             "prices": [ { "region": "room-1", "market": "on-demand", "per_hour": "3.60USD/h", "as_of": "2026-11-01" },
                         { "region": "room-2", "market": "spot", "per_hour": "0.90USD/h", "as_of": "2026-11-01" } ] },
    "four": { "gpu": "GPU-X", "gpus": 4, "vcpus": 32,
              "gpu_links": { "kind": "nvlink", "bandwidth": "80GB/s", "latency": "1us" },
              "nic": { "bandwidth": "10Gbit/s", "latency": "20us" },
              "prices": [
                { "region": "room-1", "market": "on-demand", "per_hour": "10.80USD/h", "as_of": "undated" } ] },
    "small": { "gpu": "GPU-S", "gpus": 1,
               "prices": [ { "region": "room-1", "market": "on-demand", "per_hour": "1USD/h", "as_of": "undated" } ] },
    "other": { "gpu": "GPU-Y", "gpus": 1, "host_link": { "bandwidth": "10GB/s", "latency": "1us" },
               "nic": { "bandwidth": "10Gbit/s", "latency": "20us" },
               "prices": [
                 { "region": "room-1", "market": "on-demand", "per_hour": "7.20USD/h", "as_of": "undated" } ] } },
  "regions": { "room-1": { "carbon": "400g/kWh", "pue": 1.5 } },
  "fabric": { "kind": "switch", "latency": "1us" },
  "storage": { "disk": { "read": "96MB/s", "write": "48MB/s" },
               "slow": { "read": "1MB/s", "write": "48MB/s", "iops": 1000, "latency": "1ms" },
               "burst": { "read": "1GB/s", "write": "48MB/s", "iops": 6400, "burst_iops": 64000, "burst_credits": 640000 } },
  "provisioning": { "boot": "90s" },
  "billing": { "granularity": "1s", "minimum": "60s" } })";
}

}  // namespace ganymede
