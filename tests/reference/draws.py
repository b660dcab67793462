"""Random inputs, as the JSON that the program reads. Simple values come first, so that shrinking ends at small cases."""
from typing import Any, Protocol

from hypothesis import strategies as st

from runs import Json, copy, trace_of


class Draw(Protocol):
    """hypothesis's `data.draw`."""

    def __call__(self, strategy: st.SearchStrategy[Any]) -> Any: ...


def one(draw: Draw, *choices: Any) -> Any:
    return draw(st.sampled_from(choices))


def whole(draw: Draw, least: int, most: int) -> int:
    return int(draw(st.integers(least, most)))


def maybe(draw: Draw) -> bool:
    return bool(draw(st.booleans()))


def usd(micro: int, unit: str = "") -> str:
    return f"{micro // 1_000_000}.{micro % 1_000_000:06d}USD{unit}"


def platform(draw: Draw, gpus: int = 1) -> Json:
    """One instance type with a price on each market, a volume class, an object store and all services."""
    price = whole(draw, 1, 40_000_000)
    prices = [{"region": "room", "market": market, "as_of": "2026-11-01", "per_hour": usd(max(1, round(price * share)), "/h")}
              for market, share in (("on-demand", 1), ("spot", 0.4), ("reserved-1y", 0.7), ("reserved-3y", 0.5))]
    instance: Json = {"gpu": "GPU-X", "gpus": gpus, "power": {"idle": f"{whole(draw, 0, 200)}W", "peak": "400W"},
                      "gpu_links": {"kind": "nvlink", "bandwidth": f"{one(draw, 50, 300)}GB/s", "latency": f"{whole(draw, 0, 9)}us"},
                      "nic": {"bandwidth": f"{one(draw, 1, 10, 100)}Gbit/s", "latency": f"{whole(draw, 0, 100)}us"}, "prices": prices}
    instance.update({"vcpus": 16, "memory": "64GiB"})
    if maybe(draw):
        instance["sustained_use"] = one(draw, [1, 0.8, 0.6, 0.4], [1, 0.5])
    volume = {"kind": "volume", "read": "200MB/s", "write": f"{one(draw, 100, 20)}MB/s", "iops": 3000,
              one(draw, "per_gb_month", "per_gib_month"): usd(whole(draw, 0, 300_000)), "per_iops_month": usd(5_000),
              "per_mibps_month": usd(40_000), "minimum": f"{whole(draw, 1, 20)}GiB", "each_node": maybe(draw)}
    store = {"kind": "object", "read": f"{one(draw, 1000, 100)}MB/s", "write": "100MB/s", "per_gb_month": usd(20_000),
             "per_1000_put": usd(5_000), "per_1000_get": usd(400)}
    region: Json = {"carbon": "400g/kWh", "pue": one(draw, 1, 1.5)}
    if maybe(draw):
        region["per_kwh"] = usd(whole(draw, 1, 500_000))
    return {"schema": "ganymede.platform/1", "provider": "private", "name": "lab",
            "gpus": {"GPU-X": {"memory": "16GB", "fp32": "10Tflop/s", "memory_bandwidth": f"{one(draw, 300, 900, 2000)}GB/s",
                               "power": {"idle": f"{whole(draw, 0, 100)}W", "peak": "300W"}}},
            "instances": {"one": instance}, "regions": {"room": region},
            "fabric": {"kind": "switch", "latency": f"{whole(draw, 0, 20)}us"}, "storage": {"disk": volume, "store": store},
            "provisioning": {"boot": "0s"},
            "billing": {"granularity": f"{one(draw, 1, 60, 3600)}s", "minimum": f"{one(draw, 0, 60, 600, 7200)}s",
                        "starts": one(draw, "request", "boot", "ready")},
            "transfer": {"internet": [{"up_to_gb": 10, "per_gb": "0.1USD"}, {"up_to_gb": 100, "per_gb": "0.07USD"}, {"per_gb": "0.05USD"}],
                         "free_gb_month": 1},
            "services": {"control_plane": "0.1USD/h", "control_plane_free": "3h", "load_balancer": "0.02USD/h"}}


def trace(draw: Draw, batch: int = 64) -> Json:
    return trace_of(one(draw, 0.1, 0.001, 1, 60) * whole(draw, 1, 9), 64 * whole(draw, 1, 1_000_000), batch)


def scenario(draw: Draw, instance: Json) -> Json:
    """A training on one pool that loses nothing and saves nothing."""
    if instance["gpus"] == 1:
        nodes, used = one(draw, 1, 2, 4, 8), 1
    else:
        nodes, used = 1, whole(draw, 1, instance["gpus"])
    scheme = one(draw, "ring", "recursive-doubling") if nodes * used in (1, 2, 4, 8) else "ring"
    dataset = {"name": "d", "images": whole(draw, 1, 100_000), "bytes_per_image": whole(draw, 1, 50_000)}
    workload: Json = {"trace": "trace.json", "batch_per_gpu": 64, "dataset": dataset}
    target = one(draw, "steps", "images", "epochs")
    most = {"steps": 20_000, "images": 2_000_000, "epochs": 20}[target]
    workload[target] = whole(draw, 1, most)
    return {"schema": "ganymede.scenario/1", "workload": workload,
            "platform": {"catalog": "lab.json", "region": "room", "instance": "one", "nodes": nodes, "gpus_per_node": used,
                         "market": one(draw, "on-demand", "reserved-1y", "reserved-3y")},
            "synchronization": {"scheme": scheme, "overlap": False, "interference": 0, "jitter": 0}, "seed": 1}


def storage(draw: Draw, with_checkpoint: bool = True) -> Json:
    disk: Json = {"class": "disk", "size": f"{whole(draw, 20, 500)}GiB"}
    if maybe(draw):
        disk["iops"] = whole(draw, 3000, 9000)
    if maybe(draw):
        disk["throughput"] = f"{whole(draw, 200, 900)}MB/s"
    use: Json = {}
    if maybe(draw):
        use["dataset"] = one(draw, disk, "disk", "store")
        if use["dataset"] == "store":
            use.update({"cache": "none", "images_per_request": one(draw, 1, 10)})
        use["prefetch"] = whole(draw, 1, 4)
    if with_checkpoint and maybe(draw):
        use["checkpoint"] = one(draw, "store", copy(disk))
    return use


def extras(draw: Draw, run: Json) -> None:
    """What a scenario may add: provisioning, checkpoints, evaluations, items of the bill."""
    run["provisioning"] = {name: f"{whole(draw, 0, 300)}s"
                           for name in ("queue", "boot", "image_pull", "framework_start", "communicator_start",
                                        "replica_start") if maybe(draw)}
    use = storage(draw)
    if use:
        run["storage"] = use
    if "checkpoint" in use:
        run["checkpoint"] = {"every": one(draw, f"{whole(draw, 60, 7200)}s", f"{whole(draw, 1, 5)}epoch")}
        if maybe(draw):
            run["checkpoint"]["bytes"] = f"{whole(draw, 1, 200)}MiB"
    if maybe(draw):
        run["evaluation"] = {"every": f"{whole(draw, 1, 5000)} steps", "fixed": f"{whole(draw, 1, 60)}s",
                             "parallel": f"{whole(draw, 0, 600)}s"}
    bill: Json = {}
    if maybe(draw):
        bill.update({"kubernetes": True, "load_balancer": maybe(draw)})
    if maybe(draw):
        bill["boot_disk"] = {"class": "disk", "size": f"{whole(draw, 20, 200)}GiB"}
    if maybe(draw):
        bill["idle_tail"] = f"{whole(draw, 1, 5000)}s"
    if maybe(draw):
        bill["download"] = f"{whole(draw, 2, 300)}GB"
    if run["platform"]["market"] != "on-demand":
        bill["commitment"] = one(draw, "amortized", "whole-term")
    if bill:
        run["billing"] = {**bill, "free_tiers": maybe(draw)}


def places(draw: Draw, lab: Json, clouds: bool) -> Json:
    """Pools of one node each in several zones, regions or clouds, all joined by links of random prices."""
    count = whole(draw, 2, 4)
    names = "abcd"[:count]
    price = lab["instances"]["one"]["prices"][0]
    lab["instances"]["one"]["prices"] += [{**price, "zone": f"z{name}"} for name in names]
    lab["transfer"].update({"zone": usd(10_000), "zone_charged": one(draw, "both ends", "once"), "region": usd(20_000)})
    pools = [{"name": name, "catalog": f"lab{name}.json" if clouds else "lab.json", "region": "room", "instance": "one", "nodes": 1,
              "gpus_per_node": 1, **({} if clouds else {"zone": f"z{name}"})} for name in names]
    stated = not clouds and maybe(draw)
    links = [{"between": [first, second], "bandwidth": f"{one(draw, 10, 1)}Gbit/s", "latency": f"{whole(draw, 0, 30)}ms",
              **({"usd_per_gb": whole(draw, 0, 9) / 100} if stated else {})}
             for k, first in enumerate(names) for second in names[k + 1:]]
    return {"pools": pools, "links": links}


def timed_jobs(draw: Draw, gpus: int) -> list[Json]:
    """Jobs with durations on the GPUs that they ask for, in the order of arrival."""
    jobs: list[Json] = []
    arrival = 0
    for number in range(whole(draw, 1, 7)):
        arrival += whole(draw, 0, 40) if number else 0
        job: Json = {"name": f"j{number}", "gpus": whole(draw, 1, gpus), "duration": f"{whole(draw, 1, 99)}s", "arrival": f"{arrival}s"}
        if maybe(draw):
            job["priority"] = whole(draw, 0, 3)
        if number and maybe(draw):
            job["after"] = [f"j{whole(draw, 0, number - 1)}"]
        if maybe(draw):
            job["deadline"] = f"{whole(draw, 1, 300)}s"
        if maybe(draw):
            job["owner"] = one(draw, "x", "y")
        jobs.append(job)
    return jobs


def recording(draw: Draw, most: int = 1) -> tuple[str, list[tuple[float, int]]]:
    """A recording of capacity that ends with nodes, as a file and as its rows."""
    rows, at = [], whole(draw, 0, 500)
    for _ in range(whole(draw, 0, 6)):
        rows.append((float(at), most))
        at += whole(draw, 1, 5000)
        rows.append((float(at), 0))
        at += whole(draw, 1, 3000)
    rows.append((float(at), most))
    return "time_s,nodes\n" + "".join(f"{time:.0f},{nodes}\n" for time, nodes in rows), rows
