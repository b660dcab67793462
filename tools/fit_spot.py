#!/usr/bin/env python3
"""Fits the model of spot capacity to recordings and writes platforms/spot/measured.json.

    tools/fit_spot.py FOLDER -o platforms/spot/measured.json

FOLDER holds `skypilot/*.csv` (time_s,available_nodes; the last row ends with END), one file for each zone, period and
instance, and `bamboo/*.csv` (time_s,nodes). They were made from skypilot-org/spot-traces @221da1ab9bdf
(availability/1-node) and uclasystem/bamboo @808092932894. The file that is written names their licences and doubts.

A zone alternates between up (a node is available and is kept) and down. Its mean up-time and its availability are the
measured ones. The family and the spread of the durations are the same for all zones: the likeliest ones, given each
zone's means. The difference between zones is described by the mean and standard deviation of the logarithm of the mean
up-time and of the logit of the availability.

Needs only Python's standard library, and writes the same bytes each time.
"""
import argparse
import csv
import json
import math
import pathlib
import random
import statistics

# Seconds between two samples of a recording. A duration is known to half of that in either direction; one shorter than
# 1 1/2 of it may have been anything shorter. A duration that the start or end of the recording cuts off lasted at least
# as long as was recorded.
TICKS = {"aws-02-15-2023": 585.0, "aws-10-26-2022": 600.0}
# The samples of this period and the duration that its README states disagree by up to a factor of 2. This is the
# middle.
DOUBTFUL = {"aws-10-26-2022": 1 / math.sqrt(2)}
# Nodes that were asked for, taken to be the most that were ever held.
BAMBOO = {"p3_aws_nodes.csv": 32, "g4dn_aws_nodes.csv": 24}
# skypilot-org/spot-traces @b26631383e2b, availability/16-node/aws-08-27-2023: sixteen nodes were available all
# together or not at all, except for a few samples.
SIXTEEN_NODES = 1.0
# As platforms/spot_shocks.cpp: shared shocks of one kind an hour, and the hours before a run.
SHARED_PER_H, BEFORE_H = 10.0, 100.0
SHARES = (0.7, 0.8, 0.9, 0.95)
SIMULATED_H = 2500
# Factor on the spread for GPUs that nobody measured: an assumption.
WIDER = 1.5
WEEK = 7 * 86400.0


def rows_of(path):
    with open(path, newline="") as file:
        return [(float(time), value) for time, value in list(csv.reader(file))[1:]]


def read_zone(path):
    """Reads a zone's up and down durations in seconds, each with whether the recording cut it off."""
    rows = rows_of(path)
    _, _, period, name = path.stem.split("__")
    tick = TICKS[period]
    up, down = [], []
    for i, ((start, state), (end, following)) in enumerate(zip(rows, rows[1:])):
        cut = i == 0 or following == "END"
        (up if int(state) else down).append((end - start, cut))
    total = rows[-1][0] - rows[0][0]
    scale = DOUBTFUL.get(period, 1.0)
    place, _, gpus = name.split("_")
    return {
        "series": f"{period}/{name}", "period": period, "region": place[:-1], "gpus": gpus, "class": name.split("_")[1].upper(), "tick": tick, "rows": rows, "up": up, "down": down,
        "availability": sum(length for length, _ in up) / total,
        "mean_up_s": statistics.mean(length for length, _ in up),
        "mean_down_s": statistics.mean(length for length, _ in down),
        "scale": scale,
    }


def normal_cdf(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def lognormal(mean, spread):
    middle = math.log(mean) - spread * spread / 2
    return lambda t: normal_cdf((math.log(t) - middle) / spread)


def weibull(mean, shape):
    scale = mean / math.gamma(1 + 1 / shape)
    return lambda t: -math.expm1(-((t / scale) ** shape))


def log_logistic(mean, shape):
    scale = mean * math.sin(math.pi / shape) / (math.pi / shape)
    return lambda t: 1 / (1 + (t / scale) ** -shape)


FAMILIES = {"lognormal": (lognormal, 0.3, 4.0), "weibull": (weibull, 0.15, 3.0), "log-logistic": (log_logistic, 1.01, 6.0),
            "exponential": (lambda mean, _: weibull(mean, 1.0), 1.0, 1.0)}


def log_likelihood(cdf, durations, tick):
    sum_ = 0.0
    for length, cut in durations:
        below = 0.0 if length < 1.5 * tick else cdf(length - tick / 2)
        chance = 1 - below if cut else cdf(length + tick / 2) - below
        sum_ += math.log(max(chance, 1e-300))
    return sum_


def likeliest(family, zones, which):
    """Returns (log-likelihood, shape) for the durations of all zones, with each zone's measured mean."""
    make, low, high = FAMILIES[family]

    def total(shape):
        return sum(log_likelihood(make(zone[f"mean_{which}_s"], shape), zone[which], zone["tick"]) for zone in zones)

    golden = (math.sqrt(5) - 1) / 2
    while high - low > 1e-4:
        left, right = high - golden * (high - low), low + golden * (high - low)
        if total(left) < total(right):
            low = left
        else:
            high = right
    return total((low + high) / 2), (low + high) / 2


def distance(cdf, durations, tick):
    """Kolmogorov's distance: the largest difference between the fitted and the counted share of durations up to a length."""
    lengths = sorted(length for length, _ in durations)
    return max(abs((i + 1) / len(lengths) - cdf(length + tick / 2))
               for i, length in enumerate(lengths) if i + 1 == len(lengths) or lengths[i + 1] != length)


def logit(share):
    return math.log(share / (1 - share))


def window_of(rows, begin, end, tick):
    """The logarithm of the mean up-time in seconds, the logit of the availability and the number of up-times between two times."""
    up, times = 0.0, 0
    for (start, state), (stop, _) in zip(rows, rows[1:]):
        inside = min(stop, end) - max(start, begin)
        if inside > 0 and state != "END" and int(state):
            up, times = up + inside, times + 1
    up, times = min(max(up, tick / 2), end - begin - tick / 2), max(times, 1)
    return math.log(up / times), logit(up / (end - begin)), times


def state_at(rows, moments):
    """Whether the zone is up at each of the ascending times."""
    states, row = [], 0
    for moment in moments:
        while row + 1 < len(rows) and rows[row + 1][0] <= moment:
            row += 1
        states.append(0 if rows[row][1] == "END" else min(1, int(rows[row][1])))
    return states


def noise_of_past(recordings):
    """How far the second of two weeks is from the first, as the variance for a single up-time: a week with n has 1/n of it."""
    off, weight = [0.0, 0.0], 0.0
    for rows, tick in recordings:
        begin = 0.0
        while begin + 2 * WEEK <= rows[-1][0]:
            first, second = (window_of(rows, at, at + WEEK, tick) for at in (begin, begin + WEEK))
            off = [sum_ + (second[i] - first[i]) ** 2 for i, sum_ in enumerate(off)]
            weight += 1 / first[2] + 1 / second[2]
            begin += WEEK / 2
    return off[0] / weight, off[1] / weight


def class_of(zones, centre_of):
    ups = [math.log(zone["mean_up_s"] * zone["scale"] / 3600) for zone in zones]
    shares = [logit(zone["availability"]) for zone in zones]
    # Deviations are from each class's own centre, and pooled, because four zones of one class say too little of a
    # spread.
    off_up = [u - centre_of[z["class"]][0] for u, z in zip(ups, zones)]
    off_share = [s - centre_of[z["class"]][1] for s, z in zip(shares, zones)]
    free = len(zones) - len(centre_of)
    square = lambda values, others: sum(a * b for a, b in zip(values, others)) / free
    spread_up, spread_share = math.sqrt(square(off_up, off_up)), math.sqrt(square(off_share, off_share))
    return spread_up, spread_share, square(off_up, off_share) / (spread_up * spread_share)


def pairs_of(zones):
    """Pairs of zones of one region, for one period, GPU and number of GPUs."""
    kind = lambda zone: tuple(zone[key] for key in ("period", "region", "class", "gpus"))
    return [(one, other) for i, one in enumerate(zones) for other in zones[:i] if kind(one) == kind(other)]


def correlation_of(pair):
    """Correlation of the recorded states of two zones at the same moments."""
    moments = range(0, int(min(zone["rows"][-1][0] for zone in pair)), 600)
    return statistics.correlation(*(state_at(zone["rows"], moments) for zone in pair))


def alike_of(zones, centre_of):
    """Correlation of what zones of one region are drawn from: the mean of that of up-times and of availabilities."""
    spreads = class_of(zones, centre_of)[:2]
    off = lambda zone: [value - mean for value, mean in zip(centre([zone]), centre_of[zone["class"]])]
    products = [statistics.mean(a * b / spread**2 for a, b, spread in zip(off(one), off(other), spreads))
                for one, other in pairs_of(zones)]
    return statistics.mean(products)


class Shocks:
    """The shocks that all zones of a region see, drawn as far as they are asked for: (hour, kind, size from 0 to 1)."""

    def __init__(self, rng):
        self.rng, self.list = rng, []

    def __iter__(self):
        at = 0
        while True:
            if at == len(self.list):
                last = self.list[-1][0] if self.list else -BEFORE_H
                self.list.append((last + self.rng.expovariate(2 * SHARED_PER_H), self.rng.random() < 0.5, self.rng.random()))
            yield self.list[at]
            at += 1


def following(means, spreads, follows, shocks, rng):
    """A zone's states from 0 on as (up, hours), with means in hours by state (platforms/spot_shocks.cpp)."""
    middles = {up: math.log(means[up]) - spreads[up] ** 2 / 2 for up in means}

    def hazard(up, age):
        z = (math.log(age) - middles[up]) / spreads[up]
        return math.exp(-z * z / 2) / (math.sqrt(2 * math.pi) * spreads[up] * age * max(1e-300, 0.5 * math.erfc(z / math.sqrt(2))))

    most = {up: 1.01 * max(hazard(up, math.exp(middles[up] + spreads[up] * z / 10)) for z in range(-40, 20)) for up in means}
    up = rng.random() < means[True] / (means[True] + means[False])
    since = -BEFORE_H - math.exp(middles[up] + spreads[up] * (rng.gauss(0, 1) + spreads[up])) * rng.random()
    shared = iter(shocks)
    (when, takes, size), own = next(shared), -BEFORE_H + rng.expovariate(most[up])
    reported = 0.0
    while True:
        now = min(when, own)
        if when <= own:
            size *= SHARED_PER_H
            changes = takes == up and size < follows * most[up] and size < follows * hazard(up, now - since)
            when, takes, size = next(shared)
        else:
            rate = hazard(up, now - since)
            changes = rng.random() * most[up] < rate - min(follows * rate, SHARED_PER_H)
            own = now + rng.expovariate(most[up])
        if changes:
            if now > 0:
                yield up, now - reported
                reported = now
            up, since, own = not up, now, now + rng.expovariate(most[not up])


def simulated_correlation(pair, spreads, follows):
    """Correlation of the states of two zones with the means of a recorded pair that follow shared shocks."""
    shocks, states = Shocks(random.Random(1)), []
    for seed, zone in enumerate(pair):
        means = {True: zone["mean_up_s"] * zone["scale"] / 3600, False: zone["mean_down_s"] * zone["scale"] / 3600}
        sampled, end = [], 0.0
        for up, hours in following(means, spreads, follows, shocks, random.Random(2 + seed)):
            end += hours
            while len(sampled) / 6 < min(end, SIMULATED_H):
                sampled.append(up)
            if end >= SIMULATED_H:
                break
        states.append(sampled)
    return statistics.correlation(*states)


def region_of(zones, spreads):
    """How zones of a region follow each other. Simulated pairs correlate as measured on average; linear between SHARES."""
    pairs = pairs_of(zones)
    wanted = statistics.mean(correlation_of(pair) for pair in pairs)
    means = [statistics.mean(simulated_correlation(pair, spreads, share) for pair in pairs) for share in SHARES]
    at = next((i for i, mean in enumerate(means[1:-1]) if wanted <= mean), len(SHARES) - 2)
    follows = SHARES[at] + (SHARES[at + 1] - SHARES[at]) * (wanted - means[at]) / (means[at + 1] - means[at])
    centres = {name: centre([z for z in zones if z["class"] == name]) for name in {z["class"] for z in zones}}
    return {"follows": rounded(min(max(follows, 0.0), 1.0)), "alike": rounded(alike_of(zones, centres)), "pairs": len(pairs),
            "correlation": rounded(wanted)}


def centre(zones):
    return (statistics.mean(math.log(zone["mean_up_s"] * zone["scale"] / 3600) for zone in zones),
            statistics.mean(logit(zone["availability"]) for zone in zones))


def node_correlation(path, asked):
    """Correlation of the states of two nodes: from how much more the number of nodes varies than if they were independent."""
    rows = [(time, int(value)) for time, value in rows_of(path) if value != "END"]
    spans = [(value, end - start) for (start, value), (end, _) in zip(rows, rows[1:])]
    total = sum(span for _, span in spans)
    mean = sum(value * span for value, span in spans) / total
    variance = sum((value - mean) ** 2 * span for value, span in spans) / total
    share = mean / asked
    taken = sum(max(0, before - after) for (_, before), (_, after) in zip(rows, rows[1:]))
    return {"nodes": asked, "correlation": rounded((variance / (asked * share * (1 - share)) - 1) / (asked - 1)),
            "hours_of_a_node_a_loss": rounded(mean * total / taken / 3600)}


def rounded(value):
    return float(f"{value:.4g}")


def fit(folder):
    zones = [read_zone(path) for path in sorted((folder / "skypilot").glob("*.csv"))]
    fits = {which: {family: likeliest(family, zones, which) for family in FAMILIES} for which in ("up", "down")}
    shape = {which: fits[which]["lognormal"][1] for which in fits}
    centres = {name: centre([z for z in zones if z["class"] == name]) for name in sorted({z["class"] for z in zones})}
    spread_up, spread_share, correlation = class_of(zones, centres)

    def described(middle, count, wider):
        share = 1 / (1 + math.exp(-middle[1]))
        return {"mean_up_h": rounded(math.exp(middle[0])), "mean_up_spread": rounded(spread_up * wider),
                "availability": rounded(share), "availability_spread": rounded(spread_share * wider), "zones": count}

    classes = {name: described(middle, sum(z["class"] == name for z in zones), 1) for name, middle in centres.items()}
    classes["other"] = described(centre(zones), 0, WIDER)
    nodes = {name: node_correlation(folder / "bamboo" / name, asked) for name, asked in BAMBOO.items()}
    noise = noise_of_past([(zone["rows"], zone["tick"]) for zone in zones])
    together = (statistics.mean(node["correlation"] for node in nodes.values()) + SIXTEEN_NODES) / 2
    return {
        "schema": "ganymede.spot/1",
        "about": "How spot capacity comes and goes: written by tools/fit_spot.py, which says how, from recordings of "
                 "AWS alone. Spreads are standard deviations: of durations and of zones' mean up-times of the "
                 "logarithm, of zones' availability of the logit.",
        "sources": {
            "SKYPILOT": "skypilot-org/spot-traces @221da1ab9bdf, availability/1-node (no licence file at that commit: "
                        "figures only)",
            "SKYPILOT-16": "skypilot-org/spot-traces @b26631383e2b, availability/16-node/aws-08-27-2023: sixteen "
                           "nodes are there all together or not at all, but for few ticks",
            "BAMBOO": "uclasystem/bamboo @808092932894 (MIT)",
        },
        "durations": {
            "family": "lognormal", "up_spread": rounded(shape["up"]), "down_spread": rounded(shape["down"]),
            "log_likelihood": {which: {family: round(value[0], 1) for family, value in by.items()}
                               for which, by in fits.items()},
            "source": "SKYPILOT",
        },
        "correlation": rounded(correlation),
        "classes": classes,
        "past": {
            "mean_up_noise": rounded(noise[0]), "availability_noise": rounded(noise[1]),
            "about": "variances of the logarithm of a zone's mean up-time and of the logit of its availability in a week, "
                     "given the week before, if that had a single up-time; n up-times: 1/n of it",
            "source": "SKYPILOT",
        },
        "together": {
            "share": rounded(math.sqrt(together)),
            "about": "a node follows its zone's state with this chance, else a state of its own that is as often up; "
                     "the square is the correlation of two nodes' states, half way between what BAMBOO's (mean) and "
                     "SKYPILOT-16's (1) nodes show",
            "measured": nodes, "source": "BAMBOO, SKYPILOT-16",
        },
        "region": region_of(zones, {True: shape["up"], False: shape["down"]}) | {
            "about": "follows: share of a zone's changes that come from shocks which all zones of its region see, with "
                     "which simulated pairs of zones correlate as the recorded ones do on average; alike: correlation of "
                     "the normal variables that zones of one region are drawn from (pairs of one period and instance)",
            "source": "SKYPILOT",
        },
        "wider": {"factor": WIDER, "source": "assumption: other GPUs' zones differ by that much more"},
        "zones": [{
            "series": zone["series"], "class": zone["class"], "up_times": len(zone["up"]),
            "mean_up_h": rounded(zone["mean_up_s"] * zone["scale"] / 3600), "availability": rounded(zone["availability"]),
            "up_distance": rounded(distance(lognormal(zone["mean_up_s"], shape["up"]), zone["up"], zone["tick"])),
            "down_distance": rounded(distance(lognormal(zone["mean_down_s"], shape["down"]), zone["down"], zone["tick"])),
            **({"unconfirmed": "its period's times may be up to 2 times as long: taken in the middle"}
               if zone["scale"] != 1 else {}),
        } for zone in zones],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    fitted = fit(options.folder)
    for which, by in fitted["durations"]["log_likelihood"].items():
        print(f"{which}-times, log-likelihood: " + ", ".join(f"{family} {value}" for family, value in by.items()))
    print(f"spread of up-times {fitted['durations']['up_spread']}, of down-times {fitted['durations']['down_spread']}")
    for name, values in fitted["classes"].items():
        print(f"{name}: mean up-time {values['mean_up_h']} h (spread {values['mean_up_spread']}), availability "
              f"{values['availability']} (spread {values['availability_spread']}), {values['zones']} zones")
    print(f"together: {fitted['together']['share']}")
    if options.output:
        options.output.write_text(json.dumps(fitted, indent=1) + "\n")


if __name__ == "__main__":
    main()
