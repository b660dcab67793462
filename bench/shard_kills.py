#!/usr/bin/env python3
"""A sweep in shards of which each is killed once merges to the bytes of an undisturbed one.

  python3 bench/shard_kills.py [--program build/release/bin/ganymede] [--runs 1000000] [--shards 64] [--seed 1]

Two shards run at a time. Each is killed by SIGKILL at a random moment of its life, as long as the first one took, and
started again. A run takes 5 kB of disk three times: rows, and both merged results.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def study(runs):
    return {
        "schema": "ganymede.study/1", "name": "kills",
        "workload": {"trace": os.path.join(ROOT, "traces/recorded/progressive-gan-cpu.json"),
                     "dataset": {"name": "faces", "images": 200000}, "batch_per_gpu": 16, "images": 20000000},
        "platforms": [{"catalog": "aws", "region": "us-east-1", "instance": "p3.8xlarge", "market": "spot", "max_nodes": 2,
                       "lifetimes": {"mean": "4h", "back_after": "2h"}}],
        "gpus": [4], "schemes": ["ring"], "policies": ["fixed", "spot-first"], "seeds": {"first": 1, "count": runs // 2}}


def digest(path):
    total = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/ganymede"))
    parser.add_argument("--runs", type=int, default=1000000)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    moments = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "study.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(study(options.runs), file)

        def start(shard, shards, folder):
            return subprocess.Popen([options.program, "sweep", path, "--shard", f"{shard}/{shards}", "-o", os.path.join(scratch, folder), "--quiet"],
                                    stdout=subprocess.DEVNULL)

        def merge(folder):
            begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            output = os.path.join(scratch, folder + ".json")
            subprocess.run([options.program, "merge", os.path.join(scratch, folder), "-o", output, "--quiet"], check=True, stdout=subprocess.DEVNULL)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            print(f"merged {folder}: {os.path.getsize(output) / 1e9:.2f} GB in {time.monotonic() - begin:.1f} s"
                  + (f", {peak / 1024:.0f} MiB" if peak > before else ""), flush=True)
            return digest(output)

        begin = time.monotonic()
        if start(0, 1, "whole").wait() != 0:
            sys.exit("the undisturbed sweep fails")
        life = (time.monotonic() - begin) / options.shards
        print(f"undisturbed: {options.runs} runs in one process, {time.monotonic() - begin:.0f} s", flush=True)
        expected = merge("whole")

        killed = []

        def disturbed(shard, moment):
            process = start(shard, options.shards, "shards")
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed.append(shard)
            if start(shard, options.shards, "shards").wait() != 0:
                sys.exit(f"shard {shard} fails after it was killed")

        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(2) as two:
            list(two.map(disturbed, range(options.shards), [moments.uniform(0.05, 0.9) * life for _ in range(options.shards)]))
        print(f"{options.shards} shards, {len(killed)} killed in the middle: {time.monotonic() - begin:.0f} s", flush=True)
        same = merge("shards") == expected
        print("the same bytes" if same else "OTHER BYTES")
        sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
