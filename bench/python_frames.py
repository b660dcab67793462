#!/usr/bin/env python3
"""What 10,000 simulated runs cost as a pandas frame, from the study to the frame, step by step.

  python3 bench/python_frames.py [--program build/release/bin/ganymede] [--runs 10000]

A run is a MLP GAN on one V100 on spot, each with a seed of its own. It prints seconds of wall clock: of the program, of
reading its JSON and making objects of it, and of the frame; and processor seconds, which other load does not change.
"""
import argparse
import os
import resource
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "python"))

import ganymede  # noqa: E402
from ganymede import _program  # noqa: E402


def study(runs):
    return {
        "schema": "ganymede.study/1",
        "name": "many seeds",
        "workload": {"trace": "recorded:mlp-gan-cpu", "batch_per_gpu": 64, "epochs": 20,
                     "dataset": {"name": "mnist", "images": 60000, "bytes_per_image": 784}},
        "platforms": [{"catalog": "aws", "region": "us-east-1", "gpu": "V100", "market": "spot"}],
        "gpus": [1], "schemes": ["ring"], "seeds": {"first": 1, "count": runs},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "release", "bin", "ganymede"))
    parser.add_argument("--runs", type=int, default=10000)
    options = parser.parse_args()
    import pandas  # its import is not measured

    spent = {}
    execute = _program.execute

    def timed(*arguments):
        begin = time.perf_counter()
        output = execute(*arguments)
        spent["program"] = time.perf_counter() - begin
        spent["bytes"] = len(output.stdout)
        return output

    _program.execute = timed
    ganymede.find_program(options.program)
    own_before = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    begin = time.perf_counter()
    sweep = ganymede.sweep(study(options.runs), program=options.program, progress=False)
    read = time.perf_counter()
    frame = sweep.to_pandas()
    end = time.perf_counter()
    print(f"{len(frame)} rows of {options.runs} runs, {len(frame.columns)} columns, pandas {pandas.__version__}")
    print(f"program  {spent['program']:6.2f} s   {spent['bytes'] / 1e6:.1f} MB of JSON")
    print(f"reading  {read - begin - spent['program']:6.2f} s   JSON and objects")
    print(f"frame    {end - read:6.2f} s")
    own, children = (sum(resource.getrusage(whose)[:2]) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"in all   {end - begin:6.2f} s   processor: the program {children:.2f} s, Python {own - own_before:.2f} s")


if __name__ == "__main__":
    main()
