"""What `plan` returns."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

from ._results import Document, Result
from ._tables import Row, frame

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, repr=False)
class Candidate:
    """Something that may be rented: what, how it trains, and what that comes to. Times and costs are medians over the
    seeds; the ends of their intervals hold the seeds and all stated error.
    """

    provider: str
    region: str
    market: str
    instance: str
    nodes: int
    on_demand_nodes: int
    gpus_per_node: int
    gpu: str
    gpus: int
    batch_per_gpu: int
    scheme: str
    policy: str
    checkpoint: Optional[str]
    usd_per_hour: float
    prices_as_of: str
    verdict: str
    reason: Optional[str]
    seconds: float
    seconds_low: float
    seconds_high: float
    usd: float
    usd_low: float
    usd_high: float
    usd_at_worst_prices: float
    usd_expected: Optional[float]
    kg_co2e: Optional[float]
    gpu_busy: float
    losses_mean: float
    probability: float
    seeds: int
    never_finish: int
    risk: str
    inputs: str
    chosen: bool
    document: Document = field(compare=False)

    @classmethod
    def from_document(cls, row: Document) -> "Candidate":
        """The candidate of a simulated row of a `ganymede.plan/1`."""
        time, usd, carbon = row["time_s"], row["usd"], row["kg_co2e"]
        return cls(
            provider=row["provider"],
            region=row["region"],
            market=row["market"],
            instance=row["instance"],
            nodes=row["nodes"],
            on_demand_nodes=row["on_demand_nodes"],
            gpus_per_node=row["gpus_per_node"],
            gpu=row["gpu"],
            gpus=row["gpus"],
            batch_per_gpu=row["batch_per_gpu"],
            scheme=row["scheme"],
            policy=row["policy"],
            checkpoint=row["checkpoint"],
            usd_per_hour=float(row["usd_per_hour"]),
            prices_as_of=row["prices_as_of"],
            verdict=row["verdict"],
            reason=row.get("reason"),
            seconds=time["median"],
            seconds_low=time["interval"][0],
            seconds_high=time["interval"][1],
            usd=usd["median"],
            usd_low=usd["interval"][0],
            usd_high=usd["interval"][1],
            usd_at_worst_prices=usd["at_worst_prices"],
            usd_expected=usd["expected"],
            kg_co2e=None if carbon is None else carbon["median"],
            gpu_busy=row["gpu_busy"],
            losses_mean=row["losses_mean"],
            probability=row["probability"],
            seeds=row["seeds"],
            never_finish=row["never_finish"],
            risk=row["risk"],
            inputs=row["inputs"],
            chosen=row["chosen"],
            document=row,
        )

    @property
    def scenario(self) -> Optional[Dict[str, Any]]:
        """What `simulate` takes; a plan writes it for the chosen candidate."""
        return self.document.get("scenario")

    @property
    def warnings(self) -> Tuple[str, ...]:
        return tuple(self.document.get("warnings", ()))

    def row(self) -> Row:
        return {name: getattr(self, name) for name in _COLUMNS}

    def __repr__(self) -> str:
        return (
            f"Candidate({self.provider} {self.region} {self.market}, {self.nodes} x {self.instance}: {self.gpus} x "
            f"{self.gpu}, {self.scheme}: {self.seconds:.6g} s, {self.usd:.6g} USD)"
        )


_COLUMNS = tuple(entry.name for entry in fields(Candidate) if entry.name != "document")


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """What to rent for a goal. `chosen` is None if nothing meets it; `near_misses` then say what comes nearest."""

    model: str
    images: int
    seed: int
    deadline_seconds: Optional[float]
    budget_usd: Optional[float]
    chosen: Optional[Candidate]
    cheapest: Optional[Candidate]
    balanced: Optional[Candidate]
    safest: Optional[Candidate]
    candidates: List[Candidate]
    document: Document = field(compare=False)

    @classmethod
    def from_document(cls, document: Document) -> "Plan":
        """The plan of a `ganymede.plan/1`."""
        request, chosen = document["request"], document["chosen"]
        cards = document["cards"] or {}
        budget = request["budget_usd"]

        def card(name: str) -> Optional[Candidate]:
            return Candidate.from_document(cards[name]) if name in cards else None

        return cls(
            request["model"],
            request["images"],
            request["seed"],
            request["deadline_s"],
            None if budget is None else float(budget),
            None if chosen is None else Candidate.from_document(chosen),
            card("cheapest"),
            card("balanced"),
            card("safest"),
            [Candidate.from_document(row) for row in document["simulated"]],
            document,
        )

    @property
    def near_misses(self) -> List[Candidate]:
        """Simulated candidates that nearly meet the goals, each with its `reason`."""
        return [Candidate.from_document(row) for row in self.document["near_misses"] if "time_s" in row]

    @property
    def pareto(self) -> List[Candidate]:
        """Candidates that none beats in both time and cost, the fastest first."""
        return [Candidate.from_document(row) for row in self.document["pareto"]]

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each candidate that was simulated, the best first, with the seed of its first run."""
        return frame({**candidate.row(), "seed": self.seed} for candidate in self.candidates)

    def __repr__(self) -> str:
        return f"Plan({self.model}, {self.images} images: {self.chosen or 'nothing meets the goals'})"
