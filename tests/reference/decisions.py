#!/usr/bin/env python3
"""A second opinion on the figures that people decide by: probabilities of plans, and from which use on owning is cheaper.

    tests/reference/decisions.py PROGRAM

It shares no code with the program. The probability to keep to a deadline and a budget follows docs/money.md: of each
seed's run, the logarithm of its time is normal on both sides of the run's own value, with standard deviations from its
interval; cost moves with the time, and a doubtful price is independent of both. The runs of the chosen candidate are
simulated one by one; a price's distribution is integrated over a fine grid. What so few runs show at least is the
lower end of Clopper and Pearson's interval, found from exact fractions. Break-even is found by trying numbers of
trainings a year, one after the other.
"""
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
NORMAL = statistics.NormalDist()


def program(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 4):  # 4: a run that misses a goal
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr}")
    return done.stdout


def spread(value, low, high, deviations):
    """Standard deviations of the logarithm below and above the value."""
    return math.log(value / low) / deviations, math.log(high / value) / deviations


def z_of(limit, value, sides):
    """How many standard deviations the limit is above the value."""
    side = sides[0] if limit < value else sides[1]
    return math.log(limit / value) / side if side > 0 else math.copysign(math.inf, limit - value)


def chance(run, deadline_s, budget_usd, factors):
    """The probability of one run, whose price may change by a factor between `factors` (95 %)."""
    deviations = 1.959964 if run["provenance"]["inputs"] == "measured" else 1.644854
    time = run["time"]["total_s"]
    in_time = z_of(deadline_s, time, spread(time, *run["time"]["interval_s"], deviations))
    usd = float(run["cost"]["total_usd"])
    usd_sides = spread(usd, *map(float, run["cost"]["interval_usd"]), deviations)
    price_sides = spread(1, *factors, 1.959964)
    steps = 4000 if factors[1] > factors[0] else 1
    total = 0
    for k in range(steps):
        z = NORMAL.inv_cdf((k + 0.5) / steps)
        price = math.exp(z * price_sides[z > 0])
        total += NORMAL.cdf(min(in_time, z_of(budget_usd / price, usd, usd_sides)))
    return total / steps


def check_interval(text, probability, runs):
    """The interval that a sentence states holds the probabilities at which so many runs give that one within 1.96 standard errors."""
    low, high, said = map(int, re.search(r"% \((\d+) to (\d+) %, (\d+) runs\)", text).groups())
    inside = lambda p: abs(probability - p) <= 1.959964 * math.sqrt(p * (1 - p) / runs) + 1e-9
    assert said == runs
    assert not inside(low / 100 - 1e-6) and inside((low + 1) / 100), f"the interval begins at {low} %"
    assert (high == 100 or not inside(high / 100 + 1e-6)) and inside((high - 1) / 100), f"the interval ends at {high} %"
    return f", {low} to {high} %"


def check_plan(folder, name, deadline_h, budget_usd, *more):
    file = str(folder / f"{name}.json")
    text = program("plan", "--model", "dcgan-64", "--images", "20M", "--batch", "128", "--catalog", "gcp,aws", "--max-gpus", "1",
                   "--deadline", f"{deadline_h}h", "--budget", f"{budget_usd}USD", "--save", file, *more)
    plan = json.loads(pathlib.Path(file).read_text())
    chosen = plan["chosen"]
    chances = []
    runs = chosen.get("probability_runs", chosen["seeds"])
    for seed in range(0, runs, max(1, runs // 80)):  # of 400 runs, each fifth
        run = json.loads(program("simulate", file, "--seeds", "1", "--format", "json", "--set", f"/seed={plan['request']['seed'] + seed}"))
        assert run["provenance"]["seed"] == plan["request"]["seed"] + seed
        chances.append(chance(run, 3600 * deadline_h, budget_usd, chosen["price"]["factors"]))
    expected = sum(chances) / len(chances)
    off = 2e-3 if len(chances) == runs else 4 * statistics.stdev(chances) / math.sqrt(len(chances))
    assert abs(expected - chosen["probability"]) < off, f"{name}: {expected}, the plan says {chosen['probability']}"
    said = f"of {chosen['instance']} {chosen['market']}: {expected:.4f} over {len(chances)} runs"
    if chosen["risk"] != "none":
        assert runs == 400
        said += check_interval(text, chosen["probability"], runs)
    print(f"probability {said}")
    return chosen


def check_own(folder):
    """An owned machine against rented ones, by trying each hundredth of a training a year."""
    own_file = folder / "own.json"
    own_file.write_text(program("example", "platform", "--like", "p3.8xlarge"))
    answer = json.loads(program("compare-own", str(own_file), "--model", "dcgan-64", "--batch", "128", "--images", "2G",
                                "--gpu", "V100", "--min-gpus", "4", "--max-gpus", "4", "--catalog", "aws", "--format", "json"))
    own = answer["own"]
    hours, year = own["training"]["hours"]["median"], answer["hours_of_a_year"]
    assert math.isclose(own["usd_a_year"]["total"], sum(own["usd_a_year"][k] for k in ("write_off", "space", "people", "idle_electricity")))
    checked = 0
    for offer in answer["offers"]:
        if offer["offer"] is None:
            continue
        committed = offer["committed_usd_a_year"]
        by_use = offer["usd_besides"] if committed > 0 else offer["usd"]["median"]
        found = None
        for hundredth in range(int(100 * year / hours) + 1):
            trainings = hundredth / 100
            sets = max(1, math.ceil(trainings * offer["hours"]["median"] / year - 1e-9))
            if own["usd_a_year"]["total"] + trainings * own["training"]["usd"] <= sets * committed + trainings * by_use:
                found = trainings
                break
        at = offer["break_even"]
        if found is None:
            assert at["hours_a_year"] is None, f"{offer['market']}: renting is cheaper at any use, the program says {at}"
        else:
            assert -1e-6 <= found * hours - at["hours_a_year"] <= 0.01 * hours + 1e-6, f"{offer['market']}: {found * hours} h, the program says {at}"
            assert math.isclose(at["utilization"], at["hours_a_year"] / year, rel_tol=1e-9, abs_tol=1e-12)
            checked += 1
        print(f"own or rent {offer['market']}: {'never' if found is None else f'{found * hours:.0f} h a year'}")
    assert checked > 0


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # A tight deadline, a tight budget at a doubtful price, and spot nodes that are taken back.
        assert check_plan(folder, "deadline", 2, 10, "--market", "on-demand", "--gpu", "L4", "--certainty", "0.5")["probability"] < 0.99
        assert check_plan(folder, "price", 20, 3, "--market", "on-demand", "--gpu", "T4", "--today", "2029-01-01", "--certainty", "0.3")["price"]["doubt"]
        assert check_plan(folder, "spot", 3, 5, "--market", "spot", "--gpu", "L4", "--certainty", "0.5")["risk"] != "none"
        check_own(folder)


if __name__ == "__main__":
    main()
