#!/usr/bin/env python3
"""The forecasts of the program against the model of docs/quality.md written down again in Python.

    bench/quality_model.py --points studiogan_points.csv --runs studiogan_runs.csv

It reads the fitted file alone and shares no code with the program. Trainings are drawn from the kind; those with points
are weighted by how well they explain them (importance sampling), where the program walks at random through the
posterior. Printed are

- for trainings of the file, at an FID 1.3 times their best: the chance never to reach it within 1e9 images, the median
  and the ends of the interval of the images;
- the same after a tenth of a training, from its points, until its length;
- for families of trainings left out of the fit: how often the intervals of 90 % from the kind alone hold.

In each pair the first number is the program's. The noise of a single training's points is that of all trainings here;
the program estimates it anew from the points.
"""

import argparse
import json
import math
import pathlib
import random
import statistics
import tempfile

from quality import TARGETS, Program, Trainings, family_of, quantile

DIVERGED_ABOVE = 1.5
FARTHEST = 1e3  # millions of images that intervals reach to
FORGOTTEN = 0.2  # e-folds of the images over which residuals stay alike
FIRST = 0.1  # millions of images from which on trainings may diverge


def solve(matrix, right):
    """Gauss's elimination with pivots."""
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(i + 1, len(rows)):
            factor = rows[r][i] / rows[i][i]
            for c in range(i, len(rows) + 1):
                rows[r][c] -= factor * rows[i][c]
    out = [0.0] * len(rows)
    for i in reversed(range(len(rows))):
        out[i] = (rows[i][-1] - sum(rows[i][c] * out[c] for c in range(i + 1, len(rows)))) / rows[i][i]
    return out


class Kind:
    """What the model knows of trainings of one kind: normal distributions of the logarithms of shape and rate."""

    def __init__(self, model, kind):
        def row_of(facts):
            return [1.0 if e["factor"] == "all" else math.log(facts["batch"] / 128) if e["factor"] == "batch"
                    else float(facts.get(e["factor"]) == e["level"]) for e in model["effects"]]

        def variance(weights, priors):
            matrix = [[sum(w * row[i] * row[j] for w, row in zip(weights, rows)) + (priors[i] if i == j else 0)
                       for j in range(len(row))] for i in range(len(row))]
            return sum(a * b for a, b in zip(row, solve(matrix, row)))

        row, effects, spread = row_of(kind), model["effects"], model["spread"]
        rows = [row_of(run) for run in model["runs"]]
        known = {(e["factor"], e["level"]) for e in effects}
        factors = [f for f in model["effect_variance"] if f not in ("all", "batch")]
        unknown = [f for f in factors if (f, kind.get(f)) not in known]
        self.model = model
        self.mean = [sum(r * e["value"][d] for r, e in zip(row, effects)) for d in range(4)]
        widened = []  # how much the standard deviation exceeds that of trainings of one kind
        for d in range(4):
            of_effects = variance([1 / spread[d][d]] * len(rows),
                                  [1 / model["effect_variance"][e["factor"]][d] for e in effects])
            total = spread[d][d] + of_effects + sum(model["effect_variance"][f][d] for f in unknown)
            widened.append(math.sqrt(total / spread[d][d]))
        covariance = [[spread[i][j] * widened[i] * widened[j] for j in range(4)] for i in range(4)]
        self.lower = [[0.0] * 4 for _ in range(4)]
        for j in range(4):
            for i in range(j, 4):
                left = covariance[i][j] - sum(self.lower[i][k] * self.lower[j][k] for k in range(j))
                self.lower[i][j] = math.sqrt(left) if i == j else left / self.lower[j][j]
        hazards = [sum(r * e["ln_hazard"][0] for r, e in zip(of, effects)) for of in rows]
        weights = [run["ln_images"] * math.exp(hazard) for run, hazard in zip(model["runs"], hazards)]
        self.hazard = sum(r * e["ln_hazard"][0] for r, e in zip(row, effects))
        priors = [0.01 if e["factor"] == "all" else 1 for e in effects]
        self.hazard_sd = math.sqrt(len(unknown) + variance(weights, priors))

    def shape(self, rng):
        z = [rng.gauss(0, 1) for _ in range(4)]
        return [math.exp(self.mean[i] + sum(self.lower[i][j] * z[j] for j in range(i + 1))) for i in range(4)]

    def offset(self, rng):
        """ln of the best evaluation over the curve."""
        return math.sqrt(self.model["noise"]) * (self.model["best"] + rng.gauss(0, 1))

    def rate(self, rng):
        return math.exp(self.hazard + self.hazard_sd * rng.gauss(0, 1))


def images_from_kind(kind, fid, horizon, count, rng):
    """Millions of images to the FID, of those drawn trainings that reach it."""
    out = []
    for _ in range(count):
        floor, drop, half, slope = kind.shape(rng)
        ends = FIRST * math.exp(min(700, rng.expovariate(1) / kind.rate(rng)))
        above = fid * math.exp(-kind.offset(rng)) - floor
        if above <= 0:
            continue
        at = max(FIRST, half * max(0.0, drop / above - 1) ** (1 / slope))
        if at <= min(ends, horizon):
            out.append(at)
    return out


def images_from_points(kind, points, fid, horizon, count, rng):
    """The same of a training with points in millions of images, which has not diverged and not reached the FID."""
    log_points, before = [], None
    for x, value in points:
        weight = 1 if before is None else min(1, math.log(x / before) / 0.4)
        drifted = kind.model["noise"] + kind.model["drift"] ** 2 * math.log(points[-1][0] / x)
        log_points.append((x, math.log(value), weight / drifted))
        before = x
    log_best = min(y for _, y, _ in log_points)
    drawn, costs = [], []
    for _ in range(count):
        shape = kind.shape(rng)
        floor, drop, half, slope = shape
        drawn.append(shape)
        costs.append(sum(w * (y - math.log(floor + drop / (1 + (x / half) ** slope))) ** 2 for x, y, w in log_points))
    least = min(costs)
    weights = [math.exp((least - cost) / 2) for cost in costs]
    enough = sum(weights) ** 2 / sum(w * w for w in weights)
    rates = [kind.rate(rng) for _ in range(4000)]
    lasted = [math.exp(-rate * math.log(max(1, before / FIRST))) for rate in rates]
    reached, parts = [], 300
    ahead = math.log(max(horizon, FARTHEST) / before)
    for floor, drop, half, slope in rng.choices(drawn, weights, k=4000):
        offset, drift = kind.offset(rng), kind.model["drift"] * rng.gauss(0, 1)
        ends = rng.expovariate(1) / rng.choices(rates, lasted)[0]
        kept = log_best - offset - math.log(floor + drop / (1 + (before / half) ** slope))
        for part in range(parts + 1):
            at = ahead * part / parts
            if at > ends:
                break
            value = math.log(floor + drop / (1 + (before * math.exp(at) / half) ** slope)) + offset
            value += kept * math.exp(-at / FORGOTTEN)
            if value + drift * math.sqrt(at) <= math.log(fid):
                reached.append(before * math.exp(at))
                break
    return reached, sum(at <= horizon for at in reached) / 4000, enough


def kind_of(row):
    facts = {name: row[name].lower() for name in ("backbone", "conditioning", "loss", "diffaug", "ada")}
    facts["dataset"] = f"{row['dataset']} ({row['fid_reference']} {row['fid_images']})"
    facts["batch"] = float(row["batch"]) * float(row["accumulation"])
    return facts


def line(name, fid, theirs, mine):
    print(f"{name:28.28} FID {fid:5.4g}  " + "   ".join(f"{a:9.4g} {b:9.4g}" for a, b in zip(theirs, mine)))
    return [abs(theirs[0] - mine[0])] + [abs(math.log(a / b)) for a, b in zip(theirs[1:], mine[1:])]


def answer_of(target, drawn, share):
    theirs = [1 - target["probability"], target["images"]["median"], *target["images"]["interval"]]
    return theirs, [1 - share] + [1e6 * quantile(drawn, q) for q in (0.5, 0.05, 0.95)]


def from_kinds(program, model, curve, trainings, rng):
    print("from the kind: chance never to reach it, median, ends of the interval")
    off = []
    for run in model["runs"]:
        fid, row = round(1.3 * run["best_fid"], 1), trainings.rows[run["run"]]
        target = program.prior(curve, row, 1e9, [fid])["targets"][0]
        drawn = images_from_kind(Kind(model, run), fid, 1e3, 20000, rng)
        off.append(line(run["run"], fid, *answer_of(target, drawn, len(drawn) / 20000)))
    return off


def after_a_tenth(program, model, curve, trainings, runs_csv, rng):
    print("after a tenth: the same, and how many drawings carry the weight")
    off = []
    for run in model["runs"]:
        points = trainings.points[run["run"]]
        fid, last = round(1.3 * run["best_fid"], 1), points[-1][0]
        first = [point for point in points if point[0] <= max(last / 10, points[1][0])]
        best = min(value for _, value in first)
        file = program.write_points("tenth.csv", trainings, [run["run"]], first[-1][0])
        target = program.forecast(curve, file, runs_csv, run["run"], last, [fid])["targets"][0]
        # What has risen above its best, or is nearly there, is another matter.
        if first[-1][1] > DIVERGED_ABOVE * best or best <= fid or not target["images"]:
            continue
        scaled = [(images / 1e6, value) for images, value in first]
        drawn, share, enough = images_from_points(Kind(model, run), scaled, fid, last / 1e6, 100000, rng)
        if enough < 100 or len(drawn) < 100:
            print(f"{run['run']:28.28} FID {fid:5.4g}  too few drawings explain the points")
            continue
        off.append(line(run["run"], fid, *answer_of(target, drawn, share)))
        print(f"{'':28} {len(first)} points, {enough:.0f} drawings")
    return off


def coverage(program, trainings, runs_csv, rng):
    families, held = {}, [[], []]
    for run in trainings.points:
        families.setdefault(family_of(run), []).append(run)
    for family in families.values():
        curve = program.folder / "curve.json"
        others = [run for run in trainings.points if run not in family]
        program.call("fit", program.write_points("others.csv", trainings, others), "--runs", runs_csv, "-o", curve)
        model = json.loads(curve.read_text())
        for run in family:
            last, row = trainings.points[run][-1][0], trainings.rows[run]
            kind = Kind(model, kind_of(row))
            for target in program.prior(curve, row, last, TARGETS)["targets"]:
                when = trainings.reached(run, target["fid"])
                drawn = images_from_kind(kind, target["fid"], FARTHEST, 4000, rng)
                if when is None or when <= trainings.points[run][0][0] or not target["images"] or len(drawn) < 20:
                    continue
                low, high = target["images"]["interval"]
                held[0].append(low <= when <= high)
                held[1].append(quantile(drawn, 0.05) <= when / 1e6 <= quantile(drawn, 0.95))
    print(f"families left out, {len(held[0])} targets: intervals of the program hold "
          f"{statistics.fmean(held[0]):.1%}, of Python {statistics.fmean(held[1]):.1%}, "
          f"{sum(a != b for a, b in zip(*held))} decided otherwise")


def summary(off):
    names = ("chance", "ln(median)", "ln(low end)", "ln(high end)")
    print("largest and mean difference: " + "; ".join(
        f"{name} {max(column):.3f}, {statistics.fmean(column):.3f}" for name, column in zip(names, zip(*off))) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/ganymede")
    parser.add_argument("--points", required=True, help="a CSV of points")
    parser.add_argument("--runs", required=True, help="a CSV of runs")
    parser.add_argument("--curve", default="calibration/quality/data/studiogan.json", help="a fitted model")
    arguments = parser.parse_args()
    model, rng = json.loads(pathlib.Path(arguments.curve).read_text()), random.Random(1)
    trainings = Trainings(arguments.points, arguments.runs)
    with tempfile.TemporaryDirectory() as folder:
        program = Program(arguments.program, folder)
        summary(from_kinds(program, model, arguments.curve, trainings, rng))
        summary(after_a_tenth(program, model, arguments.curve, trainings, arguments.runs, rng))
        coverage(program, trainings, arguments.runs, rng)


if __name__ == "__main__":
    main()
