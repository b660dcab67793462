#!/usr/bin/env python3
"""How far `ganymede watch` is off on recorded trainings whose end is known.

    bench/forecasts.py --program build/release/bin/ganymede --points studiogan_points.csv
    bench/forecasts.py --program build/release/bin/ganymede --trainings FOLDER

The CSV has the columns run, step, train_start_to_eval_h and eval_total_s: a row for each evaluation of a run, as the
logs of PyTorch-StudioGAN give them. FOLDER keeps the logs of trainings by `ganymede train --metrics`, in their own
processor time, so that other load does not count; those that are not there are made first, in a quarter of an hour on
one core. Each run is cut at several shares of its steps and forecast beside a plan that is wrong by 30 % on purpose.
Printed are the median and the 90th percentile of the error of the whole time, which is that of the bill too, how often
the interval of 90 % holds, and that percentile over the width that plan/forecast.cpp gives a run which varies little;
then the error of each run.
"""

import argparse
import bisect
import collections
import contextlib
import csv
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
PLAN_IS_OFF = 1.3
IMAGES = 1_000_000  # of the plan
WIDTH, WIDTH_POWER = 0.18, 1.3  # kWidth and kWidthPower of plan/forecast.cpp

QUALITY = ("--quality", "1000", "--quality-every")
# Options of `ganymede train` by the name of the log: with and without pauses, of several models and lengths.
TRAININGS = {
    "mlp-gan": ("--model", "mlp-gan", "--steps", "6000"),
    "mlp-gan-quality": ("--model", "mlp-gan", "--steps", "4000", *QUALITY, "250"),
    "mlp-gan-large-batch": ("--model", "mlp-gan", "--steps", "500", "--batch", "512", *QUALITY, "40"),
    "dcgan-28": ("--model", "dcgan-28", "--steps", "600"),
    "dcgan-28-quality": ("--model", "dcgan-28", "--steps", "600", *QUALITY, "40"),
    "dcgan-28-small-batch": ("--model", "dcgan-28", "--steps", "2000", "--batch", "16", *QUALITY, "150"),
    "dcgan-32": ("--model", "dcgan-32", "--steps", "300"),
    "dcgan-32-quality": ("--model", "dcgan-32", "--steps", "300", *QUALITY, "20"),
}


def read_runs(path):
    """The evaluations of each run in order of time: (step, seconds since its begin, seconds of the evaluation)."""
    runs = collections.defaultdict(list)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if row["train_start_to_eval_h"]:
                runs[row["run"]].append((int(row["step"]), 3600 * float(row["train_start_to_eval_h"]),
                                         float(row["eval_total_s"] or 0)))
    return {name: sorted(points, key=lambda point: point[1]) for name, points in runs.items() if len(points) >= 10}


def log_lines(points, share):
    """A run log up to that share of the steps: a line at each evaluation and one at the share, where the run has the mean
    pace between two evaluations. The run's steps are the most that it came to; an evaluation of fewer steps after them is
    that of the best checkpoint, one of no more steps than before is the begin of a run that goes on."""
    steps = max(step for step, _, _ in points)
    head = {"schema": "ganymede.run-log/1", "gpus": 1, "batch": 64, "steps": steps}
    yield {**head, "unix_s": 0}
    until, done, ended = share * steps, 0, 0
    for step, at, evaluation in points:
        if step > until:
            reached = (until - done) / (step - done)
            if reached > 0:
                yield {"step": int(until), "unix_s": ended + reached * max(0, at - ended)}
            return
        at = max(at, ended)
        yield {**head, "first_step": step, "unix_s": at} if step <= done else {"step": step, "unix_s": at}
        if step >= until:
            return
        done, ended = step, at + evaluation
        yield {"pause": "evaluation", "seconds": evaluation, "step": step, "unix_s": ended}


def train(command):
    """Runs a training, and gives points of (Unix time, processor seconds that it has used)."""
    tick = os.sysconf("SC_CLK_TCK")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        points = []
        while process.poll() is None:
            with contextlib.suppress(OSError):
                fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
                points.append((time.time(), (int(fields[11]) + int(fields[12])) / tick))
            time.sleep(0.02)
    if process.returncode != 0:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return points


def in_processor_time(lines, points):
    """The log with the training's own processor time in place of the clock's, as on a machine without other load."""
    def at(unix_s):
        after = min(max(1, bisect.bisect(points, (unix_s, 0))), len(points) - 1)
        (begin, used), (end, used_then) = points[after - 1], points[after]
        return used + (used_then - used) * min(1, max(0, (unix_s - begin) / (end - begin)))
    for line in lines:
        begin = line["unix_s"] - line.get("seconds", 0)
        line["unix_s"] = at(line["unix_s"])
        if "pause" in line:
            line["seconds"] = line["unix_s"] - at(begin)
    return lines


def of_trainings(program, folder):
    """The lines of each training's log. What the folder does not have is trained."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, options in TRAININGS.items():
        log, raw = folder / f"{name}.jsonl", folder / f"{name}.raw"
        if not log.exists():
            print(f"training {name}", file=sys.stderr)
            points = train([program, "train", *options, "--threads", "1", "--metrics", raw])
            lines = [json.loads(line) for line in raw.read_text().splitlines()]
            raw.unlink()
            log.write_text("".join(json.dumps(line) + "\n" for line in in_processor_time(lines, points)))
        yield name, [json.loads(line) for line in log.read_text().splitlines()]


def cut(lines, share):
    """The lines of a log up to that share of the steps, of a model that no plan names."""
    head = {key: value for key, value in lines[0].items() if key != "model"}
    return [head, *(line for line in lines[1:] if "end" not in line and line["step"] <= share * head["steps"])]


class Forecasts:
    """Asks `ganymede watch` beside a plan of that time."""

    def __init__(self, program, folder):
        self.program, self.log, self.plan_file = program, folder / "run.jsonl", folder / "plan.json"
        subprocess.run([program, "plan", "--model", "dcgan-64", "--images", str(IMAGES), "--gpu", "A100", "--catalog", "gcp",
                        "--max-gpus", "1", "--market", "on-demand", "--batch", "64", "--deadline", "1000h", "--quiet",
                        "--save", self.plan_file], check=True, stdout=subprocess.DEVNULL)
        self.plan = json.loads(self.plan_file.read_text())
        self.plan["chosen"]["bounds"]["time_s"] = 0
        self.setup_s = self.ask([{"schema": "ganymede.run-log/1", "gpus": 1, "batch": 1, "steps": IMAGES, "unix_s": 0}],
                                PLAN_IS_OFF)["setup_s"]

    def ask(self, lines, planned):
        """The forecast of a run beside a plan of that many seconds."""
        self.log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.plan["chosen"]["time_s"] = {"median": planned, "interval": [planned / 2.5, planned * 2.5]}
        self.plan_file.write_text(json.dumps(self.plan))
        done = subprocess.run([self.program, "watch", "--plan", self.plan_file, "--log", self.log, "--format", "json", "--quiet"],
                              capture_output=True, text=True)
        if done.returncode not in (0, 4):
            raise SystemExit(done.stderr)
        return json.loads(done.stdout)

    def off(self, lines, total):
        """The logarithm of forecast over what came, and whether the interval holds it."""
        images = lines[0]["steps"] * lines[0]["batch"]  # the plan's time is that of its own images
        now = self.ask(lines, self.setup_s + PLAN_IS_OFF * total * IMAGES / images)
        low, high = (end - now["setup_s"] for end in now["time_s"]["interval"])
        return math.log((now["time_s"]["median"] - now["setup_s"]) / total), low <= total <= high


def print_errors(forecasts, runs):
    """`runs` are (name, seconds in all, the lines at a share of the steps)."""
    print(f"{len(runs)} runs\n\n{'share':>6} {'runs':>5} {'median':>8} {'90 %':>8} {'within 5 %':>11} {'interval holds':>15} {'widths':>7}")
    of = {name: {} for name, _, _ in runs}
    for share in SHARES:
        for name, total, lines in runs:
            if len(lines(share)) >= 2:
                of[name][share] = forecasts.off(lines(share), total)
        found = [one[share] for one in of.values() if share in one]
        errors = sorted(abs(off) for off, _ in found)
        print(f"{share:6.0%} {len(errors):5} {statistics.median(errors):8.2%} {errors[int(0.9 * len(errors))]:8.2%} "
              f"{sum(error < 0.05 for error in errors) / len(errors):11.0%} "
              f"{sum(held for _, held in found) / len(errors):15.0%} "
              f"{errors[int(0.9 * len(errors))] / (WIDTH * (1 - share) ** WIDTH_POWER):7.2f}")
    return of


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/ganymede")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--points")
    source.add_argument("--trainings", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.trainings:
        runs = [(name, lines[-1]["unix_s"] - lines[0]["unix_s"], lambda share, lines=lines: cut(lines, share))
                for name, lines in of_trainings(arguments.program, arguments.trainings)]
    else:
        # A run ends with its last evaluation.
        runs = [(name, points[-1][1] + points[-1][2], lambda share, of=points: list(log_lines(of, share)))
                for name, points in read_runs(arguments.points).items()]
    with tempfile.TemporaryDirectory() as folder:
        of = print_errors(Forecasts(arguments.program, pathlib.Path(folder)), runs)
    print(f"\n{'run':50}{'seconds':>9}" + "".join(f"{share:>8.0%}" for share in SHARES))
    for name, total, _ in runs:
        shown = (f"{math.expm1(of[name][share][0]):+8.1%}" if share in of[name] else " " * 8 for share in SHARES)
        print(f"{name:50}{total:9.0f}" + "".join(shown))


if __name__ == "__main__":
    main()
