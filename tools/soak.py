#!/usr/bin/env python3
"""Runs commands at random while the disk fills, descriptors run out, clocks jump and signals come: is anything lost?

    tools/soak.py                          for an hour
    tools/soak.py --seconds 45             what CI runs; the seed is the time of the commit
    tools/soak.py --seed 7 --only 1234     one step again; a defect names both
    tools/soak.py --shard 2/8              every eighth step, in each of eight processes

A step is one piece of work (a training, a sweep, a plan, shards and their merge, a cluster, a server's jobs, a run that is
watched) in a folder of its own, beside files of a user with names that resemble the program's. The work is started up to
four times, each time with a fault that the seed draws: a limit on the size of files, as of a full disk; a few descriptors;
little memory; SIGKILL, SIGINT, SIGTERM, or SIGSTOP and SIGCONT, at any moment; clocks and the times of all files moved by
years. After each start the exit code is one of those that the documents list, with a reason unless it is 0; the output is not there,
or it is whole; and the user's files are as they were. Then the same work without a fault must give the bytes that it gives undisturbed.
"""
import argparse
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import faults

ROOT = faults.ROOT
FOREIGN = ["out.json.tmp-mine", "out.json.tmp-0123456789abcdef", "kept/step-best.ckpt", "kept/step-000000000001-mine.ckpt", "shards/0.rows.txt",
           "notes.txt"]
CLUSTER = {"schema": "ganymede.cluster/1", "platform": {"catalog": "aws", "region": "us-east-1", "instance": "p3.8xlarge", "nodes": 4},
           "jobs": [{"name": f"j{i}", "arrival": f"{i}min", "gpus": 1 + i * 7 % 8, "duration": f"{10 + i * 13 % 60}min"} for i in range(40)],
           "scheduler": {"name": "kueue"}, "placement": "consolidate", "seed": 1}
TRAIN = ("train --model mlp-gan --steps 6 --batch 4 --threads 1 --resume --checkpoint kept --checkpoint-every 1 --metrics run.jsonl"
         " --weights out.safetensors --samples out.png")
# Each: commands one after the other, and the outputs whose bytes must not depend on what was suffered before.
WORKS = {
    "train": ([TRAIN], ["out.safetensors", "out.png"]),
    "sweep": (["sweep study.json --format json --quiet --jobs 2 -o out.json"], ["out.json"]),
    "plan": (["plan request.json --format json --quiet --jobs 2 -o out.json"], ["out.json"]),
    "merge": (["sweep study.json --quiet --shard 0/2 --jobs 1 -o shards", "sweep study.json --quiet --shard 1/2 --jobs 2 -o shards",
               "merge shards -o out.json"], ["out.json"]),
    "cluster": (["simulate cluster.json --format json --max-memory 1GiB -o out.json"], ["out.json"]),
    "watch": ([TRAIN, "plan watched.json --quiet --save plan.json", "watch --plan plan.json --log run.jsonl --format json -o out.json"],
              ["out.safetensors"]),
}
LISTED = (0, 1, 2, 3, 4, 130)


class Fault:
    """What one start suffers. Drawn from the step's random numbers, so that the step can be repeated."""

    def __init__(self, draw):
        self.file = draw.choice([None, None, None, 0, 100, draw.randrange(1, 30_000), draw.randrange(1, 40_000_000)])
        self.descriptors = draw.choice([None, None, None, draw.randrange(4, 24)])
        self.memory = draw.choice([None] * 7 + [draw.randrange(50, 300) << 20])
        self.signal = draw.choice([None, signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGSTOP])
        self.share = draw.random()  # of the time that the work takes undisturbed
        self.years = draw.choice([0, 0, -9, -1, 1, 9])

    def __str__(self):
        return ", ".join(f"{name} {value}" for name, value in vars(self).items() if value not in (None, 0)) or "nothing"

    def limit(self):
        for which, bound in [(resource.RLIMIT_FSIZE, self.file), (resource.RLIMIT_NOFILE, self.descriptors), (resource.RLIMIT_AS, self.memory)]:
            if bound is not None:
                resource.setrlimit(which, (bound, bound))


class Soak:
    def __init__(self, program, scratch, seed):
        self.program, self.scratch, self.seed = str(program), scratch, seed
        self.bench = faults.Bench(program, "", scratch, 0)
        self.right, self.lengths, self.codes = {}, {}, {}

    def folder(self):
        folder = self.bench.folder()
        (folder / "cluster.json").write_text(faults.json.dumps(CLUSTER))
        watched = {**faults.REQUEST, "workload": {**faults.REQUEST["workload"], "trace": "recorded:mlp-gan-cpu"}}
        (folder / "watched.json").write_text(faults.json.dumps(watched))
        for name in FOREIGN:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(f"mine: {name}")
        return folder

    def start(self, folder, line, fault=None):
        environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "TMPDIR": str(folder), "NO_COLOR": "1"}
        # A plan says how old its prices are, which is no loss.
        years = fault.years if fault and not line.startswith("plan") else 0
        environment["GANYMEDE_NOW"] = f"{2026 + years}-11-20T12:00:00Z"
        return subprocess.Popen([self.program, *line.split()], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
                                preexec_fn=fault.limit if fault else None)

    def work(self, folder, name, fault=None):
        """Does the work; returns the code and the words of the command that failed."""
        end = time.monotonic() + (fault.share * self.lengths[name] if fault and fault.signal else 1e9)
        for line in WORKS[name][0]:
            process = self.start(folder, line, fault)
            try:
                _, said = process.communicate(timeout=min(120, max(0.001, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                if not (fault and fault.signal):
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
                    return None, f"{line}: does not end within two minutes"
                # A scheduler and Ctrl-C send the signal to all processes; SIGKILL of the out-of-memory killer to one.
                (os.kill if fault.share < 0.3 else os.killpg)(process.pid, fault.signal)
                if fault.signal == signal.SIGSTOP:
                    time.sleep(0.1)
                    os.killpg(process.pid, signal.SIGCONT)
                try:
                    _, said = process.communicate(timeout=120)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
                    return None, f"{line}: does not end within two minutes after the signal"
                end = 1e18
            if process.returncode != 0:
                return process.returncode, said
        return 0, ""

    def outputs(self, folder, name):
        return {output: (folder / output).read_bytes() if (folder / output).exists() else None for output in WORKS[name][1]}

    def learn(self, name):
        """The outputs of the undisturbed work, and how long it takes."""
        folder = self.folder()
        began = time.monotonic()
        code, said = self.work(folder, name)
        if code != 0:
            raise SystemExit(f"soak.py: {name} fails without a fault: {said}")
        self.lengths[name], self.right[name] = time.monotonic() - began, self.outputs(folder, name)
        shutil.rmtree(folder)

    def check_foreign(self, folder, where):
        for name in FOREIGN:
            file = folder / name
            if not file.exists() or file.read_text() != f"mine: {name}":
                self.bench.defect(f"{where}: the user's {name} is gone or changed")

    def step(self, number):
        draw = random.Random(f"{self.seed}/{number}")
        name = draw.choice([*WORKS, "serve"])
        if name == "serve":
            self.served(number, draw)
            return
        if name not in self.right:
            self.learn(name)
        folder, killed, said_partial = self.folder(), False, set()
        for start in range(draw.randrange(1, 5)):
            fault = Fault(draw)
            where = f"--seed {self.seed} --only {number}: {name}, start {start}: {fault}"
            code, said = self.work(folder, name, fault)
            self.codes[code] = self.codes.get(code, 0) + 1
            signalled = fault.signal in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM) and code == -fault.signal
            if code not in LISTED and not signalled:
                self.bench.defect(f"{where}: ends with {code}: {said.strip()[-300:]}")
            if code in (1, 2, 3) and not said.strip() and fault.descriptors is None:
                self.bench.defect(f"{where}: ends with {code} and gives no reason")
            for output, content in self.outputs(folder, name).items():
                # A sweep goes on without a run whose process has failed, lists it and ends with 1; a plan that is interrupted
                # by Ctrl-C writes the best of what it has tried, and ends with 130.
                listed = code == 1 and output == "out.json" and content and faults.json.loads(content).get("failed")
                if listed or (code == 130 and name == "plan"):
                    said_partial.add(content)
                if content is not None and content != self.right[name][output] and content not in said_partial:
                    self.bench.defect(f"{where}: ends with {code}, and {output} is not whole")
                if code == 0 and content is None:
                    self.bench.defect(f"{where}: ends with 0 and without {output}")
            killed = killed or fault.signal == signal.SIGKILL or code is None
            left = [str(file.relative_to(folder)) for file in folder.rglob("*.tmp-*") if str(file.relative_to(folder)) not in FOREIGN]
            if left and not killed:
                self.bench.defect(f"{where}: ends with {code} and leaves {left}")
            self.check_foreign(folder, where)
            if fault.years:
                moved = time.time() + fault.years * 365 * 86400
                for file in folder.rglob("*"):
                    os.utime(file, (moved, moved))
        where = f"--seed {self.seed} --only {number}: {name}, repeated"
        code, said = self.work(folder, name)
        if code != 0:
            self.bench.defect(f"{where}: ends with {code}: {said.strip()[-300:]}")
        elif self.outputs(folder, name) != self.right[name]:
            self.bench.defect(f"{where}: gives other bytes")
        self.check_foreign(folder, where)
        shutil.rmtree(folder)

    def served(self, number, draw):
        """Jobs of a server that is ended at any moment, and is started again."""
        where = f"--seed {self.seed} --only {number}: serve"
        folder = self.folder()
        known, served = [], None
        for start in range(draw.randrange(1, 3)):
            served = faults.Served(self.bench, folder)
            if not served.address:
                self.bench.defect(f"{where}, start {start}: does not start: {served.said[-300:]}")
                break
            end = time.monotonic() + draw.random()
            while time.monotonic() < end and len(known) < 8:
                known.append(served.ask("/api/jobs", faults.FORM)["id"])
                time.sleep(draw.random() / 10)
            how = draw.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
            code = served.end(how)
            self.codes[f"serve {code}"] = self.codes.get(f"serve {code}", 0) + 1
            if code not in (0, 130, -how):
                self.bench.defect(f"{where}, start {start}: ends with {code} on {how!r}: {served.said[-300:]}")
        again = faults.Served(self.bench, folder)
        listed = {job["id"] for job in again.ask("/api/jobs")} if again.address else set()
        if not set(known) <= listed:
            self.bench.defect(f"{where}: of {len(known)} jobs {len(set(known) - listed)} are lost: {again.said[-300:]}")
        elif again.address and faults.job_done(again)[1] != "done":
            self.bench.defect(f"{where}: a job after the start does not end well")
        again.end()
        self.check_foreign(folder, where)
        shutil.rmtree(folder, ignore_errors=True)


def commit_time():
    said = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False).stdout.strip()
    return int(said) if said.isdigit() else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=commit_time(), help="default: the time of the last commit")
    parser.add_argument("--only", type=int, help="only this step")
    parser.add_argument("--shard", default="0/1", metavar="I/N", help="only steps with the rest I of a division by N")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bin/ganymede")
    options = parser.parse_args()
    try:
        shard, shards = map(int, options.shard.split("/"))
        if not 0 <= shard < shards:
            raise ValueError
    except ValueError:
        parser.error(f"--shard: found {options.shard}, expected I/N with I from 0 to N - 1")
    if not 0 < options.seconds < float("inf"):
        parser.error(f"--seconds: found {options.seconds:g}, expected more than 0")
    if not options.program.exists():
        parser.error(f"--program: {options.program} is not there: ./test builds it")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="soak-") as scratch:
        soak = Soak(options.program.resolve(), pathlib.Path(scratch), options.seed)
        steps = 0
        number = shard if options.only is None else options.only
        while steps == 0 or (options.only is None and time.monotonic() - began < options.seconds):
            soak.step(number)
            number += shards
            steps += 1
    codes = ", ".join(f"{code}: {count}" for code, count in sorted(soak.codes.items(), key=str))
    print(f"{steps} steps with the seed {options.seed}, {len(soak.bench.defects)} defects; ends by exit code {codes}")
    sys.exit(1 if soak.bench.defects else 0)


if __name__ == "__main__":
    main()
