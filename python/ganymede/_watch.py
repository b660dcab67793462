"""A run under way: its log, and how it stands beside a plan."""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
import warnings
from dataclasses import dataclass
from typing import IO, Annotated, Any, Iterator, List, Optional, Union

from ._commands import _input
from ._plans import Plan
from ._program import PathLike, run
from ._reading import Document, FromDocument


def _number(loss: Any) -> float:
    """A loss as a number. PyTorch 2 warns if a tensor is converted that still has its gradient's history."""
    return float(loss.detach() if hasattr(loss, "detach") else loss)


class RunLog:
    """Writes a `ganymede.run-log/1` as a training goes on, for `ganymede.watch` and `ganymede watch`:

        with ganymede.RunLog("run.jsonl", model="dcgan-64", steps=10_000, batch=64) as log:
            for step in range(10_000):
                ...
                log.step(step + 1, generator=loss_g, discriminator=loss_d)

    Leaving the block says how the run ended: an exception stopped it.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        steps: int,
        batch: int,
        gpus: int = 1,
        model: Optional[str] = None,
        device: Optional[str] = None,
        first_step: int = 0,
        every: float = 1.0,
    ) -> None:
        """`batch` counts the images of one step over all GPUs. A run that goes on from a checkpoint gives the steps that
        it holds as `first_step`, and its log is continued. Steps are written at most once in `every` seconds.
        """
        if steps < 1 or batch < 1 or gpus < 1 or not 0 <= first_step <= steps:
            raise ValueError(
                f"steps={steps}, batch={batch}, gpus={gpus}, first_step={first_step}: expected at least one step, image "
                "and GPU, and no more first steps than steps"
            )
        self._every = every
        self._next = float("-inf")
        self._done = first_step
        self._steps = steps
        self._file: IO[str] = open(path, "a" if first_step else "w", encoding="utf-8")
        self._write(
            schema="ganymede.run-log/1", model=model, device=device, gpus=gpus, batch=batch, steps=steps,
            first_step=first_step,
        )

    def step(self, done: int, **losses: float) -> None:
        """So many steps are done. Losses are numbers, or tensors of one number; reading those of a GPU waits for it, and
        only steps that are written are read.
        """
        if done > self._steps:
            if self._done <= self._steps:
                warnings.warn(f"step {done} of a run that was to have {self._steps}: the log ends with that", stacklevel=2)
            self._done = done
            return
        self._done = done
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._every
        numbers = {name: _number(loss) for name, loss in losses.items()}
        finite = {name: loss if math.isfinite(loss) else None for name, loss in numbers.items()}  # JSON has no NaN
        self._write(step=done, **({"losses": finite} if finite else {}))

    @contextlib.contextmanager
    def pause(self, what: str) -> Iterator[None]:
        """A time without training: `with log.pause("evaluation"): ...`."""
        begin = time.monotonic()
        yield
        self._write(pause=what, seconds=time.monotonic() - begin, step=min(self._done, self._steps))

    def end(self, how: str = "finished") -> None:
        """Writes the last line and closes the file. `how` is "finished" or "stopped"."""
        if not self._file.closed:
            self._write(end=how, step=min(self._done, self._steps))
            self._file.close()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.end("finished" if kind is None else "stopped")

    def _write(self, **members: Any) -> None:
        self._file.write(json.dumps({**members, "unix_s": round(time.time(), 3)}, allow_nan=False) + "\n")
        self._file.flush()


@dataclass(frozen=True)
class Forecast(FromDocument):
    """How a run stands beside its plan. Seconds count from the request of the nodes."""

    state: str
    steps_done: int
    steps: int
    elapsed_seconds: Annotated[float, "elapsed_s"]
    step_seconds: Annotated[Optional[float], "step_s"]
    planned_step_seconds: Annotated[Optional[float], "plan_step_s"]
    seconds: Annotated[float, "time_s.median"]
    seconds_low: Annotated[float, "time_s.interval.0"]
    seconds_high: Annotated[float, "time_s.interval.1"]
    planned_seconds: Annotated[float, "plan_time_s.median"]
    spent_usd: float
    usd: Annotated[float, "usd.median"]
    usd_low: Annotated[float, "usd.interval.0"]
    usd_high: Annotated[float, "usd.interval.1"]
    planned_usd: Annotated[float, "plan_usd.median"]
    deadline_seconds: Annotated[Optional[float], "deadline.seconds"]
    deadline_probability: Annotated[Optional[float], "deadline.probability"]
    warnings: List[str]
    document: Annotated[Document, ""]


def watch(plan: Union[PathLike, Plan], log: PathLike, *, program: Optional[PathLike] = None) -> Forecast:
    """How the run that writes `log` stands beside its plan, which is a `Plan` or its file."""
    with _input(plan.document if isinstance(plan, Plan) else plan, "plan") as given:
        arguments = ["watch", "--plan", *given.arguments, "--log", os.fspath(log)]
        return run(Forecast.from_document, arguments, program, False, given.file, given.shown)
