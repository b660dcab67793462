"""Rules of crashes, prices, spot markets and forecasts of quality."""
import json
import math

from case import Case
from draws import maybe, one, platform, scenario, trace, usd, whole
from runs import Json, Training, copy, q, whole_steps


def crashes(case: Case) -> None:
    """Crashes of one node at stated times: back to the last checkpoint, a new node, a new start."""
    lab, run = platform(case.draw), scenario(case.draw, {"gpus": 1})
    run["platform"].update({"nodes": 1, "market": "on-demand"})
    run["synchronization"]["scheme"] = "ring"
    run["workload"] = {"trace": "trace.json", "batch_per_gpu": 64, "steps": whole(case.draw, 1, 20_000)}
    run["provisioning"] = {name: f"{whole(case.draw, 0, 200)}s" for name in ("queue", "boot", "image_pull", "framework_start")}
    if maybe(case.draw):
        run.update({"storage": {"checkpoint": "store"},
                    "checkpoint": {"every": f"{whole(case.draw, 100, 4000)}s", "bytes": f"{whole(case.draw, 1, 3000)}MiB"}})
    at = sorted({whole(case.draw, 1, 20_000) for _ in range(whole(case.draw, 1, 4))})
    run["faults"] = {"events": [{"at": f"{time}s", "kind": "crash"} for time in at]}
    steps = trace(case.draw)
    case.write(trace=steps, lab=lab, scenario=run)
    result = case.answer("simulate", "scenario.json")
    right = Training(run, lab, steps)
    step, write, asked, durable = right.step(), right.write_s(), 0.0, 0.0
    every = whole_steps(q(run["checkpoint"]["every"]) / step) if "checkpoint" in run else 0
    load = right.saved / q(right.saved_on["read"]) if every else 0
    last_checkpoint = 0.0
    for crash in [*at, math.inf]:
        begin = asked + right.delay("queue") + right.delay("boot") + right.delay("image_pull") + right.start_s() + (load if durable else 0)
        left = right.steps() - durable
        end = begin + left * step + (math.ceil(left / every - 1e-9) * write if every else 0)
        granted = asked + right.delay("queue")
        if end <= crash:
            break
        if crash <= granted:  # there is no node yet
            continue
        done = max(0, math.floor((crash - begin) / (every * step + write) + 1e-9)) if every else 0
        if done:
            last_checkpoint = begin + done * (every * step + write)
            said = [event["at_s"] for event in result["events"] if event["event"] == "checkpoint" and event["at_s"] <= crash + 1e-6]
            case.same("time of the last checkpoint's event", said[-1] if said else 0, last_checkpoint, 1e-6, 2 * step)
        durable += done * every
        asked = crash
    case.same("time with crashes", result["time"]["total_s"], end, 1e-6, 2 * len(at) * step)


def prices(case: Case) -> None:
    """What an hour of an owned machine costs, and prices that are merged into a copy of a platform."""
    lab, run = platform(case.draw), scenario(case.draw, {"gpus": 1})
    run["platform"]["market"] = "on-demand"
    price = lab["instances"]["one"]["prices"][0]
    foreign = maybe(case.draw)
    owned = {"capital": f"{whole(case.draw, 1, 90_000)}", "staff": f"{whole(case.draw, 0, 99) / 100}",
             "space_per_year": f"{whole(case.draw, 0, 9000)}", "people_per_year": f"{whole(case.draw, 0, 9000)}"}
    life, share, more = whole(case.draw, 1, 9), whole(case.draw, 1, 10) / 10, whole(case.draw, 1, 3)
    rate = 1.25 if foreign else 1.0
    unit = "EUR" if foreign else "USD"
    if foreign:
        lab["currency"] = {"code": "EUR", "usd": rate, "as_of": "2026-11-01"}
    ownership: Json = {"life_years": life, "utilization": share, "overcommit": more, "staff": f"{owned['staff']}{unit}/h"}
    ownership.update({name: f"{owned[name]}{unit}" for name in ("capital", "space_per_year", "people_per_year")})
    priced = copy(lab)
    priced["instances"]["one"]["prices"] = [{**{k: v for k, v in price.items() if k != "per_hour"}, "ownership": ownership}]
    case.write(trace=trace(case.draw), lab=priced, scenario=run)
    result = case.answer("simulate", "scenario.json")
    a_year = float(owned["capital"]) / life + float(owned["space_per_year"]) + float(owned["people_per_year"])
    hour = rate * (a_year / (8766 * share * more) + float(owned["staff"]) / more)
    listed = next(item["list_price_usd_number"] for item in result["cost"]["items"] if item["item"] == "instance-hours")
    case.same("hour of an owned machine", listed, hour, 1e-9, 1e-6)
    # A list of our own columns, with a price that may be wrong.
    new = one(case.draw, "3.5", "0", "-1", "nan", "2.25")
    date = one(case.draw, "2026-11-10", "2026-11-01", "2999-01-01")
    rows = [f"private,one,GPU-X,1,room,,on-demand,{new},{date},mine"] + ([f"private,one,GPU-X,1,room,,on-demand,9,{date},mine"] * maybe(case.draw))
    lab.pop("currency", None)
    case.write(lab=lab, prices="provider,instance,gpu,gpus,region,zone,market,usd_per_hour,as_of,source\n" + "\n".join(rows) + "\n")
    wrong = new in ("-1", "nan") or date > "2999" or len(rows) > 1
    code, _ = case.run("catalog", "--provider", "lab.json", "--update", "prices.csv", "-o", "new.json", codes=(0, 2))
    case.true("exit code of a price list", code == (2 if wrong else 0), code, 2 if wrong else 0)
    if code == 0:
        run["platform"]["catalog"] = "new.json"
        case.write(scenario=run)
        items = case.answer("simulate", "scenario.json")["cost"]["items"]
        said = [item["list_price_usd_number"] for item in items if item["item"].startswith("instance-hours")]
        case.true("updated price", all(usd_hour == float(new) for usd_hour in said), said, new)


def spot(case: Case) -> None:
    """How sure interruptions are, and what spot costs if there are none."""
    lab, run = platform(case.draw), scenario(case.draw, {"gpus": 1})
    run["platform"].update({"nodes": 1, "market": "spot"})
    run["synchronization"]["scheme"] = "ring"
    lab["instances"]["one"].pop("sustained_use", None)
    setting, risk = one(case.draw, ("uninterrupted", "stated"), ("calm", "preset"), ("typical", "preset"), ("harsh", "preset"), ("drawn", "assumed"))
    case.write(trace=trace(case.draw), lab=lab, scenario={**run, "platform": {**run["platform"], "spot": setting}})
    code, text = case.run("simulate", "scenario.json", "--format", "json", codes=(0, 3, 4))
    if code == 3:
        return
    result = json.loads(text)
    case.true("risk", result["provenance"]["risk"] == risk, result["provenance"]["risk"], risk)
    run["platform"]["market"] = "on-demand"
    case.write(scenario=run)
    safe = case.answer("simulate", "scenario.json")
    case.true("risk on demand", safe["provenance"]["risk"] == "none", safe["provenance"]["risk"], "none")
    case.true("time on spot", result["time"]["total_s"] >= safe["time"]["total_s"] - 1e-6, result["time"]["total_s"], safe["time"]["total_s"])
    if setting == "uninterrupted":
        case.same("time on uninterrupted spot", result["time"]["total_s"], safe["time"]["total_s"], 1e-9)


def quality(case: Case) -> None:
    """Forecasts of quality: a lower FID is no likelier and takes no fewer images; policies count all images."""
    kind = ["--dataset", "CIFAR10", "--reference", "test 10000", "--batch", str(2 ** whole(case.draw, 4, 11))]
    kind += one(case.draw, [], ["--backbone", "dcgan"], ["--backbone", "big_resnet", "--loss", "hinge"], ["--backbone", "no-such"])
    fids = sorted({whole(case.draw, 5, 150) for _ in range(3)}, reverse=True)
    images = whole(case.draw, 1, 500) * 200_000
    answer = case.answer("quality", "forecast", "--fid", ",".join(map(str, fids)), "--images", str(images), *kind)
    targets = answer["targets"]
    for easy, hard in zip(targets, targets[1:]):
        case.true("probability of a lower FID", hard["probability"] <= easy["probability"] + 1e-9, hard["probability"], easy["probability"])
    for target in targets:
        low, high = target["images"]["interval"] if target["images"] else (0, 0)
        case.true("images to an FID in order", 0 <= low <= high, (low, high), images)
    ends = [point["best_fid"]["median"] for point in answer["curve"]]
    case.true("best FID on the way", all(later <= sooner * (1 + 1e-9) for sooner, later in zip(ends, ends[1:])), ends, "falling")
    case.same("best FID at the horizon", answer["best_fid"]["median"], ends[-1], 1e-9)
    chances = case.answer("quality", "policies", "--fid", str(fids[0]), "--images", str(max(images, 1_000_000)), "--usd-per-million", "2", *kind)
    for policy in chances["policies"]:
        if policy["probability"] > 0:
            case.same("images a success", policy["images_a_success"], policy["mean_images"] / policy["probability"], 1e-6)
            usd_right = policy["images_a_success"] / 1e6 * 2
            case.true("dollars of a policy", isinstance(policy["usd"], (int, float, dict)) or policy["usd"] is None, policy["usd"], usd_right)
    base, early = chances["policies"][0], chances["policies"][1]
    case.true("early stopping", early["probability"] <= base["probability"] + 1e-9 and early["mean_images"] <= base["mean_images"] * (1 + 1e-9),
              early, base)
