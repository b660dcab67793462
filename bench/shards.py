#!/usr/bin/env python3
"""What shards cost: a shard against --jobs, two shards against one, and merging a million rows.

  python3 bench/shards.py [--program build/release/bin/ganymede] [--rounds 5] [--rows 1000000] [--files 64]

Ratios are of alternating pairs within this run. The rows to merge are made here: results of two policies, each written
with another seed, padded to --bytes.
"""
import argparse
import concurrent.futures
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MASK = (1 << 64) - 1


def fnv1a(content):
    value = 0xcbf29ce484222325
    for byte in content:
        value = (value ^ byte) * 0x100000001b3 & MASK
    return value


def spread(value):
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9 & MASK
    value = (value ^ value >> 27) * 0x94d049bb133111eb & MASK
    return value ^ value >> 31


def study_of(seeds):
    return {
        "schema": "ganymede.study/1", "name": "spot",
        "workload": {"trace": os.path.join(ROOT, "traces/recorded/progressive-gan-cpu.json"), "batch_per_gpu": 16,
                     "dataset": {"name": "faces", "images": 200000, "bytes_per_image": 12288}, "images": 1050000000},
        "platforms": [{"catalog": "aws", "region": "us-east-1", "instance": "p3.8xlarge", "market": "spot", "max_nodes": 2,
                       "lifetimes": {"mean": "4h", "back_after": "30min"}}],
        "gpus": [4], "schemes": ["ring"], "storage": {"dataset": "s3", "checkpoint": "s3"}, "checkpoint": {"every": "10min"},
        "faults": {"crash": {"every": "20h"}}, "policies": ["spot-first"], "seeds": {"first": 1, "count": seeds}}


def run(command):
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return time.perf_counter() - start


def process_s():
    """Processor seconds of all programs that have ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def in_parallel(commands):
    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
        list(pool.map(run, commands))
    return time.perf_counter() - start


def spread_text(values):
    return f"{statistics.median(values):.2f} [{min(values):.2f}-{max(values):.2f}]"


def measure_shards(options, folder):
    study = os.path.join(folder, "study.json")
    with open(study, "w") as out:
        json.dump(study_of(1000), out)
    sweep = [options.program, "--quiet", "sweep", study]
    count = 0

    def shards(number):
        nonlocal count
        count += 1
        return [sweep + ["--shard", f"{i}/{number}", "--jobs", "1", "-o", os.path.join(folder, f"shards-{count}")]
                for i in range(number)]

    against_jobs, against_one, jobs, cost, split = [], [], [], [], []
    for _ in range(options.rounds):
        before = process_s()
        one_job = run(sweep + ["--jobs", "1", "--format", "json", "-o", os.path.join(folder, "one.json")])
        between = process_s()
        run(shards(1)[0])
        one_shard = process_s() - between
        cost.append(one_shard / (between - before))
        in_parallel(shards(2))
        split.append((process_s() - between - one_shard) / one_shard)
        two_jobs = run(sweep + ["--jobs", "2", "--format", "json", "-o", os.path.join(folder, "one.json")])
        one, two = in_parallel(shards(1)), in_parallel(shards(2))
        against_jobs.append(one / one_job)
        against_one.append(one / two)
        jobs.append(one_job / two_jobs)
    print(f"1,000 runs in one shard against --jobs 1: {spread_text(against_jobs)} times the time, {spread_text(cost)} the process time")
    print(f"two shards at once against one: {spread_text(against_one)} times as fast, {spread_text(split)} times the process time")
    print(f"--jobs 2 against --jobs 1: {spread_text(jobs)} times as fast")


def make_rows(options, folder):
    """A folder of shards whose results are those of one seed, each with the seed of its row."""
    study, two = os.path.join(folder, "many.json"), os.path.join(folder, "two")
    with open(study, "w") as out:
        json.dump(study_of(2), out)
    run([options.program, "--quiet", "sweep", study, "--shard", "0/1", "-o", two])
    with open(os.path.join(two, "shards.json")) as text:
        work = json.load(text)
    with open(os.path.join(two, "shard-0-of-1.rows")) as rows:
        line = [row.rstrip("\n").split("\t") for row in rows][1]
    work["seeds"]["count"] = options.rows
    text = json.dumps(work, indent=1, separators=(",", ": ")) + "\n"
    many = os.path.join(folder, "many")
    os.mkdir(many)
    with open(os.path.join(many, "shards.json"), "w") as out:
        out.write(text)
    name = f"{fnv1a(text.encode()):016x}"
    facts, result = line[4:-1], json.loads(line[-1])
    files = [open(os.path.join(many, f"shard-{i}-of-{options.files}.rows"), "w") for i in range(min(options.files, 500))]
    for seed in range(1, options.rows + 1):
        key = fnv1a(f"{work['parts'][0]['content']} {seed}".encode())
        facts[2] = str(seed)
        content = f"{name}\t{key:016x}\tr\t" + "\t".join(facts) + '\t{"seed":%d,"rest":"' % seed
        content += "x" * max(0, options.bytes - len(content) - 2) + '"}'
        shard = spread(key) % options.files
        row = f"{fnv1a(content.encode()):016x}\t{content}\n"
        if shard < len(files):
            files[shard].write(row)
        else:
            with open(os.path.join(many, f"shard-{shard}-of-{options.files}.rows"), "a") as out:
                out.write(row)
    for out in files:
        out.close()
    return many


def measure_merge(options, folder):
    many = make_rows(options, folder)
    for command, what in ((["merge", many, "--status"], "the status"), (["merge", many, "-o", os.path.join(folder, "merged.json")], "the merge")):
        # A process of its own, whose peak memory is that of its only child.
        code = ("import resource, subprocess, sys, time; start = time.perf_counter(); "
                "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
                "print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)")
        out = subprocess.run([sys.executable, "-c", code, options.program, "--quiet"] + command, check=True, capture_output=True, text=True).stdout.split()
        print(f"{what} of {options.rows:,} rows of {options.bytes:,} bytes in {options.files:,} files: {float(out[0]):.1f} s, peak memory {float(out[1]):.0f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/ganymede"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--bytes", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.rounds > 0:
            measure_shards(options, folder)
        measure_merge(options, folder)


if __name__ == "__main__":
    main()
