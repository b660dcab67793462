#!/usr/bin/env python3
"""What a collective costs to simulate: processor time and memory of `ganymede allreduce`.

  python3 bench/scale.py [--program build/release/bin/ganymede] [--most 65536] [--only TEXT] [--limit 100] [--exact] [--instructions]

Fabrics: one switch; racks of 32 nodes, twice oversubscribed; the same with racks of 33; racks of 32, four times oversubscribed,
below groups of 1,024, twice; zones of 100 nodes. One GPU a node or eight. Each row is a process of its own with at most --limit
seconds and 6 GB; "growth" is the exponent of the processor time between two numbers of ranks, and "difference" what the result
says of its own error (0: exact). --exact adds the time with --tolerance 0 and how far the other is off; --instructions counts
them with valgrind, whose times and memory mean nothing.
"""
import argparse
import json
import math
import os
import re
import resource
import subprocess
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MEMORY = 6 << 30
FABRICS = {
    "switch": {"kind": "switch", "latency": "1us"},
    "fat-tree": {"kind": "fat-tree", "latency": "1us", "levels": [{"nodes": 32, "oversubscription": 2, "latency": "1us"}]},
    "odd-fat-tree": {"kind": "fat-tree", "latency": "1us", "levels": [{"nodes": 33, "oversubscription": 2, "latency": "1us"}]},
    "two-levels": {"kind": "fat-tree", "latency": "1us",
                   "levels": [{"nodes": 32, "oversubscription": 4, "latency": "1us"},
                              {"nodes": 1024, "oversubscription": 2, "latency": "2us"}]},
    "zones": {"kind": "switch", "latency": "1us", "zones": {"nodes": 100, "bandwidth": "100GB/s", "latency": "500us"}},
}
CASES = [  # fabric, GPUs a node, scheme, numbers of ranks
    ("switch", 1, "ring", [4096, 65536]),
    ("switch", 1, "double-binary-tree", [16384, 65536]),
    ("fat-tree", 1, "tree", [4096, 16384, 65536]),
    ("fat-tree", 1, "double-binary-tree", [4096, 16384, 65536]),
    ("fat-tree", 8, "ring", [4096, 16384, 65536]),
    ("two-levels", 8, "ring", [4096, 16384, 65536]),
    ("odd-fat-tree", 8, "ring", [1024, 4096, 16384, 65536]),
    ("zones", 1, "ring", [1024, 4096, 16384]),
    ("switch", 1, "parameter-server:all", [1024, 4096, 65536]),
    ("fat-tree", 1, "parameter-server:all", [1024, 4096, 65536]),
    ("switch", 8, "nccl", [4096, 16384, 65536]),
    ("fat-tree", 8, "nccl", [4096, 16384, 65536]),
]


def platform(fabric):
    node = {"gpu": "GPU", "nic": {"bandwidth": "12.5GB/s", "latency": "2us"},
            "prices": [{"region": "room", "market": "on-demand", "per_hour": "1USD/h", "as_of": "undated"}]}
    links = {"kind": "nvswitch", "bandwidth": "300GB/s", "latency": "1us"}
    return {"schema": "ganymede.platform/1", "provider": "private", "name": "lab", "fabric": FABRICS[fabric],
            "gpus": {"GPU": {"memory": "16GiB", "fp32": "10Tflop/s", "memory_bandwidth": "900GB/s"}},
            "instances": {"node-1": dict(node, gpus=1), "node-8": dict(node, gpus=8, gpu_links=links)}}


def run(options, fabric, gpus, scheme, ranks, more=()):
    """Seconds of the processor, MB, instructions if they are counted, what the program prints or why it failed."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lab.json")
        with open(path, "w") as out:
            json.dump(platform(fabric), out)
        command = [options.program, "allreduce", "--catalog", path, "--instance", "node-%d" % gpus, "--nodes",
                   str(ranks // gpus), "--scheme", scheme, "--bytes", options.bytes, "--jobs", "1", "--format", "json", *more]
        if options.instructions:
            command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"] + command
        memory = 4 * MEMORY if options.instructions else MEMORY
        with open(os.path.join(folder, "out"), "w+") as out, open(os.path.join(folder, "error"), "w+") as error:
            child = subprocess.Popen(command, stdout=out, stderr=error, start_new_session=True,
                                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)))
            killer = threading.Timer(options.limit, lambda: os.killpg(child.pid, 9))
            killer.start()
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            killer.cancel()
            out.seek(0), error.seek(0)
            text, said = out.read(), error.read().strip()
        instructions = sum(int(count) for count in re.findall(r"Collected : (\d+)", said))
        return (usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, instructions,
                json.loads(text)[0] if child.returncode == 0 else "exit %d %s" % (child.returncode, said))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/ganymede"))
    parser.add_argument("--most", type=int, default=65536)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=100)
    parser.add_argument("--bytes", default="100MB")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--instructions", action="store_true")
    options = parser.parse_args()
    for fabric, gpus, scheme, sizes in CASES:
        name, last = "%s, %d a node, %s" % (fabric, gpus, scheme), None
        if options.only not in name:
            continue
        for ranks in [size for size in sizes if size <= options.most]:
            seconds, memory, instructions, result = run(options, fabric, gpus, scheme, ranks)
            growth = "" if last is None else "growth %.2f" % (math.log(seconds / last[1]) / math.log(ranks / last[0]))
            last = ranks, seconds
            shown = result
            if not isinstance(result, str):
                shown = "%.6g s, difference %.1g" % (result["time_s"], result.get("difference", 0))
            if options.exact and not isinstance(result, str):
                exact = run(options, fabric, gpus, scheme, ranks, ["--tolerance", "0"])
                off = exact[3] if isinstance(exact[3], str) else "off by %.1g" % abs(result["time_s"] / exact[3]["time_s"] - 1)
                shown += "; exact %.2f s, %s" % (exact[0], off)
            print("%-42s %6d ranks %7.2f s %6.0f MB %9s  %s  %s" % (
                name, ranks, seconds, memory, "%.3g" % instructions if instructions else "", shown, growth), flush=True)


if __name__ == "__main__":
    main()
