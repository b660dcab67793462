"""What `allreduce`, `catalog` and `validate` return."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Sequence, Tuple

from ._results import Document, Result
from ._tables import frame, html_table

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Collective:
    """One call of a collective. Rates are of 1e9 bytes a second, as nccl-tests counts them."""

    scheme: str
    collective: str
    ranks: int
    bytes: int
    seconds: float
    algbw_gb_per_second: float
    busbw_gb_per_second: float
    messages: int
    fidelity: str
    limit: Optional[str]
    choice: Optional[str]
    place: int


@dataclass(frozen=True)
class Collectives:
    """Collectives against each other on one fabric."""

    collectives: List[Collective]
    document: Sequence[Document] = field(compare=False, repr=False)

    @classmethod
    def from_document(cls, document: Sequence[Document]) -> "Collectives":
        return cls(
            [
                Collective(
                    row["scheme"],
                    row["collective"],
                    row["ranks"],
                    row["bytes"],
                    row["time_s"],
                    row["algbw_GBps"],
                    row["busbw_GBps"],
                    row["messages"],
                    row["fidelity"],
                    row["limit"],
                    row["choice"],
                    row["place"],
                )
                for row in document
            ],
            document,
        )

    def __iter__(self) -> Iterator[Collective]:
        return iter(self.collectives)

    def __len__(self) -> int:
        return len(self.collectives)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each collective."""
        return frame(map(vars, self.collectives))

    def _repr_html_(self) -> str:
        columns = ("scheme", "collective", "ranks", "bytes", "seconds", "busbw_gb_per_second", "limit", "place")
        return html_table([vars(row) for row in self.collectives], columns)


@dataclass(frozen=True)
class Offer:
    """An instance type at a price; one without a price has neither region nor market."""

    provider: str
    instance: str
    gpu: str
    gpus: int
    vcpus: Optional[int]
    memory_bytes: Optional[float]
    region: Optional[str]
    zone: Optional[str]
    market: Optional[str]
    usd_per_hour: Optional[float]
    usd_per_gpu_hour: Optional[float]
    as_of: Optional[str]
    age_days: Optional[int]
    source: Optional[str]
    unconfirmed: Optional[str]
    retired: Optional[str]


@dataclass(frozen=True)
class Catalog:
    """What can be rented where."""

    offers: List[Offer]
    document: Sequence[Document] = field(compare=False, repr=False)

    @classmethod
    def from_document(cls, document: Sequence[Document]) -> "Catalog":
        def price(row: Document) -> Optional[float]:
            return None if row["usd_per_hour"] is None else float(row["usd_per_hour"])

        return cls(
            [
                Offer(
                    row["provider"],
                    row["instance"],
                    row["gpu"],
                    row["gpus"],
                    row["vcpus"],
                    row["memory_bytes"],
                    row["region"],
                    row["zone"],
                    row["market"],
                    price(row),
                    row["usd_per_gpu_hour"],
                    row["as_of"],
                    row["age_days"],
                    row["source"],
                    row["unconfirmed"],
                    row["retired"],
                )
                for row in document
            ],
            document,
        )

    def __iter__(self) -> Iterator[Offer]:
        return iter(self.offers)

    def __len__(self) -> int:
        return len(self.offers)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each offer."""
        return frame(map(vars, self.offers))

    def _repr_html_(self) -> str:
        columns = ("provider", "instance", "gpu", "gpus", "region", "market", "usd_per_hour", "usd_per_gpu_hour", "as_of")
        return html_table([vars(offer) for offer in self.offers], columns)


@dataclass(frozen=True)
class Prediction:
    """A published measurement, and what is predicted for it unless it calibrates (`role` is then "fit"), or nothing predicts
    it ("none": `because` says why); "shown" is a simulated figure that nobody has measured. `error` is
    predicted / measured - 1; `low` and `high` are the 90 % interval.
    """

    study: str
    series: Optional[str]
    what: str
    unit: str
    role: str
    measured: Optional[float]
    predicted: Optional[float]
    low: Optional[float]
    high: Optional[float]
    error: Optional[float]
    interval_holds: Optional[bool]
    gpus: Optional[int]
    quantity: str
    simulated: Optional[float]
    because: Optional[str]


@dataclass(frozen=True, repr=False)
class Validation(Result):
    """Predictions against published measurements."""

    mean_error: Optional[float]
    held_by_interval: Optional[float]
    promises_kept: bool
    predictions: List[Prediction]
    document: Document = field(compare=False)

    @classmethod
    def from_document(cls, document: Document) -> "Validation":
        """The validation of a `ganymede.validation-result/1`."""
        summary = document["summary"]
        studies = document["studies"]
        return cls(
            summary.get("mean_error"),
            summary.get("held_by_interval"),
            all(promise["kept"] for study in studies for promise in study["promises"]),
            [_prediction(study["name"], cell) for study in studies for cell in study["cells"]],
            document,
        )

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self.predictions)

    def __len__(self) -> int:
        return len(self.predictions)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each measurement."""
        return frame(map(vars, self.predictions))

    def __repr__(self) -> str:
        error = "" if self.mean_error is None else f", mean error {100 * self.mean_error:.1f} %"
        return f"Validation({len(self.predictions)} measurements{error})"


def _prediction(study: str, cell: Document) -> Prediction:
    interval: Tuple[Any, Any] = tuple(cell.get("interval_90") or (None, None))
    return Prediction(
        study,
        cell.get("series"),
        cell["what"],
        cell["unit"],
        cell["role"],
        cell.get("measured"),
        cell.get("predicted"),
        interval[0],
        interval[1],
        cell.get("error"),
        cell.get("interval_holds"),
        cell.get("gpus"),
        cell.get("quantity", "time"),
        cell.get("simulated"),
        cell.get("because"),
    )
