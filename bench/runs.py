#!/usr/bin/env python3
"""What whole runs cost: process time against steps and GPUs, seeds of a spot run, two jobs against one.

  python3 bench/runs.py [--program build/release/bin/ganymede] [--rounds 5]

Process times are user + system seconds of the whole program, its start included; ratios are of alternating pairs within
this run. The trace is drawn here: AR(1) with 0.8, 10 % spread, 300 steps of 0.2 s.
"""
import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def made_up_trace():
    draw = random.Random(3)
    state, scale = draw.gauss(0, 1), []
    for _ in range(300):
        scale.append(0.02 * max(0.2, 1 + 0.1 * state))
        state = 0.8 * state + (1 - 0.64) ** 0.5 * draw.gauss(0, 1)
    phases = [("discriminator.backward", "discriminator", 0, 3), ("discriminator.update", "discriminator", 3, 1),
              ("generator.backward", "generator", 4.5, 4), ("generator.update", "generator", 8.5, 1)]
    return {
        "schema": "ganymede.step-trace/1",
        "device": {"name": "V100", "kind": "gpu", "threads": 1, "fp32": "10Tflop/s", "memory_bandwidth": "900GB/s", "memory": "16GB"},
        "software": {"name": "made-up", "version": "1", "backend": "none"}, "model": "made-up-gan", "precision": "fp32", "seed": 1,
        "networks": {"discriminator": {"parameters": 1000000, "flops_per_image": 4e7, "gradient_bytes": 4000000},
                     "generator": {"parameters": 3000000, "flops_per_image": 5e7, "gradient_bytes": 12000000}},
        "batches": [{
            "batch": 64, "warmup_steps_dropped": 0, "memory_bytes": {"parameters": 16e6}, "wall_s": [10 * s for s in scale],
            "phases": [{"name": name, "network": network, "stream": "compute", "start_s": [start * s for s in scale],
                        "seconds": [length * s for s in scale], "host_s": [0.1 * length * s for s in scale], "flops": 1e9 * length,
                        "bytes_read": 1e6, "bytes_written": 1e6, "launches": 10} for name, network, start, length in phases],
            "buckets": [{"network": "discriminator", "bytes": 4000000, "after_phase": "discriminator.backward", "ready_fraction": 1},
                        {"network": "generator", "bytes": 12000000, "after_phase": "generator.backward", "ready_fraction": 0.5}],
        }],
    }


def timed(command):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/ganymede"))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        def put(name, content):
            path = os.path.join(folder, name)
            with open(path, "w") as out:
                json.dump(content, out)
            return path

        trace = put("trace.json", made_up_trace())
        scenario = put("scenario.json", {
            "schema": "ganymede.scenario/1", "workload": {"trace": trace, "batch_per_gpu": 64, "steps": 864000},
            "platform": {"catalog": "aws", "region": "us-east-1", "instance": "p3.8xlarge"},
            "synchronization": {"scheme": "ring"}, "fidelity": {"precision": 0.01}, "seed": 1})
        study = put("study.json", {
            "schema": "ganymede.study/1", "name": "spot",
            "workload": {"trace": os.path.join(ROOT, "traces/recorded/progressive-gan-cpu.json"), "batch_per_gpu": 16,
                         "dataset": {"name": "faces", "images": 200000, "bytes_per_image": 12288}, "images": 1050000000},
            "platforms": [{"catalog": "aws", "region": "us-east-1", "instance": "p3.8xlarge", "market": "spot", "max_nodes": 2,
                           "lifetimes": {"mean": "4h", "back_after": "30min"}}],
            "gpus": [4], "schemes": ["ring"], "storage": {"dataset": "s3", "checkpoint": "s3"}, "checkpoint": {"every": "10min"},
            "faults": {"crash": {"every": "20h"}}, "policies": ["spot-first"], "seeds": {"first": 1, "count": 1000}})

        simulate = [options.program, "simulate", scenario]
        ratios = []
        for _ in range(options.rounds):
            few, many = (timed(simulate + ["--set", f"/workload/steps={steps}"])[0] for steps in (10**4, 10**8))
            ratios.append(many / few)
        print(f"10^8 steps against 10^4: {statistics.median(ratios):.2f} times the process time [{min(ratios):.2f}-{max(ratios):.2f}]")
        for gpus in (4, 1024):
            times = [timed(simulate + ["--set", f"/platform/nodes={gpus // 4}"])[0] for _ in range(options.rounds)]
            print(f"48 hours on {gpus} GPUs at 1 %: {statistics.median(times):.3f} s of process time [{min(times):.3f}-{max(times):.3f}]")
        sweep = [options.program, "--quiet", "sweep", study, "--format", "json", "--jobs"]
        walls, ratios = [], []
        for _ in range(options.rounds):
            one, two = (timed(sweep + [jobs])[1] for jobs in ("1", "2"))
            walls.append(two)
            ratios.append(one / two)
        print(f"1,000 seeds of a 48-hour spot run, 2 jobs: {statistics.median(walls):.2f} s [{min(walls):.2f}-{max(walls):.2f}]")
        print(f"2 jobs against 1: {statistics.median(ratios):.2f} times as fast [{min(ratios):.2f}-{max(ratios):.2f}]")


if __name__ == "__main__":
    main()
