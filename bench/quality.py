#!/usr/bin/env python3
"""How good the model of quality is on trainings that it was not fitted to.

    bench/quality.py --points studiogan_points.csv --runs studiogan_runs.csv
    bench/quality.py --logs metric-fid50k_full.jsonl... [--of '--backbone stylegan2 --ada 1']

The columns are those of docs/formats.md (quality points). Each family of trainings (BigGAN, StyleGAN2, ...) is left out
in turn: `quality fit` sees the other families alone, and `quality forecast` then says when the trainings of the family
reach FIDs of a fixed list, first from their kind alone, then from the points of their first tenth. Printed are

- the share of the intervals of 90 % that hold, for targets that the training reached after its first evaluation, given
  that it ever reaches them, and their mean width as a factor, beside those of the spread of all other
  trainings that reached the same FID; also with each training counted once, because good trainings reach more targets;
- after a tenth, the median error of the images to targets that are reached later, and of the best FID;
- the Brier score of the chance not to reach a target within the training's length, beside that of the base rate, the
  share of the other trainings that did not reach it.

With --logs, metric files of NVIDIA's programs, `quality forecast` with the options of --of sees the first 3, 5 and 8
evaluations of each, a quarter and a half (each number once, at least 3). Printed is how many targets, the lowest FID
seen times 0.9, 0.81 and so on, that were reached later lie in the interval of 90 %, and how many came before it.
"""

import argparse
import csv
import json
import math
import pathlib
import re
import shlex
import statistics
import subprocess
import tempfile

TARGETS = (3, 5, 7, 10, 15, 20, 30, 40, 60, 80, 100)


def family_of(run):
    """BigGAN for BigGAN2048, StyleGAN2 for all its variants; consistency-regularised ContraGANs are ContraGANs."""
    name = re.sub(r"-train.*|\(.*", "", run)
    name = re.sub(r"^StyleGAN2.*", "StyleGAN", name)
    name = re.sub(r"^(IC|C)RGAN$", "ContraGAN", name)
    return re.sub(r"\d+$", "", name)


def first_at(points, fid):
    """Images at which the FID was first reached, between evaluations on a line over ln(images)."""
    best = None
    for images, value in points:
        if value <= fid:
            if best is None or best[0] == 0:
                return images
            share = (best[1] - fid) / (best[1] - value)
            return best[0] * (images / best[0]) ** share
        if best is None or value < best[1]:
            best = (images, value)
    return None


class Trainings:
    """The points of each run: images and FID, without what a set-back undid."""

    def __init__(self, points, runs):
        self.rows, self.points = {}, {}
        with open(points, newline="") as file:
            for row in csv.DictReader(file):
                if row["fid"]:
                    self.points.setdefault(row["run"], []).append((1e3 * float(row["d_real_kimg"]), float(row["fid"])))
        with open(runs, newline="") as file:
            for row in csv.DictReader(file):
                self.rows[row["run"]] = row
        for run, found in self.points.items():
            kept = []
            for point in found:
                same = [i for i, other in enumerate(kept) if other[0] == point[0]]
                if same:  # evaluated again
                    kept[same[0]] = point
                    continue
                while kept and kept[-1][0] > point[0]:
                    kept.pop()
                kept.append(point)
            self.points[run] = kept

    def reached(self, run, fid):
        return first_at(self.points[run], fid)


class Program:
    def __init__(self, path, folder):
        self.path, self.folder = path, pathlib.Path(folder)

    def write_points(self, name, trainings, runs, images=math.inf):
        path = self.folder / name
        with open(path, "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["run", "images", "fid"])
            for run in runs:
                out.writerows([run, *point] for point in trainings.points[run] if point[0] <= images)
        return path

    def call(self, *arguments):
        return subprocess.run([self.path, "quality", *map(str, arguments)], check=True, capture_output=True,
                              text=True).stdout

    def forecast(self, curve, points, runs, run, images, targets):
        return json.loads(self.call("forecast", points, "--runs", runs, "--run", run, "--curve", curve, "--images",
                                    images, "--fid", ",".join(map(str, targets)), "--format", "json", "--quiet"))

    def prior(self, curve, row, images, targets):
        reference = f"{row['fid_reference']} {row['fid_images']}"
        batch = int(row["batch"]) * int(row["accumulation"])
        facts = []
        for name in ("dataset", "backbone", "conditioning", "loss", "diffaug", "ada"):
            facts += [f"--{name}", row[name]]
        return json.loads(self.call("forecast", *facts, "--reference", reference, "--batch", batch, "--curve", curve,
                                    "--images", images, "--fid", ",".join(map(str, targets)), "--format", "json"))


class Scores:
    def __init__(self):
        self.held, self.width, self.pool_held, self.pool_width = [], [], [], []
        self.by_training = []
        self.brier, self.base, self.off, self.held_tenth, self.best, self.best_held = [], [], [], [], [], []

    def print(self, name, count):
        def mean(values):
            return statistics.fmean(values) if values else math.nan

        def middle(values):
            return statistics.median(values) if values else math.nan

        print(f"{name:12.12} {count:5} {len(self.held):8} {mean(self.held):7.0%} {math.exp(mean(self.width)):7.1f} "
              f"{math.exp(mean(self.pool_width)):7.1f} {mean(self.brier):7.3f} {mean(self.base):7.3f} "
              f"{middle(self.off):8.0%} {mean(self.held_tenth):7.0%} {middle(self.best):8.0%} {mean(self.best_held):7.0%}")

    def add(self, other):
        for name, values in vars(self).items():
            values += getattr(other, name)


def quantile(values, share):
    values = sorted(values)
    at = share * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def score_from_kind(scores, outlook, trainings, run, others):
    before = len(scores.held)
    points = trainings.points[run]
    for target in outlook["targets"]:
        fid = target["fid"]
        when = trainings.reached(run, fid)
        pool = [found for found in (trainings.reached(other, fid) for other in others) if found]
        scores.brier.append((1 - target["probability"] - (when is None)) ** 2)
        scores.base.append((1 - len(pool) / len(others) - (when is None)) ** 2)
        if when is None or when <= points[0][0] or not target["images"] or len(pool) < 4:
            continue
        low, high = (max(end, points[0][0]) for end in target["images"]["interval"])
        scores.held.append(low <= when <= high)
        scores.width.append(math.log(high / low))
        low, high = quantile(pool, 0.05), quantile(pool, 0.95)
        scores.pool_held.append(low <= when <= high)
        scores.pool_width.append(math.log(high / low))
    if scores.held[before:]:
        scores.by_training.append(statistics.fmean(scores.held[before:]))


def score_after_a_tenth(scores, outlook, trainings, run):
    best = min(fid for images, fid in trainings.points[run])
    for target in outlook["targets"]:
        when = trainings.reached(run, target["fid"])
        if when is None or target["reached"] or not target["images"]:
            continue
        low, high = target["images"]["interval"]
        scores.off.append(abs(target["images"]["median"] / when - 1))
        scores.held_tenth.append(low <= when <= high)
    low, high = outlook["best_fid"]["interval"]
    scores.best.append(abs(outlook["best_fid"]["median"] / best - 1))
    scores.best_held.append(low <= best <= high)


def hold_out(program, trainings, runs_csv, one_by_one):
    families = {}
    for run in trainings.points:
        families.setdefault(run if one_by_one else family_of(run), []).append(run)
    total = Scores()
    print("                      from the kind alone                               after a tenth")
    print(f"{'family':12} {'runs':>5} {'targets':>8} {'held':>7} {'width':>7} {'pooled':>7} {'Brier':>7} {'base':>7} "
          f"{'images':>8} {'held':>7} {'best':>8} {'held':>7}")
    for family, runs in sorted(families.items()):
        others = [run for run in trainings.points if run not in runs]
        curve = program.folder / "curve.json"
        program.call("fit", program.write_points("others.csv", trainings, others), "--runs", runs_csv, "-o", curve)
        scores = Scores()
        for run in runs:
            last = trainings.points[run][-1][0]
            score_from_kind(scores, program.prior(curve, trainings.rows[run], last, TARGETS), trainings, run, others)
            tenth = max(last / 10, trainings.points[run][1][0])
            points = program.write_points("tenth.csv", trainings, [run], tenth)
            score_after_a_tenth(scores, program.forecast(curve, points, runs_csv, run, last, TARGETS), trainings, run)
        scores.print(family, len(runs))
        total.add(scores)
    total.print("all", len(trainings.points))
    print(f"with each of {len(total.by_training)} trainings counted once, {statistics.fmean(total.by_training):.0%} hold")
    narrower = 1 - statistics.fmean(total.width) / statistics.fmean(total.pool_width)
    print(f"intervals are {narrower:.0%} narrower, in ln(images), than the spread of all others, "
          f"which holds {statistics.fmean(total.pool_held):.0%}")


def early_forecasts(program, logs, facts):
    every = [0, 0, 0]
    for log in logs:
        lines = pathlib.Path(log).read_text().splitlines()
        points = [(1000 * int(re.search(r"snapshot-(\d+)", line)[1]), json.loads(line)["results"]["fid50k_full"])
                  for line in lines]
        for seen in sorted({3, 5, 8, round(len(lines) / 4), round(len(lines) / 2)}):
            best, lowest = (min((fid for _, fid in some), default=0) for some in (points[:seen], points))
            targets = [best * 0.9 ** k for k in range(1, 100) if best * 0.9 ** k >= lowest]
            if not 3 <= seen < len(lines) or not targets:
                continue
            cut = program.folder / "cut.jsonl"
            cut.write_text("\n".join(lines[:seen]) + "\n")
            outlook = json.loads(program.call("forecast", cut, "--images", points[-1][0], "--fid",
                                              ",".join(f"{target:.6g}" for target in targets), *facts,
                                              "--format", "json", "--quiet"))
            ends = [(when, *one["images"]["interval"]) for one in outlook["targets"]
                    if (when := first_at(points, one["fid"]))]
            found = [sum(low <= when <= high for when, low, high in ends), len(ends),
                     sum(when < low for when, low, _ in ends)]
            width = statistics.median(high / low for _, low, high in ends)
            print(f"{pathlib.Path(log).name}: first {seen} of {len(lines)}: {found[0]} of {found[1]}, {found[2]} before, "
                  f"median width a factor of {width:.1f}")
            every = [sum(both) for both in zip(every, found)]
    print(f"all: {every[0]} of {every[1]}, {every[2]} before")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/ganymede")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--points", help="a CSV of points")
    source.add_argument("--logs", nargs="+", help="metric files of NVIDIA's programs")
    parser.add_argument("--of", default="", help="options of `quality forecast` that say what the logs are of")
    parser.add_argument("--runs", help="a CSV of runs, with --points")
    parser.add_argument("--one-by-one", action="store_true", help="leave out single trainings, not whole families")
    arguments = parser.parse_args()
    if arguments.points and not arguments.runs:
        parser.error("--points needs --runs")
    with tempfile.TemporaryDirectory() as folder:
        if arguments.logs:
            return early_forecasts(Program(arguments.program, folder), arguments.logs, shlex.split(arguments.of))
        trainings = Trainings(arguments.points, arguments.runs)
        hold_out(Program(arguments.program, folder), trainings, arguments.runs, arguments.one_by_one)


if __name__ == "__main__":
    main()
