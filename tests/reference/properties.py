"""What is checked of a random case: one function a group of rules."""
import json

from case import Case
from clusters import Job, gpus_of, nodes_taken, overlaps, schedule
from draws import extras, maybe, one, places, platform, recording, scenario, storage, timed_jobs, trace, whole
from more import crashes, prices, quality, spot
from relations import choiceless, curve, deadline, exhaustive, goal, plan, pools, relations, why
from runs import HOUR, MICRO, MONTH, Json, Replay, Training, copy, micro, q

def items_of(result: Json) -> dict[str, int]:
    items: dict[str, int] = {}
    for item in result["cost"]["items"]:
        items[item["item"]] = items.get(item["item"], 0) + micro(item["usd"])
    return {name: amount for name, amount in items.items() if amount}


def bill(case: Case) -> None:
    """A run that loses nothing: its time by its parts, its bill by its items, its energy."""
    lab = platform(case.draw, gpus=one(case.draw, 1, 1, 4))
    run = scenario(case.draw, lab["instances"]["one"])
    extras(case.draw, run)
    steps = trace(case.draw)
    case.write(trace=steps, lab=lab, scenario=run)
    result = case.answer("simulate", "scenario.json")
    right = Training(run, lab, steps)
    total = result["time"]["total_s"]
    # Where reading takes longer than a step, the first steps start on what was read ahead, and checkpoints may come a little earlier.
    stalls = right.reading_step() > right.step()
    case.same("time", total, right.total_s(), 1e-6, stalls * (6 * right.reading_step() + right.write_s()))
    checkpoints = result["life"]["checkpoints"] if stalls else right.checkpoints(right.step())
    kwh = result["energy"]["kwh"]
    expected = right.bill(total, right.steps() * right.batch() * right.gpus, checkpoints, kwh)
    said = items_of(result)
    hours = (total + q(run.get("billing", {}).get("idle_tail", "0s"))) / HOUR
    for name in sorted(set(said) | set(expected)):
        what = "control plane in a short last month" if name == "control plane" and hours > MONTH and hours % MONTH < 3 else name
        case.same(what, said.get(name, 0), expected.get(name, 0), 0, 1 + len(result["cost"]["items"]) / 2)
    case.same("sum of the items", sum(micro(item["usd"]) for item in result["cost"]["items"]), micro(result["cost"]["total_usd"]), 0)
    by_use = sum(micro(usd) for usd in result["cost"]["instance_hours_by_use"].values())
    case.same("instance-hours by use", by_use, sum(usd for name, usd in said.items() if name.startswith("instance-hours")), 0)
    seconds = result["gpu_seconds"]
    case.same("sum of GPU-seconds", sum(seconds.values()) - seconds["total"], seconds["total"], 1e-9, 1e-6)
    end = total - right.delay("queue") + q(run.get("billing", {}).get("idle_tail", "0s"))
    case.same("GPU-seconds held", seconds["total"], end * right.nodes * right.instance["gpus"], 1e-9, 1e-5)
    case.same("energy", kwh, right.kwh(end, seconds["compute"] + seconds["evaluation"]), 1e-6, 1e-12)



def one_job(case: Case) -> None:
    """A cluster with one job costs what its run costs, boot apart."""
    lab = platform(case.draw, gpus=one(case.draw, 1, 1, 4))
    lab["billing"]["starts"] = "request"
    run = scenario(case.draw, lab["instances"]["one"])
    use = storage(case.draw, with_checkpoint=False)
    if use:
        run["storage"] = use
    job = {name: run[name] for name in ("workload", "synchronization", "storage") if name in run}
    cluster = {"schema": "ganymede.cluster/1", "platform": copy(run["platform"]), "workloads": {"w": job},
               "jobs": [{"name": "j", "gpus": run["platform"]["nodes"] * run["platform"]["gpus_per_node"], "workload": "w"}], "seed": 1}
    steps = trace(case.draw)
    case.write(trace=steps, lab=lab, scenario=run, cluster=cluster)
    alone, beside = case.answer("simulate", "scenario.json"), case.answer("simulate", "cluster.json")
    stall = alone["gpu_seconds"]["input_stall"] > 0
    case.same("time of a cluster's one job", beside["summary"]["total_s"], alone["time"]["total_s"], 1e-6,
              stall * 6 * Training(run, lab, steps).reading_step())
    if stall:
        return
    said, right = items_of(beside), items_of(alone)
    for name in sorted(set(said) | set(right)):
        case.same(f"{name} of a cluster", said.get(name, 0), right.get(name, 0), 0, 1)
    case.same("total of a cluster", micro(beside["cost"]["total_usd"]), micro(alone["cost"]["total_usd"]), 0, 1)
    case.same("energy of a cluster", beside["energy"]["kwh"], alone["energy"]["kwh"], 1e-6)


def transfer(case: Case) -> None:
    """Gradients between zones or clouds: each place sends 2 (n - 1) / n of them along one ring, and each link has its price."""
    lab, run, steps = platform(case.draw), scenario(case.draw, {"gpus": 1}), trace(case.draw)
    clouds = maybe(case.draw)
    run["platform"] = places(case.draw, lab, clouds)
    run["synchronization"]["scheme"] = "ring"
    case.write(trace=steps, lab=lab, scenario=run)
    names = [pool["name"] for pool in run["platform"]["pools"]]
    if clouds:
        case.write(**{f"lab{name}": {**lab, "name": f"lab{name}", "provider": f"cloud{name}"} for name in names})
    result = case.answer("simulate", "scenario.json")
    links = {frozenset(link["between"]): link for link in run["platform"]["links"]}
    count, alone = len(names), Training(scenario_of(run), lab, steps)
    piece, rounds = alone.gradients / count, 2 * (count - 1)
    ring = [links[frozenset(hop)] for hop in zip(names, (*names[1:], names[0]))]
    slowest = max(q(link["latency"]) for link in ring) + piece / min(q(link["bandwidth"]) for link in ring)
    # The time for adding, which is far below that of any link between places, is left out.
    case.same("step of several places", result["time"]["step_mean_s"], alone.own_step + rounds * slowest, 1e-6)
    if result["time"]["total_s"] > MONTH * HOUR:  # tiers begin anew
        return
    gb = rounds * piece * result["time"]["steps"] / 1e9
    zone = 0.02 if lab["transfer"]["zone_charged"] == "both ends" else 0.01
    right = sum(alone.internet(gb, False) if clouds else round(gb * MICRO * link.get("usd_per_gb", zone)) for link in ring)
    said = sum(micro(item["usd"]) for item in result["cost"]["items"] if item["item"] == "data transfer")
    case.same(f"data transfer between {'clouds' if clouds else 'zones'}", said, right, 0, 3 * count)


def scenario_of(run: Json) -> Json:
    """The scenario of the first of several pools alone."""
    return {**run, "platform": {**run["platform"]["pools"][0], "market": "on-demand"}}


def cluster(case: Case) -> None:
    """Jobs of stated durations under any scheduler: what must hold of each, and when they end under two of them."""
    lab = platform(case.draw, gpus=one(case.draw, 1, 2, 4))
    nodes, each = whole(case.draw, 1, 3), lab["instances"]["one"]["gpus"]
    jobs = timed_jobs(case.draw, nodes * each)
    scheduler, placement = one(case.draw, *case.names("schedulers")), one(case.draw, *case.names("placements"))
    pause = whole(case.draw, 0, 9)
    case.write(lab=lab, cluster={
        "schema": "ganymede.cluster/1", "platform": {"catalog": "lab.json", "region": "room", "instance": "one", "nodes": nodes},
        "owners": {"x": {"quota": whole(case.draw, 0, nodes * each)}, "y": {"quota": nodes * each}}, "jobs": jobs,
        "scheduler": {"name": scheduler}, "placement": placement, "preemption": {"save": f"{pause}s", "restore": "1s"}, "seed": 1})
    code, text = case.run("simulate", "cluster.json", "--format", "json", codes=(0, 3, 4))
    if code == 3:  # a job larger than its owner's quota that nobody lends to
        case.true("starved jobs", scheduler == "kueue", code, 0)
        return
    result = json.loads(text)
    if scheduler in ("fifo-backfill", "shortest-remaining"):
        right = schedule([Job(job, number) for number, job in enumerate(jobs)], nodes * each, scheduler, pause + 1)
        for job in result["jobs"]:
            case.same(f"end under {scheduler}", job["end_s"], right[job["job"]], 1e-9, 1e-6)
    check_jobs(case, result, {job["name"]: job for job in jobs}, code, pause + 1)
    check_cluster(case, result, nodes * each)
    check_places(case, result, placement, nodes, each)


def check_jobs(case: Case, result: Json, asked: dict[str, Json], code: int, pause: float) -> None:
    ends = {job["job"]: job["end_s"] for job in result["jobs"]}
    missed = 0
    for job in result["jobs"]:
        wanted = asked[job["job"]]
        arrival = q(wanted.get("arrival", "0s"))
        case.same("ready", job["ready_s"], max([arrival] + [ends[name] for name in wanted.get("after", [])]), 0, 1e-6)
        case.same("run of a job", job["run_s"], q(wanted["duration"]) + job["restart_s"], 1e-9, 1e-6)
        case.true("restarts", job["restart_s"] <= job["preemptions"] * pause + 1e-6, job["restart_s"], f"at most {job['preemptions']} of {pause} s")
        case.same("wait", job["wait_s"], job["end_s"] - job["ready_s"] - job["run_s"], 1e-9, 1e-6)
        case.same("slow-down", job["slowdown"], (job["end_s"] - job["ready_s"]) / q(wanted["duration"]), 1e-9)
        case.same("GPU-hours of a job", job["gpu_hours"], job["run_s"] * wanted["gpus"] / HOUR, 1e-9)
        case.same("stays", sum(stay["to_s"] - stay["from_s"] for stay in job["stays"]), job["run_s"], 1e-9, 1e-6)
        case.true("gang", all(stay["gpus"] == wanted["gpus"] == len(gpus_of(stay)) for stay in job["stays"]), job["stays"], wanted["gpus"])
        if "deadline" in wanted:
            missed += job["end_s"] > arrival + q(wanted["deadline"]) + 1e-9
    case.same("missed deadlines", result["summary"]["missed_deadlines"], missed, 0)
    case.same("exit code of deadlines", code, 4 if missed else 0, 0)
    case.true("one GPU, one job", overlaps([stay for job in result["jobs"] for stay in job["stays"]]) is None, "two jobs", "one")


def check_cluster(case: Case, result: Json, gpus: int) -> None:
    jobs, summary = result["jobs"], result["summary"]
    case.same("begin", summary["begin_s"], min(job["arrival_s"] for job in jobs), 0, 1e-9)
    case.same("length", summary["total_s"], max(job["end_s"] for job in jobs) - summary["begin_s"], 1e-9)
    held = sum(job["gpu_hours"] for job in jobs) * HOUR
    case.same("share held", summary["held"], held / (gpus * summary["total_s"]), 1e-6)
    speeds = [1 / job["slowdown"] for job in jobs]
    case.same("Jain's fairness", summary["jain_fairness"], sum(speeds) ** 2 / len(speeds) / sum(s * s for s in speeds), 1e-9)
    total = micro(result["cost"]["total_usd"])
    case.same("owners' sum", sum(micro(owner["usd"]) for owner in result["owners"]), total, 0)
    for owner in result["owners"]:
        if owner["owner"] is not None:
            share = sum(job["gpu_hours"] for job in jobs if job["owner"] == owner["owner"]) * HOUR / (gpus * summary["total_s"])
            case.same("owner's money", micro(owner["usd"]), total * share, 1e-6, 2)


def check_places(case: Case, result: Json, placement: str, nodes: int, each: int) -> None:
    stays = [stay for job in result["jobs"] for stay in job["stays"]]
    for stay in stays:
        at = stay["from_s"]
        if placement == "topology" or sum(abs(other["from_s"] - at) < 1e-6 for other in stays) > 1:
            continue
        busy = [gpu for other in stays if other["from_s"] < at - 1e-6 and other["to_s"] > at + 1e-6 for gpu in gpus_of(other)]
        free = {node: each - sum(where == node for where, _ in busy) for node in range(nodes)}
        case.same(f"nodes by {placement}", len({node for node, _ in gpus_of(stay)}), nodes_taken(placement, free, stay["gpus"]), 0)


def losses(case: Case) -> None:
    """A node on spot whose capacity was recorded, under `fixed`."""
    lab = platform(case.draw)
    lab["billing"].update({"starts": one(case.draw, "boot", "ready"), "free_if_interrupted_within": f"{one(case.draw, 0, 3600)}s"})
    run = scenario(case.draw, {"gpus": 1})
    notice = whole(case.draw, 0, 300)
    capacity, rows = recording(case.draw)
    run["platform"].update({"nodes": 1, "market": "spot", "capacity": "capacity.csv", "notice": f"{notice}s"})
    run["synchronization"]["scheme"] = "ring"
    run["workload"] = {"trace": "trace.json", "batch_per_gpu": 64, "steps": whole(case.draw, 1, 20_000)}
    run["provisioning"] = {name: f"{whole(case.draw, 0, 200)}s" for name in ("queue", "boot", "image_pull", "framework_start")}
    run["storage"] = {"checkpoint": "store"}
    run["checkpoint"] = {"every": f"{whole(case.draw, 100, 4000)}s", "on_notice": False}
    if maybe(case.draw):
        run["checkpoint"] = {"every": "10000h", "on_notice": True}
    run["checkpoint"]["bytes"] = f"{whole(case.draw, 1, 3000)}MiB"
    if maybe(case.draw):
        del run["checkpoint"], run["storage"]
    steps = trace(case.draw)
    case.write(trace=steps, lab=lab, capacity=capacity, scenario=run)
    right = Replay(Training(run, lab, steps), rows, notice)
    code, text = case.run("simulate", "scenario.json", "--format", "json", codes=(0, 3, 4))
    if code == 3:
        return
    result = json.loads(text)
    case.same("losses", result["life"]["losses"], right.losses, 0)
    what = "time with a notice during a boot" if right.booted_under_notice else "time with losses"
    case.same(what, result["time"]["total_s"], right.end, 1e-6, 2 * right.losses * right.run.step())
    if abs(result["time"]["total_s"] - right.end) < 1e-6:
        said = sum(usd for name, usd in items_of(result).items() if name.startswith("instance-hours"))
        case.same("instance-hours with losses", said, right.instance_hours(), 0, 1 + len(right.stays))
