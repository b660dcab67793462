#!/usr/bin/env python3
"""How far `ganymede watch` is off on recorded trainings whose end is known.

    bench/forecasts.py --program build/release/bin/ganymede --points studiogan_points.csv

The CSV has the columns run, step, train_start_to_eval_h and eval_total_s: a row for each evaluation of a run, as the
logs of PyTorch-StudioGAN give them. Each run is cut at several shares of its steps, written as a run log and forecast
beside a plan that is wrong by 30 % on purpose. Printed are the median and the 90th percentile of the error of the whole
time, and how often the interval of 90 % holds.
"""

import argparse
import collections
import csv
import json
import math
import pathlib
import statistics
import subprocess
import tempfile

SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
PLAN_IS_OFF = 1.3


def read_runs(path):
    """The evaluations of each run: (step, seconds since its begin, seconds of the evaluation)."""
    runs = collections.defaultdict(list)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if row["train_start_to_eval_h"]:
                runs[row["run"]].append((int(row["step"]), 3600 * float(row["train_start_to_eval_h"]),
                                         float(row["eval_total_s"] or 0)))
    return {name: sorted(points, key=lambda point: point[1]) for name, points in runs.items() if len(points) >= 10}


def monotone(points):
    """The points without those that a restart went back behind."""
    out = []
    for point in points:
        while out and out[-1][0] >= point[0]:
            out.pop()
        out.append(point)
    return out


def log_lines(points, steps, share):
    """A run log up to that share of the steps."""
    yield {"schema": "ganymede.run-log/1", "gpus": 1, "batch": 64, "steps": steps, "unix_s": 0}
    kept = [point for point in points if point[0] <= share * steps]
    for i, (step, at, evaluation) in enumerate(kept):
        yield {"step": step, "unix_s": at}
        if i + 1 < len(kept) and at + evaluation <= kept[i + 1][1]:
            yield {"pause": "evaluation", "seconds": evaluation, "step": step, "unix_s": at + evaluation}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/ganymede")
    parser.add_argument("--points", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plan_file, log_file = folder / "plan.json", folder / "run.jsonl"
        subprocess.run([arguments.program, "plan", "--model", "dcgan-64", "--images", "1M", "--gpu", "A100", "--catalog", "gcp",
                        "--max-gpus", "1", "--market", "on-demand", "--batch", "64", "--deadline", "1000h", "--quiet",
                        "--save", str(plan_file)], check=True, stdout=subprocess.DEVNULL)
        plan = json.loads(plan_file.read_text())
        runs = {name: monotone(points) for name, points in read_runs(arguments.points).items()}
        print(f"{len(runs)} runs\n\n{'share':>6} {'runs':>5} {'median':>8} {'90 %':>8} {'within 5 %':>11} {'interval holds':>15}")
        for share in SHARES:
            errors, held = [], 0
            for points in runs.values():
                steps, total = points[-1][0], points[-1][1]
                lines = list(log_lines(points, steps, share))
                if len(lines) < 2:
                    continue
                log_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
                planned = PLAN_IS_OFF * total
                plan["chosen"]["time_s"] = {"median": planned, "interval": [planned / 2.5, planned * 2.5]}
                plan_file.write_text(json.dumps(plan))
                done = subprocess.run([arguments.program, "watch", "--plan", plan_file, "--log", log_file, "--format", "json", "--quiet"],
                                      capture_output=True, text=True)
                if done.returncode not in (0, 4):
                    raise SystemExit(done.stderr)
                now = json.loads(done.stdout)
                setup = now["setup_s"]
                errors.append(abs(math.log((now["time_s"]["median"] - setup) / total)))
                low, high = (end - setup for end in now["time_s"]["interval"])
                held += low <= total <= high
            errors.sort()
            print(f"{share:6.0%} {len(errors):5} {statistics.median(errors):8.2%} {errors[int(0.9 * len(errors))]:8.2%} "
                  f"{sum(error < 0.05 for error in errors) / len(errors):11.0%} {held / len(errors):15.0%}")


if __name__ == "__main__":
    main()
