#!/usr/bin/env python3
"""A second opinion on bills and steps: models in Python that share no code with the program, on random scenarios.

    tests/reference/models.py PROGRAM [SCENARIOS] [SEED]

The bill follows docs/money.md and the rules of metering that it names: the time of a node begins with its request, its
grant or its running host, is rounded up to the granularity, is at least the minimum, and costs the price of an hour
(Amazon: per second, at least 60 s; others by the minute or the hour). The time follows docs/model.md: a run waits for the
queue, the boot, the image, the start of the framework and, with several workers, of the communicator; then each step
takes its phases, and without overlap its gradients. A ring of n ranks takes 2 (n - 1) rounds of an n-th of the bytes
(Patarasuk and Yuan, 2009), recursive doubling log2(n) exchanges of all bytes (Thakur et al., 2005). Each message waits for
the latencies of both NICs and of the switch, and adding what is received reads two numbers and writes one at the GPU's
memory bandwidth.
"""
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

MICRO = 1_000_000


def trace_of(step_s, gradients, steps=3):
    """Steps that take `step_s` each: a backward pass of which all gradients come, and an update."""
    def phase(name, start, seconds):
        return {"name": name, "network": "generator", "stream": "compute", "start_s": [start] * steps, "seconds": [seconds] * steps,
                "host_s": [0] * steps, "flops": 1e9, "bytes_read": 1e6, "bytes_written": 1e6, "launches": 1}
    return {"schema": "ganymede.step-trace/1",
            "device": {"name": "GPU-X", "kind": "gpu", "threads": 1, "fp32": "10Tflop/s",
                       "memory_bandwidth": "900GB/s", "memory": "16GB"},
            "software": {"name": "ganymede", "version": "1", "backend": "eigen"}, "model": "m", "precision": "fp32", "seed": 1,
            "recorded_at": "2026-11-01T00:00:00Z",
            "networks": {"generator": {"parameters": gradients // 4, "flops_per_image": 1e7, "gradient_bytes": gradients}},
            "batches": [{"batch": 64, "warmup_steps_dropped": 0, "memory_bytes": {"parameters": gradients},
                         "wall_s": [step_s] * steps,
                         "phases": [phase("generator.backward", 0, 0.8 * step_s), phase("generator.update", 0.8 * step_s, 0.2 * step_s)],
                         "buckets": [{"network": "generator", "bytes": gradients, "after_phase": "generator.backward", "ready_fraction": 1}]}]}


class Case:
    """One random scenario; all numbers are SI."""

    def __init__(self, draw):
        self.nodes = draw.choice([1, 2, 4, 8])
        self.steps = draw.randint(1, 20_000)
        self.step_s = draw.randint(1, 400) * 1e-3
        self.gradients = 64 * draw.randint(1, 1_000_000)
        self.scheme = draw.choice(["ring", "recursive-doubling"])
        self.bandwidth = draw.choice([1e9, 10e9, 25e9, 100e9]) / 8
        self.latency = draw.randint(0, 100) * 1e-6
        self.fabric_latency = draw.randint(0, 20) * 1e-6
        self.memory_bandwidth = draw.choice([300e9, 900e9, 2e12])
        self.queue, self.boot, self.pull, self.framework, self.communicator = (draw.randint(0, 300) for _ in range(5))
        self.granularity = draw.choice([1, 60, 3600])
        self.minimum = draw.choice([0, 60, 600])
        self.starts = draw.choice(["request", "boot", "ready"])
        self.price = draw.randint(1, 50_000_000)  # micro-dollars an hour

    def platform(self):
        return {"schema": "ganymede.platform/1", "provider": "private", "name": "lab",
                "gpus": {"GPU-X": {"memory": "16GB", "fp32": "10Tflop/s", "memory_bandwidth": f"{self.memory_bandwidth:.0f}B/s"}},
                "instances": {"one": {"gpu": "GPU-X", "gpus": 1,
                                      "nic": {"bandwidth": f"{self.bandwidth:.0f}B/s", "latency": f"{self.latency * 1e6:.0f}us"},
                                      "prices": [{"region": "room", "market": "on-demand", "as_of": "2026-11-01",
                                                  "per_hour": f"{self.price / MICRO:.6f}USD/h"}]}},
                "fabric": {"kind": "switch", "latency": f"{self.fabric_latency * 1e6:.0f}us"},
                "provisioning": {"queue": f"{self.queue}s", "boot": f"{self.boot}s", "image_pull": f"{self.pull}s",
                                 "framework_start": f"{self.framework}s", "communicator_start": f"{self.communicator}s"},
                "billing": {"granularity": f"{self.granularity}s", "minimum": f"{self.minimum}s", "starts": self.starts}}

    def scenario(self):
        return {"schema": "ganymede.scenario/1", "workload": {"trace": "trace.json", "batch_per_gpu": 64, "steps": self.steps},
                "platform": {"catalog": "lab.json", "region": "room", "instance": "one", "nodes": self.nodes},
                "synchronization": {"scheme": self.scheme, "overlap": False, "interference": 0, "jitter": 0}, "seed": 1}

    def all_reduce_s(self):
        if self.nodes == 1:
            return 0
        wait = 2 * self.latency + self.fabric_latency
        add = 3 / self.memory_bandwidth  # seconds a byte
        if self.scheme == "ring":
            piece = self.gradients / self.nodes
            rounds = self.nodes - 1
            return 2 * rounds * (wait + piece / self.bandwidth) + rounds * piece * add
        exchanges = math.log2(self.nodes)
        return exchanges * (wait + self.gradients / self.bandwidth + self.gradients * add)

    def step(self):
        return self.step_s + self.all_reduce_s()

    def total_s(self):
        start = self.queue + self.boot + self.pull + self.framework + (self.communicator if self.nodes > 1 else 0)
        return start + self.steps * self.step()

    def bill(self, total_s):
        """In micro-dollars; `total_s` is the time of the run, from its request."""
        unmetered = {"request": 0, "boot": self.queue, "ready": self.queue + self.boot}[self.starts]
        units = math.ceil((total_s - unmetered) / self.granularity - 1e-6 / self.granularity)
        seconds = max(units * self.granularity, self.minimum)
        return round(self.nodes * seconds * self.price / 3600)


def compare(program, case, folder):
    """What differs, in words."""
    for name, content in (("trace", trace_of(case.step_s, case.gradients)), ("lab", case.platform()), ("scenario", case.scenario())):
        (folder / f"{name}.json").write_text(json.dumps(content))
    run = subprocess.run([program, "simulate", "scenario.json", "--format", "json"], cwd=folder, capture_output=True, text=True,
                         check=False)
    if run.returncode != 0:
        return [f"exit {run.returncode}: {run.stderr.strip()}"]
    result = json.loads(run.stdout)
    wrong = []
    total = result["time"]["total_s"]
    if abs(total / case.total_s() - 1) > 1e-6:
        wrong.append(f"time {total} s, expected {case.total_s()} s (step {result['time']['step_mean_s']}, expected {case.step()})")
    cost = round(float(result["cost"]["total_usd"]) * MICRO)
    if abs(cost - case.bill(total)) > 1:
        wrong.append(f"bill {cost} micro-dollars, expected {case.bill(total)}")
    return wrong


def main():
    program, count, seed = sys.argv[1], int((sys.argv[2:] + ["60"])[0]), int((sys.argv[3:] + ["1"])[0])
    draw = random.Random(seed)
    defects = 0
    with tempfile.TemporaryDirectory(prefix="reference-") as folder:
        for number in range(count):
            case = Case(draw)
            for wrong in compare(str(pathlib.Path(program).resolve()), case, pathlib.Path(folder)):
                defects += 1
                print(f"scenario {number}: {wrong}\n  {vars(case)}")
    print(f"{count} scenarios, {defects} differences")
    sys.exit(1 if defects else 0)


if __name__ == "__main__":
    main()
