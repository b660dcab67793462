#!/usr/bin/env python3
"""What a simulated collective costs, against ranks, and how exact it is.

  bench/collectives.py [--program build/release/bin/ganymede] [--largest 65536]

Prints, for the ring of 64 MiB on a star of 12.5 GB/s and 5 us links: seconds and memory of the whole process for both
fidelities, microseconds a message (also less the start of a process that does nothing), and the exponent of cost against
ranks; then every scheme at 4,096 ranks, on the star
and on nodes of eight GPUs; then the error against the closed forms that the literature gives.
"""

import argparse
import json
import math
import os
import subprocess
import tempfile
import time

STAR = """{ "schema": "ganymede.platform/1",
  "gpus": { "X": { "memory": "16GiB", "fp32": "10Tflop/s", "memory_bandwidth": "1000000GB/s" } },
  "instances": {
    "one": { "gpu": "X", "gpus": 1, "nic": { "bandwidth": "12.5GB/s", "latency": "5us" } },
    "eight": { "gpu": "X", "gpus": 8, "nic": { "bandwidth": "12.5GB/s", "latency": "5us" },
               "gpu_links": { "kind": "nvswitch", "bandwidth": "100GB/s", "latency": "1us", "reduces": true } } },
  "fabric": { "kind": "switch", "reduces": true } }"""
BYTES, BANDWIDTH, LATENCY = 64 << 20, 12.5e9, 10e-6


def run(program, catalog, instance, nodes, scheme, fidelity="folded"):
    """The JSON row, wall seconds and peak MB of the process (and its child)."""
    command = [program, "allreduce", "--catalog", catalog, "--instance", instance, "--nodes", str(nodes), "--scheme",
               scheme, "--bytes", str(BYTES), "--fidelity", fidelity, "--format", "json"]
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    text = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        raise SystemExit(f"failed: {' '.join(command)}")
    return json.loads(text)[0], time.perf_counter() - begin, usage.ru_maxrss / 1e3


def start_of(program):
    begin = time.perf_counter()
    subprocess.run([program, "--version"], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def exponent(points):
    """Least squares of log cost against log ranks."""
    xs = [math.log(ranks) for ranks, _ in points]
    ys = [math.log(cost) for _, cost in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / sum((x - mean_x) ** 2 for x in xs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/ganymede")
    parser.add_argument("--largest", type=int, default=65536)
    options = parser.parse_args()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as catalog:
        catalog.write(STAR)
        catalog.flush()
        start = min(start_of(options.program) for _ in range(5))
        print(f"a process that does nothing: {start:.3f} s\n")

        for fidelity, counts in (("folded", [64, 256, 1024, 4096, 16384, 65536]), ("message", [64, 256, 1024])):
            counts = [count for count in counts if count <= options.largest]
            print(f"ring, 64 MiB, {fidelity}\n{'ranks':>8} {'seconds':>9} {'MB':>7} {'us a message':>13} {'less start':>11}")
            points = []
            for ranks in counts:
                row, seconds, megabytes = run(options.program, catalog.name, "one", ranks, "ring", fidelity)
                cost, less = (1e6 * max(0, spent) / row["messages"] for spent in (seconds, seconds - start))
                print(f"{ranks:>8} {seconds:>9.3f} {megabytes:>7.0f} {cost:>13.4f} {less:>11.4f}")
                points.append((ranks, seconds))
            print(f"exponent over the last three: {exponent(points[-3:]):.2f}\n")

        print(f"every scheme at 4,096 ranks, folded\n{'scheme':>20} {'star':>9} {'8 a node':>9}  seconds")
        names = json.loads(subprocess.check_output([options.program, "list", "schemes", "--format", "json"]))
        for name in (entry["name"] for entry in names):
            scheme = "torus:64x64" if name == "torus" else name
            star = run(options.program, catalog.name, "one", 4096, scheme)[1]
            nodes = run(options.program, catalog.name, "eight", 512, scheme)[1]
            print(f"{scheme:>20} {star:>9.3f} {nodes:>9.3f}")

        forms = {
            "ring": (range(2, 5), lambda n: 2 * (n - 1) * (BYTES / n / BANDWIDTH + LATENCY)),
            "halving-doubling": ([], lambda n: 2 * BYTES * (n - 1) / n / BANDWIDTH + 2 * math.log2(n) * LATENCY),
            "recursive-doubling": ([], lambda n: math.log2(n) * (BYTES / BANDWIDTH + LATENCY)),
        }
        print("\nerror against the closed forms on the star, reduction free to 1e-3 of the wire")
        for scheme, (more, form) in forms.items():
            counts = sorted({2 ** k for k in range(1, 13)} | set(more) | ({7, 100, 1000, 4095} if scheme == "ring" else set()))
            worst = max((abs(run(options.program, catalog.name, "one", n, scheme)[0]["time_s"] / form(n) - 1), n)
                        for n in counts)
            print(f"{scheme:>20}: at most {100 * worst[0]:.4f} %, at {worst[1]} of {len(counts)} counts of ranks to 4,096")


if __name__ == "__main__":
    main()
