"""Makes a step trace, `ganymede.step-trace/1`, of marked steps and counted work. docs/step-trace.md has its fields."""
from __future__ import annotations

import json
import math
import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ._import import Progress, RecordError
from ._kernels import Kernel, key_of
from ._steps import Named, Part, names_of

SCHEMA = "ganymede.step-trace/1"
DIGITS = 9  # of times: nanoseconds


@dataclass
class Step:
    """One step: its parts, when each began (seconds since the step began), and what it took in all."""
    parts: List[Part] = field(default_factory=list)
    keys: List[int] = field(default_factory=list)  # of the parts' work
    starts: List[float] = field(default_factory=list)
    host_s: List[float] = field(default_factory=list)
    wall_s: float = 0
    host_marks: List[float] = field(default_factory=list)  # when the host made the marks, and that of the end
    lag_s: List[float] = field(default_factory=list)  # by which a GPU was behind its host at each part's end
    # Network, bucket, which update of the network in the step, index of the part, and when the bucket was ready: what
    # becomes seconds later, or None for the end of the part.
    ready: List[Tuple[str, int, int, int, Any]] = field(default_factory=list)

    def seconds(self, index: int) -> float:
        end = self.starts[index + 1] if index + 1 < len(self.starts) else self.wall_s
        return max(0.0, end - self.starts[index])


@dataclass
class Network:
    """What is trained of a network: numbers of parameters, and the bytes of each bucket of its gradients."""
    parameters: int = 0
    bucket_bytes: List[int] = field(default_factory=list)


@dataclass
class Recorded:
    """All that a trace is made of."""
    device: Dict[str, Any]
    software: Dict[str, str]
    model: str
    batch: int
    seed: int
    networks: Dict[str, Network]
    steps: List[Step]
    work: Dict[int, List[Kernel]]
    memory: Dict[str, float]
    dropped: int = 0
    recorded_at: Optional[str] = None
    executor: str = "eager"


def merge_order(steps: Sequence[List[Named]], progress: Progress) -> Tuple[List[Named], List[bool]]:
    """An order of parts in which the parts of all steps are in their own order, and which steps keep to it."""
    order: List[Named] = []
    fits = []
    for step in steps:
        merged, at, good = list(order), 0, True
        for named in step:
            if named in merged:
                place = merged.index(named)
                good = good and place >= at
                at = place + 1
            else:
                merged.insert(at, named)
                at += 1
        if good:
            order = merged
        fits.append(good)
    if not all(fits):
        progress.note(f"{fits.count(False)} steps ran their parts in another order than the others and are left out")
    return order, fits


def _named(step: Step, work: Dict[int, List[Kernel]]) -> Tuple[List[int], List[Named]]:
    """The parts that count, and their names. What passes between a step's end and its loader is no part."""
    kept = list(range(len(step.parts)))
    if len(kept) > 1 and step.parts[0].kind == "prepare" and step.parts[1].kind == "load" and not work.get(step.keys[0]):
        kept = kept[1:]
    return kept, names_of([step.parts[i] for i in kept])


def precision_of(kernels: List[Kernel]) -> str:
    """The precision of most matrix work; fp32 if there is none."""
    flops: Dict[str, float] = {}
    for kernel in kernels:
        if kernel.flops:
            flops[kernel.shape["precision"]] = flops.get(kernel.shape["precision"], 0) + kernel.flops
    return max(flops, key=lambda precision: flops[precision]) if flops else "fp32"


class Builder:
    """Brings the steps of a training together."""

    def __init__(self, recorded: Recorded, progress: Progress) -> None:
        self._r = recorded
        self._progress = progress
        named = [_named(step, recorded.work) for step in recorded.steps]
        self._order, fits = merge_order([names for _, names in named], progress)
        self._steps = [step for step, fit in zip(recorded.steps, fits) if fit]
        self._places = [dict(zip((n.name for n in names), kept)) for (kept, names), fit in zip(named, fits) if fit]
        self._weights = self._weigh()

    def _weigh(self) -> Dict[str, Dict[int, float]]:
        """For each part, the share of the steps in which it did what each key stands for."""
        weights: Dict[str, Dict[int, float]] = {named.name: {} for named in self._order}
        for step, places in zip(self._steps, self._places):
            for name, place in places.items():
                key = step.keys[place]
                weights[name][key] = weights[name].get(key, 0) + 1 / len(self._steps)
        for name, shares in weights.items():
            known = [key for key in shares if key in self._r.work]
            if known and len(known) < len(shares):  # some were never counted: they count as the others
                scale = sum(shares.values()) / sum(shares[key] for key in known)
                weights[name] = {key: shares[key] * scale for key in known}
        return weights

    def _kernels(self, name: str) -> List[Tuple[Kernel, float]]:
        """The kernels of a part with their launches in a mean step; equal neighbours are one."""
        found: List[Tuple[Kernel, float]] = []
        for key, share in sorted(self._weights[name].items(), key=lambda one: -one[1]):
            for kernel in self._r.work.get(key, []):
                if found and found[-1][0].shape == kernel.shape and key_of(found[-1][0]) == key_of(kernel):
                    found[-1] = (found[-1][0], found[-1][1] + share)
                else:
                    found.append((kernel, share))
        return found

    def _mean(self, name: str, what: str) -> float:
        return float(sum(share * sum(getattr(kernel, what) for kernel in self._r.work.get(key, []))
                         for key, share in self._weights[name].items()))

    def _launches(self, name: str) -> int:
        mean = sum(share * len(self._r.work.get(key, [])) for key, share in self._weights[name].items())
        return math.ceil(mean - 1e-6)

    def _phase(self, named: Named, ends: List[float]) -> Dict[str, Any]:
        starts, seconds, host = [], [], []
        for i, (step, places) in enumerate(zip(self._steps, self._places)):
            place = places.get(named.name)
            start = ends[i] if place is None else step.starts[place]
            length = 0.0 if place is None else step.seconds(place)
            starts.append(round(start, DIGITS))
            seconds.append(round(length, DIGITS))
            host.append(round(min(length, step.host_s[place]), DIGITS) if place is not None else 0.0)
            ends[i] = max(ends[i], start + length)
        phase: Dict[str, Any] = {"name": named.name}
        if named.network:
            phase["network"] = named.network
        phase.update(stream=named.stream, flops=self._mean(named.name, "flops"),
                     bytes_read=round(self._mean(named.name, "read")),
                     bytes_written=round(self._mean(named.name, "written")), launches=self._launches(named.name),
                     start_s=starts, seconds=seconds, host_s=host)
        return phase

    def _buckets(self, order: List[str]) -> List[Dict[str, Any]]:
        places: Dict[Tuple[str, int, int], List[Tuple[str, float]]] = {}
        for step, named in zip(self._steps, self._places):
            name_of = {place: name for name, place in named.items()}
            for network, bucket, update, part, when in step.ready:
                length = step.seconds(part)
                share = (when - step.starts[part]) / length if length > 0 else 1.0
                places.setdefault((network, bucket, update), []).append((name_of[part], share))
        found = []
        for (network, bucket, update), seen in places.items():
            after = Counter(name for name, _ in seen).most_common(1)[0][0]
            shares = [share for name, share in seen if name == after]
            fraction = min(1.0, max(1e-6, sum(shares) / len(shares)))
            entry: Dict[str, Any] = {"network": network, "bytes": self._r.networks[network].bucket_bytes[bucket],
                                     "after_phase": after, "ready_fraction": round(fraction, 6)}
            # The first update of a network is that of its own gradients, the second that of the next ones.
            needed = f"{network}.update" if update == 0 else f"{network}.update.{update + 1}"
            if needed in order and order.index(needed) > order.index(after):
                entry["before_phase"] = needed
            found.append(entry)
        found.sort(key=lambda entry: (order.index(entry["after_phase"]), entry["ready_fraction"]))
        return found

    def build(self) -> Dict[str, Any]:
        if not self._steps:
            raise RecordError("no step was recorded")
        ends = [0.0] * len(self._steps)
        phases = [self._phase(named, ends) for named in self._order]
        kernels = []
        for named in self._order:
            for kernel, times in self._kernels(named.name) if named.stream == "compute" else []:
                entry = {"phase": named.name, **({"layer": kernel.layer} if kernel.layer else {}), **kernel.shape}
                if abs(times - 1) > 1e-9:
                    entry["times"] = times
                kernels.append(entry)
        networks = {}
        for name, network in self._r.networks.items():
            flops = sum(phase["flops"] for phase in phases if phase.get("network") == name)
            networks[name] = {"parameters": network.parameters, "flops_per_image": flops / self._r.batch,
                              "gradient_bytes": sum(network.bucket_bytes)}
        every = [kernel for one in self._r.work.values() for kernel in one]
        trace: Dict[str, Any] = {
            "schema": SCHEMA, "device": self._r.device, "software": self._r.software, "model": self._r.model,
            "precision": precision_of(every), "seed": self._r.seed}
        if self._r.recorded_at:
            trace["recorded_at"] = self._r.recorded_at
        trace.update(executor=self._r.executor, networks=networks)
        if kernels:
            trace["kernels"] = kernels
        trace["batches"] = [{
            "batch": self._r.batch, "warmup_steps_dropped": self._r.dropped, "memory_bytes": self._r.memory,
            "wall_s": [round(step.wall_s, DIGITS) for step in self._steps], "phases": phases,
            "buckets": self._buckets([phase["name"] for phase in phases if phase["stream"] == "compute"])}]
        return trace


def write(trace: Dict[str, Any], path: Any) -> None:
    """Writes a trace under a temporary name, then renames it, so that the file is complete or not there."""
    path = os.fspath(path)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(trace, file, separators=(",", ":"), allow_nan=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise RecordError(f"{path}: the trace cannot be written: {error.strerror or error}") from error
