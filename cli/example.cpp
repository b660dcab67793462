#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/example_platform.hpp"
#include "cli/example_policy.hpp"
#include "cli/names.hpp"
#include "cli/terminal.hpp"
#include "common/errors.hpp"

namespace ganymede::cli {
namespace {

constexpr const char* kScenario = R"({
  // ganymede simulate scenario.json
  "schema": "ganymede.scenario/1",

  "workload": {
    // A file that `ganymede train --trace` or `ganymede calibrate` wrote (a relative path starts at this file), or one
    // that comes with the program.
    "trace": "recorded:mlp-gan-cpu",
    "dataset": { "name": "mnist", "images": 60000, "bytes_per_image": 784 },
    "batch_per_gpu": 64, // one that the trace has recorded
    "epochs": 20 // or "steps", or "images"
  },

  "platform": {
    "catalog": "aws", // `ganymede list providers`, or the path of a platform file
    "region": "us-east-1",
    "instance": "p3.8xlarge",
    "nodes": 1,
    // "max_nodes": 4, // that a policy may rent at once; default: nodes
    "gpus_per_node": 4, // default: all that the instance has
    "market": "on-demand" // `ganymede list markets`
    // Spot nodes come and go as in a zone that the seed draws; or "spot": "calm", "typical", "harsh".
    // "notice": "120s", or a recording of what could be had: "capacity": "nodes.csv" (time_s,nodes).
  },

  "synchronization": {
    "mode": "all-reduce", // `ganymede list modes`
    "scheme": "ring", // `ganymede list schemes`
    "overlap": true, // reduce gradients while the backward pass goes on
    "compression": "none"
  },

  // "storage": { "dataset": "gp3", "checkpoint": "s3" }, // without it the data is local and nothing is checkpointed
  // "checkpoint": { "every": "10min" }, // or "1epoch", or "daly"
  // "evaluation": { "every": "4000 steps", "fixed": "60s", "parallel": "900s" }, // on n GPUs: 60s + 900s / n
  // "faults": { "crash": { "every": "500h" }, "events": [ { "at": "2h", "kind": "interruption" } ] },
  // "deadline": "12h", "budget": "100USD", // missed: exit code 4
  "policy": { "name": "fixed" }, // `ganymede list policies`; docs/policies.md has their settings
  "fidelity": { "mode": "sampled", "precision": 0.005 }, // "message" simulates every step
  "seed": 1
}
)";

constexpr const char* kCluster = R"({
  // ganymede simulate cluster.json
  "schema": "ganymede.cluster/1",

  // The nodes, rented from the first arrival to the last end. "pools": [ ... ] holds several instance types.
  "platform": { "catalog": "aws", "region": "us-east-1", "instance": "p3.8xlarge", "nodes": 4 },

  // What jobs do: a scenario's "workload" and "synchronization", or { "scenario": "scenario.json" }.
  "workloads": {
    "dcgan": {
      "workload": {
        "trace": "recorded:dcgan-64-cpu", "batch_per_gpu": 64, "steps": 200000,
        "dataset": { "name": "celeba", "images": 202599, "bytes_per_image": 12288 }
      },
      "synchronization": { "scheme": "ring" }
    }
  },

  // In the order of arrival. Or a recorded trace: { "trace": "jobs.csv" } (`ganymede import jobs` writes one).
  "jobs": [
    { "name": "baseline", "gpus": 4, "workload": "dcgan", "owner": "vision" },
    { "name": "wide", "arrival": "10min", "gpus": 8, "workload": "dcgan", "owner": "vision" },
    { "name": "elastic", "arrival": "15min", "gpus": { "min": 2, "ask": 4, "max": 8 }, "workload": "dcgan", "owner": "audio" },
    { "name": "urgent", "arrival": "20min", "gpus": 8, "workload": "dcgan", "steps": 50000, "priority": 10,
      "deadline": "2h", "owner": "audio" },
    { "name": "evaluation", "arrival": "20min", "gpus": 1, "duration": "30min", "after": ["urgent"], "owner": "audio" }
  ],

  "owners": { "vision": { "quota": 8 }, "audio": { "quota": 8 } }, // GPUs; kueue and slurm-multifactor use them
  "scheduler": { "name": "kueue" }, // or another of `ganymede list schedulers`
  "placement": "consolidate", // or "spread", "topology"
  "preemption": { "save": "10s", "restore": "30s" }, // what a stop, a move or a change of size costs
  "seed": 1
}
)";

constexpr const char* kStudy = R"({
  // ganymede sweep study.json: every platform with every count of GPUs and every scheme.
  "schema": "ganymede.study/1",
  "name": "my-study",
  "about": "one line for the head of the table",

  // As in a scenario; a relative path starts at this file.
  "workload": {
    "trace": "recorded:mlp-gan-cpu",
    "dataset": { "name": "mnist", "images": 60000, "bytes_per_image": 784 },
    "batch_per_gpu": 64,
    "epochs": 20
  },

  "platforms": [
    // A GPU: each count goes on the cheapest instances that hold it.
    { "catalog": "aws", "region": "us-east-1", "gpu": "V100" },
    { "catalog": "gcp", "region": "us-central1", "gpu": "V100", "market": "spot" },
    // Or an instance, as many of them as the count needs.
    { "catalog": "azure", "region": "eastus", "instance": "Standard_NC24s_v3" }
  ],
  "gpus": [1, 2, 4],
  "schemes": ["ring", "reduce-to-one"],
  "overlap": true,
  // "policies": ["fixed", "spot-first", { "name": "predictive", "usd_per_hour_waited": 20 }],
  // Also "synchronization", "storage", "checkpoint", "evaluation", "provisioning", "faults", "deadline", "budget" as in
  // a scenario.
  "seeds": [1] // or { "first": 1, "count": 100 }
}
)";

constexpr const char* kRequest = R"({
  // ganymede plan request.json --save plan.json && ganymede simulate plan.json
  "schema": "ganymede.request/1",

  "workload": {
    // A recorded trace of this model is picked; or "trace": a file of yours, or "recorded:NAME".
    "model": "dcgan-64",
    "batch_per_gpu": [32, 64], // some that the trace has recorded; default: all of them
    "dataset": { "name": "celeba", "images": 202599, "bytes_per_image": 12288 },
    "epochs": 100 // or "images"
  },

  "deadline": "60h", // or a time with its zone, "2026-12-01T18:00:00+01:00", counted from "start" (default: now)
  "budget": "500USD",
  "objective": "cost", // or "time", "carbon", "risk-neutral", "risk-averse"

  // Everything here has a default: all clouds, all GPUs that hold the model, up to 16 of them.
  "search": {
    "catalogs": ["aws", "gcp", "azure"], // or the paths of platform files
    // "gpus": ["A100", "H100"], "instances": [...], "regions": ["us-east-1", "us-central1"],
    "markets": ["on-demand", "spot"],
    "min_gpus": 1,
    "max_gpus": 8,
    "schemes": ["ring", "nccl"], // the fastest is taken; default: those worth it
    // "policies": ["fixed", "spot-first"],
    "checkpoints": ["10min", "1h", "daly"], // tried where nodes may be lost
    // "mixed": false: without some nodes on spot beside others on demand
    "max_price_age": "365d", // older prices, and undated ones, win only if they would at the high end of their error
    "seeds": 5, // runs of each candidate; default: 20 where nodes may be lost, else 5
    "certainty": 0.9, // least probability to meet deadline and budget
    "sure": false // true: with the upper ends of their intervals, that hold all stated error
  },

  // "checkpoint": { "on_notice": false, "every": "1h" }: how the training saves itself; default: "checkpoints" are
  // tried, and it is assumed to save itself within the notice before spot nodes are taken back, too.

  // Also "storage", "evaluation", "provisioning", "faults", "billing", "power_cap", "synchronization" as in a
  // scenario.
  "seed": 1
}
)";

constexpr const char* kPlatform = R"({
  // A platform of your own: name its path as a scenario's "catalog". Every quantity carries its unit.
  "schema": "ganymede.platform/1",
  "provider": "private",
  "name": "lab",

  "gpus": {
    "H100": {
      "memory": "80GiB",
      "fp32": "67Tflop/s",
      "tensor": "990Tflop/s",
      "memory_bandwidth": "3350GB/s",
      "launch": "3us", // optional: between two back-to-back kernel starts; small models are bound by it
      "power": { "idle": "70W", "peak": "700W" }
    },
    "V100": {
      "memory": "16GiB",
      "fp32": "15.7Tflop/s",
      "tensor": "125Tflop/s",
      "memory_bandwidth": "900GB/s",
      "power": { "idle": "40W", "peak": "300W" }
    }
  },

  "instances": {
    "node": {
      "gpu": "H100",
      "gpus": 4,
      "vcpus": 64,
      "memory": "512GiB",
      // Bandwidth of one GPU in one direction. Also "nvswitch", "mesh" with its "links", "pcie" with its "switches".
      "gpu_links": { "kind": "nvlink", "bandwidth": "450GB/s", "latency": "1us", "label": "datasheet" },
      "host_link": { "bandwidth": "25GB/s", "latency": "1us" },
      // Bandwidth of one of the "count" NICs. transport: rdma, efa or tcp; gpu_direct false: messages are staged through the host.
      "nic": { "count": 1, "bandwidth": "100Gbit/s", "latency": "5us", "transport": "rdma", "gpu_direct": true },
      // What owning costs, from which the price of an hour follows ("per_hour" states it instead). `ganymede compare-own`
      // says from how much use on it is cheaper than renting. Electricity comes on top: "per_kwh" of the region.
      "power": { "idle": "250W", "peak": "900W" }, // of the host without its GPUs
      "prices": [
        { "region": "room-1", "market": "on-demand",
          "ownership": { "capital": "140000USD", "life_years": 4, "space_per_year": "3000USD", "people_per_year": "12000USD",
                         "utilization": 0.6, "always_on": true },
          "as_of": "2026-11-01", "source": "your own estimate" }
      ]
    },
    // Nodes of another kind may train together with these, at the speed of the slower: "pools" of a scenario.
    "old-node": {
      "gpu": "V100",
      "gpus": 2,
      "vcpus": 32,
      "memory": "256GiB",
      "gpu_links": { "kind": "nvlink", "bandwidth": "150GB/s", "latency": "1us", "label": "datasheet" },
      "host_link": { "bandwidth": "12GB/s", "latency": "1us" },
      // tcp: what one connection gets, and over how many NCCL splits a message; without it only the bandwidth limits TCP.
      "nic": { "count": 1, "bandwidth": "25Gbit/s", "latency": "20us", "transport": "tcp", "gpu_direct": false,
               "tcp": { "per_flow": "10Gbit/s", "sockets": 4 } },
      "prices": [
        { "region": "room-1", "market": "on-demand", "per_hour": "1.50USD/h", "as_of": "2026-11-01", "source": "your own estimate" }
      ]
    }
  },

  "regions": { "room-1": { "carbon": "400g/kWh", "pue": 1.5, "per_kwh": "0.22USD" } },
  // Also "fat-tree" with its "levels", and "torus" with its "dimensions".
  "fabric": { "kind": "switch", "latency": "1us", "oversubscription": 1 },
  "storage": { "nfs": { "read": "2GB/s", "write": "1GB/s", "iops": 30000, "per_gb_month": "0USD" } },
  "provisioning": { "boot": "60s" },
  "billing": { "granularity": "1s", "minimum": "60s" }
}
)";

constexpr const char* kLayers = R"({
  // A model as lists of layers, for `ganymede import layers model.json --batch 32,64,128 -o trace.json`: work, kernels
  // and gradients are counted, so that a training can be planned that was never run. This is the DCGAN of 64 x 64
  // pixels. docs/formats.md lists the kinds of layers. If you have measured a step, state it too:
  // `ganymede simulate scenario.json --set /workload/trace=trace.json --step 0.11s --batch 128 --on RTX3090`.
  "schema": "ganymede.layers/1",
  "name": "dcgan-64",
  "networks": {
    "generator": {
      "input": [100, 1, 1], // channels, height, width
      "layers": [
        { "kind": "transposed-convolution", "out": 512, "kernel": 4, "padding": 0, "bias": false },
        { "kind": "norm" }, { "kind": "activation" },
        { "kind": "transposed-convolution", "out": 256, "kernel": 4, "stride": 2, "padding": 1, "bias": false },
        { "kind": "norm" }, { "kind": "activation" },
        { "kind": "transposed-convolution", "out": 128, "kernel": 4, "stride": 2, "padding": 1, "bias": false },
        { "kind": "norm" }, { "kind": "activation" },
        { "kind": "transposed-convolution", "out": 64, "kernel": 4, "stride": 2, "padding": 1, "bias": false },
        { "kind": "norm" }, { "kind": "activation" },
        { "kind": "transposed-convolution", "out": 3, "kernel": 4, "stride": 2, "padding": 1, "bias": false },
        { "kind": "activation" }
      ]
    },
    "discriminator": {
      "input": [3, 64, 64],
      "layers": [
        { "kind": "convolution", "out": 64, "kernel": 4, "stride": 2, "padding": 1, "bias": false }, { "kind": "activation" },
        { "kind": "convolution", "out": 128, "kernel": 4, "stride": 2, "padding": 1, "bias": false },
        { "kind": "norm" }, { "kind": "activation" },
        { "kind": "convolution", "out": 256, "kernel": 4, "stride": 2, "padding": 1, "bias": false },
        { "kind": "norm" }, { "kind": "activation" },
        { "kind": "convolution", "out": 512, "kernel": 4, "stride": 2, "padding": 1, "bias": false },
        { "kind": "norm" }, { "kind": "activation" },
        { "kind": "convolution", "out": 1, "kernel": 4, "padding": 0, "bias": false }
      ]
    }
  },
  // "step": the passes of a step, if they are not the two of a GAN in turn.
  "precision": "fp32", // or "tf32" (PyTorch's convolutions on the A100 and later), "bf16", "fp16"
  "executor": "eager" // or "compiled", "graph"
}
)";

void declare_example(Parser command, Shared& shared) {
  auto what = std::make_shared<std::string>(), like = std::make_shared<std::string>();
  command
      .add_option("what", *what,
                  "scenario, study, request, platform, layers, cluster or policy (a program for the policy external)")
      .required()
      .check(one_of({"scenario", "study", "request", "platform", "layers", "cluster", "policy"}));
  command
      .add_option("--like", *like,
                  "platform: machines of your own that are built like this instance type of the catalogs")
      .check(suggest("@instances"))
      .check(not_empty);
  add_output(command, shared);
  command.callback([what, like, &shared] {
    if (!like->empty()) {
      if (*what != "platform") throw ConfigError(fmt::format("--like is for platforms, not for an example {}", *what));
      return emit(shared, platform_like(*like));
    }
    emit(shared, *what == "scenario"   ? kScenario
                 : *what == "request"  ? kRequest
                 : *what == "study"    ? kStudy
                 : *what == "platform" ? kPlatform
                 : *what == "layers"   ? kLayers
                 : *what == "cluster"  ? kCluster
                                       : kExamplePolicy);
  });
}

}  // namespace

Command example_command() {
  return {
      .name = "example",
      .summary = "print a commented, valid file to start from",
      .examples =
          "  ganymede example scenario > scenario.json && ganymede simulate scenario.json\n"
          "  ganymede example study -o study.json\n"
          "  ganymede example platform -o lab.json\n"
          "  ganymede example platform --like p4d.24xlarge > own.json && ganymede compare-own own.json request.json\n"
          "  ganymede example layers -o model.json && ganymede import layers model.json --batch 64 -o trace.json\n"
          "  ganymede example cluster -o cluster.json && ganymede simulate cluster.json\n"
          "  ganymede example policy -o policy.py\n",
      .about = "Print a commented, valid file to start from.",
      .declare = declare_example};
}

}  // namespace ganymede::cli
