#!/usr/bin/env python3
"""What clusters of many jobs cost to simulate, and how schedulers compare on a recorded trace.

  python3 bench/clusters.py [--program build/release/bin/ganymede] [--jobs 1000,2000] [--scheduler fifo-backfill]
  python3 bench/clusters.py --queued 10000,100000 [--scheduler fifo-backfill]
  python3 bench/clusters.py --owners 500,1000,2000,4000 [--scheduler kueue]
  python3 bench/clusters.py --trace gavel_msr_traces_seed0.csv [--virtual-cluster 0e4a51] [--gpus 36] [--patience 60]

The first draws jobs of a GAN on 1,024 GPUs (128 nodes of eight, 16 nodes below a switch whose uplink is four times
oversubscribed): Poisson arrivals, 1 to 64 GPUs, log-normal lengths, so that about half of the GPUs are held and jobs of
several nodes share uplinks; 1,000 jobs are a month. It prints processor seconds, the peak of memory and what was simulated.
The second queues so many jobs of stated durations at once on the same nodes. The third does so with four jobs of each of so many
owners, each with a quota of a GPU, and also says with which power of the owners the time grows. The fourth runs the virtual clusters of a trace in
Gavel's columns on equal numbers of V100, P100 and K80, and prints a table: how many times as long as under `gavel` the mean
job takes under other schedulers ("-": not simulated in time, or a job fits no pool).
"""
import argparse
import csv
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MONTH_S = 30 * 86400
SCHEDULERS = ["fifo-backfill", "shortest-remaining", "slurm-multifactor", "tiresias", "gavel", "gavel-rounds"]


def platform(gpus, levels=None):
    """A private platform with these GPUs, by name: GPUs of a node."""
    fabric = {"kind": "switch", "latency": "1us"}
    if levels:
        fabric = {"kind": "fat-tree", "latency": "1us", "levels": levels}
    return {
        "schema": "ganymede.platform/1", "provider": "private", "name": "bench",
        "gpus": {name: {"family": name, "memory": "32GiB", "fp32": "15Tflop/s", "memory_bandwidth": "900GB/s",
                        "power": {"idle": "50W", "peak": "300W"}} for name in gpus},
        "instances": {name.lower(): {
            "gpu": name, "gpus": count, "vcpus": 64, "gpu_links": {"kind": "nvlink", "bandwidth": "150GB/s", "latency": "1us"},
            "nic": {"bandwidth": "10Gbit/s", "latency": "5us"},
            "prices": [{"region": "room", "market": "on-demand", "per_hour": "%.2fUSD/h" % (price * count), "as_of": "undated"}]}
            for (name, count), price in zip(gpus.items(), (2.48, 1.46, 0.45))},
        "regions": {"room": {"carbon": "400g/kWh", "pue": 1.2}}, "fabric": fabric}


class Unserved(Exception):
    """A job fits no pool."""


def simulate(program, cluster, patience=None):
    """The result, processor seconds and the peak of memory in MB."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cluster.json")
        with open(path, "w") as out:
            json.dump(cluster, out)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run(["/usr/bin/env", program, "simulate", path, "--format", "json"], capture_output=True, text=True,
                             timeout=patience)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode == 3:
        raise Unserved(run.stderr)
    if run.returncode not in (0, 4):  # 4: a job misses its deadline
        sys.exit(run.stderr)
    return (json.loads(run.stdout), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            after.ru_maxrss / 1024)


def drawn_cluster(count, scheduler, seconds_a_step, switches):
    draw = random.Random(7)
    gpus = [draw.choice([1, 1, 2, 4, 4, 8, 8, 16, 32, 64]) for _ in range(count)]
    lengths = [draw.lognormvariate(0, 1.2) for _ in range(count)]
    asked = sum(g * length for g, length in zip(gpus, lengths))
    unit = 0.25 * 1024 * MONTH_S * count / 1000 / asked
    now, jobs = 0.0, []
    for i, (size, length) in enumerate(zip(gpus, lengths)):
        now += draw.expovariate(1000 / MONTH_S)
        jobs.append({"name": "job-%d" % i, "arrival": "%.0fs" % now, "gpus": size, "workload": "gan",
                     "owner": "owner-%d" % draw.randrange(8), "steps": max(1, int(length * unit / seconds_a_step))})
    return {"schema": "ganymede.cluster/1",
            "platform": {"catalog": platform({"V100": 8}, switches), "instance": "v100", "region": "room", "nodes": 128},
            "workloads": {"gan": {"workload": {"trace": "recorded:dcgan-64-cpu", "batch_per_gpu": 64, "steps": 1000,
                                               "dataset": {"name": "x", "images": 200000, "bytes_per_image": 12288}},
                                  "synchronization": {"scheme": "ring"}}},
            "jobs": jobs, "scheduler": {"name": scheduler}, "preemption": {"save": "10s", "restore": "30s"}, "seed": 1}


def costs(args):
    switches = [{"nodes": 16, "oversubscription": 4, "latency": "1us"}]
    probe = drawn_cluster(1, args.scheduler, 1, switches)
    probe["jobs"] = [{"gpus": 8, "workload": "gan", "steps": 1000}]
    seconds_a_step = simulate(args.program, probe)[0]["jobs"][0]["alone_s"] / 1000
    last = None
    for count in args.jobs:
        result, seconds, memory = simulate(args.program, drawn_cluster(count, args.scheduler, seconds_a_step, switches))
        told, summary = result["provenance"], result["summary"]
        print("%6d jobs, %s: %7.1f s of processor time%s, %5.0f MB; %d events, %d groups shared links (%d approximate); "
              "held %.0f %%, mean slow-down %.2f" % (
                  count, args.scheduler, seconds, "" if last is None else " (%.2f times)" % (seconds / last), memory,
                  told["events"], told["contending_groups"], told["approximate_groups"], 100 * summary["held"],
                  summary["slowdown"]["mean"]), flush=True)
        last = seconds


def queued(args):
    for count in args.queued:
        draw = random.Random(7)
        jobs = [{"name": "job-%d" % i, "gpus": draw.choice([1, 1, 2, 4, 4, 8, 8, 16, 32, 64]), "owner": "owner-%d" % draw.randrange(8),
                 "priority": draw.randrange(3), "duration": "%.0fs" % (600 * draw.lognormvariate(0, 1.2) + 1)} for i in range(count)]
        result, seconds, memory = simulate(args.program, {
            "schema": "ganymede.cluster/1",
            "platform": {"catalog": platform({"V100": 8}), "instance": "v100", "region": "room", "nodes": 128},
            "jobs": jobs, "scheduler": {"name": args.scheduler}, "preemption": {"save": "10s", "restore": "30s"}, "seed": 1})
        print("%6d jobs queued at once, %s: %7.1f s of processor time, %5.0f MB; %d decisions, held %.0f %%" % (
            count, args.scheduler, seconds, memory, result["provenance"]["decisions"], 100 * result["summary"]["held"]), flush=True)


def owners(args):
    last = None
    for count in args.owners:
        draw = random.Random(7)
        jobs = [{"name": "job-%d" % i, "gpus": draw.choice([1, 1, 2, 4]), "owner": "owner-%d" % (i % count),
                 "duration": "%.0fs" % (600 * draw.lognormvariate(0, 1.2) + 1)} for i in range(4 * count)]
        result, seconds, memory = simulate(args.program, {
            "schema": "ganymede.cluster/1",
            "platform": {"catalog": platform({"V100": 8}), "instance": "v100", "region": "room", "nodes": 128},
            "owners": {"owner-%d" % i: {"quota": 1} for i in range(count)},
            "jobs": jobs, "scheduler": {"name": args.scheduler}, "preemption": {"save": "10s", "restore": "30s"}, "seed": 1})
        power = "" if last is None else " (power %.2f)" % (math.log(seconds / last[1]) / math.log(count / last[0]))
        print("%6d owners, %s: %7.2f s of processor time%s, %5.0f MB; %d decisions, held %.0f %%" % (
            count, args.scheduler, seconds, power, memory, result["provenance"]["decisions"], 100 * result["summary"]["held"]),
            flush=True)
        last = count, seconds


def completion(args, scheduler, virtual_cluster):
    """Mean hours from a job's arrival to its end; None if it takes too long to simulate, or a job fits no pool."""
    names = ("V100", "P100", "K80")
    try:
        result, _, _ = simulate(args.program, {
            "schema": "ganymede.cluster/1",
            "platform": {"pools": [{"catalog": platform({name: 4 for name in names}), "instance": name.lower(), "region": "room",
                                    "name": name, "nodes": math.ceil(args.gpus / 4)} for name in names]},
            "jobs": {"trace": os.path.abspath(args.trace), "virtual_cluster": virtual_cluster},
            "scheduler": {"name": scheduler}, "preemption": {"save": "5s", "restore": "15s"}, "seed": 1}, args.patience)
    except (subprocess.TimeoutExpired, Unserved):
        return None
    return result["summary"]["completion_s"]["mean"] / 3600


def trace(args):
    with open(args.trace) as rows:
        jobs = {}
        for row in csv.DictReader(rows):
            jobs[row["virtual_cluster"]] = jobs.get(row["virtual_cluster"], 0) + 1
    chosen = [args.virtual_cluster] if args.virtual_cluster else sorted(jobs)
    others = [name for name in SCHEDULERS if name != "gavel"]
    print("| virtual cluster | jobs | `gavel`: mean completion | " + " | ".join("`%s`" % name for name in others) + " |")
    print("|---|---|---|" + "---|" * len(others))
    for name in chosen:
        own = completion(args, "gavel", name)
        hours = [completion(args, scheduler, name) if own else None for scheduler in others]
        print("| %s | %d | %s | %s |" % (name, jobs[name], "%.1f h" % own if own else "-", " | ".join(
            "%.2f" % (value / own) if value else "-" for value in hours)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "release", "bin", "ganymede"))
    parser.add_argument("--jobs", type=lambda text: [int(part) for part in text.split(",")], default=[1000, 2000])
    parser.add_argument("--queued", type=lambda text: [int(part) for part in text.split(",")], help="jobs that arrive at once")
    parser.add_argument("--owners", type=lambda text: [int(part) for part in text.split(",")], help="owners of four jobs each")
    parser.add_argument("--scheduler")
    parser.add_argument("--trace", help="a CSV in Gavel's columns")
    parser.add_argument("--virtual-cluster", default="")
    parser.add_argument("--gpus", type=int, default=36, help="GPUs of each kind, with --trace")
    parser.add_argument("--patience", type=float, default=60, help="seconds for one simulation, with --trace")
    args = parser.parse_args()
    args.scheduler = args.scheduler or ("kueue" if args.owners else "fifo-backfill")
    (trace if args.trace else queued if args.queued else owners if args.owners else costs)(args)


if __name__ == "__main__":
    main()
