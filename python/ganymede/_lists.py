"""What `allreduce`, `catalog` and `validate` return."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Dict, Iterator, List, Optional, Sequence

from ._reading import Document, FromDocument
from ._results import Result
from ._tables import frame, html_table

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Collective(FromDocument):
    """One call of a collective. Rates are of 1e9 bytes a second, as nccl-tests counts them."""

    scheme: str
    collective: str
    ranks: int
    bytes: int
    seconds: Annotated[float, "time_s"]
    algbw_gb_per_second: Annotated[float, "algbw_GBps"]
    busbw_gb_per_second: Annotated[float, "busbw_GBps"]
    messages: int
    fidelity: str
    limit: Optional[str]
    choice: Optional[str]
    place: int
    difference: Annotated[Optional[float], "difference?"]


@dataclass(frozen=True)
class Collectives(FromDocument):
    """Collectives against each other on one fabric."""

    collectives: Annotated[List[Collective], ""]
    document: Annotated[Sequence[Document], ""] = field(compare=False, repr=False)

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
class Offer(FromDocument):
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
class Catalog(FromDocument):
    """What can be rented where."""

    offers: Annotated[List[Offer], ""]
    document: Annotated[Sequence[Document], ""] = field(compare=False, repr=False)

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
class Prediction(FromDocument):
    """A published measurement, and what is predicted for it unless it calibrates (`role` is then "fit"), or nothing predicts
    it ("none": `because` says why); "shown" is a simulated figure that nobody has measured. `error` is
    predicted / measured - 1; `low` and `high` are the 90 % interval.
    """

    study: str
    series: Annotated[Optional[str], "series?"]
    what: str
    unit: str
    role: str
    measured: Annotated[Optional[float], "measured?"]
    predicted: Annotated[Optional[float], "predicted?"]
    low: Annotated[Optional[float], "interval_90.0?"]
    high: Annotated[Optional[float], "interval_90.1?"]
    error: Annotated[Optional[float], "error?"]
    interval_holds: Annotated[Optional[bool], "interval_holds?"]
    gpus: Annotated[Optional[int], "gpus?"]
    quantity: str
    simulated: Annotated[Optional[float], "simulated?"]
    because: Annotated[Optional[str], "because?"]


def _promises_kept(document: Document) -> bool:
    return all(promise["kept"] for study in document["studies"] for promise in study["promises"])


def _cells(document: Document) -> List[Dict[str, Any]]:
    """The cells of all studies, each with its study's name."""
    studies = document["studies"]
    return [{"quantity": "time", **cell, "study": study["name"]} for study in studies for cell in study["cells"]]


@dataclass(frozen=True, repr=False)
class Validation(Result):
    """Predictions against published measurements."""

    mean_error: Annotated[Optional[float], "summary.mean_error?"]
    held_by_interval: Annotated[Optional[float], "summary.held_by_interval?"]
    promises_kept: Annotated[bool, _promises_kept]
    predictions: Annotated[List[Prediction], _cells]
    document: Annotated[Document, ""] = field(compare=False)

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
