#!/usr/bin/env python3
"""Lets calls to the system fail, one in turn, and kills commands at random moments: what must hold then?

    tools/faults.py                    all commands and calls: some quarters of an hour
    tools/faults.py --few              a few of each, in seconds: what ./test runs
    tools/faults.py train sweep        only these commands
    tools/faults.py --kills 30         only kills and interrupts, so many for each command

A call that fails must end the command with exit code 0, 1 or 2 (an allocation also with 3) within a minute. Unless it is 0 there must be a reason on
standard error. The output is then the old one, and with 0 the right one; no temporary file, no process and no zombie is
left; and the same command, repeated without a fault, gives the right bytes. After a kill the repeated command must give
the right bytes too: the losses of a training, the results of a sweep, the jobs of a server. Ctrl-C ends a command and its
children within 10 s, and leaves the old output or the right one and no temporary file. Every defect is printed.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
GROUPS = ["write", "fsync", "rename", "open", "malloc", "fork", "socket", "send", "recv"]
STAYING = ["write", "malloc"]  # these fail once in turn, and then from a call on: a disk and a memory that stay full
WORKLOAD = {"trace": "recorded:dcgan-28-cpu", "batch_per_gpu": 64}
SCENARIO = {"schema": "ganymede.scenario/1", "workload": {**WORKLOAD, "steps": 5000},
            "platform": {"catalog": "aws", "region": "us-east-1", "instance": "p3.2xlarge", "nodes": 2, "market": "spot"},
            "synchronization": {"scheme": "ring"}, "storage": {"checkpoint": "s3"}, "checkpoint": {"every": "10min"}, "seed": 1}
STUDY = {"schema": "ganymede.study/1", "name": "faults", "workload": {**WORKLOAD, "steps": 2000},
         "platforms": [{"catalog": "aws", "region": "us-east-1", "gpu": "V100"}], "gpus": [1, 2],
         "schemes": ["ring"], "seeds": {"first": 1, "count": 4}}
REQUEST = {"schema": "ganymede.request/1", "workload": {**WORKLOAD, "images": 1000000}, "deadline": "40h",
           "search": {"catalogs": ["gcp"], "gpus": ["V100"], "max_gpus": 1, "markets": ["on-demand"]}, "seed": 1}
# A checkpoint is 27 MB: the longer training, which is killed, writes half a gigabyte.
TRAIN = ("train --model mlp-gan --steps {steps} --batch 8 --threads 1 --resume --checkpoint kept --checkpoint-every 2"
         " --weights out.safetensors")


class Command:
    def __init__(self, name, line, output, kills_line=None, kills_output=None):
        self.name, self.line, self.output = name, line, output
        self.kills_line, self.kills_output = kills_line or line, kills_output or output


COMMANDS = {c.name: c for c in [
    Command("train", TRAIN.format(steps=6), "kept/step-000000000006.ckpt", TRAIN.format(steps=40),
            "kept/step-000000000040.ckpt"),
    Command("sweep", "sweep study.json --format json --quiet --jobs 2 -o out.json", "out.json",
            "sweep long.json --format json --quiet --jobs 2 -o out.json"),
    Command("plan", "plan request.json --format json --quiet --jobs 2 -o out.json", "out.json"),
    Command("simulate", "simulate scenario.json --format json -o out.json", "out.json"),
    Command("export", "export csv result.json -o out.csv", "out.csv"),
    Command("report", "report result.json -o out.html", "out.html"),
]}


# Commands that are interrupted, beside those above.
INTERRUPTED = {
    "learn": "learn scenario.json --episodes 400 -o out.json",
    "validate": "validate --format json -o out.json",
    "allreduce": "allreduce --catalog aws --instance p4d.24xlarge --nodes 64 --scheme ring,tree --bytes 64MiB --format json -o out.json",
    "calibrate": "calibrate --model mlp-gan --batch 8 --steps 20 --threads 1 -o out.json",
    "kernels": "kernels --gpu A100 --model dcgan-64 --batch 128 --format csv -o out.json",
    "rehearse": "rehearse scenario.json --hosts 2 --network paced --for 5s -o out.json",
    "quality": "quality forecast --fid 20 --dataset CIFAR10 --format json -o out.json",
}


class Bench:
    def __init__(self, program, library, scratch, most):
        self.program, self.library, self.scratch, self.most = str(program), str(library), scratch, most
        self.defects = []

    def folder(self):
        """A new folder with the inputs."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        for name, content in [("scenario", SCENARIO), ("study", STUDY), ("request", REQUEST),
                              ("long", {**STUDY, "seeds": {"first": 1, "count": 200}})]:
            (folder / f"{name}.json").write_text(json.dumps(content))
        if (self.scratch / "result.json").exists():
            shutil.copy(self.scratch / "result.json", folder)
        return folder

    def start(self, folder, line, fail=None, counts=None):
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.scratch / "cache"), "TMPDIR": str(folder), "NO_COLOR": "1"}
        if counts:
            environment.update(LD_PRELOAD=self.library, GANYMEDE_FAIL_COUNTS=str(counts), GANYMEDE_FAIL=fail or "")
        return subprocess.Popen([self.program, *line.split()], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE if line.startswith("serve") else subprocess.DEVNULL,
                                stderr=subprocess.STDOUT if line.startswith("serve") else subprocess.PIPE, text=True, errors="replace",
                                start_new_session=True)

    def run(self, folder, line, fail=None, counts=None):
        process = self.start(folder, line, fail, counts)
        try:
            _, said = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, "did not end within 60 s"
        return process.returncode, said

    def defect(self, what):
        self.defects.append(what)
        print("DEFECT", what, flush=True)


def of_session(session):
    """The processes of a session that still run, or wait in vain to be reaped by one of them."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent, _, of = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:4]
            except (OSError, ValueError):
                continue
            if int(of) == session:
                found[int(entry.name)] = (state, int(parent))
    return [process for process, (state, parent) in found.items() if state != "Z" or parent in found]


def counts_of(file):
    return dict(zip(GROUPS, struct.unpack(f"{len(GROUPS)}Q", file.read_bytes())))


def numbers(count, most):
    """At most `most` calls of 1 to `count`, evenly spread."""
    if count <= most:
        return range(1, count + 1)
    return sorted({1 + (2 * i + 1) * count // (2 * most) for i in range(most)})


def failures(group, count, most):
    """What is to fail, in turn, and how it is named in the summary."""
    yield group, [f"{group}:{number}" for number in numbers(count, most)]
    if group in STAYING:
        yield f"{group}+", [f"{group}:{number}+" for number in numbers(count, most)]


def left_over(folder):
    return [p.name for p in folder.rglob("*") if ".tmp" in p.name]


def check_fault(bench, command, fail, right):
    where = f"{command.name}, {fail}"
    folder = bench.folder()
    counts = folder / "counts"
    process = bench.start(folder, command.line, fail, counts)
    try:
        _, said = process.communicate(timeout=60)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        bench.defect(f"{where}: does not end within 60 s")
        return "hang"
    if code not in ((0, 1, 2, 3) if fail.startswith("malloc") else (0, 1, 2)):
        bench.defect(f"{where}: ends with {code}: {said.strip()[-300:]}")
    elif code != 0 and not re.search(r"\w+: \S", said):
        bench.defect(f"{where}: ends with {code} and gives no reason: {said.strip()[-300:]!r}")
    time.sleep(0.01)
    left = of_session(process.pid)
    if left:
        time.sleep(0.5)
        left = of_session(process.pid)
    if left:
        bench.defect(f"{where}: leaves the processes {left}")
        os.killpg(process.pid, signal.SIGKILL)
    output = folder / command.output
    # A sweep goes on without a run whose process has failed, lists it and ends with 1.
    listed = command.name == "sweep" and code == 1 and output.exists() and json.loads(output.read_text())["failed"]
    if output.exists() and output.read_bytes() != right and not listed:
        bench.defect(f"{where}: ends with {code} and writes other bytes to {command.output}")
    if code == 0 and not output.exists():
        bench.defect(f"{where}: ends with 0 and writes no {command.output}")
    if left_over(folder):
        bench.defect(f"{where}: leaves {left_over(folder)}")
    if code != 0 and command.name in ("train", "sweep") and (listed or not output.exists()):
        again, said = bench.run(folder, command.line)
        if again != 0 or output.read_bytes() != right:
            bench.defect(f"{where}: the repeated command ends with {again}, and other bytes: {said.strip()[-300:]}")
    shutil.rmtree(folder)
    return code


def faults(bench, command, few):
    folder = bench.folder()
    code, said = bench.run(folder, command.line, "", folder / "counts")
    if code != 0:
        raise SystemExit(f"{command.name} fails without a fault: {said}")
    right, counts = (folder / command.output).read_bytes(), counts_of(folder / "counts")
    for group in GROUPS:
        for name, chosen in failures(group, counts[group], 1 if few else bench.most):
            codes = [check_fault(bench, command, fail, right) for fail in chosen]
            if codes:
                tally = ", ".join(f"exit {code}: {codes.count(code)}" for code in sorted(set(codes), key=str))
                print(f"{command.name:9} {name:7} {counts[group]:7} calls, {len(codes):4} failed in turn: {tally}", flush=True)


def kills(bench, command, times, draw):
    line = command.kills_line
    whole = bench.folder()
    began = time.monotonic()
    code, said = bench.run(whole, line)
    length = time.monotonic() - began
    if code != 0:
        raise SystemExit(f"{command.name} fails without a kill: {said}")
    right = (whole / command.kills_output).read_bytes()
    unfinished = 0
    for i in range(times):
        folder = bench.folder()
        process = bench.start(folder, line)
        time.sleep(draw.uniform(0, length))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        output = folder / command.kills_output
        unfinished += not output.exists()
        if output.exists() and output.read_bytes() != right:
            bench.defect(f"{command.name}, kill {i}: {command.kills_output} is not whole")
        if output.exists():
            continue
        code, said = bench.run(folder, line)
        if code != 0 or output.read_bytes() != right:
            bench.defect(f"{command.name}, kill {i}: the repeated command ends with {code}, and other bytes: {said.strip()[-300:]}")
        shutil.rmtree(folder)
    print(f"{command.name:9} killed {times} times, {unfinished} before its end: repeated, the same bytes", flush=True)


def interrupts(bench, name, line, times, draw):
    folder = bench.folder()
    began = time.monotonic()
    code, said = bench.run(folder, line)
    length = time.monotonic() - began
    if code not in (0, 1):  # 1: a check of `calibrate` on a busy machine
        raise SystemExit(f"{name} fails without an interrupt: {said}")
    early = 0
    for i in range(times):
        folder = bench.folder()
        process = bench.start(folder, line)
        time.sleep(draw.uniform(0.02, max(0.05, length)))
        if process.poll() is None:
            early += 1
            os.killpg(process.pid, signal.SIGINT)
        where = f"{name}, interrupt {i}"
        try:
            _, said = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            bench.defect(f"{where}: does not end within 10 s")
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            continue
        by_signal = process.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
        if process.returncode != 0 and not by_signal and "interrupted" not in said:  # a rehearsal ends its hosts first
            bench.defect(f"{where}: ends with {process.returncode}: {said.strip()[-300:]}")
        time.sleep(0.05)
        if of_session(process.pid):
            time.sleep(1)
        if of_session(process.pid):
            bench.defect(f"{where}: leaves the processes {of_session(process.pid)}")
            os.killpg(process.pid, signal.SIGKILL)
        if left_over(folder):
            bench.defect(f"{where}: leaves {left_over(folder)}")
        shutil.rmtree(folder)
    print(f"{name:9} interrupted {times} times, {early} before its end", flush=True)


class Served:
    """A server on a free port, and requests to it."""

    def __init__(self, bench, folder, fail=None, counts=None):
        self.process = bench.start(folder, "serve --port 0 --data data", fail, counts)
        self.address = self.token = None
        self.said = ""
        os.set_blocking(self.process.stdout.fileno(), False)
        end = time.monotonic() + 20
        while time.monotonic() < end and self.process.poll() is None:
            self.read()
            found = re.search(r"(http://127\.0\.0\.1:\d+)/\S*token=(\w+)", self.said)
            if found:
                self.address, self.token = found.groups()
                return
            time.sleep(0.02)

    def read(self):
        try:
            self.said += self.process.stdout.read() or ""
        except (BlockingIOError, TypeError):
            pass

    def ask(self, path, body=None):
        request = urllib.request.Request(self.address + path, None if body is None else json.dumps(body).encode(),
                                         {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            return "hang"
        self.read()
        return self.process.returncode


FORM = {"kind": "compare", "workload": {**WORKLOAD, "dataset": {"name": "mnist", "images": 60000, "bytes_per_image": 784}, "epochs": 1},
        "platforms": [{"catalog": "aws", "region": "us-east-1", "gpu": "V100", "market": "on-demand"}],
        "gpus": [1], "schemes": ["ring"], "policies": ["fixed"], "seeds": {"first": 1, "count": 1}}


def job_done(served, wait=20):
    """Submits a job and waits for its end; the failure of a request is no defect of the server's."""
    try:
        job = served.ask("/api/jobs", FORM)
        end = time.monotonic() + wait
        while time.monotonic() < end:
            state = served.ask(f"/api/jobs/{job['id']}")["state"]
            if state not in ("queued", "running"):
                return job["id"], state
            time.sleep(0.02)
        return job["id"], "unfinished"
    except Exception as error:  # pylint: disable=broad-except
        return None, repr(error)


def check_serve_fault(bench, fail):
    where = f"serve, {fail}"
    folder = bench.folder()
    served = Served(bench, folder, fail, folder / "counts")
    job = (None, "")
    if served.address:
        job = job_done(served)
        if job[1] == "unfinished":
            bench.defect(f"{where}: the job does not end")
        if served.process.poll() is not None and not re.fullmatch(r"malloc:\d+\+", fail):
            bench.defect(f"{where}: the server has ended with {served.process.returncode}: {served.said[-300:]}")
        zombies = [p for p in of_session(served.process.pid) if p != served.process.pid]
        if job[0] is not None and job[1] != "unfinished" and zombies:  # where a request has failed the job may still run
            time.sleep(0.5)
            zombies = [p for p in of_session(served.process.pid) if p != served.process.pid]
            if zombies:
                bench.defect(f"{where}: processes {zombies} are left after the job has ended")
    code = served.end()
    if code not in ((0, 1, 2, 3) if fail.startswith("malloc") else (0, 1, 2)):
        bench.defect(f"{where}: the server ends with {code}: {served.said[-300:]}")
    if of_session(served.process.pid):
        time.sleep(0.5)
        if of_session(served.process.pid):
            bench.defect(f"{where}: leaves processes")
            os.killpg(served.process.pid, signal.SIGKILL)
    again = Served(bench, folder)
    if not again.address:
        bench.defect(f"{where}: a server on the same data does not start: {again.said[-300:]}")
    elif job[0] is not None and job[0] not in [j["id"] for j in again.ask("/api/jobs")]:
        bench.defect(f"{where}: job {job[0]} is lost")
    again.end()
    shutil.rmtree(folder)
    return "answers" if served.address else code


def serve_faults(bench, few):
    folder = bench.folder()
    served = Served(bench, folder, "", folder / "counts")
    if not served.address or job_done(served)[1] != "done":
        raise SystemExit(f"serve fails without a fault: {served.said}")
    served.end()
    counts = counts_of(folder / "counts")
    for group in GROUPS:
        for name, chosen in failures(group, counts[group], (3 if group == "write" else 1) if few else bench.most // 2):
            codes = [check_serve_fault(bench, fail) for fail in chosen]
            if codes:
                tally = ", ".join(f"{code}: {codes.count(code)}" for code in sorted(set(codes), key=str))
                print(f"serve     {name:7} {counts[group]:7} calls, {len(codes):4} failed in turn: {tally}", flush=True)


def serve_kills(bench, times, draw):
    known = 0
    for i in range(times):
        folder = bench.folder()
        served = Served(bench, folder)
        jobs = []
        end = time.monotonic() + draw.uniform(0, 1)
        while time.monotonic() < end and len(jobs) < 6:
            jobs.append(served.ask("/api/jobs", FORM)["id"])
            time.sleep(draw.uniform(0, 0.1))
        os.killpg(served.process.pid, signal.SIGKILL)
        served.process.wait()
        again = Served(bench, folder)
        listed = {j["id"]: j["state"] for j in again.ask("/api/jobs")} if again.address else {}
        for job in jobs:
            if listed.get(job) not in ("done", "interrupted"):
                bench.defect(f"serve, kill {i}: job {job} is {listed.get(job)}: {again.said[-200:]}")
        known += len(jobs)
        again.end()
        if of_session(served.process.pid):
            time.sleep(0.5)
            if of_session(served.process.pid):
                bench.defect(f"serve, kill {i}: leaves processes of its jobs")
        shutil.rmtree(folder)
    print(f"serve     killed {times} times: knows all {known} jobs again", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help=", ".join([*COMMANDS, "serve"]))
    parser.add_argument("--few", action="store_true", help="one failure of each call, two kills, a few interrupts")
    parser.add_argument("--kills", type=int, help="only kills and interrupts, so many for each command")
    parser.add_argument("--most", type=int, default=60, help="calls of a group that fail in turn; half as many of a server's")
    parser.add_argument("--no-kills", action="store_true", help="only failing calls")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--program", default=ROOT / "build/release/bin/ganymede")
    parser.add_argument("--library", default=ROOT / "build/release/lib/libfailing_calls.so")
    options = parser.parse_args()
    names = options.commands or [*COMMANDS, "serve"]
    for name in names:
        if name not in COMMANDS and name not in INTERRUPTED and name != "serve":
            parser.error(f"no command {name}")
    with tempfile.TemporaryDirectory(prefix="faults-") as scratch:
        bench = Bench(options.program, options.library, pathlib.Path(scratch), options.most)
        folder = bench.folder()
        code, said = bench.run(folder, "simulate scenario.json --format json -o result.json")
        if code != 0:
            raise SystemExit(said)
        shutil.copy(folder / "result.json", scratch)
        if options.kills is None:
            for name in [name for name in names if name not in INTERRUPTED]:
                serve_faults(bench, options.few) if name == "serve" else faults(bench, COMMANDS[name], options.few)
        draw = random.Random(options.seed)
        times = options.kills if options.kills is not None else 2 if options.few else 30
        for name in names if not options.no_kills else []:
            if name == "serve":
                serve_kills(bench, times, draw)
            elif name in ("train", "sweep", "plan"):
                kills(bench, COMMANDS[name], times, draw)
        further = [] if options.commands else ["rehearse"] if options.few else INTERRUPTED
        for name in [*names, *further] if not options.no_kills else []:
            if name != "serve":
                line = INTERRUPTED[name] if name in INTERRUPTED else COMMANDS[name].kills_line
                interrupts(bench, name, line, 1 if options.few else times, draw)
        print(f"{len(bench.defects)} defects")
        sys.exit(1 if bench.defects else 0)


if __name__ == "__main__":
    main()
