"""What `simulate` and `sweep` return. Every number has its unit in its name; `document` holds all that was printed."""

from __future__ import annotations

import html
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, cast

from ._documents import ClusterResultDocument, ResultDocument
from ._tables import Row, first_screen, frame

if TYPE_CHECKING:
    import pandas

Document = Mapping[str, Any]


class Result:
    """A result with a document that `ganymede report` can show."""

    document: Document

    @cached_property
    def _first_screen(self) -> Optional[str]:
        return first_screen(self.document)

    def _repr_html_(self) -> str:
        return self._first_screen or f"<pre>{html.escape(repr(self))}</pre>"


@dataclass(frozen=True)
class BillItem:
    """A line of the bill."""

    item: str
    pool: str
    quantity: float
    unit: str
    unit_price_usd: float
    usd: float


@dataclass(frozen=True)
class Event:
    """Something that happened in a run, such as the loss of a node."""

    at_seconds: float
    event: str
    pool: Optional[str] = None
    nodes: Optional[int] = None
    detail: Optional[str] = None
    times: int = 1


@dataclass(frozen=True)
class SeedSpread:
    """What the seeds of a run come to: the median, 5th and 95th percentile, and the interval with all stated error."""

    seeds: int
    finished: int
    met: int
    seconds_median: Optional[float]
    seconds_p5: Optional[float]
    seconds_p95: Optional[float]
    usd_median: Optional[float]
    usd_p5: Optional[float]
    usd_p95: Optional[float]


def bill_of(items: Iterable[Document]) -> Tuple[BillItem, ...]:
    return tuple(
        BillItem(
            item["item"],
            item["pool"],
            item["quantity"],
            item["unit"],
            float(item["unit_price_usd"]),
            float(item["usd"]),
        )
        for item in items
    )


@dataclass(frozen=True, repr=False)
class Run(Result):
    """One simulated training. Ends of intervals (`_low`, `_high`) hold all stated error."""

    platform: str
    market: str
    allocation: str
    gpu: str
    gpus: int
    scheme: str
    mode: str
    placement: str
    policy: str
    seed: int
    seconds: float
    seconds_low: float
    seconds_high: float
    usd: float
    usd_low: float
    usd_high: float
    steps: int
    images: int
    step_seconds: float
    images_per_second: Optional[float]  # while it trains; None if it never does
    gpu_busy: float
    gpu_flops: float
    cpu: Optional[float]
    network: float
    memory_bytes: float
    gpu_hours: float
    kwh: Optional[float]
    kg_co2e: Optional[float]
    losses: int
    checkpoints: int
    lost_training_seconds: float
    deadline_seconds: Optional[float]
    budget_usd: Optional[float]
    met: bool
    inputs: str
    risk: str
    gpu_seconds: Dict[str, float]
    document: ResultDocument = field(compare=False)

    @classmethod
    def from_document(cls, document: Document) -> "Run":
        """The run of a `ganymede.result/1`."""
        document = cast(ResultDocument, document)
        run, time, use, cost = document["run"], document["time"], document["utilization"], document["cost"]
        energy, life, goals = document["energy"] or {}, document["life"], document["goals"]
        provenance = document["provenance"]
        training_s = time["steps"] * time["step_mean_s"]
        budget = goals["budget_usd"]
        return cls(
            platform=run["platform"],
            market=run["market"],
            allocation=run["allocation"],
            gpu=run["gpu"],
            gpus=run["gpus"],
            scheme=run["scheme"],
            mode=run["mode"],
            placement=run["placement"],
            policy=run["policy"],
            seed=provenance["seed"],
            seconds=time["total_s"],
            seconds_low=time["interval_s"][0],
            seconds_high=time["interval_s"][1],
            usd=float(cost["total_usd"]),
            usd_low=float(cost["interval_usd"][0]),
            usd_high=float(cost["interval_usd"][1]),
            steps=time["steps"],
            images=time["images"],
            step_seconds=time["step_mean_s"],
            images_per_second=time["images"] / training_s if training_s > 0 else None,
            gpu_busy=use["gpu_busy"],
            gpu_flops=use["gpu_flops"],
            cpu=use["cpu"],
            network=use["network"],
            memory_bytes=use["memory_bytes"],
            gpu_hours=document["gpu_hours"],
            kwh=energy.get("kwh"),
            kg_co2e=energy.get("kg_co2e"),
            losses=life["losses"],
            checkpoints=life["checkpoints"],
            lost_training_seconds=life["lost_training_s"],
            deadline_seconds=goals["deadline_s"],
            budget_usd=None if budget is None else float(budget),
            met=goals["met"],
            inputs=provenance["inputs"],
            risk=provenance["risk"],
            gpu_seconds=document["gpu_seconds"],
            document=document,
        )

    @property
    def bill(self) -> Tuple[BillItem, ...]:
        return bill_of(self.document["cost"]["items"])

    @property
    def events(self) -> Tuple[Event, ...]:
        return tuple(
            Event(
                event["at_s"],
                event["event"],
                event.get("pool"),
                event.get("nodes"),
                event.get("detail"),
                event.get("times", 1),
            )
            for event in self.document["events"]
        )

    @property
    def warnings(self) -> Tuple[str, ...]:
        return tuple(self.document["provenance"]["warnings"])

    @property
    def spread(self) -> Optional[SeedSpread]:
        """What this seed and the next ones come to, if chance decides."""
        seeds = self.document.get("seeds")
        if seeds is None:
            return None
        time, usd = seeds["time_s"], seeds["usd"]
        return SeedSpread(
            seeds["count"],
            seeds["finished"],
            seeds["met"],
            time["median"],
            time.get("p5"),
            time.get("p95"),
            usd["median"],
            usd.get("p5"),
            usd.get("p95"),
        )

    def row(self) -> Row:
        """The run as a row of a table: its fields, and GPU-seconds by use as `gpu_seconds_compute` and the like."""
        row = {name: getattr(self, name) for name in _RUN_COLUMNS}
        row.update({f"gpu_seconds_{use}": seconds for use, seconds in self.gpu_seconds.items()})
        return row

    def to_pandas(self) -> pandas.DataFrame:
        """A frame of one row."""
        return frame([self.row()])

    def __repr__(self) -> str:
        return (
            f"Run({self.platform}, {self.allocation}: {self.gpus} x {self.gpu}, {self.scheme}, seed {self.seed}: "
            f"{self.seconds:.6g} s, {self.usd:.6g} USD)"
        )


_RUN_COLUMNS = tuple(entry.name for entry in fields(Run) if entry.name not in ("gpu_seconds", "document"))


@dataclass(frozen=True)
class FailedRun:
    """A run of a study that has no result."""

    run: str
    policy: str
    seed: int
    kind: str
    reason: str


@dataclass(frozen=True, repr=False)
class Sweep(Result):
    """The runs of a study."""

    study: str
    runs: List[Run]
    failed: List[FailedRun]
    document: Document = field(compare=False)

    @classmethod
    def from_document(cls, document: Document) -> "Sweep":
        """The study of a `ganymede.sweep/1`."""
        failed = [
            FailedRun(entry["run"], entry["policy"], entry["seed"], entry["kind"], entry["reason"])
            for entry in document["failed"]
        ]
        return cls(document["study"], [Run.from_document(run) for run in document["runs"]], failed, document)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def cheapest(self) -> Run:
        return min(self.runs, key=lambda run: run.usd)

    @property
    def fastest(self) -> Run:
        return min(self.runs, key=lambda run: run.seconds)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each run; `document["groups"]` has the distributions over seeds."""
        return frame(run.row() for run in self.runs)

    def __repr__(self) -> str:
        failed = f", {len(self.failed)} without a result" if self.failed else ""
        return f"Sweep({self.study}: {len(self.runs)} runs{failed})"


@dataclass(frozen=True)
class Job:
    """The life of one job on a cluster."""

    job: str
    owner: str
    workload: str
    gpus: int
    arrival_seconds: float
    start_seconds: float
    end_seconds: float
    wait_seconds: float
    run_seconds: float
    slowdown: float
    gpu_hours: float
    preemptions: int


@dataclass(frozen=True, repr=False)
class Cluster(Result):
    """The life of many jobs on one cluster."""

    scheduler: str
    placement: str
    seed: int
    gpus: int
    seconds: float
    usd: float
    gpu_busy: float
    wait_seconds_mean: float
    slowdown_mean: float
    jobs: List[Job]
    document: ClusterResultDocument = field(compare=False)

    @classmethod
    def from_document(cls, document: Document) -> "Cluster":
        """The cluster of a `ganymede.cluster-result/1`."""
        document = cast(ClusterResultDocument, document)
        summary = document["summary"]
        jobs = [
            Job(
                job["job"],
                job["owner"],
                job["workload"],
                job["gpus"],
                job["arrival_s"],
                job["start_s"],
                job["end_s"],
                job["wait_s"],
                job["run_s"],
                job["slowdown"],
                job["gpu_hours"],
                job["preemptions"],
            )
            for job in document["jobs"]
        ]
        return cls(
            document["scheduler"],
            document["placement"],
            document["provenance"]["seed"],
            summary["gpus"],
            summary["total_s"],
            float(document["cost"]["total_usd"]),
            summary["gpu_busy"],
            summary["wait_s"]["mean"],
            summary["slowdown"]["mean"],
            jobs,
            document,
        )

    @property
    def bill(self) -> Tuple[BillItem, ...]:
        return bill_of(self.document["cost"]["items"])

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each job."""
        return frame({**vars(job), "scheduler": self.scheduler, "seed": self.seed} for job in self.jobs)

    def __repr__(self) -> str:
        return f"Cluster({len(self.jobs)} jobs on {self.gpus} GPUs, {self.scheduler}: {self.usd:.6g} USD)"


@dataclass(frozen=True)
class Compared:
    """A quantity of a life, predicted and measured."""

    what: str
    unit: str
    predicted: float
    measured: float
    off: Optional[float]  # of the measured; None if nothing was measured
    share: float  # of the measured GPU-seconds


@dataclass(frozen=True, repr=False)
class Rehearsal(Result):
    """A life that real processes have played, beside its prediction (`ganymede rehearse --life`)."""

    scenario: str
    hosts: int
    network: str
    scale: float  # real seconds for one of the scenario
    same_decisions: bool
    comparison: List[Compared]
    predicted: Run
    measured: Run
    document: Document = field(compare=False)

    @classmethod
    def from_document(cls, document: Document) -> "Rehearsal":
        """The life of a `ganymede.rehearsal/1`."""
        rows = [
            Compared(row["what"], row["unit"], row["predicted"], row["measured"], row["off"], row["share"])
            for row in document["comparison"]
        ]
        return cls(
            document["scenario"],
            document["hosts"],
            document["network"],
            document["scale"],
            document["decisions"]["same"],
            rows,
            Run.from_document(document["predicted"]),
            Run.from_document(document["measured"]),
            document,
        )

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each quantity that is compared."""
        return frame(vars(row) for row in self.comparison)

    def __repr__(self) -> str:
        return (
            f"Rehearsal({self.scenario} on {self.hosts} hosts: predicted {self.predicted.seconds:.6g} s, "
            f"measured {self.measured.seconds:.6g} s)"
        )
