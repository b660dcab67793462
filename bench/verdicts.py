#!/usr/bin/env python3
"""How often `ganymede check nccl-log` finds a fault that was put into a public log.

  bench/verdicts.py [--program build/release/bin/ganymede] [--log NAME] [--rows]

Of each log in bench/nccl_logs/curves.csv that another program than ours measured in full, all times are multiplied by
what a fault costs at that size, simulated / simulated, and by a noise of 3 %. So the machine keeps all that the model
does not know of it. Faults differ from those that the verdict tries: 0.4 of a NIC's bandwidth, 20 Gbit/s of TCP, a
collapse by 5 from 16 MiB on. Those that slow the largest size by less than 1.25 are left out. Printed is how often
each cause was named first, and with which verdict; --rows prints each answer.
"""

import argparse
import collections
import copy
import csv
import json
import os
import random
import re
import subprocess
import tempfile

import nccl_logs

MIB = 1 << 20


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr.strip()[:150])
    return done.stdout


def uncommented(text):
    return json.loads("\n".join(line for line in text.splitlines() if not line.strip().startswith("//")))


class Machine:
    """A log's machine as a platform, what NCCL was told, and how it is asked for."""

    def __init__(self, program, folder, row):
        _, ranks, catalog, self.instance, self.nodes, self.scheme = row[:6]
        like = ("example", "platform", "--like", self.instance)
        text = open(catalog).read() if os.path.exists(catalog) else run(program, *like)
        self.platform, self.gpus, self.ranks = uncommented(text), ranks // self.nodes, ranks
        self.program, self.file = program, os.path.join(folder, "platform.json")

    def flags(self, platform):
        with open(self.file, "w") as out:
            json.dump(platform, out)
        return ["--catalog", self.file, "--instance", self.instance, "--nodes", self.nodes,
                "--gpus-per-node", self.gpus]

    def times(self, sizes, platform=None, scheme=None, more=()):
        rows = run(self.program, "allreduce", *self.flags(platform or self.platform), "--scheme", scheme or self.scheme,
                   "--bytes", ",".join(f"{size}B" for size in sizes), "--format", "csv", *more)
        return [float(row["time_s"]) for row in csv.DictReader(rows.splitlines())]

    def faults(self, sizes):
        """Names of faults and how they are simulated: functions that return times."""
        own = self.platform["instances"][self.instance]
        nic, links = own.get("nic") if self.nodes > 1 else None, own.get("gpu_links")

        def changed(scheme=None, more=(), without=None, **members):
            platform = copy.deepcopy(self.platform)
            instance = platform["instances"][self.instance]
            instance.pop(without, None)
            instance.get("nic", {}).update(members)
            return lambda: self.times(sizes, platform, scheme, more)

        yield "normal", lambda: self.times(sizes)
        if nic:
            count, rate = nic.get("count", 1), float(re.match(r"[\d.]+", nic["bandwidth"])[0])
            if count > 1:
                yield "one-nic", changed(count=1)
            if count > 3:
                yield "some-nics", changed(count=count // 2)
            if nic.get("transport") == "tcp":
                yield "slow-interface", changed(count=1, bandwidth="8Gbit/s")
            else:
                yield "no-gpu-direct", changed(gpu_direct=False)
                yield "tcp-fallback", changed(more=("--transport", "tcp"), count=1, bandwidth="20Gbit/s")
            if nic.get("transport", "rdma") == "rdma":  # others repair what is lost
                yield "lossy-network", lambda: [
                    time * (5 if size >= 16 * MIB else 1) for size, time in zip(sizes, self.times(sizes))]
            yield "slow-rank", changed(bandwidth=f"{0.4 * rate:g}Gbit/s")
        elif links and links.get("kind") != "pcie":
            yield "no-p2p", changed(without="gpu_links")
        if re.fullmatch(r"nccl:[\d.]+", self.scheme):
            yield "forced-algorithm", changed(scheme=self.scheme + "/tree")
            yield "forced-protocol", changed(scheme=self.scheme + "/ll")


def log_of(machine, sizes, times):
    lines = ["# Collective test starting: all_reduce_perf"]
    for size, time in zip(sizes, times):
        rate = size / time * 1e-9
        columns = f"{time * 1e6:.3f} {rate:.3f} {rate * 2 * (machine.ranks - 1) / machine.ranks:.3f} 0"
        lines.append(f"{size} {size // 4} float sum -1 {columns} {columns}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/ganymede")
    parser.add_argument("--log", choices=sorted(nccl_logs.LOGS), metavar="NAME", help="this log alone")
    parser.add_argument("--rows", action="store_true", help="print each answer")
    options = parser.parse_args()
    answers = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "run.log")
        for name, row in nccl_logs.LOGS.items():
            measured = {size: float(time) * 1e-6 for size, time, _ in nccl_logs.samples(name)
                        if time and MIB // 16 <= size <= 1024 * MIB}
            sizes = sorted(measured)
            if (options.log or name) != name or row[0] == "check" or name in nccl_logs.COLLECTIVES:
                continue
            if len(sizes) < 5 or sizes[-1] < 32 * MIB:
                continue
            machine = Machine(options.program, folder, row)
            base = machine.times(sizes)
            for fault, simulated in machine.faults(sizes):
                try:
                    factors = [time / usual for time, usual in zip(simulated(), base)]
                except ValueError:
                    continue  # the machine cannot be so
                if fault != "normal" and factors[-1] < 1.25:
                    continue
                noise = random.Random(name + fault)
                with open(log, "w") as out:
                    out.write(log_of(machine, sizes, [measured[size] * factor * noise.lognormvariate(0, 0.03)
                                                      for size, factor in zip(sizes, factors)]))
                answer = json.loads(run(options.program, "check", "nccl-log", log, *machine.flags(machine.platform),
                                        "--scheme", machine.scheme, "--format", "json"))
                first = answer["causes"][0]
                answers[fault][f"{first['cause']} ({answer['verdict']})"] += 1
                if options.rows:
                    print(f"{name}: {fault}: {first['cause']} {first['probability']:.2f}, {answer['verdict']}")
    if not answers:
        parser.error(f"--log {options.log}: expected an all-reduce of five sizes or more, to 32 MiB and above")
    for fault, named in answers.items():
        print(f"{fault:17}", ", ".join(f"{count} {cause}" for cause, count in named.most_common()))


if __name__ == "__main__":
    main()
