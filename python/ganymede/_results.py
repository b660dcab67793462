"""What `simulate` and `sweep` return. Every number has its unit in its name; `document` holds all that was printed."""

from __future__ import annotations

import html
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Dict, Iterator, List, Optional, Tuple

from ._documents import ClusterResultDocument, DiffDocument, ResultDocument
from ._reading import Document, FromDocument
from ._tables import Row, first_screen, frame

if TYPE_CHECKING:
    import pandas


class Result(FromDocument):
    """A result with a document that `ganymede report` can show."""

    document: Document

    @cached_property
    def _first_screen(self) -> Optional[str]:
        return first_screen(self.document)

    def _repr_html_(self) -> str:
        return self._first_screen or f"<pre>{html.escape(repr(self))}</pre>"


@dataclass(frozen=True)
class BillItem(FromDocument):
    """A line of the bill."""

    item: str
    pool: str
    quantity: float
    unit: str
    unit_price_usd: float
    usd: float


@dataclass(frozen=True)
class Event(FromDocument):
    """Something that happened in a run, such as the loss of a node."""

    at_seconds: Annotated[float, "at_s"]
    event: str
    pool: Optional[str] = None
    nodes: Optional[int] = None
    detail: Optional[str] = None
    times: int = 1


@dataclass(frozen=True)
class SeedSpread(FromDocument):
    """What the seeds of a run come to: the median, 5th and 95th percentile, and the interval with all stated error."""

    seeds: Annotated[int, "count"]
    finished: int
    met: int
    seconds_median: Annotated[Optional[float], "time_s.median"]
    seconds_p5: Annotated[Optional[float], "time_s.p5?"]
    seconds_p95: Annotated[Optional[float], "time_s.p95?"]
    usd_median: Annotated[Optional[float], "usd.median"]
    usd_p5: Annotated[Optional[float], "usd.p5?"]
    usd_p95: Annotated[Optional[float], "usd.p95?"]


def _images_per_second(document: Document) -> Optional[float]:
    """While it trains; None if it never does."""
    time = document["time"]
    training_s = time["steps"] * time["step_mean_s"]
    return time["images"] / training_s if training_s > 0 else None


@dataclass(frozen=True, repr=False)
class Run(Result):
    """One simulated training. Ends of intervals (`_low`, `_high`) hold all stated error."""

    platform: Annotated[str, "run.platform"]
    market: Annotated[str, "run.market"]
    allocation: Annotated[str, "run.allocation"]
    gpu: Annotated[str, "run.gpu"]
    gpus: Annotated[int, "run.gpus"]
    scheme: Annotated[str, "run.scheme"]
    mode: Annotated[str, "run.mode"]
    placement: Annotated[str, "run.placement"]
    policy: Annotated[str, "run.policy"]
    seed: Annotated[int, "provenance.seed"]
    seconds: Annotated[float, "time.total_s"]
    seconds_low: Annotated[float, "time.interval_s.0"]
    seconds_high: Annotated[float, "time.interval_s.1"]
    usd: Annotated[float, "cost.total_usd"]
    usd_low: Annotated[float, "cost.interval_usd.0"]
    usd_high: Annotated[float, "cost.interval_usd.1"]
    steps: Annotated[int, "time.steps"]
    images: Annotated[int, "time.images"]
    step_seconds: Annotated[float, "time.step_mean_s"]
    images_per_second: Annotated[Optional[float], _images_per_second]
    gpu_busy: Annotated[float, "utilization.gpu_busy"]
    gpu_flops: Annotated[float, "utilization.gpu_flops"]
    cpu: Annotated[Optional[float], "utilization.cpu"]
    network: Annotated[float, "utilization.network"]
    memory_bytes: Annotated[float, "utilization.memory_bytes"]
    gpu_hours: float
    kwh: Annotated[Optional[float], "energy.kwh?"]
    kg_co2e: Annotated[Optional[float], "energy.kg_co2e?"]
    losses: Annotated[int, "life.losses"]
    checkpoints: Annotated[int, "life.checkpoints"]
    lost_training_seconds: Annotated[float, "life.lost_training_s"]
    deadline_seconds: Annotated[Optional[float], "goals.deadline_s"]
    budget_usd: Annotated[Optional[float], "goals.budget_usd"]
    met: Annotated[bool, "goals.met"]
    inputs: Annotated[str, "provenance.inputs"]
    risk: Annotated[str, "provenance.risk"]
    gpu_seconds: Dict[str, float]
    document: Annotated[ResultDocument, ""] = field(compare=False)

    @property
    def bill(self) -> Tuple[BillItem, ...]:
        return tuple(map(BillItem.from_document, self.document["cost"]["items"]))

    @property
    def events(self) -> Tuple[Event, ...]:
        return tuple(map(Event.from_document, self.document["events"]))

    @property
    def warnings(self) -> Tuple[str, ...]:
        return tuple(self.document["provenance"]["warnings"])

    @property
    def spread(self) -> Optional[SeedSpread]:
        """What this seed and the next ones come to, if chance decides."""
        seeds = self.document.get("seeds")
        return None if seeds is None else SeedSpread.from_document(seeds)

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
class FailedRun(FromDocument):
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
    document: Annotated[Document, ""] = field(compare=False)

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
class Job(FromDocument):
    """The life of one job on a cluster."""

    job: str
    owner: str
    workload: str
    gpus: int
    arrival_seconds: Annotated[float, "arrival_s"]
    start_seconds: Annotated[float, "start_s"]
    end_seconds: Annotated[float, "end_s"]
    wait_seconds: Annotated[float, "wait_s"]
    run_seconds: Annotated[float, "run_s"]
    slowdown: float
    gpu_hours: float
    preemptions: int


@dataclass(frozen=True, repr=False)
class Cluster(Result):
    """The life of many jobs on one cluster."""

    scheduler: str
    placement: str
    seed: Annotated[int, "provenance.seed"]
    gpus: Annotated[int, "summary.gpus"]
    seconds: Annotated[float, "summary.total_s"]
    usd: Annotated[float, "cost.total_usd"]
    gpu_busy: Annotated[float, "summary.gpu_busy"]
    wait_seconds_mean: Annotated[float, "summary.wait_s.mean"]
    slowdown_mean: Annotated[float, "summary.slowdown.mean"]
    jobs: List[Job]
    document: Annotated[ClusterResultDocument, ""] = field(compare=False)

    @property
    def bill(self) -> Tuple[BillItem, ...]:
        return tuple(map(BillItem.from_document, self.document["cost"]["items"]))

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each job."""
        return frame({**vars(job), "scheduler": self.scheduler, "seed": self.seed} for job in self.jobs)

    def __repr__(self) -> str:
        return f"Cluster({len(self.jobs)} jobs on {self.gpus} GPUs, {self.scheduler}: {self.usd:.6g} USD)"


@dataclass(frozen=True)
class Compared(FromDocument):
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
    same_decisions: Annotated[bool, "decisions.same"]
    comparison: List[Compared]
    predicted: Run
    measured: Run
    document: Annotated[Document, ""] = field(compare=False)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each quantity that is compared."""
        return frame(vars(row) for row in self.comparison)

    def __repr__(self) -> str:
        return (
            f"Rehearsal({self.scenario} on {self.hosts} hosts: predicted {self.predicted.seconds:.6g} s, "
            f"measured {self.measured.seconds:.6g} s)"
        )


@dataclass(frozen=True)
class Changed(FromDocument):
    """A quantity of two results. None where a result does not have it."""

    what: str
    unit: str
    before: Annotated[Optional[float], "before.value?"]
    after: Annotated[Optional[float], "after.value?"]
    change: Annotated[Optional[float], "change?"]
    relative: Annotated[Optional[float], "relative?"]  # the change as a share of what was before
    within_error: Annotated[Optional[bool], "within_error?"]


@dataclass(frozen=True)
class ChangedInput(FromDocument):
    """Something that two results were given differently."""

    kind: str
    pointer: Annotated[Optional[str], "pointer?"]
    name: Annotated[Optional[str], "name?"]
    before: Annotated[Any, "before?"]
    after: Annotated[Any, "after?"]


@dataclass(frozen=True, repr=False)
class Diff(FromDocument):
    """What differs between two results (`ganymede diff --format json`)."""

    of: str
    before: Annotated[str, "before.file"]
    after: Annotated[str, "after.file"]
    quantities: List[Changed]
    inputs: List[ChangedInput]
    held: bool  # whether the limits that were asked for hold; true without any
    document: Annotated[DiffDocument, ""] = field(compare=False)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each quantity."""
        return frame(vars(row) for row in self.quantities)

    def __repr__(self) -> str:
        return f"Diff({self.of}, {self.before} to {self.after}: {len(self.quantities)} quantities)"
