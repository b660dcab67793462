"""Relations between what the program says of cases that belong together."""
import json
import math

from hypothesis import strategies as st

from case import Case
from draws import Draw, extras, maybe, one, platform, recording, scenario, trace, usd, whole
from runs import Json, Training, copy, micro, money, q, trace_of


def total_of(result: Json) -> int:
    return micro(result["cost"]["total_usd"])


def relations(case: Case) -> None:
    """More hardware never draws less, a cheaper price never costs more, doubled images take twice the steps, names do not matter."""
    lab = platform(case.draw, gpus=one(case.draw, 1, 1, 4))
    instance = lab["instances"]["one"]
    if maybe(case.draw):
        del instance["vcpus"]
    run = scenario(case.draw, instance)
    run["workload"]["images"] = run["workload"].pop("images", None) or whole(case.draw, 1, 2000) * 1000
    for other in ("steps", "epochs"):
        run["workload"].pop(other, None)
    extras(case.draw, run)
    run["platform"]["gpus_per_node"] = used = min(2, instance["gpus"]) if run["platform"]["nodes"] == 1 else 1
    if used * run["platform"]["nodes"] not in (1, 2, 4, 8):
        run["synchronization"]["scheme"] = "ring"
    case.write(trace=trace(case.draw), lab=lab, scenario=run)
    first = case.answer("simulate", "scenario.json")
    # One GPU more in each machine, which nothing uses.
    more = copy(lab)
    more["instances"]["one"]["gpus"] += 1
    case.write(lab=more)
    larger = case.answer("simulate", "scenario.json")
    case.true("energy of more hardware", larger["energy"]["kwh"] >= first["energy"]["kwh"] * (1 - 1e-9), larger["energy"]["kwh"],
              f"at least {first['energy']['kwh']}")
    cheaper = copy(lab)
    for price in cheaper["instances"]["one"]["prices"]:
        price["per_hour"] = usd(max(1, money(price["per_hour"].removesuffix("/h")) // whole(case.draw, 1, 9)), "/h")
    case.write(lab=cheaper)
    case.true("bill at a lower price", total_of(case.answer("simulate", "scenario.json")) <= total_of(first), "more", "at most as much")
    if "evaluation" in run or "checkpoint" in run or "storage" in run:
        return
    twice = copy(run)
    twice["workload"]["images"] *= 2
    case.write(lab=lab, scenario=twice)
    longer = case.answer("simulate", "scenario.json")
    more_s = (longer["time"]["steps"] - first["time"]["steps"]) * first["time"]["step_mean_s"]
    case.same("time of twice the images", longer["time"]["total_s"] - first["time"]["total_s"], more_s, 1e-6, 1e-6)
    batch = 64 * first["run"]["gpus"]
    case.same("steps of twice the images", longer["time"]["steps"], math.ceil(twice["workload"]["images"] / batch), 0)


def pools(case: Case) -> None:
    """The order in which pools of one place are listed changes nothing, nor does one pool of two nodes in place of two of one."""
    lab = platform(case.draw)
    run = scenario(case.draw, {"gpus": 1})
    run["synchronization"]["scheme"] = "ring"
    market = run["platform"].pop("market")
    count = whole(case.draw, 2, 4)
    each = [{"name": f"p{k}", "catalog": "lab.json", "region": "room", "instance": "one", "gpus_per_node": 1, "market": market,
             "nodes": whole(case.draw, 1, 2)} for k in range(count)]
    run["platform"] = {"pools": each}
    case.write(trace=trace(case.draw), lab=lab, scenario=run)
    first = case.answer("simulate", "scenario.json")
    case.write(scenario={**run, "platform": {"pools": case.draw(st.permutations(each))}})
    second = case.answer("simulate", "scenario.json")
    case.same("time of permuted pools", second["time"]["total_s"], first["time"]["total_s"], 1e-9)
    case.same("bill of permuted pools", total_of(second), total_of(first), 0, count)
    case.write(scenario={**run, "platform": {**each[0], "nodes": sum(pool["nodes"] for pool in each)}})
    joined = case.answer("simulate", "scenario.json")
    case.same("time of joined pools", joined["time"]["total_s"], first["time"]["total_s"], 1e-9)
    case.same("bill of joined pools", total_of(joined), total_of(first), 0, 4 * count)
    case.same("energy of joined pools", joined["energy"]["kwh"], first["energy"]["kwh"], 1e-9)


# A program that rents what the scenario asks for.
ANSWERING = "while read line; do echo '{\"nodes\": {\"one room on-demand\": 1}}'; done"


def choiceless(case: Case) -> None:
    """Where there is one node in one place on one market, every policy rents what `fixed` does."""
    lab = platform(case.draw)
    lab["instances"]["one"]["prices"] = lab["instances"]["one"]["prices"][:1]
    run = scenario(case.draw, lab["instances"]["one"])
    extras(case.draw, run)
    run["platform"].update({"nodes": 1, "market": "on-demand"})
    run.get("billing", {}).pop("commitment", None)
    run.update({"deadline": f"{whole(case.draw, 1, 3000)}h", "budget": f"{whole(case.draw, 1, 9999)}USD"})
    case.write(trace=trace(case.draw), lab=lab, scenario=run)
    code, text = case.run("simulate", "scenario.json", "--format", "json", codes=(0, 2, 3, 4))
    case.true("exit code of a budget below one billed hour", code != 2, code, 3)
    if code in (2, 3):
        return
    first = json.loads(text)
    missed = first["time"]["total_s"] > q(run["deadline"]) or total_of(first) > money(run["budget"])
    case.true("exit code of a missed goal", code == (4 if missed else 0), code, 4 if missed else 0)
    case.true("goals met", first["goals"]["met"] == (not missed), first["goals"], not missed)
    policy = one(case.draw, {"name": "fixed", "blind": True}, {"name": "external", "command": one(case.draw, ["sh", "-c", ANSWERING], ANSWERING)},
                 *({"name": name} for name in case.names("policies")))
    case.write(scenario={**run, "policy": policy})
    code, text = case.run("simulate", "scenario.json", "--format", "json", codes=(0, 1, 4))
    case.true("policy as a line for the shell", code != 1, "refused", "asked")
    if code == 1:
        return
    second = json.loads(text)
    case.same(f"time under {policy['name']} without a choice", second["time"]["total_s"], first["time"]["total_s"], 1e-9)
    case.same(f"bill under {policy['name']} without a choice", total_of(second), total_of(first), 0)


def deadline(case: Case) -> None:
    """The policy `deadline` keeps one that nodes on demand would keep, whatever spot gives: it leaves time to fall back."""
    lab = platform(case.draw)
    run = scenario(case.draw, {"gpus": 1})
    capacity, _ = recording(case.draw)
    run["workload"] = {"trace": "trace.json", "batch_per_gpu": 64, "steps": whole(case.draw, 2_000, 20_000)}
    run["synchronization"]["scheme"] = "ring"
    run["platform"].update({"nodes": 1, "market": "on-demand"})
    run["provisioning"] = {name: f"{whole(case.draw, 0, 100)}s" for name in ("boot", "framework_start")}
    run.update({"storage": {"checkpoint": "store"}, "checkpoint": {"every": f"{whole(case.draw, 5, 30)}min", "on_notice": True, "bytes": "1MiB"}})
    case.write(trace=trace_of(one(case.draw, 0.5, 1), 64_000, 64), lab=lab, capacity=capacity, scenario=run)
    alone = case.answer("simulate", "scenario.json")["time"]["total_s"]
    # Two starts, a load, what comes between two decisions, and the policy's own margin.
    slack = 2 * sum(q(text) for text in run["provisioning"].values()) + 2 * 600 + 60
    goal = math.ceil(1.05 * alone + slack + whole(case.draw, 0, 20) * 300)
    run["platform"].update({"market": "spot", "capacity": "capacity.csv", "notice": "120s"})
    case.write(scenario={**run, "policy": {"name": "deadline"}, "deadline": f"{goal}s"})
    result = case.answer("simulate", "scenario.json", codes=(0, 3, 4))
    if "time" in result:
        case.true("time under the policy deadline", result["time"]["total_s"] <= goal, result["time"]["total_s"],
                  f"at most {goal}, since nodes on demand take {alone}")


# --- plans ---

def market_of(draw: Draw, mixed: bool) -> tuple[Json, Json]:
    """A platform of several instances in two regions, and a request over it."""
    lab = platform(draw)
    base = lab["instances"]["one"]
    base.pop("sustained_use", None)
    lab["regions"]["hall"] = copy(lab["regions"]["room"])
    lab["provisioning"] = {"boot": f"{whole(draw, 0, 300)}s"}
    lab["billing"].update({"granularity": f"{one(draw, 1, 60)}s", "minimum": f"{one(draw, 0, 60)}s",
                           "free_if_interrupted_within": one(draw, "0s", "1h", "24h")})
    lab["instances"] = {}
    for gpus in (1, 2, 4)[:whole(draw, 1, 3)]:
        prices = []
        for region in ("room", "hall"):
            price = whole(draw, 100_000, 9_000_000)
            markets = [("on-demand", 1.0)] + ([("spot", whole(draw, 3, 10) / 10)] if maybe(draw) else [])
            prices += [{"region": region, "market": market, "as_of": "2026-11-01", "per_hour": usd(round(price * share), "/h")}
                       for market, share in markets]
        lab["instances"][f"of{gpus}"] = {**copy(base), "gpus": gpus, "prices": prices}
    request: Json = {"schema": "ganymede.request/1", "workload": {"trace": "trace.json", "batch_per_gpu": 64,
                                                                 "images": whole(draw, 1, 400) * 5_000},
                     "search": {"catalogs": ["lab.json"], "max_gpus": 4, "schemes": ["ring"], "mixed": False, "policies": ["fixed"],
                                "markets": ["on-demand", "spot"] if mixed else ["on-demand"], "today": "2026-11-20"}, "seed": 1}
    return lab, request


def chosen(answer: Json) -> int:
    return micro(answer["chosen"]["usd"]["median"]) if answer.get("chosen") else 0


def plan(case: Case) -> None:
    """The plan is the cheapest of all that `simulate` says of each candidate; a lower price never makes it dearer."""
    lab, request = market_of(case.draw, False)
    case.write(trace=trace(case.draw), lab=lab, request=request)
    answer = case.answer("plan", "request.json", codes=(0, 3))
    costs = {}
    for name, instance in lab["instances"].items():
        for region in ("room", "hall"):
            for nodes in range(1, 4 // instance["gpus"] + 1):
                run = {"schema": "ganymede.scenario/1", "workload": request["workload"], "seed": 1, "synchronization": {"scheme": "ring"},
                       "platform": {"catalog": "lab.json", "region": region, "instance": name, "nodes": nodes, "gpus_per_node": instance["gpus"]}}
                case.write(scenario=run)
                costs[name, region, nodes] = total_of(case.answer("simulate", "scenario.json"))
    rows = {(row["instance"], row["region"], row["nodes"]): micro(row["usd"]["median"]) for row in answer["simulated"]
            if not row["part_of_instance"]}
    for key, cost in rows.items():
        case.same("cost of a candidate", cost, costs[key], 1e-6, 1)
    case.same("cost of the plan", chosen(answer), min(costs.values()), 1e-6, 1)
    key = one(case.draw, *costs)
    for price in lab["instances"][key[0]]["prices"]:
        if price["region"] == key[1]:
            price["per_hour"] = usd(money(price["per_hour"].removesuffix("/h")) // 2, "/h")
    case.write(lab=lab)
    case.true("plan at a lower price", chosen(case.answer("plan", "request.json")) <= chosen(answer), "dearer", "no dearer")


def exhaustive(case: Case) -> None:
    """`--exhaustive` finds the same as the search, on any platform."""
    lab, request = market_of(case.draw, True)
    steps = trace(case.draw)
    request["search"].update({"seeds": 3, "checkpoints": ["1h"], "certainty": one(case.draw, 0.9, 0.5, 0.1)})
    request["search"].pop("policies" if maybe(case.draw) else "mixed")
    request["storage"] = {"checkpoint": "store"}
    if one(case.draw, False, False, False, True):  # runs of days, most of whose nodes are taken back within one
        steps = trace_of(1.0, 64_000, 64)
        request["search"]["max_gpus"] = 32  # enough candidates for more than one round of the search
        request["workload"]["images"] = 64 * whole(case.draw, 1, 60) * 3600
        lab["billing"]["free_if_interrupted_within"] = "24h"
    else:
        request["deadline"] = f"{whole(case.draw, 1, 60)}h"
    request["objective"] = one(case.draw, "cost", "time", "carbon", "risk-neutral", "risk-averse")
    case.write(trace=steps, lab=lab, request=request)
    searched = case.answer("plan", "request.json", codes=(0, 3))
    complete = case.answer("plan", "request.json", "--exhaustive", codes=(0, 3))
    least = {"cost": ("usd", "at_worst_prices"), "time": ("time_s", "median"), "carbon": ("kg_co2e", "median"),
             "risk-neutral": ("usd", "expected"), "risk-averse": ("usd", "worst_tenth")}[request["objective"]]
    said, right = ((answer["chosen"] or {least[0]: {least[1]: math.inf}})[least[0]][least[1]] for answer in (searched, complete))
    case.same("least objective of the search", said, right, 1e-9)
    case.same("cost of the search among equals", chosen(searched), chosen(complete), 1e-9, 1)


def why(case: Case) -> None:
    """What `why` names above a price is what a plan takes at that price, and below it the choice stays."""
    lab, request = market_of(case.draw, False)
    case.write(trace=trace(case.draw), lab=lab, request=request)
    if case.run("plan", "request.json", "--save", "plan.json", codes=(0, 3))[0] == 3:
        return
    answer = case.answer("why", "plan.json")
    nodes = ("instance", "region", "market", "nodes", "gpus_per_node")
    now = {name: answer["chosen"][name] for name in nodes}
    for entry in answer["hangs_on"]:
        if entry["what"] not in ("price", "prices") or entry["threshold"] is None:
            continue
        for factor in (0.999, 1.001):
            dearer = copy(lab)
            for price in dearer["instances"][now["instance"]]["prices"]:
                if price["market"] == "on-demand" and (entry["what"] == "prices" or price["region"] == now["region"]):
                    part = entry["threshold"] / entry["now"] * factor
                    price["per_hour"] = usd(round(money(price["per_hour"].removesuffix("/h")) * part), "/h")
            case.write(lab=dearer)
            there = case.answer("plan", "request.json", codes=(0, 3))["chosen"]
            right = {name: there[name] for name in nodes} if there else None
            said = now if factor < 1 else entry["to"] and {name: entry["to"][name] for name in nodes}
            case.true(f"choice {'above' if factor > 1 else 'below'} a threshold of why", said == right, said, right)


def goal(case: Case) -> None:
    """A plan to an FID takes no less and no more than plans to as many images as its interval says."""
    lab, request = market_of(case.draw, False)
    lab["instances"] = dict([next(iter(lab["instances"].items()))])
    request["search"].update({"max_gpus": 1, "certainty": 0.01, "regions": ["room"]})
    every = whole(case.draw, 1, 40) * 10_000
    request["evaluation"] = {"every": f"{every} images", "fixed": f"{whole(case.draw, 1, 900)}s"}
    del request["workload"]["images"]
    request["workload"]["quality"] = {"fid": whole(case.draw, 30, 200), "dataset": "CIFAR10", "reference": "test 10000", "backbone": "dcgan",
                                      "conditioning": "no", "loss": "vanilla"}
    steps = trace(case.draw)
    case.write(trace=steps, lab=lab, request=request)
    answer = case.answer("plan", "request.json", codes=(0, 3))
    if not answer.get("chosen"):
        return
    row = answer["chosen"]
    ends = []
    for end, count in enumerate(row["quality"]["images"]["interval"]):
        request["workload"].pop("quality", None)
        request["workload"]["images"] = max(1, math.floor(count) if end == 0 else math.ceil(count) + every)
        case.write(request=request)
        ends.append(case.answer("plan", "request.json")["chosen"]["time_s"]["interval"][end])
    low, high = row["time_s"]["interval"]
    case.true("shortest time to an FID", low >= ends[0] * (1 - 1e-3), low, f"at least {ends[0]}")
    case.true("longest time to an FID", high <= ends[1] * (1 + 1e-3), high, f"at most {ends[1]}")


def curve(case: Case) -> None:
    """A run to an FID of a recorded curve trains as many images as the curve says, and half an interval of evaluations more."""
    points = [(whole(case.draw, 1, 50) * 1000, 300 + whole(case.draw, 1, 200))]
    for _ in range(whole(case.draw, 1, 4)):
        points.append((points[-1][0] * whole(case.draw, 2, 4), max(1, points[-1][1] - whole(case.draw, -30, 120))))
    target = whole(case.draw, min(fid for _, fid in points), points[0][1])
    lab, steps = platform(case.draw), trace(case.draw)
    run = scenario(case.draw, {"gpus": 1})
    run["platform"].update({"nodes": 1})
    run["synchronization"]["scheme"] = "ring"
    run["workload"] = {"trace": "trace.json", "batch_per_gpu": 64, "quality": {"fid": target, "curve": "curve.json"}}
    case.write(trace=steps, lab=lab, scenario=run, curve={
        "schema": "ganymede.quality/1", "model": "m", "dataset": "d", "features": "f",
        "curves": [{"batch": 64, "seed": 1, "software": "s", "points": [{"images": images, "fid": fid, "inception_score": 1} for images, fid in points]}]})
    result = case.answer("simulate", "scenario.json")
    met = next(k for k, (_, fid) in enumerate(points) if fid <= target)
    (left, before), (right, after) = points[max(0, met - 1)], points[met]
    images = right if met == 0 else math.exp(math.log(left) + (before - target) / (before - after) * math.log(right / left))
    setback = any(fid <= before for _, fid in points[:max(0, met - 1)])
    case.same("images to an FID after a setback" if setback else "images to an FID", result["time"]["steps"], math.ceil(images / 64 - 1e-9), 0, 1)
    case.same("time to an FID", result["time"]["total_s"], result["time"]["steps"] * Training(run, lab, steps).own_step, 1e-6)
