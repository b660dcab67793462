#!/usr/bin/env python3
"""How far jobs that share links are off at the fidelity "sampled" from every message simulated.

  python3 bench/shared_links.py [--program build/release/bin/ganymede] [--count 150] [--seed 11] [--schemes ring,tree]

Draws clusters of two to six DCGAN jobs of 40 to 200 steps, placed so that they share nodes: nodes of two or four GPUs of 10 or
100 TFLOP/s, NICs of 10 or 25 Gbit/s and 0 to 50 us, one switch or racks of two nodes with uplinks that are up to four times
oversubscribed. Each job has its own scheme, and overlaps its gradients or not; in half of the clusters all begin together, in the
others within five seconds. It prints, over the clusters in which jobs shared links, by how much the time of jobs is off, what
an interval of 90 % would be, and how many jobs the intervals of the results hold.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCHEMES = ["ring", "multi-ring", "tree", "double-binary-tree", "halving-doubling", "recursive-doubling", "hierarchical-copy",
           "two-level", "reduce-to-one", "parameter-server", "hierarchical-parameter-server", "nccl"]


def lab(draw, gpus):
    fabric = {"kind": "switch", "latency": "1us"}
    if draw.random() < 0.5:
        level = {"nodes": 2, "oversubscription": draw.choice([1, 2, 4]), "latency": "1us"}
        fabric = {"kind": "fat-tree", "latency": "1us", "levels": [level]}
    nic = {"bandwidth": draw.choice(["10Gbit/s", "25Gbit/s"]), "latency": draw.choice(["0us", "20us", "50us"])}
    return {
        "schema": "ganymede.platform/1", "provider": "private", "name": "lab", "fabric": fabric,
        "gpus": {"GPU": {"memory": "16GiB", "fp32": draw.choice(["10Tflop/s", "100Tflop/s"]), "memory_bandwidth": "900GB/s"}},
        "instances": {"node": {
            "gpu": "GPU", "gpus": gpus, "gpu_links": {"kind": "nvlink", "bandwidth": "80GB/s", "latency": "1us"}, "nic": nic,
            "prices": [{"region": "room", "market": "on-demand", "per_hour": "1USD/h", "as_of": "undated"}]}}}


def cluster(draw, schemes, jobs):
    jobs = draw.choice(jobs)
    nodes, per_node = draw.choice([4, 8] if jobs > 6 else [2, 4, 8]), draw.choice([2, 4])
    late = draw.random() < 0.5
    arrivals = sorted(draw.uniform(0, 5) if late else 0 for _ in range(jobs))
    document = {"schema": "ganymede.cluster/1", "placement": "spread", "seed": 1, "workloads": {}, "jobs": [],
                "platform": {"catalog": lab(draw, per_node), "instance": "node", "nodes": nodes}}
    for job in range(jobs):
        document["workloads"]["gan-%d" % job] = {
            "workload": {"trace": "recorded:dcgan-64-cpu", "batch_per_gpu": 64, "steps": draw.choice([40, 100, 200]),
                         "dataset": {"name": "images", "images": 100000, "bytes_per_image": 12288}},
            "synchronization": {"scheme": draw.choice(schemes), "overlap": draw.random() < 0.5}}
        gpus = max(2, min(draw.choice([2, 4, 8]), nodes * per_node // jobs))
        document["jobs"].append({"name": "job-%d" % job, "gpus": gpus, "workload": "gan-%d" % job,
                                 "arrival": "%.3fs" % arrivals[job]})
    return document


def simulate(program, path, document, fidelity):
    with open(path, "w") as out:
        json.dump(dict(document, fidelity=fidelity), out)
    run = subprocess.run([program, "simulate", path, "--format", "json"], capture_output=True, text=True)
    if run.returncode != 0:
        print(run.stderr.strip(), file=sys.stderr)
        return None
    return json.loads(run.stdout)


def told(what, errors):
    off = sorted(abs(error) for error in errors)
    return "%d %s: median %.1f %%, 95 of 100 within %.1f %%, %d over 5 %%, %d over 15 %%, from %+.0f to %+.0f %%" % (
        len(off), what, 100 * statistics.median(off), 100 * off[int(0.95 * (len(off) - 1))],
        sum(error > 0.05 for error in off), sum(error > 0.15 for error in off), 100 * min(errors), 100 * max(errors))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/ganymede"))
    options.add_argument("--count", type=int, default=150)
    options.add_argument("--seed", type=int, default=11)
    options.add_argument("--schemes", default=",".join(SCHEMES))
    options.add_argument("--jobs", default="2,3,4,6", help="how many a cluster may have")
    options.add_argument("--messages", type=float, default=1e6, help="of a cluster's beats; 0: formulas say all")
    given = options.parse_args()
    fidelities = {"mode": "sampled", "messages": given.messages}, {"mode": "message"}
    draw = random.Random(given.seed)
    errors, worst, held, without, left_out = [], [], [], [0], 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cluster.json")
        for _ in range(given.count):
            document = cluster(draw, given.schemes.split(","), [int(jobs) for jobs in given.jobs.split(",")])
            sampled, message = (simulate(given.program, path, document, fidelity) for fidelity in fidelities)
            if sampled is None or message is None:
                left_out += 1
            elif sampled["provenance"]["contending_groups"] > 0:
                pairs = list(zip(sampled["jobs"], message["jobs"]))
                errors += [a["run_s"] / b["run_s"] - 1 for a, b in pairs]
                worst.append(max(errors[-len(pairs):], key=abs))
                for a, b in pairs:
                    if "run_low_s" in a:
                        held.append(a["run_low_s"] <= b["run_s"] <= a["run_high_s"])
                    else:
                        without.append(abs(a["run_s"] / b["run_s"] - 1))
    print("%d clusters share links (%d refused or failed)" % (len(worst), left_out))
    print(told("jobs", errors))
    print(told("the job of each cluster that is most off", worst))
    print("message fidelity over this, 5 and 95 of 100: %.3f to %.3f" % tuple(
        sorted(1 / (1 + error) for error in errors)[int(share * (len(errors) - 1))] for share in (0.05, 0.95)))
    print("intervals of 90 %% hold %d of %d jobs; %d have none and are at most %.2g %% off" % (
        sum(held), len(held), len(without) - 1, 100 * max(without)))


if __name__ == "__main__":
    main()
