#!/usr/bin/env python3
"""Tests the model of spot capacity on recordings that were left out.

    bench/spot.py FOLDER          # the recordings of tools/fit_spot.py

Each region's recordings of a period and a GPU are left out in turn, and the model is fitted to the others. Twice a week
of a recording a training of 24 hours on one node begins, which waits for its zone, loses five minutes of work with its
node (a checkpoint every ten) and starts in five minutes. How long it took is compared with the interval of 90 % that the
model gives: for a zone of which nothing is known (`drawn`), and for one that was recorded in the days before (`past`). A training
that the recording does not see to its end counts as held if the interval reaches beyond that end.

The same is done for trainings that may be in any zone of their region: whenever their node is lost, they go to the first zone
that is up. Their intervals are given for zones that are drawn and come and go independently, and for zones that follow each other.

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
SEVERAL_DRAWS = 200
LONGEST_H = 1000.0  # of a training in any of several zones
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


def in_any(zones):
    """A node's states in zones of which it takes the first that is up whenever it has none."""
    zones, now, ups, ends = [iter(zone) for zone in zones], 0.0, [False] * len(zones), [0.0] * len(zones)
    while now < LONGEST_H:
        for i, zone in enumerate(zones):
            while ends[i] <= now:
                state = next(zone, None)
                if state is None:
                    return
                ups[i], ends[i] = state[0], ends[i] + state[1]
        end = ends[ups.index(True)] if any(ups) else min(ends)
        yield any(ups), end - now
        now = end


def narrowed(model, past):
    """The class of the model, or what a past leaves of it."""
    parts = model["class"]
    if not past:
        return parts
    weights = [spread**2 / (spread**2 + noise / past[2]) for (_, spread), noise in zip(parts, model["noise"])]
    return [(mean + weight * (seen - mean), spread * math.sqrt(1 - weight))
            for (mean, spread), weight, seen in zip(parts, weights, past)]


def interval(model, pasts, rng, region=None):
    """The interval for zones with these pasts; `region` says how they follow each other (fit_spot.region_of)."""
    hours, known = [], [narrowed(model, past) for past in pasts]
    draws = DRAWS if len(pasts) == 1 else SEVERAL_DRAWS
    for draw in range(draws):
        zones, sums, shocks = [], [0.0, 0.0], fit_spot.Shocks(random.Random(draw))
        for before, ((up, up_spread), (share, share_spread)) in enumerate(known):
            alike = region["alike"] if region and not pasts[before] else 0.0
            weight = alike / (1 + (before - 1) * alike)  # sim/run/capacity.cpp
            first, own = (weight * sum_ + math.sqrt(1 - before * alike * weight) * rng.gauss(0, 1) for sum_ in sums)
            sums = [sums[0] + first, sums[1] + own]
            second = model["correlation"] * first + math.sqrt(1 - model["correlation"] ** 2) * own
            mean_up, odds = math.exp(up + up_spread * first), math.exp(share + share_spread * second)
            zones.append(fit_spot.following({True: mean_up, False: mean_up / odds}, model["spreads"], region["follows"], shocks, rng)
                         if region else drawn(mean_up, odds, model["spreads"], rng))
        hours.append(hours_of(in_any(zones) if len(zones) > 1 else zones[0]))
    hours.sort()
    return hours[draws // 20], hours[-1 - draws // 20]


def narrowest(hours, share):
    """The least upper / lower of an interval that holds that share of the trainings."""
    hours, count = sorted(hours), math.ceil(share * len(hours))
    return min(high / low for low, high in zip(hours, hours[count - 1:]))


def together(zones):
    """Correlation of the states of two zones of one kind at the same moments, in one region and in two."""
    pairs = {"one region": fit_spot.pairs_of(zones), "two regions": [
        (one, other) for i, one in enumerate(zones) for other in zones[:i]
        if one["region"] != other["region"] and all(one[key] == other[key] for key in ("period", "class", "gpus"))]}
    return {where: [fit_spot.correlation_of(pair) for pair in found] for where, found in pairs.items()}


def past_of(zone, begin, days):
    if not days:
        return None
    up, share, times = fit_spot.window_of(zone["rows"], begin - days * DAY, begin, zone["tick"])
    return up + math.log(zone["scale"] / 3600), share, times


def begins_of(zones):
    begin = 14 * DAY
    while begin < min(zone["rows"][-1][0] for zone in zones) - 2 * DAY:
        yield begin
        begin += 3.5 * DAY


def several(zones, model, region, held):
    """Trainings that may be in any of these zones, of which nothing is known and none of the model has seen."""
    found = {how: interval(model, [None] * len(zones), random.Random(1), follow)
             for how, follow in (("independent", None), ("following", region))}
    for begin in begins_of(zones):
        took = hours_of(in_any([recorded(zone, begin) for zone in zones]))
        end = (min(zone["rows"][-1][0] for zone in zones) - begin) * zones[0]["scale"] / 3600
        for how, (low, high) in found.items():
            held.setdefault(how, []).append((low <= took <= high if math.isfinite(took) else high > end, high / low))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    zones = []
    for path in sorted((parser.parse_args().folder / "skypilot").glob("*.csv")):
        zones.append(fit_spot.read_zone(path))
    all_held, all_took, in_several = {how: [] for how in PASTS}, [], {}
    for group in sorted({(zone["period"], zone["region"], zone["class"]) for zone in zones}):
        inside = [zone for zone in zones if (zone["period"], zone["region"], zone["class"]) == group]
        others = [zone for zone in zones if zone not in inside]
        model = model_of(others, group[2])
        rng, held = random.Random(1), {how: [] for how in all_held}
        unknown = interval(model, [None], rng)
        for zone in inside:
            for begin in begins_of([zone]):
                took, end = hours_of(recorded(zone, begin)), (zone["rows"][-1][0] - begin) * zone["scale"] / 3600
                all_took.append(took)
                for how, days in PASTS.items():
                    low, high = interval(model, [past_of(zone, begin, days)], rng) if days else unknown
                    held[how].append((low <= took <= high if math.isfinite(took) else high > end, high / low))
        report(" ".join(group), held)
        for how in all_held:
            all_held[how] += held[how]
        region, found = fit_spot.region_of(others, model["spreads"]), {}
        for gpus in sorted({zone["gpus"] for zone in inside}):
            several([zone for zone in inside if zone["gpus"] == gpus], model, region, found)
        report(f"{' '.join(group)}, any zone (follows {region['follows']}, alike {region['alike']})", found)
        for how, cases in found.items():
            in_several.setdefault(how, []).extend(cases)
    report("all", all_held)
    report("all, any zone of the region", in_several)
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
