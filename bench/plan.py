#!/usr/bin/env python3
"""What a plan costs: candidates, wall time, and how much the bounds save.

  python3 bench/plan.py [--program build/release/bin/ganymede] [--rounds 3] [--jobs 2]

Wall times of the whole program; the ratio is of alternating pairs within this run. Both searches must choose the same.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REQUESTS = {
    "dcgan-64 on all clouds": ["--model", "dcgan-64", "--images", "20000000", "--deadline", "60h", "--budget", "500USD"],
    "progressive-gan on all clouds": ["--model", "progressive-gan", "--images", "20000000", "--deadline", "60h", "--budget", "500USD"],
}


def plan(program, arguments, jobs, exhaustive):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [program, "plan", *arguments, "--format", "json", "-o", out.name, "--jobs", str(jobs)]
        start = time.monotonic()
        subprocess.run(command + (["--exhaustive"] if exhaustive else []), check=True)
        return time.monotonic() - start, json.load(open(out.name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/ganymede"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    for name, arguments in REQUESTS.items():
        quick, ratios = [], []
        for _ in range(options.rounds):
            seconds, bounded = plan(options.program, arguments, options.jobs, False)
            whole, exhaustive = plan(options.program, arguments, options.jobs, True)
            quick.append(seconds)
            ratios.append(whole / seconds)
            if bounded["chosen"] != exhaustive["chosen"] or bounded["pareto"] != exhaustive["pareto"]:
                sys.exit(f"{name}: the bounded search chose otherwise than the exhaustive one")
        searched = bounded["searched"]
        print(f"{name}: {searched['candidates']} candidates, {searched['simulated']} simulated, "
              f"{statistics.median(quick):.1f} s with {options.jobs} jobs; exhaustive takes "
              f"{statistics.median(ratios):.2f} times as long [{min(ratios):.2f}-{max(ratios):.2f}], the same choice")


if __name__ == "__main__":
    main()
