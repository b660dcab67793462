"""What `plan` returns."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, Dict, Iterator, List, Optional, Tuple

from ._reading import Document, FromDocument
from ._results import Result
from ._tables import Row, frame

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, repr=False)
class Candidate(FromDocument):
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
    reason: Annotated[Optional[str], "reason?"]
    seconds: Annotated[float, "time_s.median"]
    seconds_low: Annotated[float, "time_s.interval.0"]
    seconds_high: Annotated[float, "time_s.interval.1"]
    usd: Annotated[float, "usd.median"]
    usd_low: Annotated[float, "usd.interval.0"]
    usd_high: Annotated[float, "usd.interval.1"]
    usd_at_worst_prices: Annotated[float, "usd.at_worst_prices"]
    usd_expected: Annotated[Optional[float], "usd.expected"]
    kg_co2e: Annotated[Optional[float], "kg_co2e.median"]
    gpu_busy: float
    losses_mean: float
    probability: float
    seeds: int
    never_finish: int
    risk: str
    inputs: str
    chosen: bool
    document: Annotated[Document, ""] = field(compare=False)

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

    model: Annotated[str, "request.model"]
    images: Annotated[int, "request.images"]
    seed: Annotated[int, "request.seed"]
    deadline_seconds: Annotated[Optional[float], "request.deadline_s"]
    budget_usd: Annotated[Optional[float], "request.budget_usd"]
    chosen: Optional[Candidate]
    cheapest: Annotated[Optional[Candidate], "cards.cheapest?"]
    balanced: Annotated[Optional[Candidate], "cards.balanced?"]
    safest: Annotated[Optional[Candidate], "cards.safest?"]
    candidates: Annotated[List[Candidate], "simulated"]
    document: Annotated[Document, ""] = field(compare=False)

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
