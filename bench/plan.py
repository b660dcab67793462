#!/usr/bin/env python3
"""What a plan costs: candidates, simulated ones, size of the file, and processor seconds to the first and the last answer.

  python3 bench/plan.py [--program build/release/bin/ganymede] [--jobs 2] [--why] [--exhaustive] [--instructions]

Processor seconds of the whole program and its children, as the system counts them, so that other work on the machine
matters little; --instructions adds the instructions of the last answer, which do not depend on other work at all, by
`perf stat`, or where the machine does not count them by Valgrind, which takes fifty times as long. The first answer is that of --effort quick. --why adds `ganymede why`, --exhaustive compares each plan
with --effort exhaustive, which takes long: both must choose the same.
"""
import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GOALS = ["--deadline", "60h", "--budget", "500USD"]
REQUESTS = {
    "the guided start": ["--model", "dcgan-64", "--images", "10M"],
    "the tutorial on all clouds": ["--model", "dcgan-64", "--images", "10M", "--deadline", "2h", "--budget", "5USD"],
    "dcgan-64, 50M images": ["--model", "dcgan-64", "--images", "50M", *GOALS],
    "dcgan-64, 20M images": ["--model", "dcgan-64", "--images", "20M", *GOALS],
    "progressive-gan, 20M images": ["--model", "progressive-gan", "--images", "20M", *GOALS],
}


def seconds_of(command):
    """Processor seconds of a command, which may end with no feasible plan."""
    def used():
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime
    before = used()
    code = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    if code not in (0, 3):
        sys.exit(f"{' '.join(command)}: exit code {code}")
    return used() - before


def instructions_of(command):
    """Instructions of a command and its children, in user mode."""
    counted = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", *command], capture_output=True, text=True)
    found = re.search(r"^(\d+),,instructions", counted.stderr, re.MULTILINE)
    if found:
        return int(found.group(1))
    # Each process, children that were forked too, says what it collected.
    counted = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command],
                             capture_output=True, text=True)
    return sum(int(count) for count in re.findall(r"Collected : (\d+)", counted.stderr))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/ganymede"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--why", action="store_true")
    parser.add_argument("--exhaustive", action="store_true")
    parser.add_argument("--instructions", action="store_true")
    options = parser.parse_args()
    jobs = ["--jobs", str(options.jobs)]
    with tempfile.TemporaryDirectory() as folder:
        file, other = os.path.join(folder, "plan.json"), os.path.join(folder, "other.json")
        for name, arguments in REQUESTS.items():
            command = [options.program, "plan", *arguments, *jobs]
            first = seconds_of([*command, "--effort", "quick", "--save", other])
            last = seconds_of([*command, "--save", file])
            plan = json.load(open(file))
            searched = plan["searched"]
            line = (f"{name}: {searched['candidates']} candidates, {searched['simulated']} simulated, "
                    f"{os.path.getsize(file) / 1e6:.1f} MB; first answer {first:.1f} s, last {last:.1f} s")
            if options.instructions:
                line += f", {instructions_of([*command, '--save', other]) / 1e9:.1f} G instructions"
            if options.why and plan["chosen"]:
                line += f", why {seconds_of([options.program, 'why', file, *jobs]):.1f} s"
            if options.exhaustive:
                line += f", exhaustive {seconds_of([*command, '--exhaustive', '--save', other]):.1f} s"
                whole = json.load(open(other))
                if plan["chosen"] != whole["chosen"] or plan["pareto"] != whole["pareto"]:
                    sys.exit(f"{name}: the search chose otherwise than the exhaustive one")
            print(line, flush=True)


if __name__ == "__main__":
    main()
