"""A training on one pool and its bill, by the rules of docs/money.md and docs/policies.md alone.

All arguments are the JSON that the program reads; all results are SI units, money in whole micro-dollars.
"""
import json
import math
import re
from typing import Any

Json = dict[str, Any]
MICRO, HOUR, MONTH = 1_000_000, 3600, 730  # a month has 730 hours
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9,
         "MiB": 2**20, "GiB": 2**30, "bit": 1 / 8, "Mbit": 1e6 / 8, "Gbit": 1e9 / 8, "W": 1, "USD": 1, "g": 1}


def q(text: Any) -> float:
    """A quantity such as "25Gbit/s" in SI units, and per hour or per kWh as they are written."""
    found = re.fullmatch(r"([-+.\de]+?)([A-Za-z]+)(/.*)?", text)
    assert found, text
    return float(found[1]) * UNITS[found[2]]


def money(text: str) -> int:
    return micro(q(text))


def micro(number: str | float) -> int:
    """Micro-dollars of an amount in dollars."""
    return round(float(number) * MICRO)


def whole_steps(interval: float) -> int:
    return max(1, math.floor(interval + 0.5))


def volume_size(storage: Json, wanted: float) -> float:
    """Bytes that are sold: at least the smallest volume, whole GiB if the price is by the GiB."""
    size = max(wanted, q(storage.get("minimum", "0B")))
    return math.ceil(size / 2**30) * 2**30 if "per_gib_month" in storage else size


class Training:
    """Steps of one pool with all its nodes, from the request to the end; `after` is when capacity comes and goes."""

    def __init__(self, scenario: Json, platform: Json, trace: Json) -> None:
        self.scenario, self.platform = scenario, platform
        pool = scenario["platform"]
        self.instance = platform["instances"][pool["instance"]]
        self.nodes: int = pool.get("nodes", 1)
        self.gpus_a_node: int = pool.get("gpus_per_node", self.instance["gpus"])
        self.gpus = self.nodes * self.gpus_a_node
        self.market = pool.get("market", "on-demand")
        self.price = next(money(p["per_hour"]) for p in self.instance["prices"] if p["market"] == self.market)
        batch = trace["batches"][0]
        self.own_step: float = sum(phase["seconds"][0] for phase in batch["phases"]) * scenario["workload"].get("accumulation_steps", 1)
        self.gradients: int = batch["buckets"][0]["bytes"]
        self.memory_bandwidth: float = q(platform["gpus"][self.instance["gpu"]]["memory_bandwidth"])
        storage = scenario.get("storage", {})
        self.saved_on = self.named(storage.get("checkpoint"))
        self.read_from = self.named(storage.get("dataset"))
        # "It holds the weights and two moments of Adam, or `bytes`."
        self.saved: float = q(scenario.get("checkpoint", {}).get("bytes", f"{3 * self.gradients}B"))

    def named(self, use: Any) -> Json:
        """A storage class with what the scenario says of it."""
        if use is None:
            return {}
        if isinstance(use, str):
            use = {"class": use}
        return {**self.platform["storage"][use["class"]], **{f"used_{k}": v for k, v in use.items()}}

    def all_reduce(self) -> float:
        """Ring: 2 (n - 1) rounds of an n-th (Patarasuk and Yuan, 2009); recursive doubling: log2 n exchanges of all (Thakur
        et al., 2005). A message waits for both NICs and the switch, or for the links of the node; adding moves three bytes for each."""
        if self.gpus == 1:
            return 0
        if self.nodes == 1:
            link = self.instance["gpu_links"]
            wait, rate = q(link["latency"]), q(link["bandwidth"])
        else:
            link = self.instance["nic"]
            wait, rate = 2 * q(link["latency"]) + q(self.platform["fabric"]["latency"]), q(link["bandwidth"])
        add = 3 / self.memory_bandwidth
        if self.scenario["synchronization"]["scheme"] == "ring":
            piece, rounds = self.gradients / self.gpus, self.gpus - 1
            return float(2 * rounds * (wait + piece / rate) + rounds * piece * add)
        return float(math.log2(self.gpus) * (wait + self.gradients * (1 / rate + add)))

    def step(self) -> float:
        return self.own_step + self.all_reduce()

    def reading_step(self) -> float:
        """A step whose images come from where the dataset is kept: the longer of both."""
        if not self.read_from:
            return self.step()
        shared_by = self.gpus_a_node if self.each_node(self.read_from) else self.gpus
        images = self.batch() * shared_by
        size = self.scenario["workload"]["dataset"]["bytes_per_image"]
        rate: float = max(images * size / q(self.read_from.get("used_throughput", self.read_from["read"])),
                   self.batch() * self.gpus_a_node * size / q(self.instance["nic"]["bandwidth"]))  # volumes are reached over the network
        requests: float = images / self.scenario["storage"].get("images_per_request", 1)
        iops = float(self.read_from.get("used_iops") or self.read_from.get("iops", math.inf))
        return max(self.step(), rate, requests / iops)

    def steps_s(self) -> float:
        """Of all steps; a dataset that fits the hosts' memory is read once."""
        reading = self.steps() if self.scenario.get("storage", {}).get("cache") == "none" else min(self.steps(), self.epoch())
        return reading * self.reading_step() + (self.steps() - reading) * self.step()

    def batch(self) -> int:
        return int(self.scenario["workload"]["batch_per_gpu"])

    @staticmethod
    def each_node(storage: Json) -> bool:
        return bool(storage.get("each_node", storage.get("kind", "volume") == "object"))

    def steps(self) -> int:
        workload, images = self.scenario["workload"], self.batch() * self.gpus
        if "images" in workload:
            return int(math.ceil(workload["images"] / images))
        if "epochs" in workload:
            return int(workload["epochs"] * math.ceil(workload["dataset"]["images"] / images))
        return int(workload["steps"])

    def delay(self, name: str) -> float:
        return q({**self.platform.get("provisioning", {}), **self.scenario.get("provisioning", {})}.get(name, "0s"))

    def start_s(self) -> float:
        several = self.delay("communicator_start") if self.gpus > 1 else 0
        return self.delay("framework_start") + several + (self.gpus_a_node - 1) * self.delay("replica_start")

    def write_s(self) -> float:
        return self.saved / q(self.saved_on.get("used_throughput", self.saved_on["write"])) if self.saved_on else 0

    def checkpoints(self, step: float) -> int:
        """Complete ones; the last is written after the last step."""
        every = self.scenario.get("checkpoint", {}).get("every")
        if not (every and self.saved_on):
            return 0
        at = self.epoch_steps(every) if every.endswith("epoch") else whole_steps(q(every) / step)
        return max(1, math.ceil(self.steps() / at - 1e-9))

    def epoch_steps(self, every: str) -> float:
        return float(every.removesuffix("epoch")) * self.epoch()

    def epoch(self) -> int:
        return int(math.ceil(self.scenario["workload"]["dataset"]["images"] / (self.batch() * self.gpus)))

    def evaluations(self) -> tuple[int, float]:
        rule = self.scenario.get("evaluation")
        if not rule:
            return 0, 0
        return self.steps() // int(rule["every"].split()[0]), q(rule["fixed"]) + q(rule["parallel"]) / self.gpus

    def total_s(self) -> float:
        """Of a run that loses nothing."""
        step, (count, pause) = self.step(), self.evaluations()
        return (self.delay("queue") + self.delay("boot") + self.delay("image_pull") + self.start_s() + self.steps_s() + count * pause
                + self.checkpoints(step) * self.write_s())

    # --- the bill ---

    def metered_from(self) -> float:
        starts = self.platform["billing"].get("starts", "request")
        return {"request": 0, "boot": self.delay("queue"), "ready": self.delay("queue") + self.delay("boot")}[starts]

    def node_s(self, held: float) -> float:
        rules = self.platform["billing"]
        unit = q(rules.get("granularity", "1s"))
        return max(math.ceil((held - 1e-6) / unit) * unit, q(rules.get("minimum", "0s")))

    def bill(self, total: float, images: int, checkpoints: int, kwh: float) -> dict[str, int]:
        """By item; `total` is from the request to the last step, without the idle tail."""
        extra = self.scenario.get("billing", {})
        end = total + q(extra.get("idle_tail", "0s"))
        hours = end / HOUR
        held = end - self.metered_from()
        items = self.instance_hours(self.node_s(held))
        if extra.get("commitment") == "whole-term" and self.market.startswith("reserved"):
            term = {"reserved-1y": 1, "reserved-3y": 3}[self.market] * 8760 * HOUR
            items["unused commitment"] = round(self.nodes * (term - self.node_s(held)) / HOUR * self.price)
        if "boot_disk" in extra:
            disk = self.named(extra["boot_disk"])
            items["boot disk"] = round(self.nodes * self.volume(disk, 0, (end - self.delay("queue")) / HOUR)["storage"])
        for use, wanted in ((self.read_from, self.dataset_bytes()), (self.saved_on, self.saved)):
            if use and use.get("kind", "volume") == "volume":
                for item, usd in self.volume(use, wanted, hours).items():
                    items[item] = items.get(item, 0) + round(usd * (self.nodes if self.each_node(use) else 1))
            elif use:
                items["storage"] = items.get("storage", 0) + round(self.month_price(use, wanted) * hours / MONTH)
        if self.saved_on.get("kind") == "object":
            parts = math.ceil(self.saved / 2**23)
            items["write requests"] = round(checkpoints * (1 if parts == 1 else parts + 2) / 1000 * money(self.saved_on["per_1000_put"]))
        if self.read_from.get("kind") == "object" and self.scenario["storage"].get("cache") == "none":
            each = self.scenario["storage"].get("images_per_request", 1)
            items["read requests"] = round(images / each / 1000 * money(self.read_from["per_1000_get"]))
        if "download" in extra:
            items["data transfer"] = self.internet(q(extra["download"]) / 1e9, extra.get("free_tiers", False))
        services = self.platform.get("services", {})
        if extra.get("kubernetes"):
            free = q(services.get("control_plane_free", "0s")) / HOUR if extra.get("free_tiers") else 0
            paid = hours // MONTH * (MONTH - free) + max(0, hours % MONTH - free)
            items["control plane"] = round(paid * money(services["control_plane"].removesuffix("/h")))
        if extra.get("load_balancer"):
            items["load balancer"] = round(hours * money(services["load_balancer"].removesuffix("/h")))
        per_kwh = self.region().get("per_kwh")
        if per_kwh:
            items["electricity"] = round(kwh * money(per_kwh))
        return {item: usd for item, usd in items.items() if usd}

    def region(self) -> Json:
        return dict(self.platform.get("regions", {}).get(self.scenario["platform"]["region"], {}))

    def instance_hours(self, node_s: float) -> dict[str, int]:
        levels = self.instance.get("sustained_use") if self.market == "on-demand" else None
        items: dict[str, int] = {}
        amounts: dict[float, float] = {}
        if not levels:
            amounts[1] = node_s
        else:  # the run starts at the beginning of a month
            part, begin = MONTH / len(levels) * HOUR, self.metered_from()
            for month in range(math.ceil((begin + node_s) / (MONTH * HOUR))):
                used = min(begin + node_s, (month + 1) * MONTH * HOUR) - max(begin, month * MONTH * HOUR)
                for number, share in enumerate(levels):
                    amounts[share] = amounts.get(share, 0) + min(part, max(0, used - number * part))
        for share, seconds in amounts.items():
            name = "instance-hours" if share == 1 else f"instance-hours at {100 * share:.0f} % (sustained use)"
            items[name] = round(self.nodes * seconds / HOUR * math.floor(self.price * share + 0.5))
        return items

    def dataset_bytes(self) -> float:
        dataset = self.scenario["workload"].get("dataset", {})
        return float(dataset.get("images", 0) * dataset.get("bytes_per_image", 0))

    @staticmethod
    def month_price(storage: Json, size: float) -> float:
        """Micro-dollars a month of so many bytes."""
        if "per_gib_month" in storage:
            return size / 2**30 * money(storage["per_gib_month"])
        return size / 1e9 * money(storage.get("per_gb_month", "0USD"))

    def volume(self, use: Json, wanted: float, hours: float) -> dict[str, float]:
        size = volume_size(use, q(use["used_size"]) if "used_size" in use else wanted)
        items = {"storage": self.month_price(use, size) * hours / MONTH}
        if "used_iops" in use:
            items["provisioned IOPS"] = max(0, use["used_iops"] - use["iops"]) * money(use["per_iops_month"]) * hours / MONTH
        if "used_throughput" in use:
            more = max(0, q(use["used_throughput"]) - q(use["read"]))
            items["provisioned throughput"] = more / 2**20 * money(use["per_mibps_month"]) * hours / MONTH
        return items

    def internet(self, gb: float, free: bool) -> int:
        transfer = self.platform["transfer"]
        left, below, usd = gb - (transfer.get("free_gb_month", 0) if free else 0), 0.0, 0
        for tier in transfer["internet"]:
            here = min(left, tier.get("up_to_gb", math.inf) - below)
            below = tier.get("up_to_gb", math.inf)
            if here > 0:
                usd += round(here * money(tier["per_gb"]))
                left -= here
        return usd

    def kwh(self, held_s: float, busy_gpu_s: float) -> float:
        """`held_s` of each node from its grant; every GPU of it draws idle power, used or not. Processors that do no work are idle."""
        gpu = self.platform["gpus"][self.instance["gpu"]]["power"]
        idle, peak = q(gpu["idle"]), q(gpu["peak"])
        joules = self.nodes * self.instance["gpus"] * held_s * idle + busy_gpu_s * (peak - idle)
        joules += self.nodes * held_s * q(self.instance["power"]["idle"])
        return float(joules / 3.6e6 * self.region().get("pue", 1))


def trace_of(step_s: float, gradients: int, batch: int, host_s: float = 0) -> Json:
    """A step trace of steps that take `step_s` each: a backward pass of which all gradients come, and an update."""
    def phase(name: str, start: float, seconds: float) -> Json:
        return {"name": name, "network": "generator", "stream": "compute", "start_s": [start] * 3, "seconds": [seconds] * 3,
                "host_s": [host_s / 2] * 3, "flops": 1e9, "bytes_read": 1e6, "bytes_written": 1e6, "launches": 1}
    return {"schema": "ganymede.step-trace/1",
            "device": {"name": "GPU-X", "kind": "gpu", "threads": 1, "fp32": "10Tflop/s", "memory_bandwidth": "900GB/s", "memory": "16GB"},
            "software": {"name": "ganymede", "version": "1", "backend": "eigen"}, "model": "m", "precision": "fp32", "seed": 1,
            "recorded_at": "2026-11-01T00:00:00Z",
            "networks": {"generator": {"parameters": gradients // 4, "flops_per_image": 1e7, "gradient_bytes": gradients}},
            "batches": [{"batch": batch, "warmup_steps_dropped": 0, "memory_bytes": {"parameters": gradients}, "wall_s": [step_s] * 3,
                         "phases": [phase("generator.backward", 0, 0.8 * step_s), phase("generator.update", 0.8 * step_s, 0.2 * step_s)],
                         "buckets": [{"network": "generator", "bytes": gradients, "after_phase": "generator.backward",
                                      "ready_fraction": 1}]}]}


def copy(document: Json) -> Json:
    return json.loads(json.dumps(document))  # type: ignore[no-any-return]


class Replay:
    """One spot node under `fixed` whose capacity is recorded: waiting, losses, checkpoints and what its hours cost."""

    def __init__(self, run: Training, rows: list[tuple[float, int]], notice: float) -> None:
        self.run, self.notice, self.losses, self.booted_under_notice = run, notice, 0, False
        self.ups = [(start, rows[k + 1][0] if k + 1 < len(rows) else math.inf) for k, (start, nodes) in enumerate(rows) if nodes]
        self.stays: list[tuple[float, float, bool]] = []  # from its grant, until when, whether it was taken back
        self.end = self.live()

    def live(self) -> float:
        """The time at which the last step is done."""
        run, saved = self.run, self.run.scenario.get("checkpoint", {})
        write, step, steps = run.write_s(), run.step(), run.steps()
        every = whole_steps(q(saved["every"]) / step) if "every" in saved else 0
        load = run.saved / q(run.saved_on.get("used_throughput", run.saved_on["read"])) if run.saved_on else 0
        durable, asked, loads = 0.0, run.delay("queue"), False
        for start, end in self.ups:
            if end <= asked:
                continue
            grant = max(start, asked)
            begin = grant + run.delay("boot") + run.delay("image_pull") + run.start_s() + (load if loads else 0)
            left = steps - durable
            cycles = max(1, math.ceil(left / every - 1e-9)) if every else 0
            done = begin + left * step + cycles * write
            if done <= end:
                self.stays.append((grant, done, False))
                return done
            self.stays.append((grant, end, True))
            ready = grant + run.delay("boot") + run.delay("image_pull")
            self.booted_under_notice |= max(grant, end - self.notice) <= ready < end
            trained = max(0.0, end - begin)
            if saved.get("on_notice") and self.notice >= write and trained > write:
                durable += (trained - write) / step
            elif every:
                durable += every * math.floor(trained / (every * step + write) + 1e-9)
            self.losses += 1
            loads = durable > 0
            asked = max(asked, max(grant, end - self.notice) + run.delay("queue"))
        return math.inf

    def instance_hours(self) -> int:
        """Micro-dollars; a node that the provider takes back early is free where it says so."""
        run, free = self.run, q(self.run.platform["billing"].get("free_if_interrupted_within", "0s"))
        unmetered = run.metered_from() - run.delay("queue")
        seconds = 0.0
        for grant, end, taken in self.stays:
            held = end - grant - unmetered
            if held > 0 and not (taken and held < free):
                seconds += run.node_s(held)
        return round(seconds / HOUR * run.price)
