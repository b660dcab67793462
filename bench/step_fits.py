#!/usr/bin/env python3
"""How far steps on another GPU and at another batch size are off, and the constants if one set at a time is left out.

  bench/step_fits.py

bench/step_fits/pairs.csv has published seconds of a step (or an image) of one training on two GPUs: tf_benchmarks 2017
(tensorflow/docs benchmarks.md @62da04c02d67), Gavel (stanford-futuredata/gavel @c4fa40097339, the mean of its two tables),
NVIDIA DeepLearningExamples (@291f0d02e815), MLPerf 0.7 (@0a8a85a209c8) and 4.1 (@b87b9e396f77), Lambda
(lambdal/deeplearning-benchmark @0551cb70ffdc). FLOPs and bytes are those of tests/calibration/gpu_transfer_test.cpp; where
a network's layers are not known, `flop_share` is an assumption. Steps of Gavel that their host binds are left out (ResNet-18;
ResNet-50 below batch 32, the language model below 40, the Transformer below 64 and at 256, where one GPU falls off).
bench/step_fits/batches.csv has seconds of a step by images in a pass, on one GPU but for StyleGAN3 (NVlabs/stylegan3
@c233a919a6fa) and StyleGAN2-ADA (NVlabs/stylegan2-ada-pytorch @d72cc7d041b4): these are of 2 to 8 GPUs, divided by what
as many GPUs add to a step of the same program at 1,024 px, where the pass is constant (1 to 7 %).

The table of GPUs and the constants are read from calibration/gpu_transfer.cpp and calibration/batch_step.hpp.
"""

import csv
import math
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


def source(name):
    with open(os.path.join(ROOT, "calibration", name)) as file:
        return file.read()


def table(name):
    with open(os.path.join(HERE, "step_fits", name)) as file:
        return list(csv.DictReader(file))


TRANSFER = source("gpu_transfer.cpp")
EXPONENT = float(re.search(r"kFillExponent = ([\d.]+)", TRANSFER)[1])
TF32 = float(re.search(r"kTf32Share = ([\d.]+)", TRANSFER)[1])
UNKNOWN = float(re.search(r"kUnknownFlopShare = ([\d.]+)", source("gpu_transfer.hpp"))[1])
FIXED = tuple(float(re.search(name + r" = ([\d.]+)", source("batch_step.hpp"))[1])
              for name in ("kFixedPerNetwork_s", "kFixedExponent"))
KINDS = {}
for row in re.findall(r'GpuKind\{"(\w+)", "(\w*)", ([^}]*)\}', TRANSFER):
    numbers = row[2].split(",")
    KINDS[row[0] + row[1]] = [float(x) for x in numbers[:6]] + [len(numbers) > 6]


def kind(gpu):
    name = gpu.upper().replace("-", "")
    return KINDS[name] if name in KINDS else KINDS[name.replace("40GB", "")]


def limits(gpu, precision, k80):
    fp32, tensor, bandwidth, fp32_share, tensor_share, bandwidth_share, has_tf32 = kind(gpu)
    plain = fp32 * (k80 if gpu == "K80" and k80 else fp32_share)
    if precision == "fp16":
        rate = tensor * tensor_share
    else:
        rate = max(plain, tensor / 2 * tensor_share * TF32) if has_tf32 else plain
    return rate * 1e12, bandwidth * bandwidth_share * 1e9


def transfer_error(pair, exponent=EXPONENT, k80=None, counted=True):
    """ln(predicted / published) of the step on the second GPU."""
    rate, bytes_rate = limits(pair["from"], pair["precision"], k80)
    other_rate, other_bytes_rate = limits(pair["to"], pair["precision"], k80)
    share = UNKNOWN
    if counted and pair["flop_share"]:
        share = float(pair["flop_share"])
    elif counted:
        computing, moving = float(pair["gflop"]) * 1e9 / rate, float(pair["gbyte"]) * 1e9 / bytes_rate
        share = computing / (computing + moving)
    ratio = share * rate / other_rate + (1 - share) * bytes_rate / other_bytes_rate
    return exponent * math.log(ratio) + math.log(float(pair["from_s"]) / float(pair["to_s"]))


def bandwidth_error(pair):
    return math.log(kind(pair["from"])[2] / kind(pair["to"])[2] * float(pair["from_s"]) / float(pair["to_s"]))


def mean(values):
    values = [abs(value) for value in values]
    return sum(values) / len(values)


def percent(value):
    return f"{100 * value:5.1f} %"


def print_transfer():
    pairs = table("pairs.csv")
    print(f"GPU to GPU: {len(pairs)} pairs, mean |ln(predicted / published)|")
    print("  as the program predicts  ", percent(mean(map(transfer_error, pairs))))
    print("  without FLOPs and bytes  ", percent(mean(transfer_error(pair, counted=False) for pair in pairs)))
    print("  ratio of the bandwidths  ", percent(mean(map(bandwidth_error, pairs))))
    print_carriers([(family(p), p["source"], {p["from"], p["to"]}, transfer_error(p), bandwidth_error(p)) for p in pairs])
    grid = [(a / 100, k / 100) for a in range(80, 101) for k in range(18, 34)]
    for what, key in (("GPU pair", lambda p: f"{p['from']} to {p['to']}"), ("training", lambda p: p["training"]),
                      ("source", lambda p: p["source"])):
        print(f"\n  one {what} left out: its pairs, fitted exponent, fitted share of the K80, error, ratio of bandwidths")
        errors = []
        for name in sorted({key(pair) for pair in pairs}):
            rest = [pair for pair in pairs if key(pair) != name]
            left = [pair for pair in pairs if key(pair) == name]
            best = min(grid, key=lambda fit: mean(transfer_error(pair, *fit) for pair in rest))
            found = [transfer_error(pair, *best) for pair in left]
            errors += found
            print(f"    {name:24}{len(left):4}{best[0]:7.2f}{best[1]:7.2f}", percent(mean(found)),
                  percent(mean(map(bandwidth_error, left))))
        print(f"    {'all':24}{len(errors):4}{'':14}", percent(mean(errors)),
              f"  root mean square {percent(math.sqrt(sum(e * e for e in errors) / len(errors)))}")


def print_carriers(rows):
    """Who would carry each family of steps: the model, the ratio of bandwidths or their geometric mean, whichever is best on
    the family's other rows, the model where there are none. Rows: family, source, GPUs, ln(predicted / published) of both."""
    carriers = {"model": lambda model, ratio: model, "ratio": lambda model, ratio: ratio, "mean": lambda model, ratio: (model + ratio) / 2}

    def error(rows, name):
        return mean(carriers[name](*row[3:]) for row in rows)

    print("  family: pairs, errors of model, ratio and mean; of the choice with its source or one GPU left out, and what is chosen then")
    left_out = {"source": [], "GPU": []}
    for family in sorted({row[0] for row in rows}):
        mine = [row for row in rows if row[0] == family]
        text = f"    {family:40}{len(mine):4} " + " ".join(percent(error(mine, name)) for name in carriers)
        for what, names in (("source", lambda row: {row[1]}), ("GPU", lambda row: row[2])):
            found, chosen = [], set()
            for name in sorted(set().union(*map(names, mine))):
                rest = [row for row in mine if name not in names(row)]
                best = min(carriers, key=lambda carrier: error(rest, carrier)) if rest else "model"
                found += [carriers[best](*row[3:]) for row in mine if name in names(row)]
                chosen.add(best)
            left_out[what] += found
            text += f"  {what} {percent(mean(found))} {', '.join(sorted(chosen))}"
        print(text)
    print(f"    {'all':40}{len(rows):4} {percent(error(rows, 'model'))}  " +
          ", ".join(f"{what} left out {percent(mean(found))}" for what, found in left_out.items()))


def family(pair):
    begins = pair["precision"] != "fp16" and kind(pair["from"])[6] != kind(pair["to"])[6]
    return (f"{'uncounted' if pair['flop_share'] else 'counted'}, "
            f"{'begins to run in TF32' if begins else 'since Ampere' if kind(pair['from'])[6] else 'from before Ampere'}")


# Launches bind it, which the rule does not describe.
NOT_FITTED = ("StyleGAN2-ADA",)


def batch_pairs():
    series = {}
    for row in table("batches.csv"):
        series.setdefault((row["set"], row["series"], row["gpu"], int(row["networks"])), []).append(
            (float(row["batch"]), float(row["step_s"])))
    for (name, _, gpu, networks), steps in series.items():
        for batch, step_s in steps:
            for other, other_s in steps:
                if other != batch:
                    yield name, gpu, networks, step_s, other / batch, other_s


def batch_error(pair, fit):
    _, gpu, networks, step_s, ratio, other_s = pair
    fixed_s = networks * fit[0] * (900 / kind(gpu)[2])**fit[1]
    share = fixed_s / (fixed_s + step_s)
    return math.log(step_s * (share + (1 - share) * ratio) / other_s)


def print_batches():
    pairs = list(batch_pairs())
    grid = [(s / 1000, e / 20) for s in range(10, 81, 2) for e in range(0, 31)]

    def sums(name):  # no pair counts more than 0.3, so that steps that launches bind do not decide the fit
        mine = [pair for pair in pairs if pair[0] == name]
        return [sum(min(0.3, abs(batch_error(pair, fit))) for pair in mine) / len(mine) for fit in grid]

    names = list(dict.fromkeys(pair[0] for pair in pairs))
    errors = {name: sums(name) for name in names}

    def fitted(to):
        return grid[min(range(len(grid)), key=lambda i: sum(errors[name][i] for name in to))]

    def row(what, mine, to):
        fit = fitted([name for name in to if name not in NOT_FITTED])
        print(f"    {what:16}{len(mine):4}", percent(mean(batch_error(pair, FIXED) for pair in mine)),
              f"{percent(mean(batch_error(pair, fit) for pair in mine))} ({1000 * fit[0]:.0f} ms, {fit[1]:.2f})",
              percent(mean(batch_error(pair, (0.05, 0)) for pair in mine)),
              *(percent(mean(math.log(p[3] * p[4] ** power / p[5]) for p in mine)) for power in (1, 0, 0.5)))

    print("\nAnother batch size: mean |ln(predicted / published)|, from each size to each other one")
    print("  set, pairs, as the program predicts, fitted without it, 50 ms, in proportion, unchanged, square root")
    row("all sets", pairs, names)
    for name in names:
        row(name, [pair for pair in pairs if pair[0] == name], [other for other in names if other != name])
    row("no StyleGAN3", [pair for pair in pairs if "StyleGAN3" in pair[0]],
        [other for other in names if "StyleGAN3" not in other])


if __name__ == "__main__":
    print_transfer()
    print_batches()
