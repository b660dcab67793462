#!/usr/bin/env python3
"""Measures again what `validate` records of constants that it does not fit: errors on parts of public nccl-tests logs.

  tests/reference/recorded_errors.py build/release/bin/ganymede
"""

import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile

TOLERANCE = 0.0015  # figures are recorded to a tenth of a percent

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
spec = importlib.util.spec_from_file_location("nccl_logs", os.path.join(ROOT, "bench", "nccl_logs.py"))
logs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(logs)


def machine(name):
    _, ranks, catalog, instance, nodes, scheme, _ = logs.LOGS[name]
    return ["--catalog", catalog, "--instance", instance, "--nodes", str(nodes), "--gpus-per-node", str(ranks // nodes),
            "--scheme", scheme]


def fitted(program, name, first, end, folder):
    """The error of links in one of the three ranges that the program states, after a fit to two sizes."""
    path = os.path.join(folder, name + ".log")
    logs.write_log(name, logs.LOGS[name][1], path)
    fit = json.loads(subprocess.run([program, "import", "nccl-tests", path] + machine(name), check=True,
                                    capture_output=True, text=True).stdout)["fit"]
    return fit["errors"][{(0, 65536): 0, (65536, 1 << 20): 1, (1 << 20, 0): 2}[first, end]]["links"]


def from_catalog(program, name, first, end):
    rows = [(size, float(time)) for size, time, _ in logs.samples(name) if first <= size and (end == 0 or size < end)]
    done = subprocess.run([program, "allreduce", "--bytes", ",".join(str(size) for size, _ in rows), "--format", "json"] +
                          machine(name), check=True, capture_output=True, text=True)
    times = {row["bytes"]: row["time_s"] * 1e6 for row in json.loads(done.stdout)}
    return math.expm1(sum(abs(math.log(times[size] / time)) for size, time in rows) / len(rows))


def main():
    program, wrong, checked = sys.argv[1], 0, 0
    result = json.loads(subprocess.run([program, "validate", "--format", "json"], check=True, capture_output=True,
                                       text=True).stdout)
    with tempfile.TemporaryDirectory() as folder:
        for row in result["leave_one_out"]:
            if "log" not in row:
                continue
            part = row["log"]
            arguments = (program, part["name"], part["from"], part["to"])
            error = fitted(*arguments, folder) if part["fitted"] else from_catalog(*arguments)
            checked += 1
            if abs(error - row["left_out_error"]) > TOLERANCE:
                wrong += 1
                print(f"{row['constant']}, {row['study']}: recorded {row['left_out_error']:.3f}, now {error:.4f}")
    print(f"{checked} recorded errors, {wrong} wrong")
    sys.exit(1 if wrong or checked < 8 else 0)


main()
