#pragma once

namespace ganymede::cli {

/// A training on one to four spot nodes, from whose runs a policy can learn something.
inline constexpr const char* kLearnScenario = R"({ "schema": "ganymede.scenario/1",
    "workload": { "trace": "recorded:dcgan-64-cpu", "batch_per_gpu": 64, "images": 20000000 },
    "platform": { "catalog": "aws", "region": "us-east-1", "instance": "p3.2xlarge", "nodes": 1, "max_nodes": 4,
                  "market": "spot" },
    "synchronization": { "scheme": "ring" }, "checkpoint": { "every": "10min" },
    "storage": { "checkpoint": "s3" }, "seed": 1 })";

}  // namespace ganymede::cli
