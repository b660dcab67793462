#!/usr/bin/env python3
"""Tests the model of spot capacity on recordings that were left out.

    bench/spot.py FOLDER          # the recordings of tools/fit_spot.py

Each region's recordings of a period and a GPU are left out in turn, and the model is fitted to the others. Twice a week
of a recording a training of 24 hours on one node begins, which waits for its zone, loses five minutes of work with its
node (a checkpoint every ten) and starts in five minutes. How long it took is compared with the interval of 90 % that the
model gives: for a zone of which nothing is known (`drawn`), and for one that was recorded in the days before (`past`). A training
that the recording does not see to its end counts as held if the interval reaches beyond that end.

At the end stands how wide an interval must be that is the same for all zones and holds a share of these trainings, chosen
with them in view: what is known of no zone cannot be said more narrowly and hold as much.
"""
import argparse
import math
import pathlib
import random
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tools"))
import fit_spot  # noqa: E402

WORK_H, START_H, LOST_H, DAY = 24.0, 5 / 60, 5 / 60, 86400.0
DRAWS = 400
PASTS = {"drawn": 0, "past of 3 days": 3, "past of a week": 7, "past of two weeks": 14}


def hours_of(states):
    """The hours that the work takes over (up, hours); infinite if they end before it."""
    time, left = 0.0, WORK_H
    for up, hours in states:
        if up and hours - START_H >= left:
            return time + START_H + left
        if up:
            left -= max(0.0, hours - START_H - LOST_H)
        time += hours
    return math.inf


def recorded(zone, begin):
    for (start, state), (stop, _) in zip(zone["rows"], zone["rows"][1:]):
        if stop > begin:
            yield int(state), (stop - max(start, begin)) * zone["scale"] / 3600


def drawn(mean_up, odds, spreads, rng):
    """A zone's states, from a moment at random on (platforms/spot.cpp)."""
    means = {True: mean_up, False: mean_up / odds}
    up, sign = rng.random() < odds / (1 + odds), 1
    while True:
        length = means[up] * math.exp(spreads[up] * rng.gauss(0, 1) + sign * spreads[up] ** 2 / 2)
        yield up, length * rng.random() if sign > 0 else length
        up, sign = not up, -1


def model_of(zones, gpu):
    """The class of a GPU as (mean, spread) of the logarithm of the mean up-time and of the logit of the availability."""
    classes = {zone["class"] for zone in zones}
    centres = {name: fit_spot.centre([z for z in zones if z["class"] == name]) for name in classes}
    *spreads, correlation = fit_spot.class_of(zones, centres)
    middle, wider = (centres[gpu], 1) if gpu in classes else (fit_spot.centre(zones), fit_spot.WIDER)
    return {"class": [(mean, spread * wider) for mean, spread in zip(middle, spreads)], "correlation": correlation,
            "noise": fit_spot.noise_of_past([(zone["rows"], zone["tick"]) for zone in zones]),
            "spreads": {up: fit_spot.likeliest("lognormal", zones, name)[1] for up, name in ((True, "up"), (False, "down"))}}


def interval(model, past, rng):
    parts = model["class"]
    if past:
        weights = [spread**2 / (spread**2 + noise / past[2]) for (_, spread), noise in zip(parts, model["noise"])]
        parts = [(mean + weight * (seen - mean), spread * math.sqrt(1 - weight))
                 for (mean, spread), weight, seen in zip(parts, weights, past)]
    hours = []
    for _ in range(DRAWS):
        first, own = rng.gauss(0, 1), rng.gauss(0, 1)
        second = model["correlation"] * first + math.sqrt(1 - model["correlation"] ** 2) * own
        (up, up_spread), (share, share_spread) = parts
        hours.append(hours_of(drawn(math.exp(up + up_spread * first), math.exp(share + share_spread * second),
                                    model["spreads"], rng)))
    hours.sort()
    return hours[DRAWS // 20], hours[-1 - DRAWS // 20]


def narrowest(hours, share):
    """The least upper / lower of an interval that holds that share of the trainings."""
    hours, count = sorted(hours), math.ceil(share * len(hours))
    return min(high / low for low, high in zip(hours, hours[count - 1:]))


def together(zones):
    """Correlation of the states of two zones at the same moments, in one region and in two."""
    pairs = {"one region": [], "two regions": []}
    for i, one in enumerate(zones):
        for other in zones[:i]:
            if (one["period"], one["class"], one["gpus"]) != (other["period"], other["class"], other["gpus"]):
                continue
            moments = range(0, int(min(one["rows"][-1][0], other["rows"][-1][0])), 600)
            states = [fit_spot.state_at(zone["rows"], moments) for zone in (one, other)]
            pairs["one region" if one["region"] == other["region"] else "two regions"].append(statistics.correlation(*states))
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    zones = []
    for path in sorted((parser.parse_args().folder / "skypilot").glob("*.csv")):
        zone = fit_spot.read_zone(path)
        place, _, gpus = path.stem.split("__")[3].split("_")
        zones.append(zone | {"period": path.stem.split("__")[2], "region": place[:-1], "gpus": gpus})
    all_held, all_took = {how: [] for how in PASTS}, []
    for group in sorted({(zone["period"], zone["region"], zone["class"]) for zone in zones}):
        inside = [zone for zone in zones if (zone["period"], zone["region"], zone["class"]) == group]
        model = model_of([zone for zone in zones if zone not in inside], group[2])
        rng, held = random.Random(1), {how: [] for how in all_held}
        unknown = interval(model, None, rng)
        for zone in inside:
            begin = 14 * DAY
            while begin < zone["rows"][-1][0] - 2 * DAY:
                took, end = hours_of(recorded(zone, begin)), (zone["rows"][-1][0] - begin) * zone["scale"] / 3600
                all_took.append(took)
                for how, days in PASTS.items():
                    up, share, times = fit_spot.window_of(zone["rows"], begin - days * DAY, begin, zone["tick"]) if days else [0] * 3
                    past = (up + math.log(zone["scale"] / 3600), share, times)
                    low, high = interval(model, past, rng) if days else unknown
                    held[how].append((low <= took <= high if math.isfinite(took) else high > end, high / low))
                begin += 3.5 * DAY
        report(" ".join(group), held)
        for how in all_held:
            all_held[how] += held[how]
    report("all", all_held)
    for share in (0.85, 0.9, 0.95):
        print(f"one interval for all zones, chosen in hindsight: upper / lower {narrowest(all_took, share):.1f} to hold {100 * share:.0f} %")
    for where, values in together(zones).items():
        print(f"states of two zones in {where}: correlation {statistics.mean(values):.2f} (mean of {len(values)} pairs, "
              f"{min(values):.2f} to {max(values):.2f})")


def report(name, held):
    for how, cases in held.items():
        ok = sum(is_held for is_held, _ in cases)
        print(f"{name}: {how}: {ok} of {len(cases)} held ({100 * ok / len(cases):.0f} %), upper / lower "
              f"{statistics.median(ratio for _, ratio in cases):.1f}")


if __name__ == "__main__":
    main()
